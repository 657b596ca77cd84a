"""The Normal-Wishart against scipy, quadrature, its own draws and its limits.

Eqs. (2), (4) to (7), (9), (18) to (20), (25), (29), (33) to (37) and (40) to (44) of
arXiv:2006.11590v2. Gradients and transformations of the measures are in test_measures.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.distributions import MultivariateNormal, kl_divergence

from _asserts import assert_close, assert_mean_close
from _beliefs import (
    DIMENSIONS,
    leaves,
    normal_wishart_of,
    random_normal,
    random_normal_wishart,
    random_tril,
    random_uniform,
    seeded,
)
from priornet.distributions import NormalWishart

# Partly typed, partly wrongly: checked by the tests themselves.
stats: Any = scipy.stats
special: Any = scipy.special
EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)
N_DRAWS = 40_000


def moderate(k_dim: int) -> NormalWishart:
    """Excess 9: every average below has a finite variance, so standard errors mean something."""
    loc, tril, _, _ = leaves(random_normal_wishart(k_dim, seed=2))
    return NormalWishart.from_excess(loc.detach(), tril.detach(), 1.7, 9.0)


def scale_of(nw: NormalWishart) -> Tensor:
    return nw.scale_tril @ nw.scale_tril.mT


def random_precision(k_dim: int, batch: tuple[int, ...] = (), seed: int = 5) -> Tensor:
    tril = random_tril(k_dim, batch, seed)
    return tril @ tril.mT


def each(nw: NormalWishart):
    """Every element of a flat batch as NumPy numbers: m, L, kappa, nu."""
    parts = (nw.loc, scale_of(nw), nw.belief, nw.df)
    return zip(*(part.numpy(force=True) for part in parts), strict=True)


def tensor(values) -> Tensor:
    return torch.tensor([float(v) for v in values], dtype=torch.float64)


def members_of(nw: NormalWishart, n: int, generator) -> MultivariateNormal:
    """Drawn Gaussians as torch's."""
    mean, precision = nw.sample((n,), generator)
    return MultivariateNormal(mean, precision_matrix=precision)


# -- the density -----------------------------------------------------------------------------------


@EVERY_K
def test_log_prob_is_that_of_scipys_normal_times_wishart(k_dim):
    """Eqs. (2), (18) and (19)."""
    nw = random_normal_wishart(k_dim, (4,))
    mean, precision = random_normal((4, k_dim), seed=9), random_precision(k_dim, (4,))
    expected = [
        stats.multivariate_normal(m, np.linalg.inv(kappa * lam)).logpdf(mu)
        + stats.wishart(nu, scale).logpdf(lam)
        for (m, scale, kappa, nu), mu, lam in zip(
            each(nw), mean.numpy(force=True), precision.numpy(force=True), strict=True
        )
    ]
    assert_close(nw.log_prob((mean, precision)), tensor(expected), rel=1e-9)


def test_one_dimension_is_the_normal_gamma():
    """Eq. (2) at K = 1: lambda ~ Gamma(nu/2, rate 1/(2L)), then mu ~ N(m, 1/(kappa lambda))."""
    nw = random_normal_wishart(1, (4,))
    mu, lam = random_normal((4,), seed=9), random_uniform(0.2, 3.0, (4,), seed=4)
    rate = 0.5 / scale_of(nw)[..., 0, 0]
    expected = torch.distributions.Gamma(0.5 * nw.df, rate).log_prob(lam)
    sigma = (nw.belief * lam).rsqrt()
    expected = expected + torch.distributions.Normal(nw.loc[..., 0], sigma).log_prob(mu)
    assert_close(nw.log_prob((mu[:, None], lam[:, None, None])), expected, rel=1e-11)


def plane(nw: NormalWishart) -> tuple[Tensor, Tensor, Tensor]:
    """K = 1: a grid over (mu, lambda) that follows the density, with the weight of its cells."""
    z = torch.linspace(-12, 12, 241, dtype=torch.float64)
    t = torch.linspace(-16, 5, 421, dtype=torch.float64)
    z, t = torch.meshgrid(z, t, indexing="ij")
    lam = t.exp()
    step = (nw.belief * lam).rsqrt()
    weight = lam * step * (24 / 240) * (21 / 420)
    return (nw.loc + step * z).unsqueeze(-1), lam[..., None, None], weight


