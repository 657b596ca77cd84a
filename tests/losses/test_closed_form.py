"""Closed-form losses at K = 1 against their composed formulas: values, gradients, borders.

Eqs. (11), (12), (13), (15) to (17), (19), (21), (27) and (28), arXiv:2006.11590v2.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from _asserts import assert_close
from _beliefs import random_ensemble, random_normal, random_normal_wishart
from priornet import losses
from priornet.distributions import (
    Gaussian,
    GaussianEnsemble,
    NormalWishart,
    covariance_averages,
    precision_averages,
)
from priornet.losses import _closed_form as module
from priornet.special import elementwise

S, B = 3, 4
BATCH = (S, B)
M = 5


def build(loc, tril, belief, excess):
    return NormalWishart.from_excess(loc, tril, belief, excess)


def column(values, dtype=torch.float64):
    """A setting per network, (S, 1)."""
    return torch.tensor(values, dtype=dtype).unsqueeze(-1)


def prior(batch, dtype=torch.float64):
    nw = random_normal_wishart(1, batch, seed=3)
    return build(*(p.to(dtype) for p in (nw.loc, nw.precision_tril, nw.belief, nw.excess)))


def ensemble(dtype=torch.float64):
    e = random_ensemble(M, 1, BATCH, seed=7)
    return GaussianEnsemble(e.means.to(dtype), e.covariances.to(dtype))


def target(dtype=torch.float64):
    return random_normal((*BATCH, 1), seed=5).to(dtype)


def _reverse_kl(batch, beta):
    def loss(*p):
        dtype = p[0].dtype
        weight = beta.to(p[0]) if isinstance(beta, torch.Tensor) else beta
        y = None if isinstance(beta, float) and beta == 0 else target(dtype)
        return losses.reverse_kl(build(*p), y, prior(batch, dtype), weight)

    return loss


def _endd(temperature, tempering: Any = "paper", averages=False):
    def loss(*p):
        teacher = ensemble(p[0].dtype)
        t = temperature.to(p[0]) if isinstance(temperature, torch.Tensor) else temperature
        given = precision_averages(teacher, t) if averages else teacher
        return losses.endd(build(*p), given, t, tempering)

    return loss


def _heads(loc, tril):
    lead = (M, *loc.shape)
    return GaussianEnsemble.from_precision_tril(loc.expand(lead), tril.expand((*lead, 1)))


BETAS, TEMPERATURES = column([0.0, 1.0, 30.0]), column([1.0, 2.0, 10.0])
TEMPERINGS = ("paper", "mean-preserving", "exact")
LOSSES = {
    "gaussian_nll": lambda loc, c: losses.gaussian_nll(Gaussian(loc, c), target(loc.dtype)),
    "end": lambda loc, c: losses.end(Gaussian(loc, c), ensemble(loc.dtype)),
    "end averages": lambda loc, c: losses.end(
        Gaussian(loc, c), covariance_averages(ensemble(loc.dtype))
    ),
    "md_end": lambda loc, c: losses.md_end(_heads(loc, c), ensemble(loc.dtype)),
    "reverse_kl": _reverse_kl((), 2.0),
    "reverse_kl beta 0": _reverse_kl((), 0.0),
    "reverse_kl prior per network": _reverse_kl((S, 1), 2.0),
    "reverse_kl prior per element": _reverse_kl(BATCH, 2.0),
    "reverse_kl beta per network": _reverse_kl((S, 1), BETAS),
    "proxy": lambda *p: losses.proxy(build(*p), prior(BATCH, p[0].dtype)),
    "evidential": lambda *p: losses.evidential(build(*p), target(p[0].dtype), 0.1),
    "evidential per network": lambda *p: losses.evidential(
        build(*p), target(p[0].dtype), BETAS.to(p[0])
    ),
    "endd": _endd(1.0),
    "endd averages": _endd(1.0, averages=True),
    **{f"endd {k} {t:g}": _endd(t, k) for k in TEMPERINGS for t in (1.0, 5.0)},
    **{f"endd {k} per network": _endd(TEMPERATURES, k) for k in TEMPERINGS},
    "endd averages per network": _endd(TEMPERATURES, averages=True),
}


def leaves(name, dtype=torch.float64, batch=BATCH):
    nw = random_normal_wishart(1, batch)
    parts = (nw.loc, nw.precision_tril, nw.belief, nw.excess)
    count = 2 if name.startswith(("gaussian", "end ", "md_end")) or name == "end" else 4
    return tuple(p.detach().to(dtype).clone().requires_grad_() for p in parts[:count])


def evaluate(name, inputs, weights=None):
    loss = LOSSES[name](*inputs)
    weights = torch.ones_like(loss) if weights is None else weights
    return [loss, *torch.autograd.grad(loss, inputs, weights)]


@pytest.fixture
def composed(monkeypatch):
    """Losses from here on by their composed formulas."""

    def switch():
        monkeypatch.setattr(module, "values_visible", lambda *tensors: False)

    return switch


@pytest.mark.parametrize("name", LOSSES)
def test_value_and_gradients_equal_those_of_the_composed_formula(name, composed):
    weights = random_normal(BATCH, seed=9)
    found = evaluate(name, leaves(name), weights)
    assert type(found[0].grad_fn).__name__ in ("_ClosedFormBackward", "MeanBackward1")
    composed()
    expected = evaluate(name, leaves(name), weights)
    assert type(expected[0].grad_fn).__name__ != "_ClosedFormBackward"
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("name", LOSSES)
def test_float32_agrees_with_float64(name):
    exact = leaves(name, torch.float32)
    found = evaluate(name, exact)
    expected = evaluate(name, tuple(p.detach().double().requires_grad_() for p in exact))
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == torch.float32
        assert_close(a, b, rel=2e-5, abs=2e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_first_and_second_derivatives(name):
    inputs = leaves(name)
    assert gradcheck(LOSSES[name], inputs, fast_mode=True)
    assert gradgradcheck(LOSSES[name], inputs, fast_mode=True)


@pytest.mark.parametrize("name", LOSSES)
def test_pieces_make_no_difference(name, monkeypatch):
    whole = evaluate(name, leaves(name))
    monkeypatch.setattr(elementwise, "_PER_THREAD", 20)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    calls = []
    original = elementwise.cache_pieces

    def counting(*given):
        found = list(original(*given))
        calls.append(len(found))
        return iter(found)

    monkeypatch.setattr(module, "cache_pieces", counting)
    for a, b in zip(evaluate(name, leaves(name)), whole, strict=True):
        assert_close(a, b, rel=1e-13)
    if whole[0].device.type == "cpu":  # an accelerator has no such cache
        assert max(calls) > 1


@pytest.mark.parametrize("name", LOSSES)
def test_a_retained_graph_gives_the_same_gradients_again(name):
    """The first backward pass scales the stored gradients in place and gives them away."""
    inputs = leaves(name)
    loss = LOSSES[name](*inputs)
    first = torch.autograd.grad(loss.sum(), inputs, retain_graph=True)
    kept = [g.clone() for g in first]
    second = torch.autograd.grad((2 * loss).sum(), inputs, retain_graph=True)
    third = torch.autograd.grad(loss.sum(), inputs)
    for before, now, twice, again in zip(kept, first, second, third, strict=True):
        assert_close(now, before, rel=0.0)
        assert_close(twice, 2 * before, rel=1e-14)
        assert_close(again, before, rel=1e-14)


@pytest.mark.parametrize("name", LOSSES)
def test_accumulating_gradients_does_not_touch_what_was_given_away(name):
    inputs = leaves(name)
    for _ in range(3):
        LOSSES[name](*inputs).sum().backward()
    expected = torch.autograd.grad(LOSSES[name](*inputs).sum(), inputs)
    for leaf, one in zip(inputs, expected, strict=True):
        assert leaf.grad is not None
        assert_close(leaf.grad, 3 * one, rel=1e-13)


def test_non_contiguous_parameters_are_read_in_their_own_order():
    whole = leaves("reverse_kl")
    transposed = tuple(
        p.detach().transpose(0, 1).contiguous().transpose(0, 1).requires_grad_() for p in whole
    )
    assert not transposed[2].is_contiguous()
    for name in ("reverse_kl prior per network", "endd", "evidential per network"):
        found, expected = evaluate(name, transposed), evaluate(name, whole)
        for a, b in zip(found, expected, strict=True):
            assert_close(a, b, rel=1e-13)


def test_a_prior_and_a_target_that_want_gradients_get_them():
    q = random_normal_wishart(1, BATCH)
    loc, tril, belief, excess = (
        p.detach().clone().requires_grad_()
        for p in (lambda n: (n.loc, n.precision_tril, n.belief, n.excess))(
            random_normal_wishart(1, seed=3)
        )
    )
    y, beta = target().requires_grad_(), column([1.0, 2.0, 3.0]).requires_grad_()

    def loss(loc, tril, belief, excess, y, beta):
        return losses.reverse_kl(q, y, build(loc, tril, belief, excess), beta)

    assert gradcheck(loss, (loc, tril, belief, excess, y, beta), fast_mode=True)


@pytest.mark.parametrize("excess", [-1.9, -1.0, -0.1])
def test_improper_variances_are_no_border(excess):
    """An excess below 0 is a proper belief whose variance is infinite."""
    loc, tril, belief, _ = leaves("reverse_kl", torch.float32)
    given = (loc, tril, belief, torch.full(BATCH, excess, requires_grad=True))
    for name in ("reverse_kl", "reverse_kl beta 0", "evidential", "endd", "proxy"):
        found = evaluate(name, given)
        expected = evaluate(name, tuple(p.detach().double().requires_grad_() for p in given))
        for a, b in zip(found, expected, strict=True):
            assert_close(a, b, rel=2e-5, abs=2e-5)


def test_a_kernel_gives_its_gradient_away_once():
    parameters = [
        p.requires_grad_()
        for p in (random_normal((*BATCH, 1), seed=1), 1 + random_normal((*BATCH, 1, 1), 2) ** 2)
    ]
    gaussian = Gaussian(parameters[0], parameters[1])
    expected = torch.autograd.grad(losses.gaussian_nll(gaussian, target()).sum(), parameters)
    loss = losses.gaussian_nll(gaussian, target())
    found = module.kernel_gradient(loss, gaussian)
    assert found is not None
    assert_close(found, torch.cat([g.reshape(*BATCH, 1) for g in expected], -1), rel=1e-14)
    assert module.kernel_gradient(loss, gaussian) is None
    # Autograd asked afterwards gets what it always gets.
    for again, first in zip(torch.autograd.grad(loss.sum(), parameters), expected, strict=True):
        assert_close(again, first, rel=1e-14)


def test_a_kernel_does_not_speak_for_another_prediction():
    loc, tril = random_normal((*BATCH, 1), seed=1), torch.ones(*BATCH, 1, 1, dtype=torch.float64)
    judged, other = (Gaussian(loc.clone().requires_grad_(), tril) for _ in range(2))
    loss = losses.gaussian_nll(judged, target())
    assert module.kernel_gradient(loss, other) is None
    assert module.kernel_gradient(loss + 0.0, judged) is None
    assert module.kernel_gradient(loss.detach(), judged) is None
