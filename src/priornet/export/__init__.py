"""Fitted models as files that run without priornet: ONNX graphs and ``torch.export`` programs.

Each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet.export.agreement import (
        TOLERANCE,
        Comparison,
        open_exported,
        outputs_of,
        verify_file,
    )
    from priornet.export.interface import ExportError, feeds
    from priornet.export.onnx.table_graph import to_onnx
    from priornet.export.torch_export import to_torch_export

__all__ = [
    "TOLERANCE",
    "Comparison",
    "ExportError",
    "feeds",
    "open_exported",
    "outputs_of",
    "to_onnx",
    "to_torch_export",
    "verify_file",
]

_HOMES = {
    "TOLERANCE": "agreement",
    "Comparison": "agreement",
    "ExportError": "interface",
    "feeds": "interface",
    "open_exported": "agreement",
    "outputs_of": "agreement",
    "to_onnx": "onnx.table_graph",
    "to_torch_export": "torch_export",
    "verify_file": "agreement",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
