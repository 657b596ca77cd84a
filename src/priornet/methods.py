"""The table of methods: their names, their colours, and what each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "COLOURS",
    "LABELS",
    "METHODS",
    "STUDENTS",
    "TABULAR",
    "TRUTH",
    "HeadKind",
    "Method",
    "Objective",
    "method_named",
]

HeadKind = Literal["gaussian", "normal-wishart", "mixture"]
"""What a network predicts: a Gaussian, a Normal-Wishart, or one Gaussian per member."""

Objective = Literal["endd", "end", "md-end"]
"""What a student learns; these are also the names of the students on the command line."""


@dataclass(frozen=True)
class Method:
    """One way to predict a target with its uncertainty."""

    key: str
    """Name in results."""
    label: str
    """Name for people, in figures and reports."""
    paper: str
    """Name in the paper, as LaTeX."""
    spelling: str
    """Name on the command line."""
    colour: str
    """Colour in every figure, from Okabe and Ito's palette: safe for the colour-blind."""
    head: HeadKind | None
    """What its networks predict; None for a bare number."""
    estimator: str | None
    """Class of the estimator; None for a method that only learns depth."""
    has_knowledge: bool
    """Tells knowledge uncertainty from data uncertainty."""
    objective: Objective | None = None
    """What a student learns; None for a method that learns from targets."""

    @property
    def needs_teacher(self) -> bool:
        """Tell if the method learns from an ensemble, not from targets."""
        return self.objective is not None

    @property
    def is_likelihood(self) -> bool:
        """Tell if its networks learn targets by the likelihood of one Gaussian."""
        return self.head == "gaussian" and not self.needs_teacher


_TABLE = (
    Method(
        key="DD",
        label="DD",
        paper="DD",
        spelling="dd",
        colour="#777777",
        head=None,
        estimator=None,
        has_knowledge=False,
    ),
    Method(
        key="Single",
        label="Single",
        paper="Single",
        spelling="single",
        colour="#56B4E9",
        head="gaussian",
        estimator="GaussianRegressor",
        has_knowledge=False,
    ),
    Method(
        key="ENSM",
        label="Ensemble",
        paper="ENSM",
        spelling="ensemble",
        colour="#0072B2",
        head="gaussian",
        estimator="DeepEnsembleRegressor",
        has_knowledge=True,
    ),
    Method(
        key="EnD2",
        label="EnD²",
        paper="EnD$^2$",
        spelling="endd",
        colour="#D55E00",
        head="normal-wishart",
        estimator="DistilledRegressor",
        has_knowledge=True,
        objective="endd",
    ),
    Method(
        key="NWPN",
        label="NWPN",
        paper="NWPN",
        spelling="rkl",
        colour="#009E73",
        head="normal-wishart",
        estimator="PriorNetRegressor",
        has_knowledge=True,
    ),
    Method(
        key="DER",
        label="DER",
        paper="DER",
        spelling="der",
        colour="#8C6D1F",
        head="normal-wishart",
        estimator="EvidentialRegressor",
        has_knowledge=True,
    ),
    Method(
        key="EnD",
        label="EnD",
        paper="EnD",
        spelling="end",
        colour="#E69F00",
        head="gaussian",
        estimator="DistilledRegressor",
        has_knowledge=False,
        objective="end",
    ),
    Method(
        key="MD-EnD",
        label="MD-EnD",
        paper="MD-EnD",
        spelling="md-end",
        colour="#CC79A7",
        head="mixture",
        estimator="DistilledRegressor",
        has_knowledge=True,
        objective="md-end",
    ),
)

METHODS: Mapping[str, Method] = {method.key: method for method in _TABLE}
"""The methods by their names in results, in the order of tables and figures."""

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
