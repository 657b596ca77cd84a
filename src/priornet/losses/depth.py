r"""DenseDepth's own loss on inverse depth, for the plain model that others are measured against.

The network predicts :math:`y = d_{max} / d`, between 1 and 100, so that near things count more.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from priornet.checks import check_mask, check_same_kind, check_shape, lifted, masked

LARGEST_INVERSE_DEPTH = 100.0
"""Largest inverse depth, that of 10 cm where 10 m is the largest depth: SSIM's dynamic range."""

_WINDOW, _SIGMA = 11, 1.5
_L1_WEIGHT = 0.1


def inverse_depth(depth: Tensor, max_depth: float = 10.0) -> Tensor:
    r"""Compute DenseDepth's target :math:`d_{max} / d`, kept between 1 and 100.

    Example:
        >>> inverse_depth(torch.tensor([0.5, 10.0]))
        tensor([20.,  1.])
    """
    return (max_depth / depth).clamp(1.0, LARGEST_INVERSE_DEPTH)


def depth_of(prediction: Tensor, max_depth: float = 10.0) -> Tensor:
    """Convert a predicted inverse depth to a depth, at most ``max_depth``.

    Note:
        A prediction below 1, or even negative, is as far away as can be. DenseDepth divides first
        and clips then, which makes a negative one the nearest point instead.

    Example:
        >>> depth_of(torch.tensor([20.0, -1.0]))
        tensor([ 0.5000, 10.0000])
    """
    return max_depth / prediction.clamp(1.0, LARGEST_INVERSE_DEPTH)


def dense_depth(
    prediction: Tensor, depth: Tensor, *, max_depth: float = 10.0, mask: Tensor | None = None
) -> Tensor:
    r"""Compute DenseDepth's loss (Alhashim & Wonka, 2018) per image.

    .. math:: 0.1\,|y-\hat y| + |\partial_x (y-\hat y)| + |\partial_y (y-\hat y)| +
        \tfrac12(1 - \mathrm{SSIM}(y, \hat y)), \qquad y = d_{max}/d

    Differences count between pixels that both have a depth; windows of SSIM are those around a
    pixel with depth, and see such pixels only.

    Args:
        prediction: Predicted inverse depth, ``(B, H, W)``.
        depth: Depth, in the units of ``max_depth``, ``(B, H, W)``.
        max_depth: Largest depth; the smallest that is told apart is a hundredth of it.
        mask: True where the depth counts, ``(B, H, W)``; where it is positive when None.

    Returns:
        Loss per image, ``(B,)``; zero for an image without any depth.

    Example:
        >>> depth = torch.full((1, 12, 12), 2.0)
        >>> dense_depth(torch.full((1, 12, 12), 5.0), depth)
        tensor([0.])
    """
    terms = dense_depth_terms(prediction, depth, max_depth=max_depth, mask=mask)
    return _L1_WEIGHT * terms["l1"] + terms["gradients"] + terms["ssim"]


def dense_depth_terms(
    prediction: Tensor, depth: Tensor, *, max_depth: float = 10.0, mask: Tensor | None = None
) -> dict[str, Tensor]:
    """Compute the parts of :func:`dense_depth` per image, unweighted, ``(B,)`` each."""
    prediction, depth = lifted(prediction), lifted(depth)
    _check(prediction, depth, mask)
    if mask is None:
        mask = depth > 0
    # What is masked may be anything, even nan: it must not reach a product.
    predicted = masked(prediction, mask)
    target = masked(inverse_depth(torch.where(mask, depth, max_depth), max_depth), mask)
    count = mask.sum((-2, -1)).clamp_min(1)
    difference = predicted - target
    l1 = difference.abs().sum((-2, -1)) / count
    # Per pixel with depth, as in DenseDepth, though the last row and column have no neighbour.
    gradients = sum(_edges(difference, mask, axis) for axis in (-2, -1)) / count
    return {"l1": l1, "gradients": gradients, "ssim": _dissimilarity(predicted, target, mask)}


def _check(prediction: Tensor, depth: Tensor, mask: Tensor | None) -> None:
    if prediction.dim() != 3 or min(prediction.shape[1:]) < _WINDOW:
        raise ValueError(
            f"`prediction` must be maps (B, H, W) of at least {_WINDOW} x {_WINDOW} pixels; got "
            f"{tuple(prediction.shape)}."
        )
    check_shape("depth", depth, prediction.shape)
    check_same_kind("depth", depth, "prediction", prediction)
    if mask is not None:
        check_mask(mask, prediction.shape)


def _edges(difference: Tensor, mask: Tensor, axis: int) -> Tensor:
    """Sum of absolute differences between neighbours that both count, ``(B,)``."""
    pairs = [
        (m.narrow(axis, 0, m.shape[axis] - 1), m.narrow(axis, 1, m.shape[axis] - 1))
        for m in (difference, mask)
    ]
    (here, there), (is_here, is_there) = pairs
    return masked((there - here).abs(), is_here & is_there).sum((-2, -1))


def _dissimilarity(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Compute (1 - SSIM) / 2 per image, over the windows around pixels that count."""
    share = mask.to(x.dtype)
    weight, *moments = _blurred(torch.stack([share, x, y, x * x, y * y, x * y]))
    margin = _WINDOW // 2
    inside = mask[:, margin:-margin, margin:-margin]
    weight = torch.where(inside, weight, 1.0)
    mean_x, mean_y, xx, yy, xy = (moment / weight for moment in moments)
    c1, c2 = (0.01 * LARGEST_INVERSE_DEPTH) ** 2, (0.03 * LARGEST_INVERSE_DEPTH) ** 2
    luminance = (2 * mean_x * mean_y + c1) / (mean_x.square() + mean_y.square() + c1)
    spread = xx - mean_x.square() + yy - mean_y.square()
    structure = (2 * (xy - mean_x * mean_y) + c2) / (spread + c2)
    missing = masked(1 - luminance * structure, inside).sum((-2, -1))
    return 0.5 * missing / inside.sum((-2, -1)).clamp_min(1)


def _blurred(maps: Tensor) -> Tensor:
    """Compute the Gaussian averages over windows that fit in the map, ``(..., H - 10, W - 10)``."""
    if torch.compiler.is_compiling():  # the compiler fuses the sums, and those of their gradient
        return _Blur.forward(maps)
    return cast(Tensor, _Blur.apply(maps))


class _Blur(torch.autograd.Function):
    """Sums of shifted maps, and as many for the gradient.

    A convolution would run in half precision inside autocast and in TF32 on a GPU, and a variance
    is a small difference of large squares. Autograd would undo every shift in turn, by four
    operations.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(maps: Tensor) -> Tensor:
        for axis in (-2, -1):
            size = maps.shape[axis] - _WINDOW + 1
            total = maps.narrow(axis, 0, size) * _TAPS[0]
            for i, tap in enumerate(_TAPS[1:], 1):
                total = total.add_(maps.narrow(axis, i, size), alpha=tap)
            maps = total
        return maps

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Keep nothing: the operation is linear."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride] (one gradient for one output)
        # The taps are symmetric, so that what was averaged is spread by averaging again.
        return _blurred(functional.pad(grad, [_WINDOW - 1] * 4))

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride] (one tangent for one input)
        return _blurred(tangent)


def _gaussian(size: int, sigma: float) -> list[float]:
    """Return weights that sum to 1."""
    heights = [math.exp(-0.5 * ((i - size // 2) / sigma) ** 2) for i in range(size)]
    return [height / sum(heights) for height in heights]


_TAPS = _gaussian(_WINDOW, _SIGMA)
