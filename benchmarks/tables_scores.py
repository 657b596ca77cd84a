"""Scores of an answer about the test rows of a table, the same for every method.

CRPS and NLL are those of a density. Methods of quantiles have no NLL, and their CRPS is twice the
mean pinball loss at 20 levels, 2.5 % to 97.5 %, the midpoint rule of CRPS as an integral over
levels. Bare numbers and methods of three quantiles have neither. Knowledge is judged by the AUC
of telling the test rows from the same rows with their columns permuted, each by itself, and from
the same rows with one number moved by six standard deviations, up or down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.distributions import Distribution

from priornet import metrics

LEVELS = (np.arange(20) + 0.5) / 20
COVERAGE = 0.9
MOVED_BY = 6.0


@dataclass
class Answer:
    """Everything that a method says about rows, in units of the target."""

    mean: np.ndarray
    density: Distribution | None = None
    quantiles: np.ndarray | None = None
    """At `LEVELS`, shape ``(N, 20)``; of a density they are computed."""
    intervals: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    """Intervals of 90 % by name; the density's own is "predictive"."""
    knowledge: dict[str, np.ndarray] = field(default_factory=dict)
    """Measures of knowledge uncertainty by name."""


def permuted(test: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Permute every column by itself, which keeps each and breaks what binds them."""
    rng = np.random.RandomState(seed)
    order = {name: rng.permutation(len(test)) for name in test}
    return pd.DataFrame({name: test[name].array.take(order[name]) for name in test})


def moved(test: pd.DataFrame, train: pd.DataFrame, seed: int) -> pd.DataFrame | None:
    """Move one number of each row by six of its deviations; None for tables without numbers."""
    rng = np.random.RandomState(seed)
    deviations = train.select_dtypes("number").std()
    names = list(deviations.index[deviations > 0])
    if not names:
        return None
    rows = test.copy()
    chosen = rng.randint(len(names), size=len(rows))
    steps = MOVED_BY * rng.choice([-1.0, 1.0], len(rows))
    for i, name in enumerate(names):
        values = rows[name].to_numpy(np.float64, copy=True)
        start = np.where(np.isnan(values), train[name].mean(), values)  # a missing value moves too
        rows[name] = np.where(chosen == i, start + steps * deviations[name], values)
    return rows


@torch.no_grad()
def score(answer: Answer, y: np.ndarray) -> dict[str, Any]:
    """Compute the scores of test rows; None where a method does not say enough."""
    target = torch.from_numpy(y)
    error = answer.mean - y
    found: dict[str, Any] = {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.mean(np.abs(error))),
    }
    quantiles = answer.quantiles
    crps = None
    if answer.density is not None:
        nll = -answer.density.log_prob(target)
        levels = torch.from_numpy(LEVELS)[:, None].expand(-1, len(y))
        quantiles = answer.density.icdf(levels).T.numpy()
        found |= {"nll": float(nll.mean()), "nll_median": float(nll.median())}
        crps = _closed_crps(answer.density, target)
    if quantiles is not None:
        gap = y[:, None] - quantiles
        pinball = float(np.maximum(LEVELS * gap, (LEVELS - 1) * gap).mean())
        found |= {"pinball": pinball, "crps": 2 * pinball if crps is None else crps}
    intervals = dict(answer.intervals)
    if answer.density is not None:
        intervals.setdefault("predictive", _interval(answer.density, len(y)))
    for name, (lower, upper) in intervals.items():
        inside = (lower <= y) & (y <= upper)
        found[name] = {
            "coverage": float(inside.mean()),
            "width": float(np.mean(upper - lower)),
        }
    return found


def knowledge_auc(inside: Answer, outside: Answer) -> dict[str, float]:
    """Compute how well each measure of knowledge tells changed rows from those of the table."""
    return {
        name: float(metrics.ood_auroc(*map(_finite, (values, outside.knowledge[name]))))
        for name, values in inside.knowledge.items()
    }


def _finite(values: np.ndarray) -> torch.Tensor:
    """Rank what overflowed first."""
    return torch.from_numpy(np.where(np.isnan(values), np.inf, values).astype(np.float64))


def _closed_crps(density: Distribution, target: torch.Tensor) -> float | None:
    try:
        return float(metrics.crps(density, target).mean())
    except NotImplementedError:
        return None


def _interval(density: Distribution, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the central interval of 90 %."""
    ends = (1 - COVERAGE) / 2, (1 + COVERAGE) / 2
    lower, upper = (density.icdf(torch.full((n,), end).double()).numpy() for end in ends)
    return lower, upper
