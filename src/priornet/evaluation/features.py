"""Uncertainty along each feature: over the rows, and with the other features held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from priornet.tables.encoding import RawColumn
from priornet.tables.raw import read_table
from priornet.tables.values import Numbers, Table, as_moments, parse_labels

FloatArray = NDArray[np.float64]

MAX_PANELS = 24
_MOST_BINS, _ROWS_PER_BIN = 20, 25
_SWEEP_POINTS = 49
_MOST_SWEPT, _ROUGH_POINTS = 200, 5  # features that are swept finely, and points of the others
_MOST_CELLS = 1 << 22  # of a table that is measured at once
_MARGIN = 0.5  # how far the sweep leaves the training range, in widths of that range
_MOST_CATEGORIES = 12


@dataclass(frozen=True)
class Feature:
    """One raw column of the evaluated rows, beside what training knew about it."""

    name: str
    """Its name, or ``x0``, ``x1``, ... where it has none."""
    known: RawColumn
    """Range and categories in training."""
    numbers: FloatArray | None
    """Values as numbers (dates as days since 1970, nan for a missing value), or None."""
    labels: tuple[str | None, ...] | None
    """Values as labels (None for a missing value), or None."""

    @property
    def is_date(self) -> bool:
        """Tell if the numbers are days since 1970."""
        return self.known.parser == "date"

    def is_missing(self, row: int) -> bool:
        """Tell if a row lacks the value."""
        if self.numbers is not None:
            return bool(np.isnan(self.numbers[row]))
        return self.labels is not None and self.labels[row] is None


@dataclass(frozen=True)
class Panel:
    """Uncertainty along one feature; arrays of one length, numeric or per category."""

    name: str
    kind: Literal["numeric", "categorical"]
    is_date: bool
    """True if ``at`` and ``sweep_at`` are days since 1970."""
    at: FloatArray
    """Middle of each bin of rows; empty for categories."""
    categories: tuple[str, ...]
    """Label of each category; empty for numbers."""
    median: FloatArray
    """Median uncertainty of the rows in the bin or category; nan without rows."""
    low: FloatArray
    """Their 10 % quantile."""
    high: FloatArray
    """Their 90 % quantile."""
    count: NDArray[np.int64]
    """Number of rows."""
    sweep_at: FloatArray
    """Values to which the feature is moved, the others held; empty for categories."""
    sweep: FloatArray
    """Uncertainty there; for categories, one value per category."""
    train_low: float
    """Smallest value in training; nan for categories."""
    train_high: float
    is_known: tuple[bool, ...]
    """Per category, True if training had it."""

    @property
    def below(self) -> FloatArray:
        """Distance from the median down to the 10 % quantile."""
        return self.median - self.low

    @property
    def above(self) -> FloatArray:
        """Distance from the median up to the 90 % quantile."""
        return self.high - self.median


def features_of(X: Any, columns: Sequence[RawColumn]) -> tuple[Feature, ...]:
    """Read the columns that training knew, in its order, from a table."""
    table = read_table(X)
    return tuple(_feature(table, j, known) for j, known in enumerate(columns))


def _feature(table: Table, index: int, known: RawColumn) -> Feature:
    place = index
    if known.name is not None and table.names is not None:
        place = table.names.index(known.name)
    raw, name = table.column(place), f"x{index}" if known.name is None else known.name
    if known.kind == "numeric":
        if isinstance(raw, Numbers):
            return Feature(name, known, raw.values, None)
        parsed = parse_labels(raw.labels, known.parser)
        numbers = np.full(len(raw.codes), np.nan)
        if parsed is not None:
            numbers = np.append(parsed[1], np.nan)[raw.codes]  # code -1 reads the nan
        return Feature(name, known, numbers, None)
    texts = known.read_labels(raw)
    choices = (*texts.labels, None)
    return Feature(name, known, None, tuple(choices[code] for code in texts.codes))


def panels(
    features: Sequence[Feature],
    uncertainty: FloatArray,
    measure: Callable[[Any], FloatArray],
) -> tuple[Panel, ...]:
    """Make a panel per feature, up to :data:`MAX_PANELS`: those along which the sweep moves most.

    Args:
        features: The evaluated columns.
        uncertainty: Uncertainty of each evaluated row, shape ``(N,)``.
        measure: The same uncertainty for any table of these columns.
    """
    if not features:
        return ()
    chosen = list(range(len(features)))
    if len(features) > _MOST_SWEPT:
        rough = {j: _steps(features[j], _ROUGH_POINTS) for j in chosen}
        chosen = _most_moved(_sweeps(features, rough, measure))
    steps = {j: _steps(features[j], _SWEEP_POINTS) for j in chosen}
    sweeps = _sweeps(features, steps, measure)
    if len(features) > MAX_PANELS:
        chosen = _most_moved(sweeps)
    return tuple(_panel(features[j], steps[j], sweeps[j], uncertainty) for j in chosen)


def _sweeps(
    features: Sequence[Feature],
    steps: Mapping[int, Sequence[Any]],
    measure: Callable[[Any], FloatArray],
) -> dict[int, FloatArray]:
    """Measure the uncertainty along the features that have steps, so many at once as fit in memory.

    Args:
        features: All columns.
        steps: Values of a feature, by its place.
        measure: Uncertainty of each row of a table.
    """
    most = max(_MOST_CELLS // (len(features) * _SWEEP_POINTS), 1)
    found: dict[int, FloatArray] = {}
    for start in range(0, len(steps), most):
        part = dict(list(steps.items())[start : start + most])
        swept = measure(_sweep_table(features, part))
        ends = np.cumsum([len(step) for step in part.values()])[:-1]
        found |= zip(part, np.split(swept, ends), strict=True)
    return found


def _most_moved(sweeps: Mapping[int, FloatArray]) -> list[int]:
    """Find the features along which the sweep moves most, in their order."""
    return sorted(sorted(sweeps, key=lambda j: -_movement(sweeps[j]))[:MAX_PANELS])


def _movement(sweep: FloatArray) -> float:
    """Divide the largest by the smallest uncertainty; nan counts as none."""
    seen = sweep[np.isfinite(sweep) & (sweep > 0)]
    return float(seen.max() / seen.min()) if len(seen) else 0.0


def _steps(feature: Feature, n_points: int) -> Sequence[Any]:
    """List the values that the sweep gives a feature; labels are few."""
    if feature.labels is not None:
        return _categories(feature)
    low, high = feature.known.minimum, feature.known.maximum
    margin = _MARGIN * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, n_points).tolist()


def _categories(feature: Feature) -> tuple[str, ...]:
    """List the most frequent labels of the rows, then those of training that the rows lack."""
    counts = Counter(label for label in feature.labels or () if label is not None)
    ranked = sorted(counts, key=lambda label: (-counts[label], label))
    absent = [label for label in feature.known.categories if label not in counts]
    return tuple((ranked + absent)[:_MOST_CATEGORIES])


def _sweep_table(features: Sequence[Feature], steps: Mapping[int, Sequence[Any]]) -> Any:
    """Make a block of rows per feature with steps, in which all others keep a typical value."""
    n_rows = sum(map(len, steps.values()))
    columns: list[NDArray[Any]] = []
    starts = dict(zip(steps, np.cumsum([0, *map(len, steps.values())]), strict=False))
    for j, feature in enumerate(features):
        values: list[Any] = [_typical(feature)] * n_rows
        if j in steps:
            values[starts[j] : starts[j] + len(steps[j])] = steps[j]
        columns.append(_column(feature, values))
    if features[0].known.name is None:
        return np.column_stack(columns)
    import pandas as pd

    return pd.DataFrame({f.name: column for f, column in zip(features, columns, strict=True)})


def _typical(feature: Feature) -> Any:
    """Return the median of training, or the commonest label of the rows."""
    if feature.labels is None:
        return feature.known.median
    return next(iter(_categories(feature)), None)


def _column(feature: Feature, values: list[Any]) -> NDArray[Any]:
    if feature.labels is not None:
        return np.array(values, dtype=object)
    numbers = np.array(values, dtype=np.float64)
    if feature.is_date:
        return as_moments(numbers)
    return numbers


def _panel(
    feature: Feature, steps: Sequence[Any], sweep: FloatArray, uncertainty: FloatArray
) -> Panel:
    if feature.labels is None:
        assert feature.numbers is not None
        groups, at = _bins(feature.numbers)
        names: tuple[str, ...] = ()
    else:
        names, at = tuple(steps), np.empty(0)
        groups = [np.array([label == name for label in feature.labels]) for name in names]
    spread = np.array([_spread(uncertainty[group]) for group in groups]).reshape(-1, 3)
    known = feature.known
    is_number = feature.labels is None
    return Panel(
        name=feature.name,
        kind="numeric" if is_number else "categorical",
        is_date=feature.is_date,
        at=at,
        categories=names,
        low=spread[:, 0],
        median=spread[:, 1],
        high=spread[:, 2],
        count=np.array([int(group.sum()) for group in groups], np.int64),
        sweep_at=np.asarray(steps, np.float64) if is_number else np.empty(0),
        sweep=sweep,
        train_low=known.minimum if is_number else np.nan,
        train_high=known.maximum if is_number else np.nan,
        is_known=tuple(known.knows(name) for name in names),
    )


def _bins(numbers: FloatArray) -> tuple[list[NDArray[np.bool_]], FloatArray]:
    """Sort rows into bins of about equal size; return them with the feature's median in each."""
    present = numbers[np.isfinite(numbers)]
    if len(present) == 0:
        return [], np.empty(0)
    n_bins = int(np.clip(len(present) // _ROWS_PER_BIN, 1, _MOST_BINS))
    edges = np.unique(np.quantile(present, np.linspace(0, 1, n_bins + 1)))
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, max(len(edges) - 2, 0))
    place = np.where(np.isfinite(numbers), place, -1)
    groups = [place == i for i in np.unique(place) if i >= 0]
    return groups, np.array([float(np.median(numbers[group])) for group in groups])


def _spread(values: FloatArray) -> FloatArray:
    """Return the 10, 50 and 90 % quantiles; nan without values."""
    if len(values) == 0:
        return np.full(3, np.nan)
    # Of neighbours, not between them: the middle of infinity and a number is no number.
    return np.quantile(values, [0.1, 0.5, 0.9], method="inverted_cdf")