@pytest.mark.parametrize("excess", [-0.5, 1.0, 6.0])
def test_density_integrates_to_one(excess):
    """Eq. (2) at K = 1."""
    nw = NormalWishart.from_excess(
        torch.tensor([0.4], dtype=torch.float64),
        torch.tensor([[1.2]], dtype=torch.float64),
        0.7,
        excess,
    )
    mu, lam, weight = plane(nw)
    total = (nw.log_prob((mu, lam)).exp() * weight).sum()
    assert_close(total, torch.ones(()), rel=1e-5)


def test_entropies_and_evidence_are_integrals_over_the_density():
    """Eqs. (4), (9), (25) and (35) at K = 1, by quadrature over (mu, lambda)."""
    nw = NormalWishart.from_excess(
        torch.tensor([0.4], dtype=torch.float64),
        torch.tensor([[1.2]], dtype=torch.float64),
        0.7,
        3.0,
    )
    mu, lam, weight = plane(nw)
    log_density = nw.log_prob((mu, lam))
    mass = log_density.exp() * weight
    y = torch.tensor([1.9], dtype=torch.float64)
    normal = torch.distributions.Normal(mu[..., 0], lam[..., 0, 0].rsqrt())
    assert_close(nw.entropy(), -(mass * log_density).sum(), rel=1e-6)
    assert_close(nw.expected_entropy(), (mass * normal.entropy()).sum(), rel=1e-6)
    assert_close(nw.expected_log_prob(y), (mass * normal.log_prob(y)).sum(), rel=1e-6)
    assert_close(
        nw.predictive().log_prob(y), (mass * normal.log_prob(y).exp()).sum().log(), rel=1e-6
    )
    tempered = (mass * (2.5 * normal.log_prob(y)).exp()).sum().log()
    assert_close(nw.log_evidence(y, 2.5), tempered, rel=1e-6)


@EVERY_K
def test_entropy_is_the_mean_surprise_of_draws(k_dim, generator):
    nw = random_normal_wishart(k_dim, seed=3)
    assert_mean_close(-nw.log_prob(nw.sample((N_DRAWS,), generator)), nw.entropy())


@EVERY_K
def test_density_is_flat_at_the_mode(k_dim):
    """Eq. (2)."""
    nw = random_normal_wishart(k_dim, (4,))
    mean, precision = (part.detach().clone().requires_grad_() for part in nw.mode)
    slopes = torch.autograd.grad(nw.log_prob((mean, precision)).sum(), (mean, precision))
    for slope in slopes:
        assert_close(slope, torch.zeros_like(slope), abs=1e-10)


@pytest.mark.parametrize("k_dim", [1, 2, 3])
def test_density_over_covariances_follows_the_change_of_variables(k_dim):
    """The ratio of the two densities is the Jacobian of inversion on the K(K+1)/2 free entries."""
    nw = random_normal_wishart(k_dim)
    mean, covariance = random_normal((k_dim,), seed=9), random_precision(k_dim)
    rows, columns = torch.tril_indices(k_dim, k_dim)

    def inverted(entries: Tensor) -> Tensor:
        lower = torch.zeros(k_dim, k_dim, dtype=entries.dtype)
        lower = lower.index_put((rows, columns), entries)
        return torch.linalg.inv(lower + lower.tril(-1).mT)[rows, columns]

    jacobian = torch.autograd.functional.jacobian(inverted, covariance[rows, columns])
    assert isinstance(jacobian, Tensor)
    difference = nw.log_prob_covariance((mean, covariance)) - nw.log_prob(
        (mean, torch.linalg.inv(covariance))
    )
    assert_close(difference, torch.linalg.slogdet(jacobian).logabsdet, rel=1e-9)


