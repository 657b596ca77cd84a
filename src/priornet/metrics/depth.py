r"""Scores of depth maps, and the readings in which published codes differ.

With prediction :math:`\hat y` and target :math:`y` at the valid pixels of an image, Eq. (45),
arXiv:2006.11590v2:

.. math::
    \delta_k = P\left[\max\left(\tfrac{\hat y}{y}, \tfrac{y}{\hat y}\right) < 1.25^k\right] \qquad
    \mathrm{rel} = E\,\tfrac{|\hat y - y|}{y} \qquad
    \mathrm{rmse} = \sqrt{E(\hat y - y)^2} \qquad
    \log_{10} = E\,|\log_{10}\hat y - \log_{10} y|

The paper's equation has :math:`\sqrt{E(\log_{10}\hat y - \log_{10} y)^2}` for "log10", here
``rmse_log10``; its public code, DenseDepth's and the paper's tables have the mean above.

``over="images"`` averages the scores of the images: the paper, its code, DenseDepth's TensorFlow 2
code. ``over="pixels"`` takes all pixels of the set as one image: DenseDepth's Keras code. That code
also swaps its arguments, so that its "rel" divides by the prediction: here ``rel_to_prediction``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import Tensor

from priornet.checks import check_mask, check_shape, check_values, common_tensors

Over = Literal["images", "pixels"]

DEPTH_METRICS = (
    *("delta1", "delta2", "delta3", "rel", "rmse", "log10"),
    *("rmse_log10", "rel_to_prediction"),
)
"""Names of the scores. Higher is better for the deltas, lower for the others."""

_ROOTS = ("rmse", "rmse_log10")


@dataclass(frozen=True)
class DepthErrors:
    """Mean errors over the valid pixels of each image, from which both readings of a set follow.

    Attributes:
        n_pixels: Valid pixels, ``(N,)``.
        means: By score, mean over the valid pixels, ``(N,)`` each; ``nan`` for an image without.
            Those of ``rmse`` and ``rmse_log10`` are mean squares: no root has been taken.
    """

    n_pixels: Tensor
    means: dict[str, Tensor]

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """Join the images of all parts in their order."""
        means = {name: torch.cat([part.means[name] for part in parts]) for name in DEPTH_METRICS}
        return cls(torch.cat([part.n_pixels for part in parts]), means)

    def per_image(self) -> dict[str, Tensor]:
        """Scores of each image, ``(N,)`` each; ``nan`` for an image without valid pixels."""
        return {n: m.sqrt() if n in _ROOTS else m for n, m in self.means.items()}

    def over(self, what: Over) -> dict[str, Tensor]:
        """Scores of the set, in double precision; images without valid pixels do not count.

        Args:
            what: ``"images"`` for the mean of the images' scores, ``"pixels"`` for all as one.
        """
        if what not in ("images", "pixels"):
            raise ValueError(f'`over` must be "images" or "pixels"; got {what!r}.')
        seen = self.n_pixels > 0
        if not bool(seen.any()):
            raise ValueError("no image has a valid pixel: there is nothing to score.")
        if what == "images":
            return {n: value[seen].double().mean() for n, value in self.per_image().items()}
        weight = self.n_pixels[seen].double()
        pooled = {n: (weight * m[seen]).sum() / weight.sum() for n, m in self.means.items()}
        return {n: value.sqrt() if n in _ROOTS else value for n, value in pooled.items()}


@torch.no_grad()
def depth_metrics(
    prediction: Tensor, target: Tensor, *, valid: Tensor | None = None, over: Over = "images"
) -> dict[str, Tensor]:
    """Compute every score of depth maps, by name; the module defines them.

    ``rmse`` has the unit of the depth, the others have none. Perfect is 1 for the deltas and 0 for
    the others.

    Args:
        prediction: Predicted depths, positive where valid, shape ``(N, H, W)``.
        target: Depths, same shape, positive where valid.
        valid: Which pixels count, boolean, same shape; those with a positive target when None.
        over: ``"images"`` for the mean of the images' scores, ``"pixels"`` for all pixels as one.

    Returns:
        Scalars in double precision, by the names in ``DEPTH_METRICS``.

    Example:
        >>> prediction = torch.tensor([[[1.0, 2.0], [4.0, 9.0]]])
        >>> target = torch.tensor([[[1.0, 2.0], [5.0, 0.0]]])  # 0: no measurement
        >>> round(depth_metrics(prediction, target)["rel"].item(), 4)
        0.0667
    """
    prediction, target = common_tensors(prediction=prediction, target=target)
    if prediction.dim() != 3:
        raise ValueError(f"`prediction` must have shape (N, H, W); got {tuple(prediction.shape)}.")
    check_shape("target", target, prediction.shape)
    if valid is None:
        valid = target > 0
    check_mask(valid, prediction.shape)
    for name, value in (("prediction", prediction), ("target", target)):
        good = ~valid | ((value > 0) & value.isfinite())
        check_values(name, value, good, "positive and finite where it counts")
    return depth_errors(prediction, target, valid).over(over)


def depth_errors(prediction: Tensor, target: Tensor, valid: Tensor) -> DepthErrors:
    """Compute the mean errors of each image without reading values: nothing waits for the device.

    Args:
        prediction: Predicted depths, positive where valid, shape ``(N, H, W)``.
        target: Depths, same shape and dtype.
        valid: Which pixels count, boolean, same shape.
    """
    # What does not count becomes a perfect prediction of 1, which no sum below sees.
    p, t = torch.where(valid, prediction, 1.0), torch.where(valid, target, 1.0)
    off, log10 = p - t, torch.log(p / t) / math.log(10)
    ratio = torch.maximum(p / t, t / p)
    errors = {
        # Those above the limit so far; nan counts as above every limit.
        **{f"delta{k}": (~(ratio < 1.25**k)).to(p.dtype) for k in (1, 2, 3)},
        "rel": off.abs() / t,
        "rmse": off.square(),
        "log10": log10.abs(),
        "rmse_log10": log10.square(),
        "rel_to_prediction": off.abs() / p,
    }
    n_pixels = valid.sum((-2, -1))
    means = {name: error.sum((-2, -1)) / n_pixels for name, error in errors.items()}
    means |= {name: 1 - means[name] for name in ("delta1", "delta2", "delta3")}
    return DepthErrors(n_pixels, means)
