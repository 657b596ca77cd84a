"""A teacher's averages against plain sums over its members.

Eqs. (12) and (15) to (17) of arXiv:2006.11590v2.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

from _asserts import assert_close
from _beliefs import DIMENSIONS, random_ensemble, random_normal, random_normal_wishart, random_tril
from priornet.distributions import (
    GaussianEnsemble,
    NormalWishart,
    covariance_averages,
    precision_averages,
)

EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)
TEMPERATURES = pytest.mark.parametrize("temperature", [1.0, 3.0, 20.0])


def tempered(ensemble: GaussianEnsemble, temperature: float) -> tuple[Tensor, Tensor]:
    """Eq. (16): means and covariances pulled towards their averages."""
    keep = 2 / (temperature + 1)
    means, covariances = ensemble.means, ensemble.covariances
    means = keep * means + (1 - keep) * means.mean(0)
    return means, keep * covariances + (1 - keep) * covariances.mean(0)


def forms(v: Tensor, matrix: Tensor) -> Tensor:
    """v' A v over the batch."""
    return (v.unsqueeze(-2) @ matrix @ v.unsqueeze(-1))[..., 0, 0]


@TEMPERATURES
@EVERY_K
def test_precision_averages_are_sums_over_tempered_members(k_dim, temperature):
    """Eqs. (15) and (16)."""
    ensemble = random_ensemble(5, k_dim, (3,))
    averages = precision_averages(ensemble, temperature)
    means, covariances = tempered(ensemble, temperature)
    precisions = torch.linalg.inv(covariances)
    mean_precision = precisions.mean(0)
    weighted = (precisions @ means.unsqueeze(-1)).mean(0)
    loc = torch.linalg.solve(mean_precision, weighted).squeeze(-1)
    assert_close(averages.loc, loc, rel=1e-8, abs=1e-10)
    tril = averages.precision_tril
    assert_close(tril @ tril.mT, mean_precision, rel=1e-8, abs=1e-10)
    assert_close(averages.spread, forms(means - loc, precisions).mean(0), rel=1e-8)
    jensen = torch.linalg.slogdet(mean_precision).logabsdet
    jensen = jensen - torch.linalg.slogdet(precisions).logabsdet.mean(0)
    assert_close(averages.gap, jensen, rel=1e-7, abs=1e-11)


@TEMPERATURES
@EVERY_K
def test_likelihood_of_the_members_depends_on_the_averages_alone(k_dim, temperature):
    """Eq. (15): mean ln NW(mu_m, Lambda_m), over members, from the four averages by hand."""
    ensemble = random_ensemble(5, k_dim, (3,))
    nw = random_normal_wishart(k_dim, (3,), seed=8)
    means, covariances = tempered(ensemble, temperature)
    direct = nw.log_prob((means, torch.linalg.inv(covariances))).mean(0)
    averages = precision_averages(ensemble, temperature)
    tril = averages.precision_tril
    mean_precision = tril @ tril.mT
    mean_logdet = torch.linalg.slogdet(mean_precision).logabsdet - averages.gap
    off = averages.spread + forms(averages.loc - nw.loc, mean_precision)
    trace = (
        (torch.linalg.inv(nw.mean.precision) @ mean_precision).diagonal(dim1=-2, dim2=-1).sum(-1)
    )
    normal = k_dim * torch.log(nw.belief / (2 * torch.pi)) + mean_logdet - nw.belief * off
    wishart = 0.5 * nw.excess * mean_logdet - 0.5 * nw.df * trace - nw.wishart.log_normalizer()
    assert_close(0.5 * normal + wishart, direct, rel=1e-8, abs=1e-8)


@EVERY_K
def test_covariance_averages_are_sums_over_members(k_dim):
    """Eq. (12): what the mean KL to one Gaussian needs, and that it suffices."""
    ensemble = random_ensemble(5, k_dim, (3,))
    averages = covariance_averages(ensemble)
    data, scatter = ensemble.covariances.mean(0), ensemble.knowledge_covariance()
    inverse = torch.linalg.inv(averages.precision_tril @ averages.precision_tril.mT)
    assert_close(inverse, data, rel=1e-8, abs=1e-10)
    assert_close(averages.anchor + averages.shift, ensemble.means.mean(0), abs=1e-12)
    assert_close(averages.scatter, scatter, abs=1e-12)
    student = MultivariateNormal(
        random_normal((3, k_dim), seed=9), scale_tril=random_tril(k_dim, (3,), seed=2)
    )
    members = MultivariateNormal(ensemble.means, ensemble.covariances)
    direct = kl_divergence(members, student.expand(torch.Size((5, 3)))).mean(0)
    # KL of the average teacher, plus the Jensen gap, plus the scatter of the means.
    average = MultivariateNormal(ensemble.means.mean(0), data)
    spread = (student.precision_matrix * scatter).sum((-2, -1))
    expected = kl_divergence(average, student) + 0.5 * (averages.gap + spread)
    assert_close(expected, direct, rel=1e-8)


@EVERY_K
def test_averages_of_close_members_keep_their_digits_in_float32(k_dim):
    """Eq. (15): means of a thousand that differ in the fourth decimal; spread and shift survive."""
    base = random_ensemble(1, k_dim, (6,))
    means = (1000 + 2**-6 * random_normal((5, 6, k_dim))).float()
    covariances = base.covariances.expand(5, 6, k_dim, k_dim).float()
    single = precision_averages(GaussianEnsemble(means, covariances))
    double = precision_averages(GaussianEnsemble(means.double(), covariances.double()))
    assert single.spread.dtype == torch.float32
    assert_close(single.spread, double.spread, rel=1e-4)
    assert_close(single.shift, double.shift, rel=1e-4, abs=1e-6)


def test_jensen_gaps_are_never_negative():
    """Eq. (15), float32, K = 1 and 2: members that agree to a few units of the last digit."""
    for k_dim in (1, 2):
        for size in (0.0, 1e-7, 3e-7, 1e-6, 1e-4):
            stretch = (1 + size * random_normal((5, 2000, 1), seed=3)).float()
            variances = (0.7 * stretch).expand(5, 2000, k_dim)
            ensemble = GaussianEnsemble(torch.zeros(5, 2000, k_dim), variances)
            assert (precision_averages(ensemble).gap >= 0).all()
            assert (covariance_averages(ensemble).gap >= 0).all()
            fit = NormalWishart.fit(ensemble)
            assert (fit.excess > 1e3).all()


@pytest.mark.parametrize("k_dim", [1, 2])
def test_teacher_is_a_constant(k_dim):
    """Eq. (15): no gradient reaches the members, whatever is made of their averages."""
    ensemble = random_ensemble(4, k_dim)
    means = ensemble.means.clone().requires_grad_()
    covariances = ensemble.covariances.clone().requires_grad_()
    teacher = GaussianEnsemble(means, covariances)
    student = torch.ones((), dtype=torch.float64, requires_grad=True)
    averages = (*precision_averages(teacher), *covariance_averages(teacher))
    torch.stack([(student * part).sum() for part in averages]).sum().backward()
    assert student.grad is not None
    assert means.grad is None
    assert covariances.grad is None
