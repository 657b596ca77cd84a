"""The table of methods: their names, their colours, and what each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

__all__ = [
    "COLOURS",
    "COMPARED",
    "LABELS",
    "METHODS",
    "STUDENTS",
    "TABULAR",
    "TRUTH",
    "HeadKind",
    "Method",
    "Objective",
    "TargetTransform",
    "method_named",
]

HeadKind = Literal["gaussian", "normal-wishart", "mixture"]
"""Output of a network: a Gaussian, a Normal-Wishart, or one Gaussian per member."""

Objective = Literal["endd", "end", "md-end"]
"""Objectives of students, which are also their names on the command line."""

TargetTransform = Literal["none", "auto", "log", "asinh", "yeo-johnson", "quantile"]
"""Scales on which targets are learnt, which are also their names on the command line."""


@dataclass(frozen=True)
class Method:
    """One way to predict a target with its uncertainty."""

    key: str
    """Name in results."""
    label: str
    """Name for people, in figures and reports."""
    spelling: str
    """Name on the command line; of a student, its objective."""
    colour: str
    """Colour in every figure, from Okabe and Ito's palette: safe for the colour-blind."""
    head: HeadKind | None
    """Output of its networks; None for a bare number."""
    estimator: str | None
    """Class of the estimator; None for a method that only learns depth."""
    has_knowledge: bool
    """Tells knowledge uncertainty from data uncertainty."""
    in_paper: bool = True
    """Takes part in the experiments of the paper and of its page."""

    @property
    def paper(self) -> str:
        """Return the name in the paper, as LaTeX."""
        return self.key.replace("2", "$^2$")

    @property
    def objective(self) -> Objective | None:
        """Return what a student learns; None for a method that learns from targets."""
        return cast(Objective, self.spelling) if self.needs_teacher else None

    @property
    def needs_teacher(self) -> bool:
        """Tell if the method learns from an ensemble, not from targets."""
        return self.estimator == "DistilledRegressor"

    @property
    def is_likelihood(self) -> bool:
        """Tell if its networks learn targets by the likelihood of one Gaussian."""
        return self.head == "gaussian" and not self.needs_teacher


_SHARED = Method(
    "Shared",
    "Shared",
    "shared",
    "#F0E442",
    "normal-wishart",
    "SharedPriorRegressor",
    has_knowledge=True,
    in_paper=False,
)
_TABLE = (
    Method("DD", "DD", "dd", "#777777", None, None, False),
    Method("Single", "Single", "single", "#56B4E9", "gaussian", "GaussianRegressor", False),
    Method("ENSM", "Ensemble", "ensemble", "#0072B2", "gaussian", "DeepEnsembleRegressor", True),
    Method("EnD2", "EnD²", "endd", "#D55E00", "normal-wishart", "DistilledRegressor", True),
    Method("NWPN", "NWPN", "rkl", "#009E73", "normal-wishart", "PriorNetRegressor", True),
    Method("DER", "DER", "der", "#8C6D1F", "normal-wishart", "EvidentialRegressor", True),
    Method("EnD", "EnD", "end", "#E69F00", "gaussian", "DistilledRegressor", False),
    Method("MD-EnD", "MD-EnD", "md-end", "#CC79A7", "mixture", "DistilledRegressor", True),
    _SHARED,
)

METHODS: Mapping[str, Method] = {method.key: method for method in _TABLE}
"""The methods by their names in results, in the order of tables and figures."""

COMPARED: Mapping[str, Method] = {key: one for key, one in METHODS.items() if one.in_paper}
"""The methods of the paper's experiments, by their names in results."""

TABULAR = tuple(method for method in _TABLE if method.estimator is not None)
"""Methods for tables, each with an estimator."""

STUDENTS = tuple(method.key for method in _TABLE if method.needs_teacher)
"""Names in results of the methods that learn from an ensemble."""

COLOURS = {method.key: method.colour for method in _TABLE}
LABELS = {method.key: method.label for method in _TABLE}
TRUTH = "black"


def method_named(spelling: str) -> Method:
    """Return a method by its name on the command line, which for a student is its objective."""
    return next(method for method in _TABLE if method.spelling == spelling)
