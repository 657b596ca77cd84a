"""Running ONNX models."""

from __future__ import annotations

from typing import Any

import onnxruntime


def run_onnx(proto: Any, fed: dict[str, Any]) -> dict[str, Any]:
    """Outputs of a model by name, on the CPU."""
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, fed), strict=True))
