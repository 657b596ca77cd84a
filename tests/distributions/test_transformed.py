"""Mapped distributions and beliefs: densities, draws, quantiles, and the laws of uncertainty."""

from __future__ import annotations

import math

import pytest
import torch

from _asserts import assert_close, assert_mean_close
from _maps import MAPS
from priornet.distributions import (
    Gaussian,
    GaussianEnsemble,
    Normal,
    NormalMixture,
    NormalWishart,
    ProductNormalWishart,
    StudentT,
    TransformedBelief,
    TransformedMultivariate,
    TransformedUnivariate,
)
from priornet.special.maps import AsinhMap, CoordinateMaps, LogMap
from priornet.uncertainty import uncertainty

EVERY = pytest.mark.parametrize("own", MAPS.values(), ids=MAPS.keys())
LINEAR = AsinhMap(1.0, 2.0, -1e-9, 1e-9)  # straight but for rounding: y = 1 + 2 t


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def bases():
    means, scales = tensor([-0.5, 0.4], [1.0, 3.0], [0.0, 0.1]), tensor(*[[0.3, 1.0]] * 3)
    return {
        "normal": Normal(tensor(0.3, -1.0), tensor(0.5, 2.0)),
        "student": StudentT(tensor(4.5, 9.0), tensor(0.3, -1.0), tensor(0.3, 0.6)),
        "mixture": NormalMixture(means, scales),
    }


def beliefs():
    one = torch.eye(1, dtype=torch.float64).expand(3, 1, 1)
    loc = tensor([0.2], [-1.0], [2.0])
    wishart = NormalWishart.from_excess(loc, 2 * one, tensor(0.5, 4.0, 1e3), tensor(3.0, 8.0, 40.0))
    return {
        "normal-wishart": wishart,
        "product": ProductNormalWishart(
            loc, 4 + 0 * loc, wishart.belief[:, None], wishart.excess[:, None]
        ),
        "ensemble": GaussianEnsemble(
            torch.stack([loc, loc + 0.5, loc - 0.2]),
            torch.stack([loc**2, loc**2 + 1, 0.1 + loc**2]),
        ),
        "gaussian": Gaussian(loc, variance=loc**2),
    }


EACH_BASE = pytest.mark.parametrize("kind", ["normal", "student", "mixture"])
EACH_BELIEF = pytest.mark.parametrize("kind", ["normal-wishart", "product", "ensemble", "gaussian"])


# -- distributions --------------------------------------------------------------------------------


@EVERY
@EACH_BASE
def test_density_is_the_derivative_of_the_distribution_function(own, kind):
    law = TransformedUnivariate(bases()[kind], own)
    y = law.icdf(tensor(0.021, 0.13, 0.41, 0.77, 0.98)[:, None].expand(5, 2))
    y = y.detach().requires_grad_()
    (slope,) = torch.autograd.grad(law.cdf(y).sum(), y)
    assert_close(torch.exp(law.log_prob(y)), slope, rel=1e-8)


@EVERY
@EACH_BASE
def test_quantiles_undo_probabilities(own, kind):
    law = TransformedUnivariate(bases()[kind], own)
    p = tensor(1e-6, 0.3, 0.5, 0.999)[:, None].expand(4, 2)
    assert_close(law.cdf(law.icdf(p)), p, rel=1e-7)
    assert_close(law.median, law.icdf(torch.full((2,), 0.5, dtype=torch.float64)))


@EVERY
@EACH_BASE
def test_draws_have_the_mean_the_variance_and_the_entropy(own, kind, generator):
    law = TransformedUnivariate(bases()[kind], own)
    low, high = law.icdf(tensor(1e-4)), law.icdf(tensor(1 - 1e-4))
    draws = law.sample((40_000,), generator=generator)
    assert_mean_close((draws < law.icdf(tensor(0.2))).double(), [0.2, 0.2])
    if kind != "student":  # squares of its draws have no variance
        assert_mean_close(draws, law.mean)
        if own.kind != "log":  # nor have those of a wide log-normal, for so many draws
            assert_mean_close((draws - law.mean).square(), law.variance)
        assert (low < law.mean).all()
        assert (law.mean < high).all()
    if kind != "mixture":
        assert_mean_close(-law.log_prob(draws), law.entropy())


def test_log_map_gives_positive_values_and_no_density_below_zero():
    for base in bases().values():
        law = TransformedUnivariate(base, LogMap(0.0, 1.0, high=2.0))
        assert (law.icdf(tensor(1e-9)) > 0).all()
        assert (law.log_prob(tensor(-1.0, 0.0)) == -math.inf).all()
        assert (law.cdf(tensor(-1.0, 0.0)) == 0).all()


def test_vectors_factor_into_coordinates_that_are_independent():
    maps = CoordinateMaps([MAPS["log"], MAPS["asinh"]])
    base = Gaussian(tensor(0.2, -0.3), variance=tensor(0.3, 1.0))
    law = TransformedMultivariate(base, maps)
    y = tensor(1.3, -2.0)
    assert_close(law.log_prob(y), law.marginals().log_prob(y).sum())
    assert_close(law.entropy(), law.marginals().entropy().sum())
    assert law.covariance_matrix.isnan().tolist() == [[False, True], [True, False]]


