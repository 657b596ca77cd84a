"""Whether a compiler is at work that fuses operations."""

from __future__ import annotations

import torch

__all__ = ["is_fusing"]

# torch 2.11 calls every trace an export. (2.9 is less than 2.13: these compare as versions.)
_KNOWS_EXPORTS = torch.__version__ >= "2.13"


def is_fusing() -> bool:
    """Whether what follows will be fused: not while a network is exported.

    Whoever reads the file knows what a convolution is, and need not know our kernels.
    """
    is_exported = _KNOWS_EXPORTS and torch.compiler.is_exporting()
    return torch.compiler.is_dynamo_compiling() and not is_exported
