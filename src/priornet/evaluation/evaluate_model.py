"""A fitted estimator on some rows: what a report shows, as arrays and plain numbers."""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution

from priornet._version import __version__
from priornet.evaluation.features import Panel, features_of, panels
from priornet.evaluation.numbers import json_number
from priornet.evaluation.rows import UntrustedRow, least_trusted
from priornet.evaluation.scores import (
    Intervals,
    Spread,
    interval_scores,
    ranking_scores,
    spread_of,
    target_scores,
)
from priornet.methods import COLOURS, LABELS, TABULAR
from priornet.metrics import LEVELS, calibration_curve, crps, miscalibration_area, nll, pit

FloatArray = NDArray[np.float64]

SHOWN_LEVEL = 0.9
"""Coverage of the intervals that charts and tables show."""
_PACKAGES = ("torch", "numpy", "scikit-learn")
_METHODS = ("predictive", "conformal")


class Estimator(Protocol):
    """A fitted model as an evaluation sees it; every estimator of priornet is one."""

    fitted_: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings."""
        ...

    def predict_all(self, X: Any) -> Any:
        """Predict rows once: a :class:`priornet.estimators.Prediction`."""
        ...


@dataclass(frozen=True)
class Description:
    """A model in words: its class, settings and training."""

    method: str
    """Name of the method in results: ``ENSM``, ``EnD2``, ..."""
    label: str
    """The same for people."""
    class_name: str
    parameters: dict[str, str]
    """Settings that it was built with, as text."""
    feature_names: tuple[str, ...]
    training: dict[str, Any]
    """Rows, epochs, seconds and the like."""
    versions: dict[str, str]
    """Versions of the packages that evaluate it."""
    seed: int | None
    left_out: tuple[str, ...] = ()
    """Columns that were ids."""
    pooled: tuple[str, ...] = ()
    """Columns whose rare labels share one input."""

    @property
    def colour(self) -> str:
        """Colour of the method, the same in every figure."""
        return COLOURS.get(self.method, COLOURS["DD"])


def describe(model: Any) -> Description:
    """Read the description of a fitted estimator off it."""
    class_name = type(model).__name__
    parameters: dict[str, Any] = model.get_params(deep=False)
    objective, seed = parameters.get("objective"), parameters.get("random_state")
    method = class_name
    for one in TABULAR:
        if objective == one.objective if one.needs_teacher else class_name == one.estimator:
            method = one.key
    known = model.fitted_.preprocessor
    names = tuple(
        f"x{j}" if column.name is None else column.name for j, column in enumerate(known.columns_)
    )
    return Description(
        method=method,
        label=LABELS.get(method, method),
        class_name=class_name,
        parameters={name: _short(value) for name, value in parameters.items()},
        feature_names=names,
        training=dict(model.fitted_.training),
        versions={
            "priornet": __version__,
            "python": platform.python_version(),
            **{package: metadata.version(package) for package in _PACKAGES},
        },
        seed=int(seed) if isinstance(seed, int) else None,
        left_out=known.left_out_,
        pooled=tuple(
            name for name, column in zip(names, known.columns_, strict=True) if column.has_other
        ),
    )


def _short(value: Any) -> str:
    """Write a setting as text; a whole estimator by its class."""
    text = type(value).__name__ if hasattr(value, "get_params") else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass(frozen=True)
class Evaluation:
    """A fitted model on N rows of K targets."""

    name: str
    """Name of the model: its method, or a name given."""
    model: Description
    target_names: tuple[str, ...]
    row_labels: tuple[str, ...]
    y: FloatArray
    """Targets, ``(N, K)``."""
    prediction: FloatArray
    """Predicted means, ``(N, K)``."""
    intervals: dict[str, Intervals]
    """By method: ``"predictive"``, and ``"conformal"`` where the model has it."""
    interval: dict[str, Any]
    """Share of the targets inside the intervals of each method at one coverage, ready for JSON:
    ``{"coverage": 0.9, "observed": {"predictive": 0.88}}``."""
    pit: FloatArray
    """Probability of each target in its predictive, ``(N, K)``."""
    expected: FloatArray
    """Probabilities of the calibration curve, ``(101,)``."""
    observed: FloatArray
    """Observed shares there, ``(101, K)``."""
    error: FloatArray
    """Squared error of each row, ``(N,)``; over several targets in units of each target's own
    variance, summed."""
    spread: Spread
    """Uncertainty of the rows."""
    spread_ood: Spread | None
    """Uncertainty of the out-of-domain rows, if any were given."""
    row_spread: dict[str, FloatArray]
    """Standard deviation per row by part, ``(N,)``: that of the one target, or the root of the
    trace over several, each in units of its own standard deviation."""
    row_spread_ood: dict[str, FloatArray] | None
    familiarity: FloatArray
    """In-domain score per row; nan where the model has no knowledge uncertainty."""
    verdict: NDArray[np.str_]
    """Word per row."""
    rows: tuple[UntrustedRow, ...]
    """The rows to trust least, worst first."""
    panels: tuple[Panel, ...]
    """Uncertainty along each feature."""
    panel_part: str
    """Uncertainty that the panels show: ``"knowledge"``, or ``"total"`` where the model has no
    knowledge uncertainty."""
    metrics: dict[str, Any]
    """Every score, ready for JSON; None stands for what is not finite."""

    @property
    def has_knowledge(self) -> bool:
        """Tell if the model has knowledge uncertainty; a single Gaussian has none."""
        return self.panel_part == "knowledge"

    def ends(self, level: float = SHOWN_LEVEL) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of the predictive intervals at one level, ``(N, K)``."""
        ends, place = self.intervals["predictive"], LEVELS.index(level)
        return ends.lower[place], ends.upper[place]


