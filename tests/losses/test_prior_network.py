"""Training from targets: reverse and forward KL, Eqs. (9), (11) and (22); the sum, Eq. (8).

Equation numbers of arXiv:2006.11590v2.
"""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck
from torch.distributions import MultivariateNormal, kl_divergence

from _asserts import assert_close, assert_mean_close
from _beliefs import (
    DIMENSIONS,
    random_normal,
    random_normal_wishart,
    random_product,
)
from priornet import losses
from priornet.distributions import NormalWishart, ProductNormalWishart

BETAS = (0.5, 1.0, 100.0)


def build(loc, tril, belief, excess):
    return NormalWishart.from_excess(loc, tril.tril(), belief, excess)


def leaves(nw):
    """The parameters as fresh leaves that want a gradient."""
    parts = (nw.loc, nw.precision_tril, nw.belief, nw.excess)
    return tuple(p.detach().clone().requires_grad_() for p in parts)


def product_leaves(nw):
    parts = (nw.loc, nw.precision, nw.belief, nw.excess)
    return tuple(p.detach().clone().requires_grad_() for p in parts)


# -- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_reverse_kl_is_the_divergence_to_the_tempered_posterior_without_z(k_dim, beta):
    # Eq. (11): KL[q || p0(.|y, beta)] = beta E[-ln p(y)] + KL[q || p0] + Z.
    q, prior = random_normal_wishart(k_dim, (2, 3)), random_normal_wishart(k_dim, seed=3)
    y = random_normal((2, 3, k_dim), seed=5)
    loss = losses.reverse_kl(q, y, prior, beta)
    posterior = prior.expand((2, 3)).posterior(y, beta)
    expected = kl_divergence(q, posterior) - prior.log_evidence(y, beta)
    assert_close(loss, expected, rel=1e-10)


@pytest.mark.parametrize("beta", [1.0, 3.0])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_reverse_kl_is_the_mean_of_sampled_log_ratios(k_dim, beta, generator):
    # Eq. (11) as an expectation over Gaussians drawn from the prediction; only densities enter.
    q, prior = random_normal_wishart(k_dim), random_normal_wishart(k_dim, seed=3)
    y = random_normal((k_dim,), seed=5)
    draws = q.sample((20_000,), generator)
    likelihood = MultivariateNormal(draws.mean, precision_matrix=draws.precision).log_prob(y)
    ratio = q.log_prob(draws) - prior.log_prob(draws) - beta * likelihood
    assert_mean_close(ratio, losses.reverse_kl(q, y, prior, beta))


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_reverse_kl_with_beta_zero_is_the_divergence_to_the_prior_and_needs_no_target(k_dim):
    q, prior = random_normal_wishart(k_dim, (4,)), random_normal_wishart(k_dim, seed=3)
    bare = losses.reverse_kl(q, None, prior, 0.0)
    assert_close(bare, kl_divergence(q, prior), rel=0.0)
    nan = torch.full((4, k_dim), torch.nan, dtype=torch.float64)
    assert_close(losses.reverse_kl(q, nan, prior, 0.0), bare, rel=0.0)
    assert_close(losses.reverse_kl(prior.expand((4,)), None, prior, 0.0), torch.zeros(4))
    with pytest.raises(ValueError, match="`y` is needed"):
        losses.reverse_kl(q, None, prior, 1.0)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_reverse_kl_is_smallest_exactly_at_the_tempered_posterior(k_dim, beta, generator):
    # Eq. (9) is the minimiser of Eq. (11): no slope there, and every step away costs something.
    prior, y = random_normal_wishart(k_dim, seed=3), random_normal((k_dim,), seed=5)
    best = leaves(prior.posterior(y, beta))
    loss = losses.reverse_kl(build(*best), y, prior, beta)
    scale = beta * (1 + y.square().sum())
    for gradient, parameter in zip(torch.autograd.grad(loss, best), best, strict=True):
        slope = (gradient * parameter.abs().clamp(min=1e-3)).abs().max()
        assert slope < 1e-12 * scale, "a relative step changes the loss to first order"
    noise = [1e-2 * torch.randn((200, *p.shape), dtype=p.dtype, generator=generator) for p in best]
    loc, tril, belief, excess = (p.detach() for p in best)
    nudged = build(
        loc + noise[0], tril + noise[1], belief * noise[2].exp(), excess * noise[3].exp()
    )
    worse = losses.reverse_kl(nudged, y.expand(200, k_dim), prior, beta)
    assert (worse > loss).all()


