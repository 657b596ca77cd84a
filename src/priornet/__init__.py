"""Regression Prior Networks: what a regression model does not know, in one forward pass.

Importing this package loads nothing heavy: each name below is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from priornet._version import __version__

if TYPE_CHECKING:
    from priornet import distributions, losses, metrics, nn, priors, special, uncertainty
    from priornet.distributions import GaussianEnsemble, MultivariateStudentT, NormalWishart

__all__ = [
    "GaussianEnsemble",
    "MultivariateStudentT",
    "NormalWishart",
    "__version__",
    "distributions",
    "losses",
    "metrics",
    "nn",
    "priors",
    "special",
    "uncertainty",
]

_HOME = {
    "GaussianEnsemble": "distributions",
    "MultivariateStudentT": "distributions",
    "NormalWishart": "distributions",
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
