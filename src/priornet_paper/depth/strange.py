"""Images such as nobody took: a student asks its teachers what to think of those.

Teachers disagree about them, and a student that has never asked does not know. None of them needs
other data than the training images: some are made from these, some from nothing but random numbers.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor
from torch.nn import functional

from priornet_paper.depth.draws import draw, matrices

__all__ = ["filtered", "leaves", "turn", "upset"]

_WINDOW = 5  # pixels across of random filters
_LEAVES = 60  # shapes in an image of them


def upset(images: Tensor, share: float, generator: Generator) -> Tensor:
    """Some images, about that share, made strange.

    Each is turned and scaled, made its negative, cut in four and put together crosswise, half
    covered by another image, seen through a random filter, or replaced by painted shapes.
    """
    height, width = images.shape[-2:]
    changed = (
        turn(images, generator),
        1 - images,
        images.roll((height // 2, width // 2), (-2, -1)),
        0.5 * (images + images.roll(1, 0)),
        filtered(images, generator),
        leaves(images, generator),
    )
    dice = draw(len(images), 0.0, len(changed) / share, generator, images)
    for kind, other in enumerate(changed):
        images = torch.where((dice >= kind) & (dice < kind + 1), other, images)
    return images


def turn(images: Tensor, generator: Generator) -> Tensor:
    """Images turned by any angle, at half to twice their size, mirrored at the borders."""
    n, (height, width) = len(images), images.shape[-2:]
    angle = draw(n, -math.pi, math.pi, generator, images)
    size = draw(n, -math.log(2), math.log(2), generator, images).exp()
    zero = torch.zeros_like(angle)
    # Coordinates run from -1 to 1 in both directions: an angle is one only in pixels.
    where = matrices(
        (size * angle.cos(), -size * angle.sin() * height / width, zero),
        (size * angle.sin() * width / height, size * angle.cos(), zero),
    )
    grid = functional.affine_grid(where, [*images.shape], align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def filtered(images: Tensor, generator: Generator) -> Tensor:
    """Images through a convolution with random weights, each its own: shapes in other textures.

    Brightness and spread of every colour are drawn too, for the filter's own mean nothing.
    """
    n = len(images)
    weights = torch.randn((n, 3, 3, _WINDOW**2), generator=generator).to(images.device)
    colours = torch.rand((2, n, 3, 1), generator=generator).to(images.device)
    colourful = draw(n, 0.0, 1.0, generator, images)
    weights, colours = _faded(weights, colourful, 1), _faded(colours, colourful[:, 0], 2)
    border = (_WINDOW // 2,) * 4
    row = functional.pad(images, border, mode="reflect").flatten(0, 1).unsqueeze(0)
    # One convolution in n groups: an image's channels meet its own weights only.
    kernels = weights.reshape(3 * n, 3, _WINDOW, _WINDOW)
    found = functional.conv2d(row, kernels, groups=n).reshape(images.shape)
    spread, mean = torch.std_mean(found, (-2, -1), keepdim=True)
    found = (found - mean) / (spread + 1e-6)
    middle, width = colours.unsqueeze(-1)
    return (0.2 + 0.6 * middle + (0.05 + 0.25 * width) * found).clamp(0, 1)


def _faded(values: Tensor, colourful: Tensor, channels: int) -> Tensor:
    """Values with their differences between channels scaled: 0 for grey, 1 for all colours."""
    grey = values.mean(channels, keepdim=True)
    return grey + colourful * (values - grey)


def leaves(images: Tensor, generator: Generator) -> Tensor:
    """Pictures of the same size made of shapes of all sizes that cover each other ("dead leaves").

    Edges, occlusion and plain surfaces as in photographs (Lee, Mumford and Huang, 2001), but of
    nothing. Diamonds, discs and squares, each of one colour that fades in some direction.
    """
    n, (height, width) = len(images), images.shape[-2:]
    numbers = torch.rand((n, _LEAVES, 10), generator=generator)
    numbers = numbers.to(images.device, non_blocking=True)[..., None, None]
    across, down, size, form, stretch, angle, fade = numbers[:, :, :7].unbind(2)
    x, y = _grid(images)
    dx, dy = x - across * width / height, y - down
    turned = 2 * math.pi * angle
    dx, dy = dx * turned.cos() + dy * turned.sin(), dy * turned.cos() - dx * turned.sin()
    # Uniform in the logarithm, from 2 % to 40 % of the height.
    radius, slim = 0.02 * 20**size, 4 ** (stretch - 0.5)
    power = 0.7 * 12**form
    u, v = (dx / radius * slim).abs(), (dy / radius / slim).abs()
    # Computed coarsely, this is most of the work; what lies behind everything is the last leaf.
    inside = (u.clamp(max=9) ** power + v.clamp(max=9) ** power < 1).float()
    inside[:, -1] = 1.0
    top = inside.argmax(1, keepdim=True)
    light = 1 + (fade - 0.5) * (dx / radius).clamp(-1, 1)
    colourful = draw(n, 0.0, 1.0, generator, images).unsqueeze(1)
    colours = _faded(numbers[:, :, 7:], colourful, 2).expand(-1, -1, -1, *x.shape[-2:])
    chosen = colours.gather(1, top.unsqueeze(2).expand(-1, -1, 3, -1, -1)).squeeze(1)
    painted = (chosen * light.gather(1, top)).clamp(0, 1)
    return functional.interpolate(painted, (height, width), mode="bilinear", align_corners=False)


def _grid(images: Tensor) -> tuple[Tensor, Tensor]:
    """Places of every second pixel, in heights of the image, ``(1, 1, h, w)`` each."""
    height, width = images.shape[-2:]
    down = torch.arange(1, height, 2, device=images.device) / height
    across = torch.arange(1, width, 2, device=images.device) / height
    y, x = torch.meshgrid(down, across, indexing="ij")
    return x[None, None], y[None, None]
