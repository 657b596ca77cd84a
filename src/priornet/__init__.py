"""Regression Prior Networks: what a regression model does not know, in one forward pass.

Importing this package loads nothing heavy: each name below is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from priornet._version import __version__

if TYPE_CHECKING:
    from priornet import (
        data,
        distill,
        distributions,
        estimators,
        export,
        losses,
        metrics,
        nn,
        priors,
        report,
        special,
        training,
        uncertainty,
    )
    from priornet.distributions import GaussianEnsemble, MultivariateStudentT, NormalWishart
    from priornet.estimators import (
        DeepEnsembleRegressor,
        DistilledRegressor,
        EvidentialRegressor,
        GaussianRegressor,
        PriorNetRegressor,
        load,
    )

__all__ = [
    "DeepEnsembleRegressor",
    "DistilledRegressor",
    "EvidentialRegressor",
    "GaussianEnsemble",
    "GaussianRegressor",
    "MultivariateStudentT",
    "NormalWishart",
    "PriorNetRegressor",
    "__version__",
    "data",
    "distill",
    "distributions",
    "estimators",
    "export",
    "load",
    "losses",
    "metrics",
    "nn",
    "priors",
    "report",
    "special",
    "training",
    "uncertainty",
]

_HOME = {
    "DeepEnsembleRegressor": "estimators",
    "DistilledRegressor": "estimators",
    "EvidentialRegressor": "estimators",
    "GaussianEnsemble": "distributions",
    "GaussianRegressor": "estimators",
    "MultivariateStudentT": "distributions",
    "NormalWishart": "distributions",
    "PriorNetRegressor": "estimators",
    "load": "estimators",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    else:
        value = import_module(f"{__name__}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not, beside what the module holds."""
    return sorted({*globals(), *__all__})
