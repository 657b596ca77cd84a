"""Networks: bodies, heads that return distributions, and stacks of many networks."""

from priornet.nn.architecture import Network
from priornet.nn.bounded_exp import BoundedExp
from priornet.nn.dense_depth import DenseDepth
from priornet.nn.heads import (
    GaussianHead,
    GaussianMixtureHead,
    Head,
    NormalWishartHead,
    make_head,
    stack_head,
)
from priornet.nn.stacked import MLP, Stack, StackedMLP, StackedModules

__all__ = [
    "MLP",
    "BoundedExp",
    "DenseDepth",
    "GaussianHead",
    "GaussianMixtureHead",
    "Head",
    "Network",
    "NormalWishartHead",
    "Stack",
    "StackedMLP",
    "StackedModules",
    "make_head",
    "stack_head",
]
