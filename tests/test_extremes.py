"""Extremes: belief and excess from 1e-6 to 1e8, precision factors from 1e-4 to 1e4, in float32.

Every loss and every measure must be finite there with finite gradients: Eqs. (4) to (7), (9), (11),
(15), (17), (36) and (40), arXiv:2006.11590v2. Both must agree with float64:

- values within 1e-5 relative, or 1e-5 absolute where the quantity is a logarithm that crosses zero
  (an entropy in nats is only known up to the rounding of its terms);
- gradients, parameter by parameter, within 1e-4 relative plus four times what rounding the *inputs*
  does to the exact gradient. The second part matters only next to a stationary point, where no
  float32 code can have relative precision: the zero itself moves when an input moves by one unit in
  the last place. It is measured, not guessed: the float64 gradient at two inputs one rounding away.
"""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch.distributions import kl_divergence

from _asserts import assert_close
from _beliefs import (
    DIMENSIONS,
    random_ensemble,
    random_normal,
    random_tril,
    seeded,
)
from priornet import losses
from priornet.distributions import GaussianEnsemble, NormalWishart

EVIDENCE = (1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6, 1e8)
SCALES = (1e-4, 1e-2, 1.0, 1e2, 1e4)
N = len(EVIDENCE) ** 2 * len(SCALES)
ROUNDING = 2.0**-23
TEMPERINGS = ("paper", "mean-preserving", "exact")


@cache
def grid(k_dim):
    """Parameters ``(loc, precision_tril, belief, excess)`` over the grid, exact in float32."""
    axes = (torch.tensor(EVIDENCE), torch.tensor(EVIDENCE), torch.tensor(SCALES))
    belief, excess, scale = torch.cartesian_prod(*axes).unbind(-1)
    tril = random_tril(k_dim, (N,), dtype=torch.float32) * scale[:, None, None]
    return random_normal((N, k_dim), dtype=torch.float32), tril, belief, excess


@cache
def world(k_dim, dtype):
    """Targets, a prior with evidence 1e-2 and five members, with the same numbers in any dtype."""
    y = random_normal((N, k_dim), seed=5, dtype=torch.float32).to(dtype)
    eps = torch.tensor(1e-2).to(dtype)
    zeros, eye = torch.zeros(k_dim, dtype=dtype), torch.eye(k_dim, dtype=dtype)
    prior = NormalWishart.from_excess(zeros, eye, eps, eps)
    ensemble = random_ensemble(5, k_dim, (N,), seed=7, dtype=torch.float32)
    return y, prior, GaussianEnsemble(ensemble.means.to(dtype), ensemble.covariances.to(dtype))


def _world(nw):
    return world(nw.k_dim, nw.dtype)


def _with_target(loss, **options):
    return lambda nw: loss(nw, _world(nw)[0], **options)


def _with_prior(loss, beta):
    return lambda nw: loss(nw, _world(nw)[0], _world(nw)[1], beta)


def _with_teacher(loss, **options):
    return lambda nw: loss(nw, _world(nw)[2], **options)


LOSSES = {
    **{f"reverse_kl {b:g}": _with_prior(losses.reverse_kl, b) for b in (0.0, 1.0, 100.0)},
    **{f"forward_kl {b:g}": _with_prior(losses.forward_kl, b) for b in (1.0, 100.0)},
    **{
        f"endd {kind} {t:g}": _with_teacher(losses.endd, temperature=t, tempering=kind)
        for kind in TEMPERINGS
        for t in (1.0, 10.0)
    },
    "proxy": _with_teacher(losses.proxy),
    "evidential": _with_target(losses.evidential, coefficient=0.01),
    "predictive nll": lambda nw: losses.gaussian_nll(nw.predictive(), _world(nw)[0]),
    "expected nll": lambda nw: -nw.expected_log_prob(_world(nw)[0]),
}
MEASURES = {
    "mutual_information": NormalWishart.mutual_information,
    "expected_pairwise_kl": NormalWishart.expected_pairwise_kl,
    "expected_entropy": NormalWishart.expected_entropy,
    "predictive_entropy": NormalWishart.predictive_entropy,
    "entropy of the predictive": lambda nw: nw.predictive().entropy(),
    "entropy": NormalWishart.entropy,
    "total_covariance": NormalWishart.total_covariance,
    "data_covariance": NormalWishart.data_covariance,
    "knowledge_covariance": NormalWishart.knowledge_covariance,
    **{
        f"logdet {part}": lambda nw, part=part: getattr(nw.covariance_logdet(), part)
        for part in ("total", "data", "knowledge")
    },
    **{
        f"trace {part}": lambda nw, part=part: getattr(nw.covariance_trace(), part)
        for part in ("total", "data", "knowledge")
    },
}
# Positive quantities and their sums: relative precision everywhere, no absolute floor.
NEVER_NEGATIVE = ("reverse_kl 0", "forward_kl", "proxy", "mutual", "expected_pair", "trace")