@EVERY_K
def test_density_over_covariances_is_scipys_inverse_wishart(k_dim):
    nw = random_normal_wishart(k_dim, (4,))
    mean, covariance = random_normal((4, k_dim), seed=9), random_precision(k_dim, (4,))
    expected = [
        stats.multivariate_normal(m, sigma / kappa).logpdf(mu)
        + stats.invwishart(nu, np.linalg.inv(scale)).logpdf(sigma)
        for (m, scale, kappa, nu), mu, sigma in zip(
            each(nw), mean.numpy(force=True), covariance.numpy(force=True), strict=True
        )
    ]
    assert_close(nw.log_prob_covariance((mean, covariance)), tensor(expected), rel=1e-9)


# -- draws -----------------------------------------------------------------------------------------


@EVERY_K
def test_draws_have_the_right_moments(k_dim, generator):
    """Eqs. (42) and (43): E[Lambda^-1] and V[mu]; and E[Lambda], E[mu]."""
    nw = moderate(k_dim)
    mean, precision = nw.sample((N_DRAWS,), generator)
    assert_mean_close(mean, nw.mean.mean)
    assert_mean_close(precision, nw.mean.precision)
    assert_mean_close(torch.linalg.inv(precision), nw.data_covariance())
    centred = mean - nw.loc
    assert_mean_close(centred.unsqueeze(-1) * centred.unsqueeze(-2), nw.knowledge_covariance())
    # Given its precision the mean has covariance (kappa Lambda)^-1.
    whitened = (centred.unsqueeze(-2) @ precision @ centred.unsqueeze(-1)).flatten()
    assert_mean_close(whitened, k_dim / nw.belief)


@EVERY_K
def test_targets_have_the_total_covariance(k_dim, generator):
    """Eqs. (7), (41) and (44): draw a Gaussian, then a target from it."""
    nw = moderate(k_dim)
    mean, precision = nw.sample((N_DRAWS,), generator)
    noise = torch.randn(N_DRAWS, k_dim, 1, dtype=torch.float64, generator=generator)
    y = mean + torch.linalg.solve(torch.linalg.cholesky(precision).mT, noise).squeeze(-1)
    centred = y - nw.loc
    assert_mean_close(centred.unsqueeze(-1) * centred.unsqueeze(-2), nw.total_covariance())
    # Eq. (33): and the predictive's entropy is the mean surprise of such targets.
    assert_mean_close(-nw.predictive().log_prob(y), nw.predictive_entropy())


@EVERY_K
def test_draws_are_differentiable_in_loc_scale_and_belief(k_dim):
    loc, tril, belief, excess = leaves(random_normal_wishart(k_dim, (2,)))

    def draw(loc: Tensor, tril: Tensor, belief: Tensor) -> tuple[Tensor, Tensor]:
        nw = normal_wishart_of(loc, tril, belief, excess.detach())
        return nw.rsample((2,), seeded(3))

    assert gradcheck(draw, (loc, tril, belief))


def test_expected_gradient_in_every_parameter_is_the_gradient_of_the_expectation(generator):
    """K = 2: E[ln|Lambda|] and E[mu' Lambda mu] = m' P m + K/kappa, through the draws."""
    nw = moderate(2)
    parts = [
        part.expand((N_DRAWS, *part.shape)).clone().requires_grad_()
        for part in (nw.loc, nw.precision_tril, nw.belief, nw.excess)
    ]
    mean, precision = normal_wishart_of(*parts).rsample((), generator)
    logdet = torch.linalg.slogdet(precision).logabsdet
    square = (mean.unsqueeze(-2) @ precision @ mean.unsqueeze(-1)).flatten()
    exact = leaves(nw)
    expected_logdet = normal_wishart_of(*exact).wishart.expected_logdet()
    m, p = exact[0], exact[1].tril() @ exact[1].tril().mT
    expected_square = m @ p @ m + 2 / exact[2]
    for draws, value in ((logdet, expected_logdet), (square, expected_square)):
        slopes = torch.autograd.grad(draws.sum(), parts, retain_graph=True, allow_unused=True)
        expected = torch.autograd.grad(value, exact, allow_unused=True)
        for name, slope, target in zip(
            ("loc", "tril", "belief", "excess"), slopes, expected, strict=True
        ):
            if slope is None:
                assert target is None, name
                continue
            target = torch.zeros_like(slope[0]) if target is None else target
            slope = slope.tril() if name == "tril" else slope
            # Exact to rounding where nothing is random; torch's gamma gradient adds 1e-3 to the df.
            close = (slope.mean(0) - target).abs() <= 1e-12 + 1e-3 * target.abs()
            error = slope.std(0) / math.sqrt(N_DRAWS)
            assert (close | ((slope.mean(0) - target).abs() <= 5 * error)).all(), name


