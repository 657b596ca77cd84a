"""Networks: bodies, heads that return distributions, and stacks of many networks."""

from priornet.nn.architecture import Network, make_head, stack_head
from priornet.nn.dense_depth import DenseDepth
from priornet.nn.heads import (
    BoundedExp,
    GaussianHead,
    GaussianMixtureHead,
    Head,
    NormalWishartHead,
)
from priornet.nn.stacked import (
    MLP,
    Stack,
    StackedMLP,
    StackedModules,
    joint_belief,
    stack_belief,
    stack_outputs,
)
from priornet.nn.weights import TensorFile, read_tensors, write_tensors

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
    "TensorFile",
    "joint_belief",
    "make_head",
    "read_tensors",
    "stack_belief",
    "stack_head",
    "stack_outputs",
    "write_tensors",
]
