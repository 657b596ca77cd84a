"""Fitted models as files that need nothing of ours: ONNX, and torch.export."""

from priornet.export.errors import ExportError
from priornet.export.exported import open_exported
from priornet.export.onnx.feeds import feeds
from priornet.export.onnx.model import to_onnx
from priornet.export.torch_export.program import to_torch_export
from priornet.export.verify import TOLERANCE, Comparison, outputs_of

__all__ = [
    "TOLERANCE",
    "Comparison",
    "ExportError",
    "feeds",
    "open_exported",
    "outputs_of",
    "to_onnx",
    "to_torch_export",
]