# -- the target y ----------------------------------------------------------------------------------


@EVERY_K
def test_predictive_is_scipys_student_t(k_dim):
    """Eqs. (4), (20) and (29): df nu - K + 1, scale (kappa + 1)/(kappa df) L^-1."""
    nw = random_normal_wishart(k_dim, (4,))
    y = random_normal((4, k_dim), seed=9)
    expected = []
    for (m, scale, kappa, nu), point in zip(each(nw), y.numpy(force=True), strict=True):
        df = nu - k_dim + 1
        shape = (kappa + 1) / (kappa * df) * np.linalg.inv(scale)
        expected.append(stats.multivariate_t(m, shape, df).logpdf(point))
    assert_close(nw.predictive().log_prob(y), tensor(expected), rel=1e-10)


@EVERY_K
def test_predictive_is_the_average_of_drawn_gaussians(k_dim, generator):
    """Eq. (4): the density at a few points, averaged over draws."""
    nw = random_normal_wishart(k_dim, seed=3)
    y = nw.loc + random_normal((3, k_dim), seed=9)
    draws = members_of(nw, N_DRAWS, generator).log_prob(y.unsqueeze(1)).exp()  # (3, N)
    assert_mean_close(draws.T, nw.predictive().log_prob(y).exp())


@EVERY_K
def test_expected_log_prob_is_the_average_over_drawn_gaussians(k_dim, generator):
    """Eq. (25)."""
    nw = random_normal_wishart(k_dim, seed=3)
    y = nw.loc + random_normal((3, k_dim), seed=9)
    draws = members_of(nw, N_DRAWS, generator).log_prob(y.unsqueeze(1))
    assert_mean_close(draws.T, nw.expected_log_prob(y))


@pytest.mark.parametrize("beta", [0.3, 1.0, 7.0])
@EVERY_K
def test_posterior_is_prior_times_tempered_likelihood(k_dim, beta):
    """Eq. (9): ln posterior - ln prior - beta ln p(y) is minus the evidence, at every point."""
    nw = random_normal_wishart(k_dim)
    y = random_normal((k_dim,), seed=9)
    after, evidence = nw.posterior(y, beta), nw.log_evidence(y, beta)
    mean, precision = random_normal((20, k_dim), seed=4), random_precision(k_dim, (20,))
    likelihood = MultivariateNormal(mean, precision_matrix=precision).log_prob(y)
    ratio = after.log_prob((mean, precision)) - nw.log_prob((mean, precision))
    assert_close(beta * likelihood - ratio, evidence.expand(20), rel=1e-9, abs=1e-9)


@EVERY_K
def test_evidence_of_one_target_is_its_predictive_density(k_dim):
    """Eqs. (4) and (9)."""
    nw = random_normal_wishart(k_dim, (2, 3))
    y = random_normal((2, 3, k_dim), seed=9)
    assert_close(nw.log_evidence(y, 1.0), nw.predictive().log_prob(y), rel=1e-10)


@EVERY_K
def test_one_target_at_a_time_is_the_batch_update(k_dim):
    """Eq. (9), five times, against the update by count, mean and scatter."""
    nw = random_normal_wishart(k_dim)
    targets = random_normal((5, k_dim), seed=9)
    after = nw
    for y in targets:
        after = after.posterior(y)
    n, centre = len(targets), targets.mean(0)
    belief = nw.belief + n
    off = centre - nw.loc
    scatter = (targets - centre).T @ (targets - centre)
    inverse_scale = torch.linalg.inv(scale_of(nw)) + scatter
    inverse_scale = inverse_scale + nw.belief * n / belief * off.outer(off)
    assert_close(after.belief, belief)
    assert_close(after.df, nw.df + n)
    assert_close(after.loc, (nw.belief * nw.loc + n * centre) / belief)
    assert_close(torch.linalg.inv(scale_of(after)), inverse_scale)


