"""Regression Prior Networks: what a regression model does not know, in one forward pass.

Importing this package loads nothing heavy: each name below is imported when it is first used.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names
from priornet._version import __version__

if TYPE_CHECKING:
    from priornet import (
        depth,
        distill,
        distributions,
        estimators,
        evaluation,
        export,
        losses,
        metrics,
        nn,
        priors,
        report,
        special,
        tables,
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
        SharedPriorRegressor,
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
    "SharedPriorRegressor",
    "__version__",
    "depth",
    "distill",
    "distributions",
    "estimators",
    "evaluation",
    "export",
    "load",
    "losses",
    "metrics",
    "nn",
    "priors",
    "report",
    "special",
    "tables",
    "training",
    "uncertainty",
]

_ROOMS = (
    *("depth", "distill", "distributions", "estimators", "evaluation", "export", "losses"),
    *("metrics", "nn", "priors", "report", "special", "tables", "training", "uncertainty"),
)
_HOMES = {
    **dict.fromkeys((name for name in __all__ if "Regressor" in name), "estimators"),
    **dict.fromkeys(("GaussianEnsemble", "MultivariateStudentT", "NormalWishart"), "distributions"),
    **{room: room for room in _ROOMS},
    "load": "estimators",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
