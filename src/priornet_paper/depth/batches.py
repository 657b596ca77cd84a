"""Training images as bytes on the device, their augmentation, and the batches of an epoch.

Gathering, augmenting and scaling happen on the device, which never waits for a decoder. An epoch
follows from the seed and its number alone: repeated after an interruption it is the same, and
processes that share a batch draw the whole batch and keep their part. All random numbers are drawn
on the CPU, so that they are the same on every device.

DenseDepth mirrors images and swaps their colour channels. Here an image may also become brighter,
more colourful or larger: things that look twice as large are twice as near. A student also sees
out-of-domain images made from training images: its teachers disagree about them, and a student that
never saw their disagreement cannot learn it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional

from priornet.depth import Augment
from priornet_paper.depth.config import STUDENTS, Variant
from priornet_paper.depth.machine import Share
from priornet_paper.depth.methods import Batch, Scale

Changes = Callable[[Tensor, Tensor | None, Generator], tuple[Tensor, Tensor | None]]
"""``(images (B, 3, H, W) bytes, depth (B, h, w), generator) -> images in [0, 1], depth``."""


def epoch_seed(seed: int, epoch: int, what: int = 0) -> int:
    """Return the seed of something random in an epoch."""
    return int(np.random.SeedSequence([seed, epoch, what]).generate_state(1)[0])


def half_resolution(depth: Tensor) -> Tensor:
    """Reduce depth to the resolution of predictions: mean of the measured pixels of 2 x 2 blocks.

    Training alone uses it; scores of distributions compare with the nearest pixel.
    """
    if depth.shape[-1] % 2 or depth.shape[-2] % 2:
        raise ValueError(
            f"height and width must be even, for predictions have half the resolution; got "
            f"{depth.shape[-2]} x {depth.shape[-1]}."
        )
    depth = depth.float().unsqueeze(1)
    measured = (depth > 0).float()
    total = functional.avg_pool2d(depth * measured, 2)
    share = functional.avg_pool2d(measured, 2)
    return torch.where(share > 0, total / share.clamp(min=0.25), 0.0).squeeze(1)


class TrainingSet:
    """Images and their depth on a device.

    Args:
        images: Bytes ``(N, 3, H, W)``.
        depth: In metres, ``(N, H, W)``; 0 is no measurement.
        ood: Out-of-domain images, bytes ``(N', 3, H, W)``, if any.
        changes: Augmentation.
        device: The device.
        scale: Scale of the depth, if it is known already.
    """

    def __init__(
        self,
        images: Tensor,
        depth: Tensor,
        ood: Tensor | None,
        changes: Changes,
        device: torch.device,
        scale: Scale | None = None,
    ) -> None:
        self.scale = scale_of(depth) if scale is None else scale
        self.images, self.depth = images.to(device), half_resolution(depth.to(device))
        self.ood = None if ood is None else ood.to(device)
        self.changes, self.device = changes, device

    def __len__(self) -> int:
        return len(self.images)

    def n_steps(self, batch: int) -> int:
        """Count the whole batches of an epoch; images left over wait for the next."""
        return max(1, len(self) // batch)

    def epoch(self, seed: int, epoch: int, batch: int, share: Share) -> Iterator[Batch]:
        """Yield this process's share of every batch of an epoch; ``batch`` counts all processes."""
        source = Generator().manual_seed(epoch_seed(seed, epoch))
        n_steps, size = self.n_steps(batch), min(batch, len(self))
        order = torch.randperm(len(self), generator=source)[: n_steps * size]
        rows = order.reshape(n_steps, size).to(self.device)
        # From a source of its own: with or without it, the images of the set are the same.
        ood_source = Generator().manual_seed(epoch_seed(seed, epoch, 1))
        ood_rows = self._ood_rows(n_steps * size, ood_source)
        for step in range(n_steps):
            images, depth = self.changes(self.images[rows[step]], self.depth[rows[step]], source)
            assert depth is not None
            part, ood = share.of(size), None
            if self.ood is not None:
                drawn = self.ood[ood_rows[step * size : (step + 1) * size]]
                ood = _channels_last(self.changes(drawn, None, ood_source)[0][part])
            yield Batch(_channels_last(images[part]), depth[part], ood)

    def _ood_rows(self, n: int, source: Generator) -> Tensor:
        """Draw out-of-domain images for an epoch: each serves once before any serves again."""
        if self.ood is None:
            return torch.empty(0, dtype=torch.long)
        n_ood = len(self.ood)
        rounds = [torch.randperm(n_ood, generator=source) for _ in range(-(-n // n_ood))]
        return torch.cat(rounds)[:n].to(self.device)


def _channels_last(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last)


def scale_of(depth: Tensor) -> Scale:
    """Measure the mean and deviation of all valid pixels ``(N, H, W)`` in double precision."""
    n, total, square = 0, 0.0, 0.0
    for image in depth:
        valid = image[image > 0].double()
        n += valid.numel()
        total += float(valid.sum())
        square += float(valid.square().sum())
    if n == 0:
        raise ValueError("no training image has a measured depth: there is nothing to learn.")
    mean = total / n
    variance = square / n - mean**2
    if not variance > 1e-12 * mean**2:
        raise ValueError(f"every measured depth is {mean:g} m: there is nothing to learn.")
    return Scale(mean, variance**0.5)


# -- augmentation ---------------------------------------------------------------------------------

_WINDOW = 5  # pixels across of random filters
_LEAVES = 60  # shapes in an image of dead leaves


def augmentation_for(variant: Variant) -> Changes:
    """Return the random changes of a variant's training images and their depth.

    A student's images may be farther from photographs than those of its teachers, who answer for
    any image, and differ in their answers where they have not learnt the targets by heart.
    """
    config, is_student = variant.config, variant.method in STUDENTS
    farther = config.transfer if is_student else 0.0
    share = config.strange if is_student else 0.0
    strength, most = config.jitter + 0.4 * farther, config.zoom + farther

    def change(
        images: Tensor, depth: Tensor | None, generator: Generator
    ) -> tuple[Tensor, Tensor | None]:
        images, depth = Augment(generator, flip=config.flip, swap=config.swap)(images, depth)
        images = images.float() / 255
        if farther > 0:
            images = mix(images, 0.5 * farther, generator)
        if share > 0:
            images = replace_by_ood(images, share, generator)
        if most > 1:
            images, depth = enlarge(images, depth, most, generator)
        return (jitter(images, strength, generator) if strength > 0 else images), depth

    return change


def jitter(images: Tensor, strength: float, generator: Generator) -> Tensor:
    """Change brightness, contrast, colour and gamma of each image ``(B, 3, H, W)`` in [0, 1].

    A strength of 0.2 means factors of brightness and contrast between 0.83 and 1.2.
    """
    n, size = len(images), math.log1p(strength)
    brightness, contrast, saturation, gamma = (
        _draw(n, -size, size, generator, images).exp() for _ in range(4)
    )
    grey = images.mean(1, keepdim=True)
    images = grey + (images - grey) * saturation
    middle = grey.mean((-2, -1), keepdim=True)
    images = (middle + (images - middle) * contrast) * brightness
    return images.clamp(1e-6, 1.0) ** gamma


def enlarge(
    images: Tensor, depth: Tensor | None, most: float, generator: Generator
) -> tuple[Tensor, Tensor | None]:
    """Enlarge a part of each image to the size of the whole, and divide its depth by the factor.

    Each image draws its factor uniformly between 1 and ``most``. Depth is that of the nearest
    pixel, not a mixture.
    """
    n = len(images)
    factor = _draw(n, 1.0, most, generator, images)
    across, down = (_draw(n, -1.0, 1.0, generator, images) for _ in range(2))
    zero, room = torch.zeros_like(factor), 1 - 1 / factor
    where = _matrices((1 / factor, zero, room * across), (zero, 1 / factor, room * down))
    grid = functional.affine_grid(where, [*images.shape], align_corners=False)
    how: dict[str, Any] = {"padding_mode": "border", "align_corners": False}
    images = functional.grid_sample(images, grid, **how)
    if depth is not None:
        maps = depth.unsqueeze(1)
        grid = functional.affine_grid(where, [*maps.shape], align_corners=False)
        maps = functional.grid_sample(maps, grid, mode="nearest", **how)
        depth = (maps / factor).squeeze(1)
    return images, depth


def mix(images: Tensor, share: float, generator: Generator) -> Tensor:
    """Lay another image over each image, with a weight up to ``share``."""
    other = torch.randperm(len(images), generator=generator).to(images.device, non_blocking=True)
    weight = _draw(len(images), 0.0, share, generator, images)
    return torch.lerp(images, images[other], weight)


# -- out-of-domain images -------------------------------------------------------------------------


def replace_by_ood(images: Tensor, share: float, generator: Generator) -> Tensor:
    """Replace about this share of images by out-of-domain ones.

    Each is rotated and scaled, made its negative, cut in four and put together crosswise, half
    covered by another image, seen through a random filter, or replaced by painted shapes.
    """
    height, width = images.shape[-2:]
    changed = (
        rotate(images, generator),
        1 - images,
        images.roll((height // 2, width // 2), (-2, -1)),
        0.5 * (images + images.roll(1, 0)),
        filtered(images, generator),
        dead_leaves(images, generator),
    )
    dice = _draw(len(images), 0.0, len(changed) / share, generator, images)
    for kind, other in enumerate(changed):
        images = torch.where((dice >= kind) & (dice < kind + 1), other, images)
    return images


def rotate(images: Tensor, generator: Generator) -> Tensor:
    """Rotate images by any angle and scale them by half to twice, mirrored at the borders."""
    n, (height, width) = len(images), images.shape[-2:]
    angle = _draw(n, -math.pi, math.pi, generator, images)
    size = _draw(n, -math.log(2), math.log(2), generator, images).exp()
    zero = torch.zeros_like(angle)
    # Coordinates run from -1 to 1 in both directions: an angle is one only in pixels.
    where = _matrices(
        (size * angle.cos(), -size * angle.sin() * height / width, zero),
        (size * angle.sin() * width / height, size * angle.cos(), zero),
    )
    grid = functional.affine_grid(where, [*images.shape], align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def filtered(images: Tensor, generator: Generator) -> Tensor:
    """Convolve each image with random weights of its own: shapes in other textures.

    Brightness and spread of every colour are drawn too: those of the filter mean nothing.
    """
    n = len(images)
    weights = torch.randn((n, 3, 3, _WINDOW**2), generator=generator).to(images.device)
    colours = torch.rand((2, n, 3, 1), generator=generator).to(images.device)
    colourful = _draw(n, 0.0, 1.0, generator, images)
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
    """Scale the differences between channels: 0 for grey, 1 for all colours."""
    grey = values.mean(channels, keepdim=True)
    return grey + colourful * (values - grey)


def dead_leaves(images: Tensor, generator: Generator) -> Tensor:
    """Paint images of shapes of all sizes that cover each other, the "dead leaves" model.

    They have the edges, occlusion and plain surfaces of photographs (Lee, Mumford and Huang, 2001),
    but show nothing. Diamonds, discs and squares, each of one colour that fades in some direction.
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
    colourful = _draw(n, 0.0, 1.0, generator, images).unsqueeze(1)
    colours = _faded(numbers[:, :, 7:], colourful, 2).expand(-1, -1, -1, *x.shape[-2:])
    chosen = colours.gather(1, top.unsqueeze(2).expand(-1, -1, 3, -1, -1)).squeeze(1)
    painted = (chosen * light.gather(1, top)).clamp(0, 1)
    return functional.interpolate(painted, (height, width), mode="bilinear", align_corners=False)


def _grid(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the places of every second pixel, in heights of the image, ``(1, 1, h, w)`` each."""
    height, width = images.shape[-2:]
    down = torch.arange(1, height, 2, device=images.device) / height
    across = torch.arange(1, width, 2, device=images.device) / height
    y, x = torch.meshgrid(down, across, indexing="ij")
    return x[None, None], y[None, None]


# -- random numbers -------------------------------------------------------------------------------


def _draw(n: int, low: float, high: float, generator: Generator, like: Tensor) -> Tensor:
    """Draw a uniform number per image, ``(n, 1, 1, 1)``."""
    drawn = low + (high - low) * torch.rand(n, generator=generator)
    return drawn.to(like.device, non_blocking=True).reshape(n, 1, 1, 1)


def _matrices(*rows: tuple[Tensor, ...]) -> Tensor:
    """Build matrices ``(B, 2, 3)`` for ``affine_grid`` from numbers ``(B, 1, 1, 1)`` per image."""
    return torch.cat([torch.cat(row, -1) for row in rows], -2).squeeze(1)
