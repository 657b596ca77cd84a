"""The estimators with their own default settings, fitted to one split of a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from priornet.methods import STUDENTS
from priornet.training import at_most
from priornet_paper.uci.config import Defaults
from priornet_paper.uci.folds import Fold


class Fit(NamedTuple):
    """One fitted estimator."""

    model: Any
    seconds: float


def fit_methods(
    inputs: NDArray[np.float64],
    targets: NDArray[np.float64],
    fold: Fold,
    config: Defaults,
    methods: Sequence[str],
    device: str = "cpu",
    tick: Callable[[], object] = lambda: None,
) -> dict[str, Fit]:
    """Fit methods to the training rows of a fold; students bring the ensemble along.

    Args:
        inputs: The whole table, ``(N, D)``.
        targets: Its targets, ``(N,)``.
        fold: The split.
        config: Settings.
        methods: Names of the methods.
        device: Device of the training.
        tick: Called after every fit.
    """
    X, y = inputs[fold.train], targets[fold.train]
    found: dict[str, Fit] = {}
    wanted = list(methods)
    if set(STUDENTS) & set(wanted):
        wanted = ["ENSM", *(m for m in wanted if m != "ENSM")]
    for method in wanted:
        started = time.perf_counter()
        model = _make(method, config, found)
        model.set_params(random_state=config.seed + fold.number, device=device).fit(X, y)
        found[method] = Fit(model, time.perf_counter() - started)
        tick()
    return {method: found[method] for method in methods}


def _make(method: str, config: Defaults, found: dict[str, Fit]) -> Any:
    from priornet.estimators import make_estimator

    # Without conformal intervals no rows need to be set aside for them.
    settings: dict[str, Any] = {"calibration_fraction": 0.0, **config.changes.get(method, {})}
    if method in STUDENTS:
        settings["teacher"] = found["ENSM"].model if "ENSM" in found else None
    elif method == "ENSM":
        settings.setdefault("n_members", config.n_members)
    return make_estimator(method, **settings)


def parameters(config: Defaults) -> dict[str, dict[str, Any]]:
    """Return every parameter of every estimator that matters here, ready for JSON."""
    found: dict[str, dict[str, Any]] = {}
    for method in ("Single", "ENSM", "NWPN", "DER", "EnD2"):
        model = _make(method, config, {})
        values = model.get_params(deep=False)
        values["class"] = type(model).__name__
        del values["max_labels"]  # changes nothing: the tables hold numbers alone
        if values["target_transform"] == "none":  # as in results from before there was a choice
            del values["target_transform"]
        found[method] = {name: _plain(value) for name, value in sorted(values.items())}
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return value if isinstance(value, str | int | float | None) else repr(value)


def multiply_adds(model: Any) -> int:
    """Count the multiplications of one prediction, over all networks of a model."""
    shapes = model.fitted_.stack.shapes.values()
    per_network = sum(int(np.prod(shape)) for shape in shapes if len(shape) == 2)
    return per_network * model.fitted_.stack.n_networks


def latencies(models: Mapping[str, Any], repeats: int = 300) -> dict[str, float]:
    """Measure the median milliseconds of one prediction by each model's first network.

    The batch size is 1. The models take turns, so that other work of the machine slows all alike.
    """
    stacks = {name: model.fitted_.stack.select([0]) for name, model in models.items()}
    inputs = {name: torch.zeros(1, stack.in_features) for name, stack in stacks.items()}
    times: dict[str, list[float]] = {name: [] for name in stacks}
    with torch.no_grad(), at_most(1):
        for _ in range(repeats):
            for name, stack in stacks.items():
                started = time.perf_counter()
                stack.together(inputs[name])
                times[name].append(time.perf_counter() - started)
    return {name: 1e3 * float(np.median(found)) for name, found in times.items()}
