"""DenseDepth: a pre-trained encoder, a decoder with skips, and any head, per pixel."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, pad

from priornet.nn.dense_depth.densenet import DenseNet169
from priornet.nn.dense_depth.efficientnet import EfficientNetLite0, packaged_weights
from priornet.nn.dense_depth.joining import doubled_with
from priornet.nn.heads import GaussianMixtureHead, Head, with_first_weights
from priornet.nn.weights import initialise

Encoder = Literal["densenet169", "efficientnet_lite0"]

ENCODERS = {"densenet169": DenseNet169, "efficientnet_lite0": EfficientNetLite0}
_STRIDE = 32
_SLOPE = 0.2


class _UpBlock(nn.Module):
    """Doubles the map, joins the encoder's map of that size, convolves twice."""

    def __init__(self, n_in: int, n_skip: int, n_out: int, groups: int = 1) -> None:
        super().__init__()
        self.conv_a = nn.Conv2d(n_in + n_skip, groups * n_out, 3, padding=1)
        self.conv_b = nn.Conv2d(groups * n_out, groups * n_out, 3, padding=1, groups=groups)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        """Compute the map at twice the resolution."""
        x = leaky_relu(self.conv_a(doubled_with(x, skip)), _SLOPE, inplace=True)
        return leaky_relu(self.conv_b(x), _SLOPE, inplace=True)


class _PlainHead(Head):
    """One number per pixel without uncertainty: the original DenseDepth."""

    def __init__(self, in_features: int) -> None:
        super().__init__(in_features, 1, per_pixel=True, init_gain=1.0)
        self.projection = nn.Conv2d(in_features, 1, 3, padding=1)

    def distribution(self, raw: Tensor) -> Tensor:
        """Return the numbers themselves, ``(*batch,)``."""
        return raw.squeeze(-1)


