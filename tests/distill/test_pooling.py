"""Pooled members keep every variance of their ensemble, and agree more about noise."""

from __future__ import annotations

import pytest
import torch

from _asserts import assert_close
from _beliefs import DIMENSIONS, random_ensemble
from priornet.distill.pooling import pool_covariances, pooled_share
from priornet.distributions import GaussianEnsemble, NormalWishart

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


def test_a_member_that_is_sure_by_chance_has_less_say():
    """One of ten claims a hundredth of the others' deviation, two deviations from their means."""
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


def lopsided(slope: float, sure: float) -> GaussianEnsemble:
    """Three members of two targets; the first differs in how sure it is of one."""
    tril = torch.eye(2, dtype=torch.float64).repeat(3, 1, 1, 1)
    tril[..., 1, 0], tril[0, :, 1, 1] = slope, sure
    means = torch.zeros(3, 1, 2, dtype=torch.float64)
    return GaussianEnsemble.from_precision_tril(means, tril, validate_args=False)


def test_lopsided_members_keep_their_digits():
    """Members that agree stay, although their covariances could not be factored again."""
    ensemble = lopsided(1e9, 1.0)
    assert_close(pool_covariances(ensemble, 0.2).precision_tril, ensemble.precision_tril)


def test_members_beyond_the_range_of_numbers_stay_as_they_are():
    ensemble = lopsided(0.0, 1e200)
    assert torch.equal(pool_covariances(ensemble, 0.2).precision_tril, ensemble.precision_tril)


def test_fewer_rows_share_more_and_many_nothing():
    shares = [pooled_share(n) for n in range(1, 400)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 0.5
    assert pooled_share(60) == pytest.approx(0.15)
    assert pooled_share(239) > 0
    assert {pooled_share(n) for n in (240, 1000, 10**6)} == {0.0}
