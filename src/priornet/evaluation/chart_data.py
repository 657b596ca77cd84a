"""Numbers behind the charts of :mod:`priornet.report`: points, curves, shares, axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from priornet.evaluation.evaluate_model import SHOWN_LEVEL, Evaluation
from priornet.evaluation.features import Panel
from priornet.metrics import rejection_curve

FloatArray = NDArray[np.float64]
Range = tuple[float, float]

_MOST_POINTS, _MOST_STEPS, _BINS = 2000, 400, 30
_LOG_FROM = 20.0  # an axis is logarithmic where its largest value exceeds the smallest so much


class Dots(NamedTuple):
    """Some rows of a chart: names, values, and lengths of the bars below and above."""

    labels: list[str]
    actual: FloatArray
    predicted: FloatArray
    below: FloatArray
    above: FloatArray


class Predictions(NamedTuple):
    """Predictions of one target with their intervals, over the actual values."""

    inside: Dots
    """Rows whose interval holds the actual value."""
    outside: Dots
    diagonal: Range
    actual_range: Range
    predicted_range: Range


def n_shown(n_rows: int) -> int:
    """Count the rows that a chart draws."""
    return min(n_rows, _MOST_POINTS)


def predictions(evaluation: Evaluation, target: int) -> Predictions:
    """Take the rows to draw: all of them, or a sample that is the same every time.

    The ranges go by the values, not by the bars: one endless interval must not hide the rest.
    """
    n_rows = len(evaluation.y)
    rows = np.arange(n_rows)
    if n_rows > _MOST_POINTS:
        rows = np.sort(np.random.default_rng(0).choice(n_rows, _MOST_POINTS, replace=False))
    y, mean = evaluation.y[rows, target], evaluation.prediction[rows, target]
    lower, upper = (ends[rows, target] for ends in evaluation.ends(SHOWN_LEVEL))
    inside = (lower <= y) & (y <= upper)

    def dots(group: NDArray[np.bool_]) -> Dots:
        labels = [evaluation.row_labels[i] for i in rows[group]]
        return Dots(labels, y[group], mean[group], (mean - lower)[group], (upper - mean)[group])

    both = np.concatenate([y, mean])
    diagonal = (float(both.min()), float(both.max()))
    return Predictions(dots(inside), dots(~inside), diagonal, _around(y), _around(both))


def _around(values: FloatArray) -> Range:
    """Return a range a little wider than the values."""
    low, high = float(values.min()), float(values.max())
    pad = 0.05 * (high - low) or 1.0
    return low - pad, high + pad


@dataclass(frozen=True)
class RejectionLines:
    """Rejection curves thinned to what a screen can show; ``by`` holds one per measure."""

    fraction: FloatArray
    random: FloatArray
    oracle: FloatArray
    by: dict[str, FloatArray]


def rejection_lines(evaluation: Evaluation, measures: Iterable[str]) -> RejectionLines:
    """Trace the error left by share rejected, for chance, the oracle and each measure."""
    error = torch.from_numpy(evaluation.error)
    steps = np.linspace(0, len(error), min(len(error), _MOST_STEPS) + 1).round().astype(int)
    curves = {
        name: rejection_curve(error, torch.from_numpy(evaluation.spread.measures[name]))
        for name in measures
    }
    first = next(iter(curves.values()))
    return RejectionLines(
        fraction=first.fraction.numpy()[steps],
        random=first.random.numpy()[steps],
        oracle=first.oracle.numpy()[steps],
        by={name: curve.uncertainty.numpy()[steps] for name, curve in curves.items()},
    )


def mean_calibration(evaluation: Evaluation) -> FloatArray:
    """Average the observed shares of the calibration curve over targets."""
    return evaluation.observed.mean(1)


def shares(groups: Sequence[FloatArray]) -> tuple[FloatArray, list[FloatArray]]:
    """Count groups of uncertainties in bins of equal width on a logarithmic scale.

    Returns:
        Edges of the bins, and for each group its share of rows in each bin with a zero behind, as
        the steps of a staircase. Zeros and infinities count in the outermost bins.
    """
    values = np.concatenate(groups)
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (positive.min(), positive.max()) if len(positive) else (0.1, 10.0)
    if len(positive):
        if high < 1.5 * low:
            low, high = low / 1.25, high * 1.25
        low, high = low * (1 - 1e-9), high * (1 + 1e-9)
    edges = np.geomspace(low, high, _BINS + 1)
    counts = [np.histogram(np.clip(g, edges[0], edges[-1]), edges)[0] / len(g) for g in groups]
    return edges, [np.append(count, 0.0) for count in counts]


def log_ticks(values: FloatArray) -> list[float]:
    """Choose a few round numbers for a logarithmic axis, whatever range the values span."""
    low, high = float(np.log10(values.min())), float(np.log10(values.max()))
    span = high - low
    steps = (1, 2, 5) if span < 1.3 else (1, 3) if span < 2.3 else (1,)
    every = max(1, round(span / 6))
    powers = range(int(np.floor(low)), int(np.ceil(high)) + 1, every)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return [tick for tick in ticks if low - 0.05 <= np.log10(tick) <= high + 0.05]


def panel_ticks(panel: Panel) -> list[float]:
    """Choose ticks of a panel's logarithmic axis; none where a plain axis shows all."""
    values = np.concatenate([panel.low, panel.high, panel.median, panel.sweep])
    seen = values[np.isfinite(values) & (values > 0)]
    is_wide = len(seen) > 0 and seen.max() > _LOG_FROM * seen.min()
    return log_ticks(seen) if is_wide else []


def category_range(panel: Panel) -> Range:
    """Return the range of an axis with one place for each category."""
    return -0.5, max(len(panel.categories), 1) - 0.5


def are_best(values: Sequence[float | None], perfect: float | None) -> list[bool]:
    """Mark the best scores: the nearest to the perfect one, or the lowest where none is perfect."""
    far = [None if v is None else v if perfect is None else abs(v - perfect) for v in values]
    least = min((distance for distance in far if distance is not None), default=None)
    return [distance is not None and distance == least for distance in far]
