"""Targets in other units: every answer about ``shift + scale * y`` follows from that about y.

The proofs are changes of variables; none uses how the parameters move.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.distributions import kl_divergence

from _asserts import assert_close
from _beliefs import (
    BATCHES,
    DIMENSIONS,
    random_ensemble,
    random_gaussian,
    random_normal,
    random_normal_wishart,
    random_product,
    random_tril,
    random_uniform,
)
from _contract import each
from priornet.distributions import (
    Gaussian,
    GaussianEnsemble,
    NormalWishart,
    ProductNormalWishart,
)
from priornet.uncertainty import uncertainty

BELIEFS = {
    "NormalWishart": random_normal_wishart,
    "ProductNormalWishart": random_product,
    "Gaussian(precision)": random_gaussian,
    "Gaussian(scale)": lambda k, b: Gaussian(random_normal((*b, k)), None, random_tril(k, b, 10)),
    "Gaussian(variance)": lambda k, b: Gaussian(
        random_normal((*b, k)), variance=random_uniform(0.3, 2.0, (*b, k), 10)
    ),
    "GaussianEnsemble": lambda k, b: random_ensemble(6, k, b),
    "GaussianEnsemble(variances)": lambda k, b: random_ensemble(6, k, b, diagonal=True),
    "GaussianEnsemble.from_precision_tril": lambda k, b: GaussianEnsemble.from_precision_tril(
        random_normal((6, *b, k)), random_tril(k, (6, *b), 10)
    ),
}
EVERY_BELIEF = pytest.mark.parametrize("name", BELIEFS)
EVERY_K = each("k_dim", DIMENSIONS)
EVERY_BATCH = each("batch", BATCHES)


def units(k_dim: int, batch: tuple[int, ...] = ()) -> tuple[Tensor, Tensor]:
    """A shift, and a scale of each coordinate between 1/50 and 50."""
    log_scale = random_uniform(-4.0, 4.0, (*batch, k_dim), 71)
    return 30 * random_normal((*batch, k_dim), 70), log_scale.exp()


@EVERY_BATCH
@EVERY_K
@EVERY_BELIEF
def test_densities_change_by_the_jacobian(name, k_dim, batch):
    belief = BELIEFS[name](k_dim, batch)
    shift, scale = units(k_dim)
    moved = belief.affine(shift, scale)
    y = random_normal((*batch, k_dim), 9)
    for there, here in (
        (moved.predictive().log_prob, belief.predictive().log_prob),
        (moved.expected_log_prob, belief.expected_log_prob),
    ):
        assert_close(there(shift + scale * y), here(y) - scale.log().sum(), rel=1e-9, abs=1e-9)


@EVERY_BATCH
@EVERY_K
@EVERY_BELIEF
def test_entropies_grow_by_the_log_scales_and_knowledge_stays(name, k_dim, batch):
    """Eqs. (5) and (6): mutual information and EPKL have no units."""
    belief = BELIEFS[name](k_dim, batch)
    shift, scale = units(k_dim)
    before, after = uncertainty(belief), uncertainty(belief.affine(shift, scale))
    growth = scale.log().sum()
    assert_close(after.data_entropy, before.data_entropy + growth, rel=1e-9, abs=1e-9)
    assert_close(after.epkl, before.epkl, rel=1e-8, abs=1e-12)
    if isinstance(belief, GaussianEnsemble):
        assert after.total_entropy is None
        return
    assert before.total_entropy is not None
    assert_close(after.total_entropy, before.total_entropy + growth, rel=1e-9, abs=1e-9)
    assert_close(after.mutual_information, before.mutual_information, rel=0, abs=0)


@EVERY_BATCH
@EVERY_K
@EVERY_BELIEF
def test_covariances_scale_and_the_mean_moves(name, k_dim, batch):
    """Eq. (7)."""
    belief = BELIEFS[name](k_dim, batch)
    shift, scale = units(k_dim)
    moved = belief.affine(shift, scale)
    assert type(moved) is type(belief)
    assert (moved.batch_shape, moved.event_shape) == (batch, (k_dim,))
    assert_close(moved.predictive().mean, shift + scale * belief.predictive().mean, abs=1e-12)
    for kind in ("total_covariance", "data_covariance", "knowledge_covariance"):
        expected = getattr(belief, kind)() * scale.outer(scale)
        assert_close(getattr(moved, kind)(), expected, rel=1e-9, abs=1e-12)
    for total in moved.covariance_logdet()[:2]:
        assert total.isfinite().all()
    difference = moved.covariance_logdet().data - belief.covariance_logdet().data
    assert_close(difference, 2 * scale.log().sum().expand(batch), rel=1e-8, abs=1e-9)


@EVERY_K
def test_density_over_gaussians_changes_by_the_jacobian(k_dim):
    r"""Eq. (2): :math:`\mu' = a + B\mu` and :math:`\Lambda' = B^{-1}\Lambda B^{-1}`.

    The first has the Jacobian :math:`|B|`, the second, over symmetric matrices,
    :math:`|B|^{-(K+1)}`; over the diagonal ones of a product it is :math:`|B|^{-2}`.
    """
    shift, scale = units(k_dim)
    growth = scale.log().sum()
    mean = random_normal((4, k_dim), 9)
    full = random_tril(k_dim, (4,), 8)
    precision = full @ full.mT
    nw, product = random_normal_wishart(k_dim, (4,)), random_product(k_dim, (4,))
    found = nw.affine(shift, scale).log_prob((shift + scale * mean, precision / scale.outer(scale)))
    assert_close(found, nw.log_prob((mean, precision)) + k_dim * growth, rel=1e-9, abs=1e-9)
    diagonal = random_uniform(0.2, 3.0, (4, k_dim), 7)
    found = product.affine(shift, scale).log_prob((shift + scale * mean, diagonal / scale**2))
    assert_close(found, product.log_prob((mean, diagonal)) + growth, rel=1e-9, abs=1e-9)


@EVERY_K
@pytest.mark.parametrize("name", ["NormalWishart", "ProductNormalWishart", "Gaussian(precision)"])
def test_divergence_has_no_units(name, k_dim):
    """Eqs. (27) and (28)."""
    p, q = BELIEFS[name](k_dim, (4,)), BELIEFS[name](k_dim, ())
    units_of_k = units(k_dim)
    found = kl_divergence(p.affine(*units_of_k), q.affine(*units_of_k))
    assert_close(found, kl_divergence(p, q), rel=1e-8, abs=1e-9)


@EVERY_BATCH
@EVERY_K
@EVERY_BELIEF
def test_the_inverse_map_leads_back(name, k_dim, batch):
    belief = BELIEFS[name](k_dim, batch)
    shift, scale = units(k_dim)
    back = belief.affine(shift, scale).affine(-shift / scale, 1 / scale)
    y = random_normal((*batch, k_dim), 9)
    assert_close(back.expected_log_prob(y), belief.expected_log_prob(y), rel=1e-8, abs=1e-8)


@EVERY_K
@EVERY_BELIEF
def test_each_row_may_have_its_own_units(name, k_dim):
    belief, alone = BELIEFS[name](k_dim, (4,)), BELIEFS[name](k_dim, ())
    shift, scale = units(k_dim, (4,))
    y = random_normal((4, k_dim), 9)
    moved, spread = belief.affine(shift, scale), alone.affine(shift, scale)
    assert moved.batch_shape == spread.batch_shape == (4,)
    jacobian = scale.log().sum(-1)
    for there, here in ((moved, belief), (spread, alone)):
        found = there.predictive().log_prob(shift + scale * y)
        assert_close(found, here.predictive().log_prob(y) - jacobian, rel=1e-9, abs=1e-9)


@EVERY_BELIEF
def test_a_number_stands_for_every_coordinate(name):
    belief = BELIEFS[name](3, (4,))
    three = torch.full((3,), 3.0, dtype=torch.float64)
    found, expected = belief.affine(-1.5, 3.0), belief.affine(-three / 2, three)
    assert_close(found.total_covariance(), expected.total_covariance(), rel=0)
    assert_close(found.predictive().mean, expected.predictive().mean, rel=0)


def test_diagonal_members_stay_diagonal():
    moved = random_ensemble(6, 3, (4,), diagonal=True).affine(*units(3))
    assert moved.is_diagonal
    assert moved.coordinates().batch_shape == (4, 3)


@EVERY_K
def test_both_factors_of_an_ensemble_move(k_dim):
    """An ensemble that has computed its precision factors keeps them."""
    ensemble = random_ensemble(6, k_dim, (4,))
    ensemble.precision_tril.sum()
    assert ensemble.has_precision_tril
    moved = ensemble.affine(*units(k_dim))
    assert moved.has_precision_tril
    precision = moved.precision_tril @ moved.precision_tril.mT
    eye = torch.eye(k_dim, dtype=torch.float64).expand(6, 4, k_dim, k_dim)
    # The rows of the product have units: compare where both sides have none.
    scale = units(k_dim)[1]
    product = precision @ moved.covariances * scale.unsqueeze(-1) / scale
    assert_close(product, eye, abs=1e-10)


@EVERY_BELIEF
def test_gradients_in_shift_and_scale(name):
    belief, y = BELIEFS[name](2, ()), random_normal((2,), 9)
    shift = random_normal((2,), 70).requires_grad_()
    scale = random_uniform(0.5, 2.0, (2,), 71).requires_grad_()

    def measures(shift: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
        moved = belief.affine(shift, scale)
        return moved.expected_log_prob(y), moved.expected_entropy(), moved.total_covariance()

    assert gradcheck(measures, (shift, scale))


def test_gradients_reach_the_parameters():
    loc, precision = random_normal((4, 2)), random_uniform(0.3, 2.0, (4, 2))
    belief, excess = random_uniform(0.5, 4.0, (4, 2)), random_uniform(1.0, 9.0, (4, 2))
    leaves = [v.requires_grad_() for v in (loc, precision, belief, excess)]
    y = random_normal((4, 2), 9)

    def loss(loc: Tensor, precision: Tensor, belief: Tensor, excess: Tensor) -> Tensor:
        product = ProductNormalWishart(loc, precision, belief, excess)
        return product.affine(*units(2)).predictive().log_prob(y)

    assert gradcheck(loss, leaves)


def test_huge_and_tiny_units_stay_in_range_in_float32():
    """A variance of 1e36 fits float32; its intermediate squares must too."""
    scale = torch.tensor([1e18, 1e-18])
    one = torch.ones(2)
    for belief in (
        NormalWishart.from_excess(0 * one, torch.eye(2), 2.0, 3.0),
        ProductNormalWishart(0 * one, one, 2 * one, 3 * one),
        Gaussian(0 * one, variance=one),
        GaussianEnsemble(one.expand(3, 2), one.expand(3, 2)),
    ):
        moved = belief.affine(0.0, scale)
        variance = moved.total_covariance().diagonal(dim1=-2, dim2=-1)
        expected = belief.total_covariance().diagonal(dim1=-2, dim2=-1) * scale.square()
        assert_close(variance, expected, rel=1e-5)
        assert moved.expected_entropy().isfinite().all()


@pytest.mark.parametrize("name", ["NormalWishart", "GaussianEnsemble"])
@pytest.mark.parametrize(
    ("shift", "scale", "kind", "message"),
    [
        (torch.zeros(3), torch.ones(3), TypeError, r"`shift` is torch.float32 but the distrib"),
        (torch.zeros(2).double(), 1.0, ValueError, r"`shift` must have shape \(3,\) .* got \(2,\)"),
        (0.0, torch.ones(4).double(), ValueError, r"`scale` must have shape \(3,\)"),
        (0.0, torch.ones(5, 3).double(), ValueError, r"batch shapes do not fit together: .*scale"),
        (0.0, torch.ones(4, 1, 3).double(), ValueError, r"batch shapes do not fit together"),
        (0.0, 0.0, ValueError, r"`scale` must exceed 0; smallest value given is 0"),
        (0.0, -1.0, ValueError, r"`scale` must exceed 0; smallest value given is -1"),
        (float("nan"), 1.0, ValueError, r"`shift` must be finite; it contains nan"),
        (0.0, float("inf"), ValueError, r"`scale` must be finite; it contains inf"),
        ([0.0], 1.0, TypeError, r"`shift` must be a tensor or a number; got list"),
    ],
)
def test_bad_units_are_refused(name, shift, scale, kind, message):
    here = torch.get_default_device()
    shift, scale = (v.to(here) if isinstance(v, Tensor) else v for v in (shift, scale))
    with pytest.raises(kind, match=message):
        BELIEFS[name](3, (4,)).affine(shift, scale)
