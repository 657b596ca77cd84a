"""Everything a report shows about a fitted estimator on some rows, as arrays and plain numbers."""

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
    PARTS,
    Intervals,
    Spread,
    interval_scores,
    joint,
    ranking_scores,
    spread_of,
    target_scores,
)
from priornet.methods import COLOURS, LABELS, TABULAR
from priornet.metrics import LEVELS, calibration_curve, crps, miscalibration_area, nll, pit

FloatArray = NDArray[np.float64]


class Estimator(Protocol):
    """What an evaluation asks of a fitted model; every estimator of priornet answers."""

    fitted_: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings."""
        ...

    def predict_all(self, X: Any) -> Any:
        """Predict rows once: a :class:`priornet.estimators.Prediction`."""
        ...


@dataclass(frozen=True)
class Evaluation:
    """A fitted model on N rows of K targets.

    Attributes:
        name: What to call the model: its method, or a name given.
        model: What it is.
        target_names: Names of the K targets.
        row_labels: Names of the N rows.
        y: Targets, ``(N, K)``.
        prediction: Predicted means, ``(N, K)``.
        intervals: By method: ``"predictive"``, and ``"conformal"`` where the model has it.
        interval: Share of the targets inside the intervals of each method at one coverage, ready
            for JSON: ``{"coverage": 0.9, "observed": {"predictive": 0.88}}``.
        pit: Where each target falls in its predictive, ``(N, K)``.
        expected: Probabilities of the calibration curve, ``(101,)``.
        observed: Observed shares there, ``(101, K)``.
        error: Squared error of each row, ``(N,)``; over several targets in units of each target's
            own variance, summed.
        spread: Uncertainty of the rows.
        spread_ood: Uncertainty of the out-of-domain rows, if any were given.
        row_spread: Standard deviation per row by part, ``(N,)``: that of the one target, or the
            root of the trace over several, each in units of its own standard deviation.
        row_spread_ood: The same of the out-of-domain rows.
        familiarity: In-domain score per row; nan where the model has no knowledge uncertainty.
        verdict: Word per row.
        rows: The rows to trust least, worst first.
        panels: Uncertainty along each feature.
        panel_part: Which uncertainty the panels show: ``"knowledge"``, or ``"total"`` where the
            model has no knowledge uncertainty.
        metrics: Every score, ready for JSON; None stands for what is not finite.
    """

    name: str
    model: Description
    target_names: tuple[str, ...]
    row_labels: tuple[str, ...]
    y: FloatArray
    prediction: FloatArray
    intervals: dict[str, Intervals]
    interval: dict[str, Any]
    pit: FloatArray
    expected: FloatArray
    observed: FloatArray
    error: FloatArray
    spread: Spread
    spread_ood: Spread | None
    row_spread: dict[str, FloatArray]
    row_spread_ood: dict[str, FloatArray] | None
    familiarity: FloatArray
    verdict: NDArray[np.str_]
    rows: tuple[UntrustedRow, ...]
    panels: tuple[Panel, ...]
    panel_part: str
    metrics: dict[str, Any]

    @property
    def has_knowledge(self) -> bool:
        """Whether the model has knowledge uncertainty at all; a single Gaussian has none."""
        return self.panel_part == "knowledge"


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
        X_ood: Rows from somewhere else, which the uncertainty should tell apart.
        name: What to call the model; its method when None.
        most_rows: How many of the least trusted rows to list.
        coverage: Coverage of the intervals whose share of targets is counted.
    """
    from priornet.estimators.held_out import WORDS  # with scikit-learn behind it: not on import

    labels = _row_labels(X, y)
    names = tuple(model.fitted_.targets.names)
    targets = _targets(y, names, labels)
    deviation = targets.std(0)
    scale = np.where(deviation > 0, deviation, 1.0) if len(names) > 1 else np.ones(1)

    found = model.predict_all(X)
    predictive = found.distribution
    y_tensor = _as_target(targets, predictive)
    prediction = _by_target(predictive.mean)
    curve = calibration_curve(predictive, y_tensor)
    intervals = _intervals(model, found, targets.shape)
    spread = spread_of(found, scale)
    spread_ood = None if X_ood is None else spread_of(model.predict_all(X_ood), scale)
    row_spread = _row_spread(spread, scale)
    error = (((targets - prediction) / scale) ** 2).sum(1)
    familiarity, verdict = found.in_domain, found.verdict.astype(str)
    unseen = found.unseen.columns

    features = features_of(X, model.fitted_.preprocessor.columns_)
    part = "knowledge" if (spread.knowledge > 0).any() else "total"

    def along(table: Any) -> FloatArray:
        found = spread_of(model.predict_all(table), scale, with_measures=False)
        return _row_spread(found, scale)[part]

    per_target = target_scores(
        names, targets, prediction, _numbers(miscalibration_area(predictive, y_tensor)), intervals
    )
    description = describe(model)
    return Evaluation(
        name=description.label if name is None else name,
        model=description,
        target_names=names,
        row_labels=labels,
        y=targets,
        prediction=prediction,
        intervals=intervals,
        interval=_observed(model, found, targets, coverage),
        pit=_by_target(pit(predictive, y_tensor)),
        expected=_numbers(curve.expected),
        observed=_by_target(curve.observed),
        error=error,
        spread=spread,
        spread_ood=spread_ood,
        row_spread=row_spread,
        row_spread_ood=None if spread_ood is None else _row_spread(spread_ood, scale),
        familiarity=familiarity,
        verdict=verdict,
        rows=least_trusted(
            features,
            labels,
            verdict=verdict,
            familiarity=familiarity,
            total=row_spread["total"],
            data=row_spread["data"],
            knowledge=row_spread["knowledge"],
            most_missing=model.fitted_.preprocessor.most_missing_,
            most=most_rows,
        ),
        panels=panels(features, row_spread[part], along),
        panel_part=part,
        metrics={
            "n_rows": len(targets),
            "n_ood_rows": 0 if spread_ood is None else len(spread_ood.total),
            "rmse": _mean_over(per_target, "rmse"),
            "nll": _mean(nll(predictive, y_tensor)),
            "crps": _mean(crps(predictive, y_tensor)),
            "miscalibration_area": _mean_over(per_target, "miscalibration_area"),
            **interval_scores(targets, intervals),
            **ranking_scores(
                error, spread.measures, None if spread_ood is None else spread_ood.measures
            ),
            "verdicts": {word: int((verdict == word).sum()) for word in WORDS},
            "unseen": {
                "n_rows": int((unseen != "").sum()),
                "columns": dict(Counter(name for row in unseen if row for name in row.split("; "))),
            },
            "targets": per_target,
        },
    )


