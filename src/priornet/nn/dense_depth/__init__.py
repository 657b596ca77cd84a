"""DenseDepth: a pre-trained encoder, a decoder with skips, and any head, per pixel."""

from priornet.nn.dense_depth.decoder import DenseDepth

__all__ = ["DenseDepth"]
