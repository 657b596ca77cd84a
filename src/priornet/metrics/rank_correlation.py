"""Do two quantities rise together, whatever their scales? Spearman's rank correlation."""

from __future__ import annotations

import torch
from torch import Tensor

from priornet.checks import check_shape, check_values, common_tensors

__all__ = ["spearman"]


@torch.no_grad()
def spearman(a: Tensor, b: Tensor) -> Tensor:
    r"""Spearman's rank correlation along the last axis: Pearson's correlation of the ranks.

    No unit. 1 where one rises whenever the other does, -1 where it falls, about 0 (give or take
    :math:`1/\sqrt N`) where they are strangers. Tied values share their average rank; infinite
    values are fine and tie with each other. Ranks are exact integers.

    Args:
        a: Shape ``(*batch, N)``, N >= 2.
        b: Same shape.

    Returns:
        Shape ``(*batch,)``, in double precision; ``nan`` where either is constant.

    Example:
        >>> spearman(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1.0, 10.0, 5.0, 100.0]))
        tensor(0.8000, dtype=torch.float64)
    """
    a, b = common_tensors(a=a, b=b)
    check_shape("b", b, a.shape, " Give one value of each.")
    if a.dim() == 0 or a.shape[-1] < 2:
        raise ValueError(f"`a` must hold two values or more to rank; got {tuple(a.shape)}.")
    for name, value in (("a", a), ("b", b)):
        check_values(name, value, ~value.isnan(), "free of NaN (leave out what failed)")
    rank_a, rank_b = _centred_midranks(a), _centred_midranks(b)
    norm = (rank_a.square().sum(-1) * rank_b.square().sum(-1)).sqrt()
    return torch.where(norm > 0, (rank_a * rank_b).sum(-1) / norm, torch.nan)


def _centred_midranks(values: Tensor) -> Tensor:
    """Twice the midrank less twice its mean, which are integers, in double precision."""
    values = values.contiguous()
    ordered = values.sort(-1).values
    below = torch.searchsorted(ordered, values)
    at_most = torch.searchsorted(ordered, values, right=True)
    return (below + at_most - values.shape[-1]).double()
