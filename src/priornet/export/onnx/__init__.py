"""Fitted models as ONNX graphs."""

__all__: list[str] = []
