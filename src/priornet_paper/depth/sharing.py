"""Processes that share every batch: Lightning Fabric, and networks that see the whole batch."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

__all__ = ["Share", "SharedDropout", "fabric_options", "make_fabric", "shared"]


def make_fabric(device: str = "cpu", **more: Any) -> Any:
    """Make Lightning Fabric for a device.

    Its precision is float32: in mixed precision it would round everything that goes into a module,
    the measured depths too. The networks alone compute in bfloat16.

    Args:
        device: ``"cpu"``, ``"cuda"``, or another accelerator that Fabric knows.
        more: Other arguments of ``Fabric``: ``devices``, ``num_nodes``, ``strategy``.
    """
    arguments: dict[str, Any] = {"devices": 1, **more}
    return _fabric_class()(accelerator=device, precision="32-true", **arguments)


def fabric_options(devices: int, nodes: int) -> dict[str, Any]:
    """Return arguments of :func:`make_fabric` for processes that share every batch."""
    if devices * nodes == 1:
        return {}
    return {"devices": devices, "num_nodes": nodes, "strategy": "ddp"}


def _fabric_class() -> Any:
    """Import Fabric from its own package, or from that of all of Lightning."""
    for package in ("lightning_fabric", "lightning.fabric"):
        try:
            found = import_module(package).Fabric
        except ImportError:
            continue
        logging.getLogger(f"{package}.utilities.rank_zero").addFilter(_is_news)
        return found
    raise ImportError(
        "training needs Lightning Fabric; install it with `pip install '.[depth]'` in a checkout "
        "of priornet."
    )


def _is_news(record: logging.LogRecord) -> bool:
    """Drop Fabric's advice on matrix products: every process would give it, and losses need them.

    Networks compute in bfloat16 already; products of float32 must stay precise.
    """
    return "set_float32_matmul_precision" not in record.getMessage()


class Share(NamedTuple):
    """The part of every batch that one process has."""

    rank: int = 0
    n_processes: int = 1

    def of(self, n: int) -> slice:
        """Return the process's part of ``n`` things; every process has as many."""
        each = n // self.n_processes
        return slice(self.rank * each, (self.rank + 1) * each)


class SharedDropout(nn.Dropout2d):
    """Leaves out the maps that one process would leave out with the whole batch.

    Every process draws for the whole batch, from generators in the same state, and keeps its part.
    With draws of their own, all processes would leave out the same maps of their images.

    Args:
        p: Share of the maps that are left out.
        share: Part of a batch that this process has.
        n_own: Images in that part; out-of-domain images may lie behind them, as many or more.
    """

    def __init__(self, p: float, share: Share, n_own: int) -> None:
        super().__init__(p)
        self.share, self.n_own = share, n_own

    def forward(self, input: Tensor) -> Tensor:
        """Set some maps ``(B, C, H, W)`` to zero in training mode, and enlarge the others."""
        if not self.training or self.p == 0:
            return input
        n_parts, n_own = len(input) // self.n_own, self.n_own
        shape = (n_parts * self.share.n_processes * n_own, input.shape[1], 1, 1)
        kept = torch.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1 - self.p)
        parts = kept.div_(1 - self.p).unflatten(0, (n_parts, -1))
        return input * parts[:, self.share.of(parts.shape[1])].flatten(0, 1)


def shared(network: nn.Module, fabric: Any, share: Share, n_own: int, *, frozen: bool) -> nn.Module:
    """Make batch norms and dropout see the whole batch; one process needs no change.

    Args:
        network: To be trained.
        fabric: From :func:`make_fabric`, launched.
        share: Part of a batch that this process has.
        n_own: Images in that part.
        frozen: Batch norms use frozen statistics, which do not depend on the batch.
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