@EVERY_K
def test_seeing_nothing_changes_nothing(k_dim):
    """Eq. (9) at beta = 0."""
    nw = random_normal_wishart(k_dim, (4,))
    y = random_normal((4, k_dim), seed=9)
    after = nw.posterior(y, 0.0)
    assert_close(kl_divergence(after, nw), torch.zeros(4), abs=1e-20)
    assert_close(nw.log_evidence(y, 0.0), torch.zeros(4), abs=1e-12)


def test_each_target_may_have_its_own_beta():
    """Eq. (9)."""
    nw = random_normal_wishart(2, (3,))
    y, beta = random_normal((3, 2), seed=9), torch.tensor([0.1, 1.0, 5.0], dtype=torch.float64)
    together = nw.posterior(y, beta)
    for i in range(3):
        alone = NormalWishart.from_excess(
            nw.loc[i], nw.precision_tril[i], nw.belief[i], nw.excess[i]
        ).posterior(y[i], beta[i].item())
        assert_close(together.precision_tril[i], alone.precision_tril)
        assert_close(together.loc[i], alone.loc)


# -- measures of uncertainty -----------------------------------------------------------------------


def student_entropy(df: float, k_dim: int) -> float:
    """Entropy of the standard T by integrating -p ln p over the radius, r = tan(a)."""
    t = stats.multivariate_t(np.zeros(k_dim), np.eye(k_dim), df)
    area = 2 * np.pi ** (k_dim / 2) / special.gamma(k_dim / 2)

    def surprise(angle: float) -> float:
        r = np.tan(angle)
        point = np.zeros(k_dim)
        point[0] = r
        log_p = float(t.logpdf(point))
        return -area * r ** (k_dim - 1) * np.exp(log_p) * log_p / np.cos(angle) ** 2

    return scipy.integrate.quad(surprise, 0, np.pi / 2, limit=300, epsabs=1e-11, epsrel=1e-11)[0]


def expected_log_chi2(df: float) -> float:
    """E[ln chi^2] by integrating over t = ln x."""
    chi2 = stats.chi2(df)

    def term(t: float) -> float:
        return t * np.exp(chi2.logpdf(np.exp(t)) + t)

    return scipy.integrate.quad(term, -60, 8, points=(0.0, 3.0), limit=300)[0]


@EVERY_K
def test_entropies_match_quadrature_and_mutual_information_is_their_difference(k_dim):
    """Eqs. (5), (33) to (36): total by the radius of the T, data by Bartlett's chi-squares."""
    nw = random_normal_wishart(k_dim, seed=6)
    nu = nw.df.item()
    df = nu - k_dim + 1
    shape = (nw.belief + 1) / (nw.belief * df) * torch.linalg.inv(scale_of(nw))
    total = student_entropy(df, k_dim) + 0.5 * torch.linalg.slogdet(shape).logabsdet.item()
    logdet = torch.linalg.slogdet(scale_of(nw)).logabsdet.item()
    logdet += sum(expected_log_chi2(nu - i) for i in range(k_dim))
    data = 0.5 * (k_dim * math.log(2 * math.pi * math.e) - logdet)
    assert_close(nw.predictive_entropy(), tensor([total])[0], rel=1e-7)
    assert_close(nw.predictive().entropy(), tensor([total])[0], rel=1e-7)
    assert_close(nw.expected_entropy(), tensor([data])[0], rel=1e-7)
    assert_close(nw.mutual_information(), tensor([total - data])[0], rel=1e-6)


@EVERY_K
def test_data_entropy_is_the_average_over_drawn_gaussians(k_dim, generator):
    """Eq. (35); and the mutual information is the mean log-ratio of member and predictive."""
    nw = moderate(k_dim)
    members = members_of(nw, N_DRAWS, generator)
    assert_mean_close(members.entropy(), nw.expected_entropy())
    noise = torch.randn(N_DRAWS, k_dim, 1, dtype=torch.float64, generator=generator)
    y = members.loc + (members.scale_tril @ noise).squeeze(-1)
    ratio = members.log_prob(y) - nw.predictive().log_prob(y)
    assert_mean_close(ratio, nw.mutual_information())  # Eqs. (5) and (36)


