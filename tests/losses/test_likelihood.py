"""Likelihood losses against scipy and torch: Eqs. (1), (4), (19), (21), arXiv:2006.11590v2."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch.autograd import gradcheck
from torch.distributions import MultivariateNormal, Normal

from _asserts import assert_close
from _beliefs import (
    DIMENSIONS,
    random_gaussian,
    random_normal,
    random_normal_wishart,
    random_tril,
    random_uniform,
)
from priornet import losses
from priornet.distributions import Gaussian, NormalWishart

BATCH = (2, 3)


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_gaussian_nll_is_scipys_negative_log_density(k_dim):
    gaussian = random_gaussian(k_dim, BATCH)
    y = random_normal((*BATCH, k_dim), seed=5)
    loss = losses.gaussian_nll(gaussian, y)
    covariance = torch.linalg.inv(gaussian.precision_tril @ gaussian.precision_tril.mT)
    for i in range(BATCH[0]):
        for j in range(BATCH[1]):
            at, mean, matrix = (t[i, j].numpy(force=True) for t in (y, gaussian.loc, covariance))
            density = stats.multivariate_normal.logpdf(at, mean, matrix)  # pyright: ignore[reportArgumentType]
            assert_close(loss[i, j], -density, rel=1e-12)


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_gaussian_nll_agrees_for_every_way_to_give_the_covariance(k_dim):
    y = random_normal((*BATCH, k_dim), seed=5)
    loc = random_normal((*BATCH, k_dim), seed=6)
    variance = random_uniform(0.5, 1.5, (*BATCH, k_dim))
    expected = -Normal(loc, variance.sqrt()).log_prob(y).sum(-1)
    for gaussian in (
        Gaussian(loc, variance=variance),
        Gaussian(loc, scale_tril=torch.diag_embed(variance.sqrt())),
        Gaussian(loc, precision_tril=torch.diag_embed(variance.rsqrt())),
    ):
        assert_close(losses.gaussian_nll(gaussian, y), expected, rel=1e-12)


def test_gaussian_nll_takes_any_predictive():
    y = random_normal((4, 3), seed=5)
    tril = random_tril(3, (4,))
    torch_normal = MultivariateNormal(torch.zeros(4, 3, dtype=torch.float64), scale_tril=tril)
    assert_close(losses.gaussian_nll(torch_normal, y), -torch_normal.log_prob(y), rel=0.0)
    predictive = random_normal_wishart(3, (4,)).predictive()
    loss = losses.gaussian_nll(predictive, y)
    for i in range(4):
        at, loc, matrix = (
            t[i].numpy(force=True) for t in (y, predictive.loc, predictive.scale_matrix)
        )
        density = stats.multivariate_t.logpdf(at, loc, matrix, float(predictive.df[i]))  # pyright: ignore[reportArgumentType]
        assert_close(loss[i], -density, rel=1e-10)


@pytest.mark.parametrize("k_dim", DIMENSIONS)
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_beta_nll_is_the_nll_times_the_typical_variance_to_beta(k_dim, beta):
    gaussian, y = random_gaussian(k_dim, BATCH), random_normal((*BATCH, k_dim), seed=5)
    typical = torch.linalg.det(gaussian.covariance_matrix) ** (1 / k_dim)
    expected = typical**beta * losses.gaussian_nll(gaussian, y)
    assert_close(losses.beta_nll(gaussian, y, beta), expected, rel=1e-12)


def _gradients(loss, loc, variance, y):
    loc, variance = loc.clone().requires_grad_(), variance.clone().requires_grad_()
    value = loss(Gaussian(loc, variance=variance), y)
    return torch.autograd.grad(value.sum(), (loc, variance))


def test_beta_nll_at_one_gives_the_mean_the_gradient_of_half_the_squared_error():
    loc, y = random_normal((7, 1), seed=1), random_normal((7, 1), seed=2)
    variance = torch.logspace(-4, 4, 7, dtype=torch.float64).unsqueeze(-1)
    of_mean, of_variance = _gradients(lambda g, t: losses.beta_nll(g, t, 1.0), loc, variance, y)
    assert_close(of_mean, loc - y, rel=1e-12)
    # The weight carries no gradient: the variance keeps the NLL's own, only rescaled.
    _, plain = _gradients(losses.gaussian_nll, loc, variance, y)
    assert_close(of_variance, variance * plain, rel=1e-12)


def test_beta_nll_at_zero_is_the_nll_with_its_gradient():
    loc, y = random_normal((7, 2), seed=1), random_normal((7, 2), seed=2)
    variance = random_uniform(0.1, 1.1, (7, 2))
    plain = _gradients(losses.gaussian_nll, loc, variance, y)
    for ours, theirs in zip(
        _gradients(lambda g, t: losses.beta_nll(g, t, 0.0), loc, variance, y), plain, strict=True
    ):
        assert_close(ours, theirs, rel=1e-14)


@pytest.mark.parametrize("loss", [losses.gaussian_nll, losses.beta_nll])
@pytest.mark.parametrize("k_dim", [1, 3])
def test_masked_targets_count_nothing_even_when_nan(loss, k_dim):
    mask = torch.tensor([True, False, True, False])
    loc = random_normal((4, k_dim)).requires_grad_()
    tril = random_tril(k_dim, (4,)).requires_grad_()
    gaussian = Gaussian(loc, precision_tril=tril)
    y = random_normal((4, k_dim), seed=5)
    full = loss(gaussian, y)
    holed = torch.where(mask.unsqueeze(-1), y, torch.nan)
    value = loss(gaussian, holed, mask=mask)
    assert_close(value, torch.where(mask, full, 0.0), rel=0.0)
    ours = torch.autograd.grad(value.sum(), (loc, tril), retain_graph=True)
    theirs = torch.autograd.grad(full[mask].sum(), (loc, tril))
    for a, b in zip(ours, theirs, strict=True):
        assert (a[~mask] == 0).all()
        assert_close(a, b, rel=1e-14)


@pytest.mark.parametrize("k_dim", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["precision_tril", "scale_tril", "variance"])
def test_gradcheck_gaussian_nll(k_dim, kind):
    loc, y = random_normal((2, k_dim)).requires_grad_(), random_normal((2, k_dim), seed=5)
    y.requires_grad_()
    if kind == "variance":
        shape = (random_tril(1, (2, k_dim))[..., 0, 0]).requires_grad_()
        build = lambda m, v: Gaussian(m, variance=v)  # noqa: E731
    else:
        shape = random_tril(k_dim, (2,)).requires_grad_()
        build = lambda m, c: Gaussian(m, **{kind: c.tril()})  # noqa: E731
    assert gradcheck(lambda m, c, t: losses.gaussian_nll(build(m, c), t), (loc, shape, y))


@pytest.mark.parametrize("k_dim", [1, 2, 3])
def test_gradcheck_beta_nll_with_its_weight_held_fixed(k_dim):
    # The weight is a stop-gradient, so finite differences must hold it still too.
    loc, y = random_normal((2, k_dim)), random_normal((2, k_dim), seed=5)
    tril = random_tril(k_dim, (2,))
    weight = Gaussian(loc, precision_tril=tril).covariance_logdet().total.mul(0.5 / k_dim).exp()
    inputs = (loc.requires_grad_(), tril.requires_grad_())

    def held(m, c):
        return weight * losses.gaussian_nll(Gaussian(m, precision_tril=c.tril()), y)

    assert gradcheck(held, inputs)
    value = losses.beta_nll(Gaussian(loc, precision_tril=tril), y)
    ours = torch.autograd.grad(value.sum(), inputs)
    for a, b in zip(ours, torch.autograd.grad(held(*inputs).sum(), inputs), strict=True):
        assert_close(a.tril() if a.dim() == 3 else a, b, rel=1e-12)


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
def test_evidential_of_several_targets_adds_up_their_errors(k_dim):
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


def test_a_negative_coefficient_of_evidential_is_refused():
    with pytest.raises(ValueError, match="`coefficient` must not be negative"):
        losses.evidential(random_normal_wishart(1, (3,)), random_normal((3, 1)), -0.1)


def _leaves(nw):
    parts = (nw.loc, nw.precision_tril, nw.belief, nw.excess)
    return tuple(p.detach().clone().requires_grad_() for p in parts)


def test_masked_targets_of_evidential_count_nothing_even_when_nan():
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
def test_gradcheck_of_evidential_in_every_parameter_and_the_target(coefficient):
    y = random_normal((3, 1), seed=5).requires_grad_()
    inputs = (*_leaves(random_normal_wishart(1, (3,))), y)
    assert gradcheck(lambda *p: losses.evidential(build(*p[:4]), p[4], coefficient), inputs)