@pytest.mark.parametrize("beta", [1.0, 10.0])
def test_reverse_kl_of_a_product_is_the_sum_over_coordinates(beta):
    q, prior = random_product(3, (4,)), random_product(3, seed=3)
    y = random_normal((4, 3), seed=5)
    parts = [
        losses.reverse_kl(
            build(
                q.loc[:, k : k + 1], q.precision[:, k, None, None].sqrt(), q.belief[:, k],
                q.excess[:, k],
            ),
            y[:, k : k + 1],
            build(
                prior.loc[k : k + 1], prior.precision[k].sqrt().reshape(1, 1), prior.belief[k],
                prior.excess[k],
            ),
            beta,
        )
        for k in range(3)
    ]  # fmt: skip
    assert_close(losses.reverse_kl(q, y, prior, beta), torch.stack(parts).sum(0), rel=1e-12)
    posterior = prior.expand((4,)).posterior(y, beta)
    forward = losses.forward_kl(q, y, prior, beta)
    assert_close(forward, kl_divergence(posterior, q), rel=1e-12)


@pytest.mark.parametrize("beta", [1.0, 3.0])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_forward_kl_is_the_mean_of_log_ratios_sampled_from_the_posterior(k_dim, beta, generator):
    q, prior = random_normal_wishart(k_dim), random_normal_wishart(k_dim, seed=3)
    y = random_normal((k_dim,), seed=5)
    posterior = prior.posterior(y, beta)
    draws = posterior.sample((20_000,), generator)
    # The posterior's density by Bayes' rule, not by its own parameters.
    likelihood = MultivariateNormal(draws.mean, precision_matrix=draws.precision).log_prob(y)
    density = prior.log_prob(draws) + beta * likelihood - prior.log_evidence(y, beta)
    assert_mean_close(density - q.log_prob(draws), losses.forward_kl(q, y, prior, beta))


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_forward_kl_vanishes_at_the_posterior(k_dim):
    prior, y = random_normal_wishart(k_dim, seed=3), random_normal((4, k_dim), seed=5)
    posterior = prior.expand((4,)).posterior(y, 7.0)
    assert_close(losses.forward_kl(posterior, y, prior, 7.0), torch.zeros(4), abs=1e-13)


# -- what the two directions learn from noise -----------------------------------------------------


def _minimise(loss):
    """One belief for all targets (K = 1), by L-BFGS on the log of its positive parameters."""
    raw = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [raw], max_iter=200, line_search_fn="strong_wolfe", tolerance_grad=1e-9
    )

    def current():
        positive = raw[1:].exp()
        return build(raw[:1], positive[0].reshape(1, 1), positive[1], positive[2])

    def closure():
        optimizer.zero_grad()
        value = loss(current())
        value.backward()
        return value

    optimizer.step(closure)
    return current()


@pytest.mark.parametrize("noise", [0.1, 1.0, 3.0])
def test_reverse_kl_learns_the_noise_where_forward_kl_calls_it_ignorance(noise):
    # Many noisy targets at one input, beta = 100. Reverse KL, Eq. (11), finds the noise as data
    # uncertainty and is as sure of the mean as its hundred pseudo-targets allow. Forward KL asks
    # for a belief that covers every single-target posterior. Each of those has next to no data
    # uncertainty and sits in another place, so the same noise turns up as knowledge uncertainty.
    beta, eps, n = 100.0, 1e-2, 101
    quantiles = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    y = noise * torch.special.ndtri(quantiles).unsqueeze(-1)
    prior = build(*(torch.tensor(v, dtype=torch.float64) for v in ([0.0], [[1.0]], eps, eps)))

    def average(loss):
        return lambda nw: loss(nw.expand((n,)), y, prior, beta).mean()

    reverse, forward = _minimise(average(losses.reverse_kl)), _minimise(average(losses.forward_kl))
    variance = y.square().mean().item()
    # The average of Eq. (11) has its minimum in closed form: kappa and nu grow by beta, and
    # nu P^-1 = nu0 P0^-1 + beta V[y].
    assert_close(reverse.belief, eps + beta, rel=1e-4)
    assert_close(reverse.df, 2 + eps + beta, rel=1e-4)
    data, knowledge = reverse.data_covariance().item(), reverse.knowledge_covariance().item()
    assert_close(data, (2 + eps + beta * variance) / (eps + beta), rel=1e-4)
    assert_close(knowledge, data / (eps + beta), rel=1e-4)
    # Forward: about the variance of one single-target posterior as data, the noise as knowledge.
    alone = prior.posterior(torch.zeros(1, dtype=torch.float64), beta)
    assert_close(forward.data_covariance(), alone.data_covariance(), rel=0.1)
    assert_close(forward.knowledge_covariance().item(), variance, rel=0.1)
    assert forward.mutual_information() > 10 * reverse.mutual_information()


