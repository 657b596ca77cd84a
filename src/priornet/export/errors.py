"""What cannot be exported or verified, in one line; and the packages that doing so needs."""

from __future__ import annotations

from typing import Any

from priornet._lazy import need_for

__all__ = ["ExportError", "check_fitted", "need"]


class ExportError(ValueError):
    """Something cannot be exported or compared; the message is one line."""


def need(module: str, purpose: str) -> Any:
    """Import a module of the extra ``onnx``, or say how to get it."""
    return need_for(module, purpose, "onnx", ExportError)


def check_fitted(model: Any) -> None:
    """Only a fitted estimator can be exported."""
    if not hasattr(model, "fitted_"):
        raise ExportError(f"this {type(model).__name__} is not fitted yet; call `fit` first.")