def belief(parameters, dtype=torch.float32):
    loc, tril, kappa, excess = (p.to(dtype) for p in parameters)
    return NormalWishart.from_excess(loc, tril, kappa, excess, validate_args=False)


def evaluate(function, parameters, dtype):
    """Value and gradients; a covariance is read through the sum of all its entries."""
    given = [p.to(dtype).requires_grad_() for p in parameters]
    value = function(belief(given, dtype))
    gradients = torch.autograd.grad(value.sum(), given, allow_unused=True)
    kept = [g if g is None or g.dim() < 3 else g.tril() for g in gradients]
    return value.detach(), kept


def size(x):
    """Length per grid point."""
    return x.double().reshape(N, -1).norm(dim=-1)


def nudged(parameters):
    """The inputs moved by one rounding, each up or down, two ways."""
    generator = seeded(0)
    for _ in range(2):
        yield [
            p.double() * (1 + ROUNDING * (2 * torch.randint(2, p.shape, generator=generator) - 1))
            for p in parameters
        ]


def describe(excess_error, parameters):
    worst = int(excess_error.argmax())
    _, tril, belief, excess = parameters
    return (
        f"{int((excess_error > 0).sum())} of {N} points; worst at belief {belief[worst]:g}, excess "
        f"{excess[worst]:g}, factor of size {tril[worst].norm():.1g}"
    )


def check(name, function, k_dim):
    parameters = grid(k_dim)
    value, gradients = evaluate(function, parameters, torch.float32)
    exact, exact_gradients = evaluate(function, parameters, torch.float64)
    assert value.dtype == torch.float32
    assert value.isfinite().all(), f"{name}: {(~value.isfinite()).sum()} values are not finite"
    floor = 0.0 if name.startswith(NEVER_NEGATIVE) or "covariance" in name else 1e-5
    error = size(value.double() - exact) - 1e-5 * size(exact) - floor
    assert (error <= 0).all(), f"{name}: {describe(error, parameters)}"
    # Not even rounding may turn a divergence or a variance negative.
    if name.startswith(NEVER_NEGATIVE):
        assert (value >= 0).all()
    around = [evaluate(function, p, torch.float64)[1] for p in nudged(parameters)]
    for i, parameter in enumerate(("loc", "precision_tril", "belief", "excess")):
        ours, theirs = gradients[i], exact_gradients[i]
        assert (ours is None) == (theirs is None)
        if ours is None or theirs is None:
            continue
        label = f"gradient of {name} in {parameter}"
        assert ours.isfinite().all(), f"{label}: {(~ours.isfinite()).sum()} are not finite"
        moved = torch.stack([size(other[i] - theirs) for other in around]).amax(0)
        error = size(ours.double() - theirs) - 1e-4 * size(theirs) - 4 * moved
        assert (error <= 0).all(), f"{label}: {describe(error, parameters)}"


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_loss_and_its_gradients_agree_with_float64_over_the_whole_range(name, k_dim):
    check(name, LOSSES[name], k_dim)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_measure_and_its_gradients_agree_with_float64_over_the_whole_range(name, k_dim):
    check(name, MEASURES[name], k_dim)


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_bounds_hold_over_the_whole_range(k_dim):
    # EPKL >= MI and E[-ln p] >= -ln T, up to rounding of the larger side.
    nw = belief(grid(k_dim))
    y = world(k_dim, torch.float32)[0]
    mutual_information, epkl = nw.mutual_information(), nw.expected_pairwise_kl()
    assert (epkl >= mutual_information * (1 - 1e-6)).all()
    expected, marginal = nw.expected_log_prob(y), nw.predictive().log_prob(y)
    assert (marginal >= expected - 1e-6 * (1 + expected.abs())).all()


