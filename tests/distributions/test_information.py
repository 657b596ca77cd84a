"""Mutual information of an ensemble: against its integral, its limits, and sampling."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from _asserts import assert_close
from _beliefs import random_ensemble, random_normal
from priornet.distributions import GaussianEnsemble
from priornet.distributions.information import ensemble_information


def by_integral(mean, spread) -> float:
    """Entropy of the mixture less the mean entropy of its members."""

    def entropy(y):
        p = stats.norm.pdf(y, mean, spread).mean()
        return -p * math.log(p) if p > 0 else 0.0

    low, high = (mean - 12 * spread).min(), (mean + 12 * spread).max()
    total = integrate.quad(entropy, low, high, points=sorted(mean), limit=500)[0]
    return total - stats.norm.entropy(mean, spread).mean()


@pytest.mark.parametrize("disagreement", [0.3, 3.0])
@pytest.mark.parametrize("unevenness", [0.1, 1.0])
def test_one_target_matches_the_integral(disagreement, unevenness):
    """Also where a narrow member stands inside a wide one, which a rule per member would miss."""
    mean = disagreement * random_normal((4, 6), 0)
    spread = torch.exp(unevenness * random_normal((4, 6), 1))
    found = ensemble_information(GaussianEnsemble(mean[..., None], spread[..., None] ** 2))
    for row, value in enumerate(found):
        expected = by_integral(mean[:, row].numpy(), spread[:, row].numpy())
        assert value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("k_dim", [1, 2])
def test_members_that_agree_have_none_and_far_ones_all(k_dim):
    means = torch.zeros(3, 2, k_dim, dtype=torch.float64)
    means[:, 1] = 1000.0 * torch.arange(3.0, dtype=torch.float64)[:, None]
    ensemble = GaussianEnsemble(means, torch.ones_like(means))
    assert_close(ensemble_information(ensemble), [0.0, math.log(3)], abs=1e-6)


def test_several_targets_agree_with_another_sample(generator):
    ensemble = random_ensemble(4, 2, (50,), seed=1)
    other = ensemble.mutual_information_mc(4096, generator).numpy()
    # The integrand's spread is about its own size, below 2 nats here, over 4 x 512 draws.
    assert np.abs(ensemble_information(ensemble) - other).max() <= 5 * 2 / math.sqrt(4 * 512)


@pytest.mark.parametrize("k_dim", [1, 2])
def test_rows_are_taken_in_pieces(k_dim):
    ensemble = random_ensemble(2, k_dim, (3,), seed=2)
    many = GaussianEnsemble(
        ensemble.means.repeat(1, 700, 1), ensemble.covariances.repeat(1, 700, 1, 1)
    )
    found = ensemble_information(many)
    assert found.shape == (2100,)
    if k_dim == 1:
        assert_close(found[-3:], ensemble_information(ensemble), rel=1e-9)