@torch.no_grad()
def evaluate(
    model: Estimator,
    X: Any,
    y: Any,
    X_ood: Any = None,
    *,
    name: str | None = None,
    most_rows: int = 50,
    coverage: float = 0.9,
) -> Evaluation:
    """Score a fitted estimator on rows, and keep what a report needs.

    Args:
        model: A fitted estimator.
        X: Rows to predict.
        y: Their targets, one or several columns, none missing.
        X_ood: Out-of-domain rows, which the uncertainty should tell apart.
        name: Name of the model; its method when None.
        most_rows: Number of the least trusted rows to list.
        coverage: Coverage of the intervals whose share of targets is counted.
    """
    labels, names = _row_labels(X, y), tuple(model.fitted_.targets.names)
    targets = _targets(y, names, labels)
    deviation = targets.std(0)
    scale = np.where(deviation > 0, deviation, 1.0) if len(names) > 1 else np.ones(1)

    found = model.predict_all(X)
    prediction, y_tensor = _by_target(found.distribution.mean), _as_target(targets, found)
    spread = spread_of(found, scale)
    outside = None if X_ood is None else spread_of(model.predict_all(X_ood), scale)
    part = "knowledge" if (spread.knowledge > 0).any() else "total"
    error = (((targets - prediction) / scale) ** 2).sum(1)
    curve = calibration_curve(found.distribution, y_tensor)
    intervals = _intervals(model, found, targets.shape)
    preprocessor, description = model.fitted_.preprocessor, describe(model)
    features = features_of(X, preprocessor.columns_)

    def along(table: Any) -> FloatArray:
        return spread_of(model.predict_all(table), scale, with_measures=False).rows[part]

    return Evaluation(
        name=description.label if name is None else name,
        model=description,
        target_names=names,
        row_labels=labels,
        y=targets,
        prediction=prediction,
        intervals=intervals,
        interval=_observed(model, found, targets, coverage),
        pit=_by_target(pit(found.distribution, y_tensor)),
        expected=_numbers(curve.expected),
        observed=_by_target(curve.observed),
        error=error,
        spread=spread,
        spread_ood=outside,
        row_spread=spread.rows,
        row_spread_ood=None if outside is None else outside.rows,
        familiarity=found.in_domain,
        verdict=found.verdict.astype(str),
        rows=least_trusted(
            features, labels, found, spread.rows, preprocessor.most_missing_, most_rows
        ),
        panels=panels(features, spread.rows[part], along),
        panel_part=part,
        metrics={
            "n_rows": len(targets),
            "n_ood_rows": 0 if outside is None else len(outside.total),
            **_accuracy(names, targets, found, y_tensor, intervals),
            **ranking_scores(error, spread, outside),
            **_counts(found),
        },
    )