class DenseDepth(nn.Module):
    r"""Images to a prediction per pixel at half their resolution (Alhashim & Wonka, 2018).

    An encoder pre-trained on ImageNet, then four blocks that double the map, join the encoder's map
    of the same size and convolve twice (3 x 3, leaky ReLU of slope 0.2), halving the channels each
    time; then a head. Images of any size: those that 32 does not divide are continued by their last
    row and column inside, and the prediction is cut back.

    Args:
        make_head: Builds a head with ``per_pixel=True`` for a number of features; None for a single
            plain output.
        encoder: Name of the encoder.
        n_decoder: First width of the decoder; None for the encoder's default (1664 for DenseNet-169
            as in DenseDepth, 512 for EfficientNet-Lite0).
        pretrained: File with ImageNet weights of the encoder, see :meth:`DenseNet169.load` and
            :meth:`EfficientNetLite0.load`; ``"imagenet"`` for the weights in a package
            (EfficientNet-Lite0); None starts from random weights.
        early_split: For a mixture head: each member gets its own last decoder block, not only its
            own head.
        dropout: Share of the decoder's smaller maps that are left out at random in training mode.

    Note:
        Up-sampling interpolates between pixel centres, where DenseDepth aligns corners: the weights
        are then the same at every pixel, and exact in half precision.

    Example:
        >>> from priornet.nn import GaussianHead
        >>> net = DenseDepth(lambda n: GaussianHead(n, per_pixel=True), "efficientnet_lite0")
        >>> net(torch.rand(2, 3, 64, 96)).batch_shape
        torch.Size([2, 32, 48])
    """

    def __init__(
        self,
        make_head: Callable[[int], Head] | None,
        encoder: Encoder = "densenet169",
        *,
        n_decoder: int | None = None,
        pretrained: str | os.PathLike[str] | None = None,
        early_split: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if encoder not in ENCODERS:
            raise ValueError(f'unknown encoder "{encoder}"; choose one of: {", ".join(ENCODERS)}.')
        self.encoder = ENCODERS[encoder]()
        width = self.encoder.n_decoder if n_decoder is None else n_decoder
        if width < 16:
            raise ValueError(
                f"`n_decoder` must be at least 16, to be halved four times; got {width}."
            )
        self.head = (make_head or _PlainHead)(width // 16)
        if not self.head.per_pixel:
            raise ValueError("`make_head` must build a head with `per_pixel=True`.")
        n_members = _split(self.head) if early_split else 1
        *skips, top = self.encoder.channels
        self.bottom = nn.Conv2d(top, width, 1)
        self.up1 = _UpBlock(width, skips[3], width // 2)
        self.up2 = _UpBlock(width // 2, skips[2], width // 4)
        self.up3 = _UpBlock(width // 4, skips[1], width // 8)
        self.up4 = _UpBlock(width // 8, skips[0], width // 16, n_members)
        self.drop = nn.Dropout2d(dropout)
        for block in (self.bottom, self.up1, self.up2, self.up3, self.up4):
            initialise(block, _SLOPE)
        if pretrained is not None:
            self.encoder.load(_weights_file(encoder, pretrained))

    def features(self, images: Tensor) -> Tensor:
        """Compute the head's inputs ``(B, n, ceil(H / 2), ceil(W / 2))``, stored channels last."""
        if images.dim() != 4 or images.shape[1] != 3 or not images.is_floating_point():
            raise ValueError(
                "`images` must be floating-point RGB in [0, 1] of shape (B, 3, H, W); got "
                f"{images.dtype} of shape {tuple(images.shape)}."
            )
        height, width = images.shape[-2:]
        down, right = -height % _STRIDE, -width % _STRIDE
        if down or right:
            images = pad(images, (0, right, 0, down), mode="replicate")
        images = images.contiguous(memory_format=torch.channels_last)
        half, quarter, eighth, sixteenth, x = self.encoder(images)
        x = self.drop(self.bottom(x))
        x = self.drop(self.up1(x, sixteenth))
        x = self.drop(self.up2(x, eighth))
        x = self.up4(self.up3(x, quarter), half)
        return x[..., : -(-height // 2), : -(-width // 2)] if down or right else x

    def raw(self, images: Tensor) -> Tensor:
        """Compute unconstrained outputs ``(B, ceil(H / 2), ceil(W / 2), n)``, at least float32."""
        return self.outputs(self.features(images))

    def outputs(self, features: Tensor) -> Tensor:
        """Compute unconstrained outputs from :meth:`features`."""
        # The last product in full precision: a mean or a log-variance rounded to the eight bits of
        # bfloat16 moves in steps of half a percent.
        with torch.autocast(features.device.type, enabled=False):
            return self.head.raw(features.to(next(self.head.parameters()).dtype))

    def narrow(self, dtype: torch.dtype = torch.bfloat16) -> None:
        """Round the weights of convolutions as autocast does, once; training is over then.

        Inside ``torch.autocast`` predictions stay the same, and no call rounds weights again. The
        head and norms keep their precision. Outside autocast the network no longer works.
        """
        for part in (self.encoder, self.bottom, self.up1, self.up2, self.up3, self.up4):
            for module in part.modules():
                if isinstance(module, nn.Conv2d):
                    module.to(dtype)

    def forward(self, images: Tensor) -> Any:
        """Predict images ``(B, 3, H, W)`` in [0, 1], RGB.

        Returns:
            A distribution with batch shape ``(B, ceil(H / 2), ceil(W / 2))`` and event ``(1,)``;
            without a head a tensor of that batch shape.
        """
        return self.head.distribution(self.raw(images))


def _split(head: Head) -> int:
    """Give each member of a mixture head features of its own; return the number of members."""
    if not isinstance(head, GaussianMixtureHead):
        raise ValueError(
            "`early_split` is for a GaussianMixtureHead, whose members can go their own way; got "
            f"{type(head).__name__}."
        )
    n_members = head.n_members
    layer = nn.Conv2d(n_members * head.in_features, head.n_outputs, 1, groups=n_members)
    head.projection = with_first_weights(layer, head.init_gain)
    return n_members


def _weights_file(encoder: Encoder, pretrained: str | os.PathLike[str]) -> str | os.PathLike[str]:
    if pretrained != "imagenet":
        return pretrained
    if encoder != "efficientnet_lite0":
        raise ValueError(
            f"no package brings the ImageNet weights of {encoder}: `pretrained` must be the path "
            "of a file with torchvision's names."
        )
    return packaged_weights()
