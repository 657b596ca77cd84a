"""DenseNet-169 up to its last feature map, with torchvision's parameter names."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from priornet.checks import values_visible
from priornet.nn.weights import fold_norm, initialise, load_weights

_GROWTH = 32
_LAYERS = (6, 12, 32, 32)
# Files from before 2018 name the parts of a dense layer `norm.1.weight` and the like.
_OLD_NAME = re.compile(r"(denselayer\d+\.(?:norm|conv))\.([12]\.)")


class _DenseLayer(nn.Module):
    """A bottleneck that turns all features so far into 32 new ones."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(n_features)
        self.conv1 = nn.Conv2d(n_features, 4 * _GROWTH, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * _GROWTH)
        self.conv2 = nn.Conv2d(4 * _GROWTH, _GROWTH, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the new features."""
        x = self.conv1(relu(self.norm1(x), inplace=True))
        return self.conv2(relu(self.norm2(x), inplace=True))


class _DenseBlock(nn.Module):
    """Layers that each read all maps before them."""

    def __init__(self, n_features: int, n_layers: int) -> None:
        super().__init__()
        for i in range(n_layers):
            self.add_module(f"denselayer{i + 1}", _DenseLayer(n_features + i * _GROWTH))

    def forward(self, x: Tensor) -> Tensor:
        """Compute all features, old and new."""
        if not torch.is_grad_enabled() and values_visible(x):
            return self._in_place(x)
        # One growing tensor, not a list of pieces: the backward pass then adds whole tensors, once
        # per layer, instead of a piece for every pair of layers.
        for layer in self.children():
            x = torch.cat([x, layer(x)], 1)
        return x

    def _in_place(self, x: Tensor) -> Tensor:
        """Write features side by side, without copies: no backward pass needs the old ones."""
        batch, n_old, height, width = x.shape
        shape = (batch, n_old + len(self._modules) * _GROWTH, height, width)
        is_last = x.is_contiguous(memory_format=torch.channels_last)
        layout = torch.channels_last if is_last else torch.contiguous_format
        all_features = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=layout)
        all_features[:, :n_old] = x
        for layer in self.children():
            seen = all_features[:, :n_old]
            all_features[:, n_old : n_old + _GROWTH] = layer(seen)
            n_old += _GROWTH
        return all_features


class _Transition(nn.Module):
    """Halves the number of features and the resolution.

    The paper convolves, then averages. A convolution of single pixels and an average of four may
    change places; with the average first there is a quarter of the pixels to convolve.
    """

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(n_features)
        self.conv = nn.Conv2d(n_features, n_features // 2, 1, bias=False)
        self.pool = nn.AvgPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the smaller map."""
        return self.conv(self.pool(relu(self.norm(x), inplace=True)))


class DenseNet169(nn.Module):
    r"""Features of DenseNet-169 (Huang et al., 2017) at five scales.

    Parameters bear the names that they have in torchvision's ``densenet169``, so that its published
    ImageNet weights load from a file; the classifier is left out.

    Example:
        >>> maps = DenseNet169()(torch.rand(2, 3, 64, 64))
        >>> [tuple(m.shape[1:]) for m in maps]
        [(64, 32, 32), (64, 16, 16), (128, 8, 8), (256, 4, 4), (1664, 2, 2)]
    """

    channels = (64, 64, 128, 256, 1664)
    n_decoder = 1664
    mean: Tensor
    std: Tensor

    def __init__(self) -> None:
        super().__init__()
        parts: OrderedDict[str, nn.Module] = OrderedDict(
            conv0=nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
            norm0=nn.BatchNorm2d(64),
            relu0=nn.ReLU(inplace=True),
            pool0=nn.MaxPool2d(3, stride=2, padding=1),
        )
        n_features = 64
        for i, n_layers in enumerate(_LAYERS, start=1):
            parts[f"denseblock{i}"] = _DenseBlock(n_features, n_layers)
            n_features += n_layers * _GROWTH
            if i < len(_LAYERS):
                parts[f"transition{i}"] = _Transition(n_features)
                n_features //= 2
        parts["norm5"] = nn.BatchNorm2d(n_features)
        self.features = nn.Sequential(parts)
        initialise(self)
        # Constants of the weights, not weights: they stay out of the state dict.
        for name, values in (("mean", (0.485, 0.456, 0.406)), ("std", (0.229, 0.224, 0.225))):
            self.register_buffer(name, torch.tensor(values).view(3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Compute maps at 1/2, 1/4, 1/8, 1/16 and 1/32 of the size of RGB images in [0, 1]."""
        x = (images - self.mean) / self.std
        kept: dict[str, Tensor] = {}
        for name, part in self.features.named_children():
            x = kept[name] = part(x)
        return kept["relu0"], kept["pool0"], kept["transition1"], kept["transition2"], relu(x)

    @property
    def norms_folded(self) -> bool:
        """Check if :meth:`fold_norms` has been called."""
        return not isinstance(self.features.norm0, nn.BatchNorm2d)

    def fold_norms(self) -> None:
        """Fold batch norms, with their statistics, into the convolutions before them.

        These are the first norm and the second norm of every dense layer; the others follow a join
        of maps and stay. In evaluation mode the features stay the same and are quicker to compute.
        The weights then no longer have their published names, and the folded norms cannot learn.
        """
        fold_norm(self.features, "conv0", "norm0")
        for part in self.modules():
            if isinstance(part, _DenseLayer):
                fold_norm(part, "conv1", "norm2")

    def load(self, path: str | os.PathLike[str]) -> None:
        """Load a file of weights with torchvision's names, current or old."""
        current = partial(_OLD_NAME.sub, r"\1\2")
        load_weights(self, path, ignore=("classifier.",), rename=current)
