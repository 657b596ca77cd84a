"""Losses: a prediction and a target to a value per element, constants kept, nothing reduced."""

from priornet.losses.depth import LARGEST_INVERSE_DEPTH, dense_depth, depth_of, inverse_depth
from priornet.losses.distillation import end, endd, md_end, proxy
from priornet.losses.likelihood import beta_nll, evidential, gaussian_nll
from priornet.losses.prior_network import MultiTaskLoss, forward_kl, multi_task, reverse_kl

__all__ = [
    "LARGEST_INVERSE_DEPTH",
    "MultiTaskLoss",
    "beta_nll",
    "dense_depth",
    "depth_of",
    "end",
    "endd",
    "evidential",
    "forward_kl",
    "gaussian_nll",
    "inverse_depth",
    "md_end",
    "multi_task",
    "proxy",
    "reverse_kl",
]
