"""Shared parts of the tests of every loss: cases by kind, small predictions, exact equality."""

from __future__ import annotations

import torch

from _beliefs import random_normal
from _contract import LOSSES, cast, settings
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart, ProductNormalWishart

WITH_TARGETS = [case for case in LOSSES if case.has_y]
EVERY = settings(LOSSES)


def draw(case, k_dim, batch, *to):
    return cast(case.draw(k_dim, batch), *to), cast(case.draw_target(k_dim, batch), *to)


def assert_same(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


def loss_and_gradients(case, parameters, target, mask=None):
    leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    loss = case.call(leaves, target, mask=mask)
    return loss, dict(
        zip(leaves, torch.autograd.grad(loss.sum(), list(leaves.values())), strict=True)
    )


def nw(k_dim=2, batch=(4,), dtype=torch.float32):
    one = torch.ones(batch, dtype=dtype)
    eye = torch.eye(k_dim, dtype=dtype).expand(*batch, k_dim, k_dim)
    return NormalWishart.from_excess(torch.zeros(*batch, k_dim, dtype=dtype), eye, one, one)


def product(k_dim=2, batch=(4,)):
    one = torch.ones(*batch, k_dim)
    return ProductNormalWishart(torch.zeros_like(one), one, one, one)


def gaussian(k_dim=2, batch=(4,), dtype=torch.float32):
    one = torch.ones(*batch, k_dim, dtype=dtype)
    return Gaussian(torch.zeros_like(one), variance=one)


def ensemble(k_dim=2, batch=(4,), members=3, dtype=torch.float32):
    means = random_normal((members, *batch, k_dim), dtype=dtype)
    return GaussianEnsemble(means, torch.ones_like(means))