def test_univariate_needs_one_coordinate():
    base = Gaussian(tensor(0.2), variance=tensor(0.3))
    law = TransformedMultivariate(base, CoordinateMaps([MAPS["log"]]))
    one = law.univariate()
    assert (one.batch_shape, one.event_shape) == ((), ())
    assert_close(one.mean, law.mean[0])
    assert_close(law.cdf(tensor(1.0)), one.cdf(torch.tensor(1.0, dtype=torch.float64)))


@pytest.mark.parametrize("build", [TransformedMultivariate, TransformedBelief])
def test_another_number_of_maps_is_refused(build):
    with pytest.raises(ValueError, match=r"one map per coordinate, \(2,\); got 1"):
        build(Gaussian(torch.zeros(2), variance=torch.ones(2)), CoordinateMaps([MAPS["log"]]))


# -- beliefs --------------------------------------------------------------------------------------


@EVERY
@EACH_BELIEF
def test_total_is_exactly_data_plus_knowledge(own, kind):
    belief = TransformedBelief(beliefs()[kind], CoordinateMaps([own]))
    total, data, knowledge = belief.variances
    assert (total == data + knowledge).all()
    assert (data > 0).all()
    assert (knowledge >= 0).all()
    assert ((knowledge > 0) == (kind != "gaussian")).all()
    assert_close(total, belief.predictive().variance, rel=1e-12)
    record = uncertainty(belief)
    assert_close(record.total_variance, total, rel=0)


@EVERY
@EACH_BELIEF
def test_information_does_not_change_under_a_map(own, kind):
    base = beliefs()[kind]
    before, after = uncertainty(base), uncertainty(TransformedBelief(base, CoordinateMaps([own])))
    assert_close(after.epkl, before.epkl, rel=0)
    if before.mutual_information is None:
        assert after.mutual_information is None
        return
    assert_close(after.mutual_information, before.mutual_information, rel=0)
    assert after.total_entropy is not None
    gap = after.total_entropy - after.data_entropy
    assert_close(gap, after.mutual_information, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", ["normal-wishart", "gaussian"])
def test_total_entropy_is_that_of_the_predictive(kind):
    belief = TransformedBelief(beliefs()[kind], CoordinateMaps([MAPS["asinh"]]))
    assert_close(belief.predictive_entropy(), belief.predictive().entropy())


@EACH_BELIEF
def test_a_straight_map_is_a_change_of_units(kind):
    base = beliefs()[kind]
    mapped, moved = TransformedBelief(base, CoordinateMaps([LINEAR])), base.affine(1.0, 2.0)
    for name in ("data_covariance", "knowledge_covariance", "total_covariance", "expected_entropy"):
        assert_close(getattr(mapped, name)(), getattr(moved, name)(), rel=1e-6)
    y = tensor([0.3], [2.0], [5.0])
    assert_close(mapped.expected_log_prob(y), moved.expected_log_prob(y), rel=1e-6)
    assert_close(mapped.predictive().mean, moved.predictive().mean, rel=1e-6)


@EVERY
def test_an_ensemble_has_the_moments_of_its_members(own):
    base = beliefs()["ensemble"]
    belief = TransformedBelief(base, CoordinateMaps([own]))
    members = TransformedUnivariate(base.members.marginals(), CoordinateMaps([own]))
    assert_close(belief.variances.data, members.variance.mean(0), rel=1e-12)
    assert_close(belief.variances.knowledge, members.mean.var(0, correction=0), rel=1e-9)


def test_a_normal_wishart_has_the_variances_of_its_draws(generator):
    base = beliefs()["normal-wishart"]
    own = MAPS["asinh"]
    belief = TransformedBelief(base, CoordinateMaps([own]))
    draw = base.sample((100_000,), generator=generator)
    drawn = TransformedUnivariate(Normal(draw.mean[..., 0], draw.precision[..., 0, 0].rsqrt()), own)
    rows = slice(1, None)  # of the first, squares have no variance
    assert_mean_close(drawn.variance[:, rows], belief.variances.data[rows, 0])
    off = drawn.mean - belief.predictive().mean[:, 0]
    assert_mean_close(off.square()[:, rows], belief.variances.knowledge[rows, 0])


def test_infinite_variances_stay_infinite():
    base = NormalWishart.from_excess(tensor([0.3]), torch.eye(1)[None].double(), 2.0, tensor(-0.5))
    belief = TransformedBelief(base, CoordinateMaps([MAPS["log"]]))
    assert all((part == math.inf).all() for part in belief.variances)


def test_affine_moves_the_target():
    belief = TransformedBelief(beliefs()["ensemble"], CoordinateMaps([MAPS["log"]]))
    moved = belief.affine(3.0, 0.5)
    assert_close(moved.predictive().mean, 3 + 0.5 * belief.predictive().mean)
    assert_close(moved.variances.knowledge, 0.25 * belief.variances.knowledge)
    with pytest.raises(ValueError, match="the same for all rows"):
        belief.affine(torch.zeros(3, 1, dtype=torch.float64), 1.0)


def test_traces_and_logdets_are_those_of_the_variances():
    belief = TransformedBelief(beliefs()["normal-wishart"], CoordinateMaps([MAPS["asinh"]]))
    for k, part in enumerate(belief.variances):
        assert_close(belief.covariance_trace()[k], part[:, 0])
        assert_close(belief.covariance_logdet()[k], torch.log(part[:, 0]))
