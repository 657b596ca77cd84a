"""DenseDepth's augmentation: mirror images, and exchange their colours."""

from __future__ import annotations

from itertools import permutations

import torch
from torch import Generator, Tensor

_ORDERS = tuple(permutations(range(3)))


class Augment:
    """Random mirroring and recolouring of each image of a batch.

    Depth is mirrored with its image. Recolouring puts the channels into one of their six orders,
    the original one included. A batch takes the same number of draws whatever the probabilities,
    so that later draws do not depend on them.

    Alhashim and Wonka, "High Quality Monocular Depth Estimation via Transfer Learning", 2018.

    Args:
        generator: Source of randomness. It may be on another device than the images: draws on the
            CPU are the same for every device.
        flip: Probability of mirroring.
        swap: Probability of recolouring.

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
        """Draw changes for a batch, and apply them.

        Args:
            images: Shape ``(B, 3, H, W)``, of any dtype.
            depth: Shape ``(B, h, w)``, at any resolution.

        Returns:
            Changed copies of both.
        """
        if images.ndim != 4 or images.shape[1] != 3:
            raise ValueError(f"`images` must have shape (B, 3, H, W); got {tuple(images.shape)}.")
        if depth is not None and (depth.ndim != 3 or len(depth) != len(images)):
            raise ValueError(
                f"`depth` must have shape (B, h, w) with B = {len(images)}; got "
                f"{tuple(depth.shape)}."
            )
        n, where = len(images), images.device
        mirrored, swapped = self._chosen(n, self.flip), self._chosen(n, self.swap)
        orders = torch.tensor(_ORDERS, device=self.generator.device)
        drawn = torch.randint(len(_ORDERS), (n,), generator=self.generator, device=orders.device)
        channels = orders[torch.where(swapped, drawn, 0)].to(where, non_blocking=True)  # (B, 3)
        mirrored = mirrored.to(where, non_blocking=True)

        rows = torch.arange(n, device=where).unsqueeze(1)
        images = _mirror(images[rows, channels], mirrored)
        return images, None if depth is None else _mirror(depth, mirrored)

    def _chosen(self, n: int, probability: float) -> Tensor:
        """Draw which of ``n`` images to change."""
        drawn = torch.rand(n, generator=self.generator, device=self.generator.device)
        return drawn < probability


def _mirror(maps: Tensor, chosen: Tensor) -> Tensor:
    chosen = chosen.reshape(-1, *[1] * (maps.ndim - 1))
    return torch.where(chosen, maps.flip(-1), maps)
