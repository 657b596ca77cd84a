"""What a model is: its class, its settings, how it was trained, with which versions."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from priornet._version import __version__
from priornet.methods import COLOURS, LABELS, TABULAR

__all__ = ["Description", "describe"]

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
