"""Networks: bodies, and heads that return distributions."""

from priornet.nn.heads import GaussianHead, GaussianMixtureHead, NormalWishartHead
from priornet.nn.maps import BoundedExp
from priornet.nn.mlp import MLP

__all__ = ["MLP", "BoundedExp", "GaussianHead", "GaussianMixtureHead", "NormalWishartHead"]
