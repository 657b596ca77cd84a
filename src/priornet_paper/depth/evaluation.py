"""A model on all images of a set: in-domain scored, out-of-domain measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from priornet_paper.depth.measures import ImageMeasures
from priornet_paper.depth.protocol import Protocol
from priornet_paper.depth.score import Scorer

__all__ = ["Predict", "evaluate", "measure"]

Predict = Callable[[Tensor], Any]
"""Images ``(B, 3, H, W)`` in [0, 1] to a belief in metres, or to depths, ``(B, h, w)``."""


@torch.no_grad()
def evaluate(
    predict: Predict,
    images: Tensor,
    depth: Tensor,
    protocol: Protocol,
    *,
    batch: int = 16,
    device: torch.device | str | None = None,
    mirrored: bool = True,
    information_draws: int = 0,
) -> Scorer:
    """Score a model on the test images of its own set.

    Args:
        predict: The model.
        images: As bytes, ``(N, 3, H, W)``.
        depth: In metres, ``(N, H, W)``; 0 is no measurement.
        protocol: What is compared with what.
        batch: Images at a time.
        device: Where the model is; that of the images when None.
        mirrored: Whether predictions are averaged with those of the mirrored images.
        information_draws: For ensembles; see :class:`ImageMeasures`.
    """
    if len(depth) != len(images):
        raise ValueError(f"{len(images)} images need as many depth maps; got {len(depth)}.")
    scorer = Scorer(protocol, information_draws=information_draws)
    for rows, some in _batches(images, batch, device):
        twin = predict(some.flip(-1)) if mirrored else None
        scorer.add(predict(some), depth[rows].to(some.device), mirrored=twin)
    return scorer


@torch.no_grad()
def measure(
    predict: Predict,
    images: Tensor,
    protocol: Protocol,
    *,
    batch: int = 16,
    device: torch.device | str | None = None,
    information_draws: int = 0,
) -> ImageMeasures:
    """Uncertainty of a model about images of any set, over the same region as its own.

    Args:
        predict: The model; it must predict a belief.
        images: As bytes, prepared to the size of the model's own images, ``(N, 3, H, W)``.
        protocol: That of the model's own set.
        batch: Images at a time.
        device: Where the model is; that of the images when None.
        information_draws: For ensembles; see :class:`ImageMeasures`.
    """
    found = ImageMeasures(protocol, information_draws=information_draws)
    for _, some in _batches(images, batch, device):
        found.add(predict(some))
    return found


def _batches(
    images: Tensor, batch: int, device: torch.device | str | None
) -> Iterator[tuple[slice, Tensor]]:
    """Images in [0, 1] on the device, with their places."""
    if images.dim() != 4 or images.dtype != torch.uint8:
        raise ValueError(
            "`images` must be bytes of shape (N, 3, H, W); got "
            f"{images.dtype} {tuple(images.shape)}."
        )
    for start in range(0, len(images), batch):
        rows = slice(start, min(start + batch, len(images)))
        yield rows, images[rows].to(device or images.device).float() / 255
