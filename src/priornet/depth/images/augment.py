"""DenseDepth's augmentation: images are mirrored, and their colours exchanged."""

from __future__ import annotations

from itertools import permutations

import torch
from torch import Generator, Tensor

__all__ = ["Augment"]

_ORDERS = tuple(permutations(range(3)))


class Augment:
    """Mirrors and recolours the images of a batch, each by its own draw.

    A mirrored image has its depth mirrored too. Exchanged colours are one of the six orders of
    three channels, the usual one included. However likely they are, a batch takes the same draws
    from the generator, so that one setting does not change what follows from it.

    Alhashim and Wonka, "High Quality Monocular Depth Estimation via Transfer Learning", 2018.

    Args:
        generator: Source of randomness. It may lie on another device than the images: drawn on the
            CPU, the changes are the same on every device.
        flip: Probability of mirroring.
        swap: Probability of an exchange.

    Example:
        >>> augment = Augment(Generator().manual_seed(0))
        >>> images, depth = augment(torch.rand(4, 3, 8, 8), torch.rand(4, 8, 8))
        >>> images.shape, depth.shape
        (torch.Size([4, 3, 8, 8]), torch.Size([4, 8, 8]))
    """

    def __init__(self, generator: Generator, *, flip: float = 0.5, swap: float = 0.25) -> None:
        for name, value in (("flip", flip), ("swap", swap)):
            if not 0 <= value <= 1:
                raise ValueError(f"`{name}` must be a probability; got {value}.")
        self.generator, self.flip, self.swap = generator, flip, swap

    def __call__(self, images: Tensor, depth: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Change a batch.

        Args:
            images: Shape ``(B, 3, H, W)``, of any dtype.
            depth: Shape ``(B, h, w)``, at any resolution.

        Returns:
            The two, changed; the arguments stay as they were.
        """
        if images.ndim != 4 or images.shape[1] != 3:
            raise ValueError(f"`images` must have shape (B, 3, H, W); got {tuple(images.shape)}.")
        if depth is not None and (depth.ndim != 3 or len(depth) != len(images)):
            raise ValueError(
                f"`depth` must have shape (B, h, w) with B = {len(images)}; got "
                f"{tuple(depth.shape)}."
            )
        n, where = len(images), images.device
        mirrored, exchanged = self._chosen(n, self.flip), self._chosen(n, self.swap)
        orders = torch.tensor(_ORDERS, device=self.generator.device)
        drawn = torch.randint(len(_ORDERS), (n,), generator=self.generator, device=orders.device)
        channels = orders[torch.where(exchanged, drawn, 0)].to(where, non_blocking=True)  # (B, 3)
        mirrored = mirrored.to(where, non_blocking=True)

        rows = torch.arange(n, device=where).unsqueeze(1)
        images = _mirror(images[rows, channels], mirrored)
        return images, None if depth is None else _mirror(depth, mirrored)

    def _chosen(self, n: int, probability: float) -> Tensor:
        """Which of ``n`` images."""
        drawn = torch.rand(n, generator=self.generator, device=self.generator.device)
        return drawn < probability


def _mirror(maps: Tensor, chosen: Tensor) -> Tensor:
    chosen = chosen.reshape(-1, *[1] * (maps.ndim - 1))
    return torch.where(chosen, maps.flip(-1), maps)