def _accuracy(
    names: tuple[str, ...],
    targets: FloatArray,
    found: Any,
    y: Tensor,
    intervals: dict[str, Intervals],
) -> dict[str, Any]:
    """Score predictions and intervals, of all targets together and of each."""
    predictive = found.distribution
    area = _numbers(miscalibration_area(predictive, y))
    own = target_scores(names, targets, _by_target(predictive.mean), area, intervals)
    return {
        "rmse": _mean_over(own, "rmse"),
        "nll": json_number(nll(predictive, y).double().mean()),
        "crps": json_number(crps(predictive, y).double().mean()),
        "miscalibration_area": _mean_over(own, "miscalibration_area"),
        **interval_scores(targets, intervals),
        "targets": own,
    }


def _counts(found: Any) -> dict[str, Any]:
    """Count verdicts, and rows and columns with what training never had."""
    from priornet.estimators.held_out import WORDS  # with scikit-learn behind it: not on import

    unseen = found.unseen.columns
    columns = Counter(name for row in unseen if row for name in row.split("; "))
    return {
        "verdicts": {word: int((found.verdict == word).sum()) for word in WORDS},
        "unseen": {"n_rows": int((unseen != "").sum()), "columns": dict(columns)},
    }


def _row_labels(X: Any, y: Any) -> tuple[str, ...]:
    """Name the rows: by the index of a frame, or by position."""
    for table in (X, y):
        index = getattr(table, "index", None)
        if index is not None and not callable(index):
            return tuple(str(label) for label in index)
    return tuple(str(i) for i in range(len(y)))


def _targets(y: Any, names: tuple[str, ...], labels: tuple[str, ...]) -> FloatArray:
    """Check the targets, ``(N, K)``: all must be present."""
    values = _by_target(y).copy()  # a frame lends its own, read-only
    if values.shape[1] != len(names):
        raise ValueError(
            f"the model predicts {len(names)} target(s), {', '.join(names)}; got "
            f"{values.shape[1]} column(s)."
        )
    if len(values) != len(labels):
        raise ValueError(f"`X` has {len(labels)} rows and `y` has {len(values)}.")
    if len(values) < 2:
        raise ValueError(f"an evaluation needs two rows or more; got {len(values)}.")
    wrong = ~np.isfinite(values)
    if wrong.any():
        rows = np.flatnonzero(wrong.any(1))
        name = names[int(np.argmax(wrong[rows[0]]))]
        more = f" (and in {len(rows) - 1} more rows)" if len(rows) > 1 else ""
        state = "missing" if np.isnan(values[rows[0]]).any() else "infinite"
        raise ValueError(
            f'the target "{name}" is {state} in row {labels[rows[0]]}{more}; leave such rows out.'
        )
    return values


def _intervals(model: Estimator, prediction: Any, shape: tuple[int, ...]) -> dict[str, Intervals]:
    """Compute the intervals of every method and level."""
    fitted = model.fitted_
    found: dict[str, Intervals] = {}
    for method in _METHODS:
        levels = [c for c in LEVELS if method == "predictive" or fitted.has_conformal(c)]
        if not levels:
            continue
        lower, upper = (np.full((len(LEVELS), *shape), np.nan) for _ in range(2))
        for level in levels:
            i = LEVELS.index(level)
            lower[i], upper[i] = map(_by_target, prediction.interval(level, method))
        found[method] = Intervals(lower, upper)
    return found


def _observed(
    model: Estimator, prediction: Any, targets: FloatArray, coverage: float
) -> dict[str, Any]:
    """Compute the share of targets inside the intervals, of each method that the model has."""
    observed: dict[str, float] = {}
    for method in _METHODS:
        if method == "predictive" or model.fitted_.has_conformal(coverage):
            lower, upper = map(_by_target, prediction.interval(coverage, method))
            observed[method] = float(((lower <= targets) & (targets <= upper)).mean())
    return {"coverage": coverage, "observed": observed}


def _as_target(values: FloatArray, found: Any) -> Tensor:
    """Bring targets into the dtype, the device and the shape of the predictive."""
    predictive: Distribution = found.distribution
    y = torch.as_tensor(values).to(predictive.mean)
    return y if predictive.event_shape else y[:, 0]


def _by_target(values: Any) -> FloatArray:
    """Convert to an array ``(N, K)``."""
    array = _numbers(values) if isinstance(values, Tensor) else np.asarray(values, np.float64)
    return array.reshape(len(array), -1)


def _numbers(values: Tensor) -> FloatArray:
    return np.atleast_1d(values.double().numpy(force=True))


def _mean_over(per_target: dict[str, Any], key: str) -> float | None:
    """Average over targets, as scikit-learn does."""
    values = [scores[key] for scores in per_target.values()]
    return None if None in values else float(np.mean(values))