@EVERY_K
def test_pairwise_kl_is_the_average_over_drawn_pairs(k_dim, generator):
    """Eqs. (6), (37) and (40)."""
    nw = moderate(k_dim)
    first, second = (members_of(nw, N_DRAWS, generator) for _ in range(2))
    assert_mean_close(kl_divergence(first, second), nw.expected_pairwise_kl())


@EVERY_K
def test_scalar_forms_are_those_of_the_covariances(k_dim):
    """Eqs. (42) to (44)."""
    nw = random_normal_wishart(k_dim, (2, 3))
    inverse_scale = torch.linalg.inv(scale_of(nw)) / nw.excess[..., None, None]
    data, knowledge, total = nw.data_covariance(), nw.knowledge_covariance(), nw.total_covariance()
    assert_close(data, inverse_scale)
    assert_close(knowledge, inverse_scale / nw.belief[..., None, None])
    assert_close(total, data + knowledge)
    assert_close(nw.predictive().covariance_matrix, total)
    for name, covariance in (("data", data), ("knowledge", knowledge), ("total", total)):
        logdet, trace = nw.covariance_logdet(), nw.covariance_trace()
        assert_close(getattr(logdet, name), torch.linalg.slogdet(covariance).logabsdet, abs=1e-11)
        assert_close(getattr(trace, name), covariance.diagonal(dim1=-2, dim2=-1).sum(-1))


@EVERY_K
def test_knowledge_vanishes_at_its_known_rate(k_dim):
    """Eqs. (36) and (40): MI -> K/(2 kappa) + K(K+1)/(4 nu), EPKL -> twice that."""
    nw = NormalWishart.from_excess(
        torch.zeros(k_dim, dtype=torch.float64), torch.eye(k_dim, dtype=torch.float64), 1e7, 4e6
    )
    rate = k_dim / (2 * nw.belief) + k_dim * (k_dim + 1) / (4 * nw.df)
    assert_close(nw.mutual_information(), rate, rel=1e-5)
    assert_close(nw.expected_pairwise_kl(), 2 * rate, rel=1e-5)


@EVERY_K
def test_certain_belief_predicts_its_gaussian(k_dim):
    """Eq. (4) as belief and df grow: N(m, P^-1)."""
    nw = random_normal_wishart(k_dim, (4,))
    certain = NormalWishart.from_excess(nw.loc, nw.precision_tril, 1e10, 1e10)
    gaussian = MultivariateNormal(nw.loc, precision_matrix=nw.mean.precision)
    y = random_normal((4, k_dim), seed=9)
    assert_close(certain.predictive().log_prob(y), gaussian.log_prob(y), rel=1e-7, abs=1e-8)
    assert_close(certain.expected_log_prob(y), gaussian.log_prob(y), rel=1e-7, abs=1e-8)
    assert_close(certain.predictive_entropy(), gaussian.entropy(), rel=1e-7, abs=1e-8)
    assert_close(certain.total_covariance(), gaussian.covariance_matrix, rel=1e-7, abs=1e-8)


def test_variances_are_infinite_up_to_excess_zero():
    """Eqs. (40) and (42) to (44): the mean of an inverse Wishart needs nu > K + 1."""
    excess = torch.tensor([-1.0, 0.0, 1e-6], dtype=torch.float64)
    nw = NormalWishart.from_excess(
        torch.zeros(3, 2, dtype=torch.float64), torch.eye(2, dtype=torch.float64), 1.0, excess
    )
    finite = torch.tensor([False, False, True])
    assert (nw.expected_pairwise_kl().isfinite() == finite).all()
    assert (nw.covariance_trace().total.isfinite() == finite).all()
    assert (nw.data_covariance()[..., 0, 0].isfinite() == finite).all()
    assert nw.mutual_information().isfinite().all()
