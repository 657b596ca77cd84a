"""Measures of uncertainty: gradients, bounds, extremes, and new units of the target.

Eqs. (5) to (7), (25), (33), (35), (36), (40) and (42) to (44) of arXiv:2006.11590v2.
"""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck
from torch.distributions import kl_divergence

from _asserts import assert_close
from _beliefs import (
    DIMENSIONS,
    leaves,
    normal_wishart_of,
    random_ensemble,
    random_normal,
    random_normal_wishart,
    random_tril,
    seeded,
)
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart

EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)
SEEDS = st.integers(0, 2**20)
DIMENSION = st.sampled_from(DIMENSIONS)
LOG_SIZE = st.floats(-3, 3)


def entropies(belief: NormalWishart) -> tuple[Tensor, ...]:
    return belief.entropy(), belief.predictive_entropy(), belief.expected_entropy()


def knowledge(belief: NormalWishart) -> tuple[Tensor, ...]:
    return belief.mutual_information(), belief.expected_pairwise_kl()


def covariances(belief: NormalWishart | GaussianEnsemble) -> tuple[Tensor, ...]:
    return belief.data_covariance(), belief.knowledge_covariance(), belief.total_covariance()


# -- gradients -------------------------------------------------------------------------------------


@EVERY_K
def test_gradients_of_entropies_and_covariances_in_every_parameter(k_dim):
    def measures(*parameters: Tensor) -> tuple[Tensor, ...]:
        nw = normal_wishart_of(*parameters)
        return (
            *entropies(nw),
            *knowledge(nw),
            *(covariance.diagonal(dim1=-2, dim2=-1) for covariance in covariances(nw)),
            *nw.covariance_logdet(),
            *nw.covariance_trace(),
        )

    assert gradcheck(measures, leaves(random_normal_wishart(k_dim)), check_undefined_grad=False)


@EVERY_K
def test_gradients_of_densities_in_every_parameter_and_in_the_value(k_dim):
    y = random_normal((k_dim,), seed=9).requires_grad_()
    precision = random_tril(k_dim, seed=5).requires_grad_()

    def densities(*inputs: Tensor) -> tuple[Tensor, ...]:
        *parameters, y, tril = inputs
        nw = normal_wishart_of(*parameters)
        matrix = tril.tril() @ tril.tril().mT
        return (
            nw.log_prob((y, matrix)),
            nw.log_prob_covariance((y, matrix)),
            nw.predictive().log_prob(y),
            nw.expected_log_prob(y),
        )

    inputs = (*leaves(random_normal_wishart(k_dim)), y, precision)
    assert gradcheck(densities, inputs, check_undefined_grad=False)


@EVERY_K
def test_gradients_of_the_posterior_in_every_parameter(k_dim):
    """Eq. (9)."""
    y = random_normal((2, k_dim), seed=9).requires_grad_()
    beta = torch.tensor([0.4, 3.0], dtype=torch.float64, requires_grad=True)

    def updated(*inputs: Tensor) -> tuple[Tensor, ...]:
        *parameters, y, beta = inputs
        nw = normal_wishart_of(*parameters)
        after = nw.posterior(y, beta)
        return after.loc, after.mean.precision, after.belief, after.excess, nw.log_evidence(y, beta)

    inputs = (*leaves(random_normal_wishart(k_dim, (2,))), y, beta)
    assert gradcheck(updated, inputs, check_undefined_grad=False)


