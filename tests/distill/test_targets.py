"""Packed targets give the same losses as the ensemble they were packed from."""

from __future__ import annotations

import pytest
import torch

from _asserts import assert_close
from _beliefs import DIMENSIONS, random_ensemble
from priornet import losses
from priornet.distill import targets_for
from priornet.distill.targets import pool_covariances, pooled_share
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart

N, M = 6, 4


def problem(k_dim: int):
    generator = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def tril(*shape: int) -> torch.Tensor:
        return torch.linalg.cholesky(torch.eye(k_dim) + 0.2 * _outer(randn(*shape, k_dim, k_dim)))

    teacher = GaussianEnsemble.from_precision_tril(randn(M, N, k_dim), tril(M, N))
    nw = NormalWishart.from_excess(randn(N, k_dim), tril(N), randn(N).exp(), randn(N).exp())
    gaussian = Gaussian(randn(N, k_dim), precision_tril=tril(N))
    mixture = GaussianEnsemble.from_precision_tril(randn(M, N, k_dim), tril(M, N))
    return teacher, nw, gaussian, mixture


def _outer(matrix: torch.Tensor) -> torch.Tensor:
    return matrix @ matrix.mT


@pytest.mark.parametrize("k_dim", [1, 2, 3])
def test_losses_from_columns_equal_losses_from_the_ensemble(k_dim):
    teacher, nw, gaussian, mixture = problem(k_dim)
    fitted = NormalWishart.fit(teacher, max_belief=1e5, max_excess=1e5)
    cases = [
        ("endd", True, False, nw, losses.proxy(nw, fitted)),
        ("endd", False, False, nw, losses.endd(nw, teacher)),
        ("endd", False, True, nw, losses.endd(nw, teacher, 3.0, "mean-preserving")),
        ("end", False, False, gaussian, losses.end(gaussian, teacher)),
        ("md-end", False, False, mixture, losses.md_end(mixture, teacher)),
    ]
    for objective, proxy, annealed, prediction, expected in cases:
        targets = targets_for(objective, k_dim, M, proxy=proxy, annealed=annealed)
        columns = targets.pack(teacher)
        assert columns.shape[0] == N
        found = targets.loss(prediction, columns, temperature=3.0 if annealed else 1.0)
        torch.testing.assert_close(found, expected)


def test_a_batch_of_networks_unpacks_along_its_own_axes():
    teacher, nw, _, _ = problem(2)
    targets = targets_for("endd", 2, M, proxy=True, annealed=False)
    columns = targets.pack(teacher)
    stacked = targets.loss(nw.expand((3, N)), columns.expand(3, *columns.shape))
    torch.testing.assert_close(stacked, targets.loss(nw, columns).expand(3, N))


EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)


@EVERY_K
def test_variances_of_the_ensemble_stay(k_dim):
    ensemble = random_ensemble(7, k_dim, (4,))
    pooled = pool_covariances(ensemble, 0.3)
    assert_close(pooled.data_covariance(), ensemble.data_covariance())
    assert_close(pooled.knowledge_covariance(), ensemble.knowledge_covariance())


@EVERY_K
def test_members_keep_their_part(k_dim):
    ensemble = random_ensemble(7, k_dim, (4,))
    pooled = pool_covariances(ensemble, 0.3)
    off = ensemble.covariances - ensemble.data_covariance()
    assert_close(pooled.covariances - pooled.data_covariance(), 0.7 * off)


def test_a_share_of_nothing_changes_no_digit():
    ensemble = random_ensemble(7, 2, (4,))
    assert pool_covariances(ensemble, 0.0) is ensemble


def test_a_member_that_is_sure_by_chance_counts_less():
    """Give one of ten members a hundredth of the deviation, two deviations from the others."""
    means = torch.zeros(10, 1, 1, dtype=torch.float64)
    means[0], variances = 2.0, torch.ones_like(means)
    variances[0] = 1e-4
    ensemble = GaussianEnsemble(means, variances)
    alone, pooled = (NormalWishart.fit(pool_covariances(ensemble, s)) for s in (0.0, 0.2))
    assert float(alone.loc) > 1.99
    assert float(pooled.loc) < 1.0
    y = torch.zeros(1, 1, dtype=torch.float64)  # where the others are
    mixture = float(ensemble.predictive().log_prob(y))
    assert float(alone.predictive().log_prob(y)) < mixture - 1
    assert float(pooled.predictive().log_prob(y)) > mixture - 0.5


def unequal(slope: float, sure: float) -> GaussianEnsemble:
    """Make three members of two targets; the first is more sure of one target."""
    tril = torch.eye(2, dtype=torch.float64).repeat(3, 1, 1, 1)
    tril[..., 1, 0], tril[0, :, 1, 1] = slope, sure
    means = torch.zeros(3, 1, 2, dtype=torch.float64)
    return GaussianEnsemble.from_precision_tril(means, tril, validate_args=False)


def test_members_of_unequal_targets_keep_their_digits():
    """Keep members that agree, although their covariances could not be factored again."""
    ensemble = unequal(1e9, 1.0)
    assert_close(pool_covariances(ensemble, 0.2).precision_tril, ensemble.precision_tril)


def test_members_that_overflow_stay_as_they_are():
    ensemble = unequal(0.0, 1e200)
    assert torch.equal(pool_covariances(ensemble, 0.2).precision_tril, ensemble.precision_tril)


def test_fewer_rows_share_more_and_many_nothing():
    shares = [pooled_share(n) for n in range(1, 400)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 0.5
    assert pooled_share(60) == pytest.approx(0.15)
    assert pooled_share(239) > 0
    assert {pooled_share(n) for n in (240, 1000, 10**6)} == {0.0}
