"""The rows to trust least, and why: in words that name the uncertainty and the feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from priornet.evaluation.features import Feature
from priornet.evaluation.numbers import shown_date, shown_number

FloatArray = NDArray[np.float64]

_RANK = {"unfamiliar": 0, "noisy": 1, "trust": 2}
_MOST_FEATURES = 3


@dataclass(frozen=True)
class UntrustedRow:
    """One row of the table.

    Attributes:
        position: Where the row stands among the evaluated ones, from 0.
        label: Its name: the index of a frame, or its position.
        verdict: ``trust``, ``noisy`` or ``unfamiliar``.
        familiarity: In-domain score in [0, 1].
        reason: Why, in words.
    """

    position: int
    label: str
    verdict: str
    familiarity: float
    reason: str


def least_trusted(
    features: Sequence[Feature],
    labels: Sequence[str],
    *,
    verdict: NDArray[np.str_],
    familiarity: FloatArray,
    total: FloatArray,
    data: FloatArray,
    knowledge: FloatArray,
    most_missing: int,
    most: int,
) -> tuple[UntrustedRow, ...]:
    """The unfamiliar rows first, then the noisy ones, each kind by its own uncertainty.

    Args:
        features: The evaluated columns.
        labels: Name of each row.
        verdict: Word per row, shape ``(N,)``.
        familiarity: In-domain score per row.
        total: Total uncertainty per row, as a standard deviation.
        data: Its data part.
        knowledge: Its knowledge part.
        most_missing: How many values a row may lack.
        most: How many rows at most.
    """
    rank = np.array([_RANK[str(word)] for word in verdict])
    size = np.where(rank == 0, knowledge, total)
    order: list[int] = np.lexsort((-size, rank))[:most].tolist()
    usual_data, usual_knowledge = float(np.median(data)), float(np.median(knowledge))
    return tuple(
        UntrustedRow(
            position=i,
            label=labels[i],
            verdict=str(verdict[i]),
            familiarity=float(familiarity[i]),
            reason="; ".join(
                [
                    _part(
                        str(verdict[i]),
                        (float(data[i]), usual_data),
                        (float(knowledge[i]), usual_knowledge),
                    ),
                    *_too_bare(features, i, most_missing),
                    *_strange_features(features, i),
                ]
            ),
        )
        for i in order
    )


def _too_bare(features: Sequence[Feature], row: int, most: int) -> list[str]:
    """Say that a row lacks too many of the values that training lacked too, where it does."""
    lacking = sum(feature.known.has_missing and feature.is_missing(row) for feature in features)
    return [f"{lacking} of {len(features)} values are missing"] if lacking > most else []


def _part(verdict: str, data: tuple[float, float], knowledge: tuple[float, float]) -> str:
    """Which uncertainty it is, from the value and the usual value of both kinds."""
    if verdict == "unfamiliar":
        return f"knowledge uncertainty {_times(*knowledge)}"
    if verdict == "noisy":
        return f"data uncertainty {_times(*data)}"
    return "uncertainty within the usual"


def _times(value: float, usual: float) -> str:
    if not np.isfinite(value):
        return "without bound"
    if usual > 0 and np.isfinite(usual):
        return f"{value / usual:.1f} times the usual"
    return f"of {shown_number(value)}"


def _strange_features(features: Sequence[Feature], row: int) -> list[str]:
    """What about this row training had not seen, feature by feature; the furthest first."""
    found = [found for feature in features if (found := _strange(feature, row)) is not None]
    found.sort(key=lambda pair: -pair[0])
    said = [text for _, text in found[:_MOST_FEATURES]]
    if len(found) > _MOST_FEATURES:
        said.append(f"and {len(found) - _MOST_FEATURES} more features outside their training range")
    return said


def _strange(feature: Feature, row: int) -> tuple[float, str] | None:
    """How strange a value is, and what to say about it; None for an ordinary one."""
    known = feature.known
    if feature.labels is not None:
        label = feature.labels[row]
        if label is None:
            return None if known.has_missing else (1.0, f"{feature.name} is missing")
        if label in known.categories or known.has_other:
            return None
        return np.inf, f"{feature.name} = {label} did not occur in training"
    assert feature.numbers is not None
    value = float(feature.numbers[row])
    if np.isnan(value):
        return None if known.has_missing else (1.0, f"{feature.name} is missing")
    show = shown_date if feature.is_date else shown_number
    beyond = max(known.minimum - value, value - known.maximum)
    if beyond <= 0:
        return None
    side = "above" if value > known.maximum else "below"
    reach = f"{show(known.minimum)} to {show(known.maximum)}"
    text = f"{feature.name} = {show(value)} is {side} its training range, {reach}"
    return beyond / known.scale, text
