"""Derivatives: per example, in forward and in reverse mode, first and second, all agree."""

from __future__ import annotations

import math

import pytest
import torch
from torch.func import grad, jacrev, jvp, vmap

from _asserts import assert_close
from _beliefs import random_normal, random_uniform
from _contract import DISTRIBUTIONS, LOSSES, answers, cast, every, points, settings, spread
from _transforms import EVERY_LOSS, EVERY_LOSS_AND_K, MAPPED, tolerance
from priornet.distributions import NormalWishart

# Other ways to build what another case builds too: left out where a test is slow.
SAME = (
    "NormalWishart",
    "Wishart",
    "GaussianEnsemble(variances)",
    "GaussianEnsemble.from_precision_tril",
)

# torch's own forward mode is written in TorchScript, which torch has deprecated.
FORWARD_MODE = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")


@EVERY_LOSS
def test_gradients_per_example_equal_autograd(case, k_dim, batch, device, dtype):
    batch = (MAPPED, *batch)
    parameters, target = (
        cast(t, device, dtype) for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    expected = torch.autograd.grad(case.call(leaves, target).sum(), list(leaves.values()))

    def total(parameters, target):
        return case.call(parameters, target).sum()

    together = grad(total)(parameters, target)
    apart = vmap(grad(total), in_dims=(case.lead, case.target_lead))(parameters, target)
    for name, value in zip(leaves, expected, strict=True):
        assert_close(together[name], value, **tolerance(dtype))
        assert_close(apart[name].movedim(0, case.lead), value, **tolerance(dtype))


@EVERY_LOSS
def test_jacrev_is_diagonal_in_the_batch(case, k_dim, batch, device, dtype):
    parameters, target = (
        cast(t, device, dtype) for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    jacobian = jacrev(case.call)(parameters, target)
    sums = grad(lambda p: case.call(p, target).sum())(parameters)
    n = math.prod(batch)
    for name, value in jacobian.items():
        shape = parameters[name].shape
        assert value.shape == (*batch, *shape)
        crossed = value.reshape(n, *shape[: case.lead], n, -1).movedim(1 + case.lead, 1)
        off = ~torch.eye(n, dtype=torch.bool, device=device)
        assert (crossed[off] == 0).all()
        assert_close(value.reshape(n, *shape).sum(0), sums[name], **tolerance(dtype))


@EVERY_LOSS_AND_K
def test_each_parameter_may_be_differentiated_by_itself(case, k_dim, batch, device, dtype):
    """First and second derivatives with everything else constant, as when a part is frozen."""
    parameters, target = (
        cast(t, device, dtype) for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    every = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    expected = torch.autograd.grad(case.call(every, target).sum(), list(every.values()))
    for (name, value), want in zip(parameters.items(), expected, strict=True):
        leaf = value.detach().requires_grad_()
        loss = case.call({**parameters, name: leaf}, target).sum()
        (first,) = torch.autograd.grad(loss, leaf, create_graph=True)
        assert_close(first, want, **tolerance(dtype))
        if first.requires_grad:
            (second,) = torch.autograd.grad(first.sum(), leaf)
            assert second.isfinite().all(), name


def along(parameters, seed):
    """A random direction in the space of all parameters."""
    return {
        name: random_normal(value.shape, seed + i).to(value)
        for i, (name, value) in enumerate(parameters.items())
    }


def inner(a, b):
    return sum((a[name] * b[name]).sum() for name in a)


@EVERY_LOSS_AND_K
def test_second_derivatives_are_symmetric(case, k_dim, batch, device):
    """u'Hv = v'Hu, reverse mode twice, for two random directions."""
    parameters, target = (
        cast(t, device, torch.float64)
        for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    gradient = grad(lambda p: case.call(p, target).sum())
    u, v = along(parameters, 200), along(parameters, 300)
    hu, hv = (grad(lambda p, d=d: inner(gradient(p), d))(parameters) for d in (u, v))
    assert all(value.isfinite().all() for value in hu.values())
    assert_close(inner(u, hv), inner(v, hu), rel=1e-8, abs=1e-9)


@FORWARD_MODE
@EVERY_LOSS_AND_K
def test_forward_mode_equals_reverse_mode(case, k_dim, batch, device):
    parameters, target = (
        cast(t, device, torch.float64)
        for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    v = along(parameters, 200)
    weights = random_uniform(0.5, 1.5, batch, 7).to(device)
    slopes = jvp(lambda p: case.call(p, target), (parameters,), (v,))[1]
    assert slopes.shape == batch
    gradient = grad(lambda p: (weights * case.call(p, target)).sum())(parameters)
    assert_close((weights * slopes).sum(), inner(gradient, v), rel=1e-9, abs=1e-9)


@FORWARD_MODE
@every(settings(LOSSES, batches=((4,),)))
def test_forward_mode_over_reverse_mode_equals_reverse_mode_twice(case, k_dim, batch, device):
    parameters, target = (
        cast(t, device, torch.float64)
        for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    v, gradient = along(parameters, 200), grad(lambda p: case.call(p, target).sum())
    found = jvp(gradient, (parameters,), (v,))[1]
    expected = grad(lambda p: inner(gradient(p), v))(parameters)
    for name, value in expected.items():
        assert_close(found[name], value, rel=1e-8, abs=1e-9)


@FORWARD_MODE
@every(spread([c for c in DISTRIBUTIONS if c.name not in SAME]))
def test_forward_mode_of_every_answer_equals_a_difference(case, k_dim, batch, device):
    parameters, at = (
        cast(t, device, torch.float64) for t in (case.draw(k_dim, batch), points(k_dim, batch))
    )
    v = along(parameters, 200)
    if case.name == "GaussianEnsemble(covariances)":  # torch differentiates within the symmetric
        v["covariances"] = v["covariances"] + v["covariances"].mT
    v = {n: d.tril() if n.endswith("_tril") else d for n, d in v.items()}

    def ask(parameters):
        return answers(case, case.build(**parameters), at)

    h = 1e-6
    up, down = (ask({n: p + s * h * v[n] for n, p in parameters.items()}) for s in (1, -1))
    for name, slope in jvp(ask, (parameters,), (v,))[1].items():
        if up[name].isfinite().all():
            assert_close(slope, (up[name] - down[name]) / (2 * h), rel=1e-5, abs=1e-6)


@FORWARD_MODE
@pytest.mark.parametrize("measure", ["mutual_information", "expected_entropy", "entropy"])
def test_directional_derivative_of_a_measure(measure, device):
    excess = torch.tensor([0.5, 3.0], dtype=torch.float64, device=device)
    one, eye = torch.ones_like(excess), torch.eye(2, dtype=torch.float64, device=device)

    def ask(excess):
        return getattr(NormalWishart.from_excess(eye[0], eye, one, excess), measure)()

    slope = jvp(ask, (excess,), (one,))[1]
    assert_close(slope, grad(lambda d: ask(d).sum())(excess), rel=1e-9)
