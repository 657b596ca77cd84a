"""The rows to trust least, and why: in words that name the uncertainty and the feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.evaluation.features import Feature
from priornet.evaluation.numbers import shown_date, shown_number

FloatArray = NDArray[np.float64]

_RANK = {"unfamiliar": 0, "noisy": 1, "trust": 2}
_MOST_FEATURES = 3


@dataclass(frozen=True)
class UntrustedRow:
    """One row of the table, with the reason not to trust it."""

    position: int
    """Place among the evaluated rows, from 0."""
    label: str
    """The index of a frame, or the position."""
    verdict: str
    familiarity: float
    """In-domain score in [0, 1]."""
    reason: str


def least_trusted(
    features: Sequence[Feature],
    labels: Sequence[str],
    found: Any,
    spread: Mapping[str, FloatArray],
    most_missing: int,
    most: int,
) -> tuple[UntrustedRow, ...]:
    """List the unfamiliar rows first, then the noisy ones, each kind by its own uncertainty.

    Args:
        features: The evaluated columns.
        labels: Name of each row.
        found: The :class:`priornet.estimators.Prediction` of the rows.
        spread: Standard deviation of each row: in total, of the data and of knowledge.
        most_missing: Number of values that a row may lack.
        most: Number of rows at most.
    """
    rank = np.array([_RANK[word] for word in found.verdict])
    size = np.where(rank == 0, spread["knowledge"], spread["total"])
    order: list[int] = np.lexsort((-size, rank))[:most].tolist()
    typical = {part: float(np.median(values)) for part, values in spread.items()}

    def reason(i: int) -> str:
        part = {"unfamiliar": "knowledge", "noisy": "data"}.get(found.verdict[i])
        main = "uncertainty within the typical range"
        if part is not None:
            main = f"{part} uncertainty {_times(float(spread[part][i]), typical[part])}"
        return "; ".join(
            [main, *_missing_values(features, i, most_missing), *_unseen_values(features, i)]
        )

    return tuple(
        UntrustedRow(i, labels[i], str(found.verdict[i]), float(found.in_domain[i]), reason(i))
        for i in order
    )


def _times(value: float, typical: float) -> str:
    if not np.isfinite(value):
        return "without bound"
    if typical > 0 and np.isfinite(typical):
        return f"{value / typical:.1f}x the median"
    return f"of {shown_number(value)}"


def _missing_values(features: Sequence[Feature], row: int, most: int) -> list[str]:
    """Say that a row lacks too many of the values that training lacked too, where it does."""
    lacking = sum(feature.known.has_missing and feature.is_missing(row) for feature in features)
    return [f"{lacking} of {len(features)} values are missing"] if lacking > most else []


def _unseen_values(features: Sequence[Feature], row: int) -> list[str]:
    """List the values of a row that training had not seen; the furthest first."""
    found = [found for feature in features if (found := _unseen(feature, row)) is not None]
    found.sort(key=lambda pair: -pair[0])
    said = [text for _, text in found[:_MOST_FEATURES]]
    if len(found) > _MOST_FEATURES:
        said.append(f"and {len(found) - _MOST_FEATURES} more features outside their training range")
    return said


def _unseen(feature: Feature, row: int) -> tuple[float, str] | None:
    """Return the distance of a value from training, and words for it; None for an ordinary one."""
    known = feature.known
    if feature.is_missing(row):
        return None if known.has_missing else (1.0, f"{feature.name} is missing")
    if feature.labels is not None:
        label = feature.labels[row]
        if label is None or known.knows(label):
            return None
        return np.inf, f"{feature.name} = {label} did not occur in training"
    assert feature.numbers is not None
    value = float(feature.numbers[row])
    show = shown_date if feature.is_date else shown_number
    distance = max(known.minimum - value, value - known.maximum)
    if distance <= 0:
        return None
    side = "above" if value > known.maximum else "below"
    reach = f"{show(known.minimum)} to {show(known.maximum)}"
    text = f"{feature.name} = {show(value)} is {side} its training range, {reach}"
    return distance / known.scale, text