@pytest.mark.parametrize("beta", [1.0, 100.0])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_log_evidence_agrees_with_float64_over_the_whole_range(k_dim, beta):
    # Z of Eq. (11); at beta = 1 it is the log-density of the predictive.
    def z(nw):
        return nw.log_evidence(_world(nw)[0], beta)

    value, gradients = evaluate(z, grid(k_dim), torch.float32)
    nw = belief(grid(k_dim), torch.float64)
    exact = z(nw)
    if beta == 1:
        assert_close(exact, nw.predictive().log_prob(_world(nw)[0]), rel=1e-6, abs=1e-6)
    assert all(g.isfinite().all() for g in gradients)
    error = size(value.double() - exact) - 1e-5 * size(exact) - 1e-5 * beta
    assert (error <= 0).all(), describe(error, grid(k_dim))


@pytest.mark.parametrize("beta", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_tempered_posterior_agrees_with_float64_over_the_whole_range(k_dim, beta):
    # Eq. (9)
    def after(dtype):
        nw = belief(grid(k_dim), dtype)
        return nw.posterior(_world(nw)[0], beta)

    ours, theirs = after(torch.float32), after(torch.float64)
    for name in ("loc", "precision_tril", "belief", "excess"):
        exact = getattr(theirs, name)
        error = size(getattr(ours, name).double() - exact) - 1e-5 * size(exact)
        assert (error <= 0).all(), f"{name}: {describe(error, grid(k_dim))}"


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_divergence_between_near_beliefs_keeps_its_digits(k_dim):
    # KL of beliefs that differ by one part in a thousand, from float32 parameters.
    parameters = grid(k_dim)
    near = [p * (1 + 1e-3) for p in parameters]

    def divergence(dtype):
        return kl_divergence(belief(near, dtype), belief(parameters, dtype))

    value, exact = divergence(torch.float32), divergence(torch.float64)
    assert (value > 0).all()
    assert_close(value, exact, rel=3e-4)


@pytest.mark.parametrize("agreement", [1e-1, 1e-3, 0.0])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_distillation_is_finite_whatever_the_units_and_agreement_of_the_members(k_dim, agreement):
    # Members whose parameters differ by `agreement`, in units from 1e-4 to 1e4, far from zero.
    scale = torch.tensor(SCALES)[:, None]
    n = len(SCALES)
    wiggle = agreement * random_normal((5, n, k_dim), seed=1, dtype=torch.float32)
    means = scale * (3 + wiggle)
    tril = random_tril(k_dim, (n,), dtype=torch.float32) * scale[..., None]
    covariances = (tril @ tril.mT) * (1 + wiggle[..., :1, None]).abs()
    teacher = GaussianEnsemble(means, covariances)
    for evidence in EVIDENCE:
        given = [
            3 * scale.expand(n, k_dim),
            torch.eye(k_dim) / scale[..., None],
            torch.full((n,), evidence),
            torch.full((n,), evidence),
        ]
        leaves = [p.clone().requires_grad_() for p in given]
        nw = belief(leaves)
        for loss in (losses.proxy(nw, teacher), *(
            losses.endd(nw, teacher, t, kind) for t in (1.0, 10.0) for kind in TEMPERINGS
        )):  # fmt: skip
            assert loss.isfinite().all()
            gradients = torch.autograd.grad(loss.sum(), leaves, retain_graph=True)
            assert all(g.isfinite().all() for g in gradients)
