"""What a network must know when several processes share every batch: they do what one would do."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from priornet_paper.depth.batches import Share

__all__ = ["SharedDropout", "shared"]


class SharedDropout(nn.Dropout2d):
    """Leaves out the maps that one process would leave out with the whole batch.

    Every process draws for the whole batch, from generators that stand at the same place, and keeps
    its part. With draws of their own, all processes would leave out the same maps of their images.

    Args:
        p: Share of the maps that are left out.
        share: Which part of a batch is ours.
        n_own: Images of ours in a batch; foreign images may lie behind them, as many or more.
    """

    def __init__(self, p: float, share: Share, n_own: int) -> None:
        super().__init__(p)
        self.share, self.n_own = share, n_own

    def forward(self, input: Tensor) -> Tensor:
        """Maps ``(B, C, H, W)``, some of them zero and the others larger in training mode."""
        if not self.training or self.p == 0:
            return input
        n_parts, n_own = len(input) // self.n_own, self.n_own
        shape = (n_parts * self.share.n_processes * n_own, input.shape[1], 1, 1)
        kept = torch.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1 - self.p)
        parts = kept.div_(1 - self.p).unflatten(0, (n_parts, -1))
        return input * parts[:, self.share.of(parts.shape[1])].flatten(0, 1)


def shared(network: nn.Module, fabric: Any, share: Share, n_own: int, *, frozen: bool) -> nn.Module:
    """A network whose batch norms and dropout see the whole batch; itself where one process does.

    Args:
        network: To be trained.
        fabric: From ``make_fabric``, launched.
        share: Which part of a batch is ours.
        n_own: Images of ours in a batch.
        frozen: Whether batch norms use frozen statistics, which do not depend on the batch.
    """
    if share.n_processes == 1:
        return network
    if not frozen:
        if fabric.device.type != "cuda":
            raise ValueError(
                'several processes without GPUs cannot share batch statistics; use `norm="frozen"`.'
            )
        network = nn.SyncBatchNorm.convert_sync_batchnorm(network)
    for parent in list(network.modules()):
        for name, part in list(parent.named_children()):
            if type(part) is nn.Dropout2d:
                setattr(parent, name, SharedDropout(part.p, share, n_own))
    return network
