"""Which of many trained settings is best, from rows that none of them has seen.

Networks come as a stack, ``n_each`` of them per setting, which are judged together as an ensemble.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from priornet.metrics import ood_auroc
from priornet.nn import Stack

__all__ = ["tells_best", "validation_nll"]


@torch.no_grad()
def validation_nll(networks: Stack, inputs: Tensor, targets: Tensor, n_each: int) -> Tensor:
    """Of every setting and row; several networks are a mixture."""
    y = targets.expand(networks.n_networks, -1, 1)
    log_prob = networks.together(inputs).predictive().log_prob(y)
    of_all = log_prob.unflatten(0, (-1, n_each)).logsumexp(1) - math.log(n_each)
    return -torch.nan_to_num(of_all, nan=-torch.inf)


@torch.no_grad()
def tells_best(networks: Stack, nll: Tensor, known: Tensor, strange: Tensor, n_each: int) -> int:
    """Of those no worse than the best by one standard error, who tells strange rows from known.

    Args:
        networks: What was tried.
        nll: From :func:`validation_nll`.
        known: Rows held out.
        strange: Generated rows.
        n_each: Networks per setting.
    """
    gap = nll - nll[nll.mean(-1).argmin()]
    good = gap.mean(-1) <= gap.std(-1) / math.sqrt(gap.shape[-1])
    inside, outside = (_variance_of_mean(networks, x, n_each) for x in (known, strange))
    areas: list[float] = [
        float(ood_auroc(inside[i], outside[i])) if good[i] else -1.0 for i in range(len(good))
    ]
    return max(range(len(areas)), key=areas.__getitem__)


def _variance_of_mean(networks: Stack, x: Tensor, n_each: int) -> Tensor:
    """Knowledge uncertainty at inputs ``(B, D)``, of each network or of ensembles of several."""
    belief = networks.together(x)
    if n_each == 1:
        return belief.knowledge_covariance()[..., 0, 0]
    return belief.loc[..., 0].unflatten(0, (-1, n_each)).var(1, correction=0)
