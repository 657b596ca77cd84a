"""DenseDepth: a pre-trained encoder, a decoder with skips, and any head, per pixel."""

from priornet.nn.dense_depth.decoder import DenseDepth
from priornet.nn.dense_depth.efficientnet import EfficientNetLite0, packaged_weights

__all__ = ["DenseDepth", "EfficientNetLite0", "packaged_weights"]
