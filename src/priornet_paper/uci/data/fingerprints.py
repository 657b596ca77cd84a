"""Whether a table is the one that it should be: statistics of the real ones, never their data.

``fingerprints.json`` holds, for each column, the mean, the standard deviation, and the covariance
with the row number scaled to [-1, 1], which tells an order of rows from another one: the published
splits are row numbers. Of the tables with ``first_rows`` it describes these rows only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from priornet_paper.uci.data.registry import Dataset

__all__ = ["Fingerprint", "difference", "fingerprints", "measure"]

# In deviations of the column. Sums in another order differ by 1e-12; one cell that is wrong by a
# deviation shifts the mean of the largest table here by 2e-5.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Fingerprint:
    """Statistics of a table: one number a column, features first and the target last.

    Attributes:
        n_rows: How many rows they describe.
        mean: Means.
        std: Standard deviations, over N.
        trend: Covariances with the row number.
    """

    n_rows: int
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    trend: NDArray[np.float64]


def measure(inputs: NDArray[np.float64], targets: NDArray[np.float64]) -> Fingerprint:
    """The fingerprint of a table."""
    values = np.column_stack([inputs, targets])
    mean = values.mean(axis=0)
    ramp = np.linspace(-1.0, 1.0, len(values))
    return Fingerprint(len(values), mean, values.std(axis=0), ramp @ (values - mean) / len(values))


@cache
def fingerprints() -> dict[str, Fingerprint]:
    """The known ones, by the name of the table."""
    text = (files("priornet_paper.uci.data") / "fingerprints.json").read_text(encoding="utf-8")
    return {
        name: Fingerprint(
            own["n_rows"], *(np.array(own[key], np.float64) for key in ("mean", "std", "trend"))
        )
        for name, own in json.loads(text).items()
    }


def difference(
    known: Dataset, inputs: NDArray[np.float64], targets: NDArray[np.float64]
) -> str | None:
    """What tells these arrays from the table, in words; None where nothing does."""
    expected = fingerprints()[known.name]
    if inputs.ndim != 2 or inputs.shape[1] != known.n_features:
        n_columns = inputs.shape[1] if inputs.ndim == 2 else "no"
        return f"it has {n_columns} feature columns instead of {known.n_features}"
    if targets.shape != inputs.shape[:1]:
        return f"its targets have the shape {targets.shape} beside {len(inputs)} rows"
    if len(targets) not in (known.n_rows, expected.n_rows):
        return f"it has {len(targets)} rows instead of {known.n_rows}"
    if not (np.isfinite(inputs).all() and np.isfinite(targets).all()):
        return "some of its values are missing or infinite"
    found = measure(inputs[: expected.n_rows], targets[: expected.n_rows])
    return _unlike(found, expected, [*known.feature_names, known.target])


def _unlike(found: Fingerprint, expected: Fingerprint, names: Sequence[str]) -> str | None:
    # A constant column has no deviation to measure by; rounding stays far below its size.
    tolerance = _TOLERANCE * expected.std + 1e-9 * np.abs(expected.mean)
    for what, ours, theirs in (
        ("mean", found.mean, expected.mean),
        ("standard deviation", found.std, expected.std),
    ):
        wrong = np.flatnonzero(np.abs(ours - theirs) > tolerance)
        if len(wrong):
            at = wrong[0]
            numbers = f"{ours[at]:.9g} instead of {theirs[at]:.9g}"
            return f'the column "{names[at]}" has the {what} {numbers}'
    if (np.abs(found.trend - expected.trend) > tolerance).any():
        return "its rows are in another order, or their values belong to other rows"
    return None