@EVERY_K
def test_gradients_of_an_ensemble_in_means_and_covariances(k_dim):
    ensemble = random_ensemble(k_dim + 2, k_dim)
    means = ensemble.means.clone().requires_grad_()
    roots = random_tril(k_dim, (k_dim + 2,), seed=4).requires_grad_()
    y = random_normal((k_dim,), seed=9).requires_grad_()

    def measures(means: Tensor, roots: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        ensemble = GaussianEnsemble(means, roots.tril() @ roots.tril().mT)
        return (
            ensemble.expected_entropy(),
            ensemble.expected_pairwise_kl(),
            ensemble.total_covariance().diagonal(dim1=-2, dim2=-1),
            *ensemble.covariance_logdet(),
            *ensemble.covariance_trace(),
            ensemble.predictive().log_prob(y),
            ensemble.expected_log_prob(y),
            ensemble.moment_matched_log_prob(y),
            ensemble.mutual_information_mc(2, seeded(0)),
        )

    assert gradcheck(measures, (means, roots, y), check_undefined_grad=False)


@EVERY_K
def test_gradients_of_a_gaussian_by_either_factor(k_dim):
    """Eq. (1)."""
    loc = random_normal((2, k_dim)).requires_grad_()
    tril = random_tril(k_dim, (2,), seed=5).requires_grad_()
    y = random_normal((2, k_dim), seed=9).requires_grad_()

    def values(loc: Tensor, tril: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        tril = tril.tril()
        both = Gaussian(loc, precision_tril=tril), Gaussian(loc, scale_tril=tril)
        return tuple(
            value
            for gaussian in both
            for value in (
                gaussian.log_prob(y),
                gaussian.entropy(),
                gaussian.covariance_matrix,
                gaussian.rsample((2,), seeded(1)),
            )
        )

    assert gradcheck(values, (loc, tril, y), check_undefined_grad=False)


# -- bounds ----------------------------------------------------------------------------------------


@given(k_dim=DIMENSION, log_belief=st.floats(-6, 8), log_excess=st.floats(-6, 8))
def test_pairwise_kl_bounds_the_mutual_information(k_dim, log_belief, log_excess):
    """Eqs. (36) and (40), in both precisions."""
    for dtype in (torch.float64, torch.float32):
        nw = NormalWishart.from_excess(
            torch.zeros(k_dim, dtype=dtype),
            torch.eye(k_dim, dtype=dtype),
            10**log_belief,
            10**log_excess,
        )
        assert 0 < nw.mutual_information() <= nw.expected_pairwise_kl()


@given(k_dim=DIMENSION, seed=SEEDS, log_belief=LOG_SIZE, excess=st.floats(-1.9, 50), size=LOG_SIZE)
def test_expected_surprise_bounds_the_surprise_of_the_predictive(
    k_dim, seed, log_belief, excess, size
):
    """Jensen: E[-ln p(y)] >= -ln T(y), Eqs. (4) and (25)."""
    nw = NormalWishart.from_excess(
        torch.zeros(k_dim, dtype=torch.float64),
        random_tril(k_dim, seed=seed),
        10**log_belief,
        excess,
    )
    y = 10**size * random_normal((k_dim,), seed=seed + 5)
    assert nw.expected_log_prob(y) <= nw.predictive().log_prob(y)


@given(k_dim=DIMENSION, seed=SEEDS, n_members=st.integers(1, 6))
def test_ensemble_obeys_the_same_bounds(k_dim, seed, n_members):
    """Jensen over members, and EPKL >= 0; Eqs. (6) and (14)."""
    ensemble = random_ensemble(n_members, k_dim, seed=seed)
    y = random_normal((k_dim,), seed=seed + 5)
    assert ensemble.expected_log_prob(y) <= ensemble.predictive().log_prob(y) + 1e-12
    assert ensemble.expected_pairwise_kl() >= -1e-12


# -- extremes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_measures_and_gradients_in_float32_follow_float64_over_fourteen_decades(k_dim):
    """Belief and excess from 1e-6 to 1e8, Eqs. (33), (35), (36), (40) and (42) to (44).

    The entropy of the Normal-Wishart itself is a difference of large terms: finite is all we ask.
    """
    decades = torch.logspace(-6, 8, 15)
    belief, excess = (t.flatten() for t in torch.meshgrid(decades, decades, indexing="ij"))
    tril = random_tril(k_dim, (len(belief),), dtype=torch.float32)
    results = []
    for dtype in (torch.float32, torch.float64):
        parameters = tuple(t.to(dtype).requires_grad_() for t in (tril, belief, excess))
        loc = torch.zeros(len(belief), k_dim, dtype=dtype)
        nw = normal_wishart_of(loc, *parameters)
        measures = {
            "total": nw.predictive_entropy(),
            "data": nw.expected_entropy(),
            "mutual information": nw.mutual_information(),
            "epkl": nw.expected_pairwise_kl(),
            "logdet": nw.covariance_logdet().total,
            "trace": nw.covariance_trace().total,
            "knowledge trace": nw.covariance_trace().knowledge,
            "entropy": nw.entropy(),
        }
        found = {}
        for name, value in measures.items():
            slopes = torch.autograd.grad(
                value.sum(), parameters, retain_graph=True, materialize_grads=True
            )
            found[name] = (value, *slopes)
        results.append(found)
    single, double = results
    for name, values in single.items():
        for kind, got, expected in zip(
            ("value", "tril", "belief", "excess"), values, double[name], strict=True
        ):
            assert got.isfinite().all(), f"{name}, {kind}"
            if name == "entropy":
                continue
            error = (got.double() - expected).abs()
            # An entropy and a matrix of slopes may have zeros: there the error is absolute.
            floor = (
                1.0 if kind in ("value", "tril") and name in ("total", "data", "logdet") else 0.0
            )
            size = expected.abs()
            if kind == "tril":
                size = size.amax((-2, -1), keepdim=True).expand_as(size)
            allowed = 1e-5 * size.clamp(min=floor)
            assert (error <= allowed).all(), f"{name}, {kind}: {(error / allowed).max():.1f} times"


# -- other units and axes of the target ------------------------------------------------------------


def assert_near(actual: Tensor, expected: Tensor) -> None:
    assert_close(actual, expected, rel=1e-8, abs=1e-8)


def affine(k_dim: int, seed: int, log_size: float) -> tuple[Tensor, Tensor]:
    """A map y -> A y + b: a rotation (possibly a reflection), scaled, and a shift."""
    rotation, _ = torch.linalg.qr(random_normal((k_dim, k_dim), seed))
    shear = random_tril(k_dim, seed=seed + 2)
    return 10**log_size * rotation @ shear, 10 * random_normal((k_dim,), seed + 1)


def moved_belief(nw: NormalWishart, a: Tensor, b: Tensor) -> NormalWishart:
    inverse = torch.linalg.inv(a)
    precision = inverse.mT @ nw.mean.precision @ inverse
    tril = torch.linalg.cholesky(0.5 * (precision + precision.mT))
    return NormalWishart.from_excess(nw.loc @ a.mT + b, tril, nw.belief, nw.excess)


def moved_ensemble(ensemble: GaussianEnsemble, a: Tensor, b: Tensor) -> GaussianEnsemble:
    covariances = a @ ensemble.covariances @ a.mT
    return GaussianEnsemble(ensemble.means @ a.mT + b, 0.5 * (covariances + covariances.mT))


@settings(max_examples=20)
@given(k_dim=DIMENSION, seed=SEEDS, log_size=LOG_SIZE)
def test_belief_follows_an_affine_map_of_the_target(k_dim, seed, log_size):
    """Entropies shift by ln|A|, knowledge in nats stays, covariances become A S A'.

    Eqs. (4), (5), (6), (7), (25), (33) and (35).
    """
    nw = random_normal_wishart(k_dim, (3,), seed)
    a, b = affine(k_dim, seed, log_size)
    moved = moved_belief(nw, a, b)
    logdet = torch.linalg.slogdet(a).logabsdet
    y = random_normal((3, k_dim), seed + 5)
    image = y @ a.mT + b
    for after, before in zip(entropies(moved)[1:], entropies(nw)[1:], strict=True):
        assert_near(after, before + logdet)
    for after, before in zip(knowledge(moved), knowledge(nw), strict=True):
        assert_near(after, before)
    for after, before in zip(covariances(moved), covariances(nw), strict=True):
        assert_close(after, a @ before @ a.mT, rel=1e-7, abs=1e-7 * 10 ** (2 * log_size))
    assert_near(moved.predictive().log_prob(image), nw.predictive().log_prob(y) - logdet)
    assert_near(moved.expected_log_prob(image), nw.expected_log_prob(y) - logdet)
    after, before = moved.posterior(image, 0.7), moved_belief(nw.posterior(y, 0.7), a, b)
    assert_close(kl_divergence(after, before), torch.zeros(3), abs=1e-10)  # Eq. (9)


@settings(max_examples=20)
@given(k_dim=DIMENSION, seed=SEEDS, log_size=LOG_SIZE)
def test_divergence_does_not_see_an_affine_map_of_the_target(k_dim, seed, log_size):
    """Eqs. (27) and (28)."""
    p, q = random_normal_wishart(k_dim, (3,), seed), random_normal_wishart(k_dim, (3,), seed + 7)
    a, b = affine(k_dim, seed, log_size)
    moved = kl_divergence(moved_belief(p, a, b), moved_belief(q, a, b))
    assert_close(moved, kl_divergence(p, q), rel=1e-8)


@settings(max_examples=20)
@given(k_dim=DIMENSION, seed=SEEDS, log_size=LOG_SIZE)
def test_ensemble_follows_an_affine_map_of_the_target(k_dim, seed, log_size):
    """Eqs. (6), (7) and (14)."""
    ensemble = random_ensemble(4, k_dim, (3,), seed=seed)
    a, b = affine(k_dim, seed, log_size)
    moved = moved_ensemble(ensemble, a, b)
    logdet = torch.linalg.slogdet(a).logabsdet
    y = random_normal((3, k_dim), seed + 5)
    image = y @ a.mT + b
    assert_near(moved.expected_entropy(), ensemble.expected_entropy() + logdet)
    assert_near(moved.expected_pairwise_kl(), ensemble.expected_pairwise_kl())
    for after, before in zip(covariances(moved), covariances(ensemble), strict=True):
        assert_close(after, a @ before @ a.mT, rel=1e-7, abs=1e-7 * 10 ** (2 * log_size))
    for method in ("expected_log_prob", "moment_matched_log_prob"):
        before = getattr(ensemble, method)(y)
        assert_near(getattr(moved, method)(image), before - logdet)
    assert_near(moved.predictive().log_prob(image), ensemble.predictive().log_prob(y) - logdet)


@settings(max_examples=20)
@given(k_dim=DIMENSION, seed=SEEDS, log_size=LOG_SIZE)
def test_fit_follows_an_affine_map_of_the_target(k_dim, seed, log_size):
    """The maximum of Eq. (15) is the same belief in new units."""
    ensemble = random_ensemble(6, k_dim, (3,), seed=seed)
    a, b = affine(k_dim, seed, log_size)
    direct = NormalWishart.fit(moved_ensemble(ensemble, a, b))
    moved = moved_belief(NormalWishart.fit(ensemble), a, b)
    assert_close(kl_divergence(direct, moved), torch.zeros(3), abs=1e-9)


@given(seed=SEEDS, n_members=st.integers(2, 6), k_dim=DIMENSION)
def test_ensemble_does_not_see_the_order_of_its_members(seed, n_members, k_dim):
    """Eq. (14)."""
    ensemble = random_ensemble(n_members, k_dim, (3,), seed=seed)
    order = torch.randperm(n_members, generator=seeded(seed))
    other = GaussianEnsemble(ensemble.means[order], ensemble.covariances[order])
    assert_close(other.expected_pairwise_kl(), ensemble.expected_pairwise_kl(), rel=1e-10)
    assert_close(other.expected_entropy(), ensemble.expected_entropy(), abs=1e-12)
    for after, before in zip(covariances(other), covariances(ensemble), strict=True):
        assert_close(after, before, rel=1e-10, abs=1e-12)


def test_units_of_the_target_are_worth_their_logarithm():
    """Eq. (35), by hand: metres to kilometres takes ln 1000 nats per coordinate."""
    nw = random_normal_wishart(2)
    far = NormalWishart.from_excess(nw.loc / 1000, nw.precision_tril * 1000, nw.belief, nw.excess)
    lost = nw.expected_entropy() - far.expected_entropy()
    assert_close(lost, torch.tensor(2 * math.log(1000), dtype=torch.float64), rel=1e-12)
