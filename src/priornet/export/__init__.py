"""Fitted models as files that need nothing of ours: ONNX, and torch.export."""

from priornet.export.depth import depth_to_onnx
from priornet.export.depth_verify import DepthGraph, depth_outputs
from priornet.export.errors import ExportError
from priornet.export.exported import open_exported
from priornet.export.feeds import feeds
from priornet.export.onnx_model import to_onnx
from priornet.export.torch_program import to_torch_export
from priornet.export.verify import TOLERANCE, Comparison, outputs_of

__all__ = [
    "TOLERANCE",
    "Comparison",
    "DepthGraph",
    "ExportError",
    "depth_outputs",
    "depth_to_onnx",
    "feeds",
    "open_exported",
    "outputs_of",
    "to_onnx",
    "to_torch_export",
]