# -- the multi-task sum ---------------------------------------------------------------------------


def test_multi_task_weighs_the_out_of_domain_mean_with_gamma():
    # Eq. (8)
    inside, outside = random_normal((6,)).requires_grad_(), random_normal((2, 5), seed=1)
    outside.requires_grad_()
    result = losses.multi_task(inside, outside, gamma=0.3)
    assert_close(result.total, inside.sum() / 6 + 0.3 * outside.sum() / 10, rel=1e-14)
    of_inside, of_outside = torch.autograd.grad(result.total, (inside, outside))
    assert_close(of_inside, torch.full((6,), 1 / 6), rel=1e-7)
    assert_close(of_outside, torch.full((2, 5), 0.03), rel=1e-7)


def test_multi_task_terms_are_for_looking_at_only():
    inside = random_normal((6,)).requires_grad_()
    result = losses.multi_task(inside, random_normal((3,)), gamma=0.0)
    assert_close(result.total, inside.mean(), rel=0.0)
    assert set(result.terms) == {"in_domain", "out_domain"}
    assert not any(term.requires_grad for term in result.terms.values())
    assert_close(result.terms["out_domain"], random_normal((3,)).mean(), rel=0.0)


# -- masks and gradients --------------------------------------------------------------------------

LOSSES = [losses.reverse_kl, losses.forward_kl]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("k_dim", [1, 3])
def test_masked_targets_count_nothing_even_when_nan(loss, k_dim):
    mask = torch.tensor([[True, False, True], [False, True, False]])
    prior = random_normal_wishart(k_dim, seed=3)
    parameters = leaves(random_normal_wishart(k_dim, (2, 3)))
    y = random_normal((2, 3, k_dim), seed=5)
    full = loss(build(*parameters), y, prior, 2.0)
    holed = torch.where(mask.unsqueeze(-1), y, torch.nan)
    value = loss(build(*parameters), holed, prior, 2.0, mask=mask)
    assert_close(value, torch.where(mask, full, 0.0), rel=0.0)
    ours = torch.autograd.grad(value.sum(), parameters)
    theirs = torch.autograd.grad(full[mask].sum(), parameters)
    for a, b in zip(ours, theirs, strict=True):
        assert (a[~mask] == 0).all()
        assert_close(a, b, rel=1e-14)


def test_out_of_domain_term_takes_a_mask_without_targets():
    q, prior = random_normal_wishart(2, (3,)), random_normal_wishart(2, seed=3)
    mask = torch.tensor([True, False, True])
    value = losses.reverse_kl(q, None, prior, 0.0, mask=mask)
    assert_close(value, torch.where(mask, kl_divergence(q, prior), 0.0), rel=0.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("beta", [0.0, 2.0])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_gradcheck_in_every_parameter_and_the_target(loss, beta, k_dim):
    prior = random_normal_wishart(k_dim, seed=3)
    y = random_normal((2, k_dim), seed=5).requires_grad_(beta > 0)
    inputs = (*leaves(random_normal_wishart(k_dim, (2,))), y)
    fast = k_dim > 2
    assert gradcheck(lambda *p: loss(build(*p[:4]), p[4], prior, beta), inputs, fast_mode=fast)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradcheck_for_a_product(loss):
    prior, y = random_product(3, seed=3), random_normal((2, 3), seed=5)
    inputs = product_leaves(random_product(3, (2,)))
    assert gradcheck(lambda *p: loss(ProductNormalWishart(*p), y, prior, 2.0), inputs)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradcheck_in_the_prior(loss):
    q, y = random_normal_wishart(2, (2,)), random_normal((2, 2), seed=5)
    inputs = leaves(random_normal_wishart(2, seed=3))
    assert gradcheck(lambda *p: loss(q, y, build(*p), 2.0), inputs)
