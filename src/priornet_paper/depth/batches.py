"""The training images, whole and as bytes on the device, and the batches of an epoch.

Gathering, augmenting and scaling happen on the device, so that it never waits for a decoder. An
epoch follows from the seed and its number alone: repeated after an interruption it is the same, and
processes that share a batch draw it whole and keep their part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional

from priornet_paper.depth.methods import Batch, Scale
from priornet_paper.depth.sharing import Share

__all__ = ["Changes", "TrainingSet", "epoch_seed", "half_resolution", "scale_of"]

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
        changes: Augmentation, from bytes to numbers in [0, 1].
        device: Where to keep them.
        scale: Of the depth, if it is known already.
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
        """Yield this process's part of every batch of an epoch.

        Args:
            seed: Of the training.
            epoch: Number, from 0.
            batch: Images in a step, over all processes.
            share: Part of a batch that this process has.
        """
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
            part = share.of(size)
            ood = None
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
