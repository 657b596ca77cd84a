"""torch.compile: training steps, draws and measures become one graph that computes the same."""

from __future__ import annotations

import dataclasses
import shutil
from typing import Any

import pytest
import torch
from torch.distributions import kl_divergence

from _asserts import assert_close
from _beliefs import random_normal, random_normal_wishart, random_product, random_uniform
from _compile import compiles
from _contract import BATCHES, DISTRIBUTIONS, answers, cast, points
from _transforms import MODELS
from priornet import losses
from priornet.distributions import GaussianEnsemble, NormalWishart, ProductNormalWishart

needs_compiler = pytest.mark.skipif(
    not (shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")),
    reason="torch.compile needs a C++ compiler",
)


def _teacher(k_dim, batch, device):
    means = random_normal((3, *batch, k_dim), 1, torch.float32).to(device)
    variances = random_uniform(0.5, 1.5, (3, *batch, k_dim), 2, torch.float32).to(device)
    return means, variances if k_dim == 1 else torch.diag_embed(variances)


def _steps(k_dim, batch, device) -> dict[str, Any]:
    """A forward pass per loss, as a training loop would write it, from tensors alone."""
    y = random_normal((*batch, k_dim), 3, torch.float32).to(device)
    means, covariances = _teacher(k_dim, batch, device)
    eye = torch.eye(k_dim, device=device)

    def prior():
        return NormalWishart.from_excess(torch.zeros_like(eye[0]), eye, 0.1, 0.1)

    def product_prior():
        one = torch.ones_like(eye[0])
        return ProductNormalWishart(0 * one, one, 0.1 * one, 0.1 * one)

    def teacher():
        return GaussianEnsemble(means, covariances)

    def diagonal_teacher():
        return GaussianEnsemble(means, covariances.diagonal(dim1=-2, dim2=-1))

    steps = {
        "gaussian_nll": ("gaussian", lambda out: losses.gaussian_nll(out, y)),
        "beta_nll": ("gaussian", lambda out: losses.beta_nll(out, y)),
        "end": ("gaussian", lambda out: losses.end(out, teacher())),
        "reverse_kl": ("nw", lambda out: losses.reverse_kl(out, y, prior(), beta=3.0)),
        "forward_kl": ("nw", lambda out: losses.forward_kl(out, y, prior(), beta=3.0)),
        "endd": ("nw", lambda out: losses.endd(out, teacher(), 5.0, "exact")),
        "proxy": ("nw", lambda out: losses.proxy(out, teacher())),
        "md_end": ("mixture", lambda out: losses.md_end(out, teacher())),
        "evidential": ("nw", lambda out: losses.evidential(out, y, coefficient=0.1)),
    }
    if k_dim > 1:
        steps["reverse_kl-product"] = (
            "diagonal",
            lambda out: losses.reverse_kl(out, y, product_prior(), beta=3.0),
        )
        steps["endd-product"] = ("diagonal", lambda out: losses.endd(out, diagonal_teacher(), 5.0))
    return steps


def _gradients(step, model, x):
    model.zero_grad()
    loss = step(x)
    loss.backward()
    return loss.detach(), [parameter.grad.clone() for parameter in model.parameters()]


def _assert_same_step(compiled, step, model, x):
    value, gradients = _gradients(step, model, x)
    found, found_gradients = _gradients(compiled, model, x)
    assert_close(found, value, rel=1e-5, abs=1e-6)
    for one, two in zip(found_gradients, gradients, strict=True):
        assert_close(one, two, rel=1e-3, abs=1e-5)


def _forget_graphs():
    """Graphs made before are gone; what torch remembers of divergences is there from the start."""
    torch._dynamo.reset()
    for belief in (random_normal_wishart(1), random_product(1)):
        kl_divergence(belief, belief)


def _check_compiled(name, k_dim, batch, device, backend):
    _forget_graphs()
    kind, loss = _steps(k_dim, batch, device)[name]
    model = MODELS[kind](k_dim).to(device)
    compilations = []

    def counting(graph, inputs):
        compilations.append(1)
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    def step(x):
        return loss(model(x)).mean()

    compiled = torch.compile(step, fullgraph=True, backend=counting)
    for seed in range(3):
        x = random_normal((*batch, 3), seed, torch.float32).to(device)
        _assert_same_step(compiled, step, model, x)
    assert len(compilations) == 1, "compiled again for the same shapes"


# Tracing takes seconds. It sees a batch by its number of axes, and the algebra goes three ways:
# numbers at K = 1, loops written out up to K = 3, then matrices. Each way with one batch shape,
# so that every way and every batch shape is traced for every loss.
TRACED = dict(zip((1, 3, 5), BATCHES, strict=True))
EVERY_WAY = pytest.mark.parametrize("k_dim", TRACED)


@compiles
@pytest.mark.parametrize(
    ("name", "k_dim"), [(name, k) for k in TRACED for name in _steps(k, (), "cpu")]
)
def test_a_training_step_is_one_graph(name, k_dim, device):
    _check_compiled(name, k_dim, TRACED[k_dim], device, "eager")


@compiles
@pytest.mark.parametrize(
    ("k_dim", "dtype"),  # the dtype decides about terms of series only, whatever K is
    [(1, torch.float32), (1, torch.float64), (3, torch.float64), (5, torch.float32)],
    ids=str,
)
def test_one_graph_serves_every_batch_size(k_dim, dtype, device):
    """Eq. (11) with ``dynamic=True``, which turns numbers into inputs too."""
    _forget_graphs()
    model = MODELS["nw"](k_dim).to(device, dtype)
    eye = torch.eye(k_dim, device=device, dtype=dtype)
    compilations = []

    def counting(graph, inputs):
        compilations.append(1)
        return graph

    def step(x):
        prior = NormalWishart.from_excess(torch.zeros_like(eye[0]), eye, 0.1, 0.1)
        return losses.reverse_kl(model(x), x[..., :1].expand(-1, k_dim), prior, beta=3.0).mean()

    compiled = torch.compile(step, fullgraph=True, dynamic=True, backend=counting)
    for size in (4, 7, 30):
        x = random_normal((size, 3), size, dtype).to(device)
        _assert_same_step(compiled, step, model, x)
    assert len(compilations) == 1, "compiled again for another batch size"


@compiles
@needs_compiler
@pytest.mark.parametrize(("name", "k_dim"), [("endd", 1), ("reverse_kl", 1)])
def test_a_compiled_training_step_equals_eager(name, k_dim, device):
    _check_compiled(name, k_dim, (4,), device, "inductor")


@compiles
@EVERY_WAY
@pytest.mark.parametrize("name", ["NormalWishart", "MultivariateStudentT", "GaussianMixture"])
def test_draws_compile_into_one_graph(name, k_dim, device):
    """One graph for every batch shape."""
    torch._dynamo.reset()
    case = next(c for c in DISTRIBUTIONS if c.name == name)
    parameters = [cast(case.draw(k_dim, batch), device, torch.float32) for batch in BATCHES]

    @torch.compile(fullgraph=True, backend="eager")
    def draw(parameters):
        return [case.sample(case.build(**p), (3,)) for p in parameters]

    for batch, draws in zip(BATCHES, draw(parameters), strict=True):
        values = draws if isinstance(draws, tuple) else (draws,)
        for value, event in zip(values, case.sample_events(k_dim), strict=True):
            assert value.shape == (3, *batch, *event)
            assert value.isfinite().all()


@compiles
@EVERY_WAY
@pytest.mark.parametrize("name", ["NormalWishart", "GaussianEnsemble(covariances)"])
def test_measures_compile_into_one_graph(name, k_dim, device):
    """Every answer at K = 1; above, what the record of uncertainty and a likelihood need."""
    torch._dynamo.reset()
    case = next(c for c in DISTRIBUTIONS if c.name == name)
    batch = TRACED[k_dim]
    wanted = ("mutual_information()", "expected_", "total_cov", "knowledge_cov", "predictive.log")
    queries = {n: q for n, q in case.queries.items() if k_dim == 1 or n.startswith(wanted)}
    case = dataclasses.replace(case, queries=queries)
    parameters, at = (
        cast(t, device, torch.float32) for t in (case.draw(k_dim, batch), points(k_dim, batch))
    )

    def ask(parameters, at):
        return answers(case, case.build(**parameters), at)

    compiled = torch.compile(ask, fullgraph=True, backend="eager")
    expected = ask(parameters, at)
    for key, value in compiled(parameters, at).items():
        assert_close(value, expected[key], rel=1e-4, abs=1e-5)
