"""What happens to images before a network sees them: bytes in, numbers in [0, 1] out.

DenseDepth mirrors images and swaps their colour channels. Beyond that a photograph may be brighter
or more colourful, and it may be enlarged: things that look twice as large are twice as near. All
draws are made on the CPU for the whole batch, so that they are the same on every device.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Generator, Tensor
from torch.nn import functional

from priornet.depth import Augment
from priornet_paper.depth.batches import Changes
from priornet_paper.depth.config import STUDENTS
from priornet_paper.depth.draws import draw, matrices
from priornet_paper.depth.recipe import Recipe
from priornet_paper.depth.strange import upset

__all__ = ["changes_for", "enlarge", "jitter", "mix"]


def changes_for(recipe: Recipe) -> Changes:
    """The augmentation of a recipe's training images.

    A student's images may be farther from photographs than their teachers' were: its teachers
    answer for any image, and have different opinions where they have not learnt by heart.
    """
    config = recipe.config
    is_student = recipe.method in STUDENTS
    farther = config.transfer if is_student else 0.0
    return functools.partial(
        _change,
        flip=config.flip,
        swap=config.swap,
        colour=config.jitter + 0.4 * farther,
        zoom=config.zoom + farther,
        mixing=0.5 * farther,
        strange=config.strange if is_student else 0.0,
    )


def _change(
    images: Tensor,
    depth: Tensor | None,
    generator: Generator,
    *,
    flip: float,
    swap: float,
    colour: float,
    zoom: float,
    mixing: float,
    strange: float,
) -> tuple[Tensor, Tensor | None]:
    images, depth = Augment(generator, flip=flip, swap=swap)(images, depth)
    images = images.float() / 255
    if mixing > 0:
        images = mix(images, mixing, generator)
    if strange > 0:
        images = upset(images, strange, generator)
    if zoom > 1:
        images, depth = enlarge(images, depth, zoom, generator)
    return (jitter(images, colour, generator) if colour > 0 else images), depth


def jitter(images: Tensor, strength: float, generator: Generator) -> Tensor:
    """Images ``(B, 3, H, W)`` with other brightness, contrast, colour and gamma, each its own.

    Args:
        images: In [0, 1].
        strength: 0.2 for factors of brightness and contrast between 0.8 and 1.25.
        generator: Source of randomness, on the CPU.
    """
    n, size = len(images), math.log1p(strength)
    brightness, contrast, saturation, gamma = (
        draw(n, -size, size, generator, images).exp() for _ in range(4)
    )
    grey = images.mean(1, keepdim=True)
    images = grey + (images - grey) * saturation
    middle = grey.mean((-2, -1), keepdim=True)
    images = (middle + (images - middle) * contrast) * brightness
    return images.clamp(1e-6, 1.0) ** gamma


def enlarge(
    images: Tensor, depth: Tensor | None, most: float, generator: Generator
) -> tuple[Tensor, Tensor | None]:
    """Parts of images at the size of the whole; depth is divided by the enlargement.

    Args:
        images: ``(B, 3, H, W)``.
        depth: ``(B, h, w)``; values are taken from the nearest pixel, not mixed.
        most: Largest factor; each image draws its own, uniformly from 1 on.
        generator: Source of randomness, on the CPU.
    """
    n = len(images)
    factor = draw(n, 1.0, most, generator, images)
    across, down = (draw(n, -1.0, 1.0, generator, images) for _ in range(2))
    zero, room = torch.zeros_like(factor), 1 - 1 / factor
    where = matrices((1 / factor, zero, room * across), (zero, 1 / factor, room * down))
    grid = functional.affine_grid(where, [*images.shape], align_corners=False)
    images = functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
    if depth is not None:
        maps = depth.unsqueeze(1)
        grid = functional.affine_grid(where, [*maps.shape], align_corners=False)
        maps = functional.grid_sample(
            maps, grid, mode="nearest", padding_mode="border", align_corners=False
        )
        depth = (maps / factor).squeeze(1)
    return images, depth


def mix(images: Tensor, share: float, generator: Generator) -> Tensor:
    """Every image with up to that share of another one laid over it."""
    other = torch.randperm(len(images), generator=generator).to(images.device, non_blocking=True)
    weight = draw(len(images), 0.0, share, generator, images)
    return torch.lerp(images, images[other], weight)
