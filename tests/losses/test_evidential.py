"""Deep Evidential Regression against scipy's Student-T, Eqs. (4) and (21), arXiv:2006.11590v2."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch.autograd import gradcheck

from _asserts import assert_close
from _beliefs import random_normal, random_normal_wishart, random_uniform
from priornet import losses
from priornet.distributions import NormalWishart


def build(loc, tril, belief, excess):
    return NormalWishart.from_excess(loc, tril, belief, excess)


@pytest.mark.parametrize("coefficient", [0.0, 0.01, 1.0])
def test_evidential_is_scipys_t_density_plus_the_error_times_the_evidence(coefficient):
    # In the letters of the method: gamma, upsilon, alpha, beta; a t of 2 alpha degrees of freedom.
    gamma, y = random_normal((50,)), random_normal((50,), seed=1)
    upsilon, beta = random_uniform(0.1, 5.0, (50,)), random_uniform(0.2, 4.0, (50,), seed=1)
    alpha = random_uniform(1.01, 6.0, (50,), seed=2)
    nw = NormalWishart(gamma.unsqueeze(-1), (2 * beta).rsqrt()[:, None, None], upsilon, 2 * alpha)
    scale = np.sqrt((beta * (1 + upsilon) / (upsilon * alpha)).numpy(force=True))
    density = stats.t.logpdf(
        y.numpy(force=True), 2 * alpha.numpy(force=True), gamma.numpy(force=True), scale
    )
    regulariser = (y - gamma).abs() * (2 * upsilon + alpha)
    loss = losses.evidential(nw, y.unsqueeze(-1), coefficient)
    assert_close(loss, -torch.tensor(density) + coefficient * regulariser, rel=1e-10)


def test_evidential_without_regulariser_is_the_predictive_likelihood():
    nw, y = random_normal_wishart(1, (2, 3)), random_normal((2, 3, 1), seed=5)
    likelihood = losses.gaussian_nll(nw.predictive(), y)
    assert_close(losses.evidential(nw, y, 0.0), likelihood, rel=1e-14)


@pytest.mark.parametrize("k_dim", [2, 3])
def test_several_targets_add_up_their_errors(k_dim):
    nw, y = random_normal_wishart(k_dim, (4,)), random_normal((4, k_dim), seed=5)
    density = [
        stats.multivariate_t.logpdf(at, loc, shape, df)
        for at, loc, shape, df in zip(
            y.numpy(force=True),
            nw.loc.numpy(force=True),
            nw.predictive().scale_matrix.numpy(force=True),
            nw.predictive().df.numpy(force=True),
            strict=True,
        )
    ]
    error = sum((y - nw.loc)[:, k].abs() for k in range(k_dim))
    expected = -torch.tensor(density) + 0.1 * error * (2 * nw.belief + nw.df / 2)
    assert_close(losses.evidential(nw, y, 0.1), expected, rel=1e-10)

    def loss(loc, tril, belief, excess):
        return losses.evidential(build(loc, tril.tril(), belief, excess), y, 0.1)

    assert gradcheck(loss, _leaves(nw))


def test_a_negative_coefficient_is_refused():
    with pytest.raises(ValueError, match="`coefficient` must not be negative"):
        losses.evidential(random_normal_wishart(1, (3,)), random_normal((3, 1)), -0.1)


def _leaves(nw):
    parts = (nw.loc, nw.precision_tril, nw.belief, nw.excess)
    return tuple(p.detach().clone().requires_grad_() for p in parts)


def test_masked_targets_count_nothing_even_when_nan():
    mask = torch.tensor([True, False, True, False])
    parameters, y = _leaves(random_normal_wishart(1, (4,))), random_normal((4, 1), seed=5)
    full = losses.evidential(build(*parameters), y, 0.1)
    holed = torch.where(mask.unsqueeze(-1), y, torch.nan)
    value = losses.evidential(build(*parameters), holed, 0.1, mask=mask)
    assert_close(value, torch.where(mask, full, 0.0), rel=0.0)
    ours = torch.autograd.grad(value.sum(), parameters)
    theirs = torch.autograd.grad(full[mask].sum(), parameters)
    for a, b in zip(ours, theirs, strict=True):
        assert (a[~mask] == 0).all()
        assert_close(a, b, rel=1e-14)


@pytest.mark.parametrize("coefficient", [0.0, 0.5])
def test_gradcheck_in_every_parameter_and_the_target(coefficient):
    y = random_normal((3, 1), seed=5).requires_grad_()
    inputs = (*_leaves(random_normal_wishart(1, (3,))), y)
    assert gradcheck(lambda *p: losses.evidential(build(*p[:4]), p[4], coefficient), inputs)
