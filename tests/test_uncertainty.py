"""The record of total, data and knowledge uncertainty.

Eqs. (5) to (7) and (41) to (44) of arXiv:2006.11590v2.
"""

from __future__ import annotations

import pytest
import torch

from _asserts import assert_close
from _beliefs import (
    BATCHES,
    DIMENSIONS,
    random_ensemble,
    random_gaussian,
    random_normal_wishart,
    random_product,
)
from _contract import each
from priornet.uncertainty import uncertainty

BELIEFS = {
    "normal-wishart": random_normal_wishart,
    "product": random_product,
    "ensemble": lambda k_dim, batch: random_ensemble(4, k_dim, batch),
    "gaussian": random_gaussian,
}
EVERY_BELIEF = pytest.mark.parametrize("name", BELIEFS)
EVERY_K = each("k_dim", DIMENSIONS)
EVERY_BATCH = each("batch", BATCHES)


@EVERY_BATCH
@EVERY_K
@EVERY_BELIEF
def test_variances_add_up(name, k_dim, batch):
    """Check Eqs. (7) and (41): total = data + knowledge, per coordinate, for every belief."""
    record = uncertainty(BELIEFS[name](k_dim, batch))
    assert record.total_variance.shape == (*batch, k_dim)
    assert_close(record.total_variance, record.data_variance + record.knowledge_variance)
    assert (record.knowledge_variance >= 0).all()


@EVERY_BATCH
@EVERY_K
@pytest.mark.parametrize("name", ["normal-wishart", "product", "gaussian"])
def test_entropies_add_up(name, k_dim, batch):
    """Check Eq. (5): total = data + mutual information, where there are closed forms."""
    belief = BELIEFS[name](k_dim, batch)
    record = uncertainty(belief)
    assert record.total_entropy is not None
    assert record.mutual_information is not None
    assert record.total_entropy.shape == batch
    total = record.data_entropy + record.mutual_information
    assert_close(record.total_entropy, total, abs=1e-12)
    # The total is the entropy of the predictive, by that distribution's own formula.
    assert_close(record.total_entropy, belief.predictive().entropy(), abs=1e-12)


@EVERY_BATCH
@EVERY_K
@EVERY_BELIEF
def test_pairwise_kl_is_at_least_the_mutual_information(name, k_dim, batch):
    """Check Eqs. (5) and (6)."""
    record = uncertainty(BELIEFS[name](k_dim, batch))
    assert record.epkl.shape == batch
    lower = torch.zeros(()) if record.mutual_information is None else record.mutual_information
    assert (record.epkl >= lower).all()


@EVERY_K
def test_ensemble_has_no_closed_form_entropy_of_its_mixture(k_dim):
    """Check Eq. (5) for a mixture of Gaussians: None, not a stand-in."""
    record = uncertainty(random_ensemble(4, k_dim, (3,)))
    assert record.total_entropy is None
    assert record.mutual_information is None
    assert record.data_entropy.shape == (3,)


@EVERY_BELIEF
def test_variances_are_the_diagonals_of_the_covariances(name):
    """Check Eqs. (42) to (44)."""
    belief = BELIEFS[name](3, (4,))
    record = uncertainty(belief)
    for kind in ("total", "data", "knowledge"):
        covariance = getattr(belief, f"{kind}_covariance")()
        variance = getattr(record, f"{kind}_variance")
        assert_close(variance, torch.diagonal(covariance, dim1=-2, dim2=-1))
        assert_close(variance.sum(-1), getattr(belief.covariance_trace(), kind), abs=1e-12)