def _row_spread(spread: Spread, scale: FloatArray) -> dict[str, FloatArray]:
    return {part: joint(getattr(spread, part), scale) for part in PARTS}


def _row_labels(X: Any, y: Any) -> tuple[str, ...]:
    """Names of the rows: the index of a frame, or their positions."""
    for table in (X, y):
        index = getattr(table, "index", None)
        if index is not None and not callable(index):
            return tuple(str(label) for label in index)
    return tuple(str(i) for i in range(len(y)))


def _targets(y: Any, names: tuple[str, ...], labels: tuple[str, ...]) -> FloatArray:
    """Targets ``(N, K)``, all present."""
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
    for method in ("predictive", "conformal"):
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
    for method in ("predictive", "conformal"):
        if method == "predictive" or model.fitted_.has_conformal(coverage):
            lower, upper = map(_by_target, prediction.interval(coverage, method))
            observed[method] = float(((lower <= targets) & (targets <= upper)).mean())
    return {"coverage": coverage, "observed": observed}


def _as_target(values: FloatArray, predictive: Distribution) -> Tensor:
    """In the dtype, on the device and in the shape of the predictive."""
    y = torch.as_tensor(values).to(predictive.mean)
    return y if predictive.event_shape else y[:, 0]


def _by_target(values: Any) -> FloatArray:
    """An array ``(N, K)``, whatever holds it."""
    array = _numbers(values) if isinstance(values, Tensor) else np.asarray(values, np.float64)
    return array.reshape(len(array), -1)


def _numbers(values: Tensor) -> FloatArray:
    return np.atleast_1d(values.double().numpy(force=True))


def _mean(values: Tensor) -> float | None:
    return json_number(values.double().mean())


def _mean_over(per_target: dict[str, Any], key: str) -> float | None:
    """Average over targets, as scikit-learn does."""
    values = [scores[key] for scores in per_target.values()]
    return None if None in values else float(np.mean(values))


_PACKAGES = ("torch", "numpy", "scikit-learn")


@dataclass(frozen=True)
class Description:
    """What a model is.

    Attributes:
        method: Name of the method in results: ``ENSM``, ``EnD2``, ...
        label: The same for people.
        class_name: Class of the estimator.
        parameters: What it was built with, as text.
        feature_names: Names of the columns it reads.
        training: How it was trained: rows, epochs, seconds and the like.
        versions: Versions of the packages that evaluate it.
        seed: Its ``random_state``, or None.
    """

    method: str
    label: str
    class_name: str
    parameters: dict[str, str]
    feature_names: tuple[str, ...]
    training: dict[str, Any]
    versions: dict[str, str]
    seed: int | None

    @property
    def colour(self) -> str:
        """Colour of the method, the same in every figure."""
        return COLOURS.get(self.method, COLOURS["DD"])


def describe(model: Any) -> Description:
    """Read what a fitted estimator says about itself."""
    class_name = type(model).__name__
    parameters: dict[str, Any] = model.get_params(deep=False)
    objective = parameters.get("objective")
    method = class_name
    for one in TABULAR:
        if objective == one.objective if one.needs_teacher else class_name == one.estimator:
            method = one.key
    seed = parameters.get("random_state")
    return Description(
        method=method,
        label=LABELS.get(method, method),
        class_name=class_name,
        parameters={name: _short(value) for name, value in parameters.items()},
        feature_names=tuple(
            f"x{j}" if column.name is None else column.name
            for j, column in enumerate(model.fitted_.preprocessor.columns_)
        ),
        training=dict(model.fitted_.training),
        versions={
            "priornet": __version__,
            "python": platform.python_version(),
            **{package: metadata.version(package) for package in _PACKAGES},
        },
        seed=int(seed) if isinstance(seed, int) else None,
    )


def _short(value: Any) -> str:
    """A setting as text; a whole estimator by its class."""
    text = type(value).__name__ if hasattr(value, "get_params") else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
