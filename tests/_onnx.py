"""Running ONNX models, and making those of depth networks in less time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import onnxruntime
import pytest

from priornet.nn.dense_depth import efficientnet


def run_onnx(proto: Any, fed: dict[str, Any]) -> dict[str, Any]:
    """Outputs of a model by name, on the CPU."""
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, fed), strict=True))


@contextmanager
def short_encoder() -> Iterator[None]:
    """EfficientNet-Lite0 with one block of each kind: a third less to trace, and nothing new in it.

    The whole of it is traced in tests/depth/test_onnx_file.py.
    """
    with pytest.MonkeyPatch.context() as patch:
        groups = tuple((1, *group[1:]) for group in efficientnet._GROUPS)
        patch.setattr(efficientnet, "_GROUPS", groups)
        yield
