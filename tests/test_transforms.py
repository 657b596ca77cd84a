"""torch.func and torch.compile: transforming a computation does not change what it computes."""

from __future__ import annotations

import dataclasses
import math
import shutil
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributions import kl_divergence
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    jacrev,
    jvp,
    stack_module_state,
    vmap,
)

from _asserts import assert_close
from _beliefs import (
    DIMENSIONS,
    random_normal,
    random_normal_wishart,
    random_product,
    random_uniform,
)
from _compile import compiles
from _contract import (
    BATCHES,
    DISTRIBUTIONS,
    LOSSES,
    answers,
    cast,
    points,
    select,
    settings,
    spread,
)
from priornet import losses
from priornet.distributions import GaussianEnsemble, NormalWishart, ProductNormalWishart
from priornet.nn import MLP, GaussianHead, GaussianMixtureHead, NormalWishartHead
from priornet.priors import semi_informative_prior

MAPPED = 3  # size of an axis that a transform takes away: what it leaves has each batch shape
EVERY_DISTRIBUTION = pytest.mark.parametrize(("case", "k_dim", "batch"), settings(DISTRIBUTIONS))
# Other ways to build what another case builds too: left out where a test is slow.
SAME = (
    "NormalWishart",
    "Wishart",
    "GaussianEnsemble(variances)",
    "GaussianEnsemble.from_precision_tril",
)
EVERY_LOSS = pytest.mark.parametrize(("case", "k_dim", "batch"), settings(LOSSES))
# Slower questions about a loss, whose gradients are asked for in every batch shape elsewhere.
EVERY_LOSS_AND_K = pytest.mark.parametrize(("case", "k_dim", "batch"), spread(LOSSES))
EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)
EVERY_BATCH = pytest.mark.parametrize("batch", BATCHES)


def tolerance(dtype) -> dict[str, Any]:
    return {"rel": 1e-9, "abs": 1e-10} if dtype == torch.float64 else {"rel": 1e-4, "abs": 1e-4}


# -- vmap -----------------------------------------------------------------------------------------


@EVERY_DISTRIBUTION
def test_vmap_over_the_parameters_equals_a_batch(case, k_dim, batch, device, dtype):
    batch = (MAPPED, *batch)
    parameters, at = (
        cast(t, device, dtype) for t in (case.draw(k_dim, batch), points(k_dim, batch))
    )

    def ask(parameters, at):
        return answers(case, case.build(**parameters), at)

    found = vmap(ask, in_dims=(case.lead, 0))(parameters, at)
    expected = ask(parameters, at)
    for name, value in expected.items():
        assert_close(found[name], value, **tolerance(dtype))


@pytest.mark.parametrize(
    ("case", "k_dim", "batch"), spread([c for c in DISTRIBUTIONS if not c.lead])
)
def test_vmap_over_one_parameter_equals_a_batch(case, k_dim, batch, device, dtype):
    parameters = cast(case.draw(k_dim, (MAPPED, *batch)), device, dtype)
    at = cast(points(k_dim, batch), device, dtype)
    for name, value in parameters.items():
        fixed = {n: v[0] for n, v in parameters.items() if n != name}

        def ask(one, name=name, fixed=fixed):
            return answers(case, case.build(**{name: one}, **fixed), at)

        found = vmap(ask)(value)
        for answer, expected in ask(value[-1]).items():
            assert_close(found[answer][-1], expected, **tolerance(dtype))


@EVERY_LOSS
def test_vmap_of_a_loss_equals_a_batch(case, k_dim, batch, device, dtype):
    batch = (MAPPED, *batch)
    parameters, target = (
        cast(t, device, dtype) for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    mask = (random_uniform(0.0, 1.0, batch, 5) > 0.3).to(device)
    found = vmap(case.call, in_dims=(case.lead, case.target_lead, 0))(parameters, target, mask)
    assert_close(found, case.call(parameters, target, mask), **tolerance(dtype))


@EVERY_LOSS_AND_K
def test_vmap_of_a_loss_over_one_parameter_equals_a_loop(case, k_dim, batch, device, dtype):
    batch = (2, *batch)
    parameters, target = (
        cast(t, device, dtype) for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    target = select(target, (0,), case.target_lead)
    for name, value in parameters.items():
        fixed = select({n: v for n, v in parameters.items() if n != name}, (0,), case.lead)

        def loss(one, name=name, fixed=fixed):
            return case.call({name: one, **fixed}, target)

        found = vmap(loss, in_dims=case.lead)(value)
        expected = torch.stack([loss(one) for one in value.unbind(case.lead)])
        assert_close(found, expected, **tolerance(dtype))


@EVERY_BATCH
@EVERY_K
@pytest.mark.parametrize("name", ["NormalWishart", "ProductNormalWishart", "Wishart"])
def test_vmap_of_a_divergence_equals_a_batch(name, k_dim, batch, device, dtype):
    case = next(c for c in DISTRIBUTIONS if c.name == name)
    prior = case.make(k_dim, (), device, dtype)
    parameters = cast(case.draw(k_dim, (MAPPED, *batch)), device, dtype)

    def kl(parameters):
        return kl_divergence(case.build(**parameters), prior)

    assert_close(vmap(kl)(parameters), kl(parameters), **tolerance(dtype))


@EVERY_BATCH
@EVERY_K
def test_vmap_of_the_fit_and_the_prior_equals_a_loop(k_dim, batch, device, dtype):
    case = next(c for c in DISTRIBUTIONS if c.name == "GaussianEnsemble(covariances)")
    parameters = cast(case.draw(k_dim, (MAPPED, *batch)), device, dtype)
    y = cast(points(k_dim, (MAPPED, 9)), device, dtype)["y"]

    def fit(parameters, y):
        fitted = NormalWishart.fit(GaussianEnsemble(**parameters))
        prior = semi_informative_prior(y, match="variance")
        return fitted.excess, fitted.precision_tril, prior.loc, prior.precision_tril

    found = vmap(fit, in_dims=(1, 0))(parameters, y)
    for row in range(MAPPED):
        for value, expected in zip(found, fit(select(parameters, (row,), 1), y[row]), strict=True):
            assert_close(value[row], expected, **tolerance(dtype))


@pytest.mark.parametrize(
    ("case", "k_dim", "batch"), settings([c for c in DISTRIBUTIONS if "Ensemble" not in c.name])
)
@pytest.mark.filterwarnings(
    "ignore:There is a performance drop because we have not yet implemented"
)
def test_draws_differ_under_vmap(case, k_dim, batch, device, dtype):
    parameters = cast(case.draw(k_dim, batch), device, dtype)
    repeated = {
        n: v.unsqueeze(case.lead).expand(*v.shape[: case.lead], 64, *v.shape[case.lead :])
        for n, v in parameters.items()
    }
    draw = vmap(
        lambda p: case.sample(case.build(**p), (3,)), in_dims=case.lead, randomness="different"
    )
    draws = draw(repeated)
    for value, event in zip(
        draws if isinstance(draws, tuple) else (draws,), case.sample_events(k_dim), strict=True
    ):
        assert value.shape == (64, 3, *batch, *event)
        assert value.isfinite().all()
        assert len(value.reshape(64 * 3, -1)[:, 0].unique()) > 100


# torch's own forward mode is written in TorchScript, which torch has deprecated.
FORWARD_MODE = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

# -- derivatives ----------------------------------------------------------------------------------


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
@pytest.mark.parametrize(("case", "k_dim", "batch"), settings(LOSSES, batches=((4,),)))
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
@pytest.mark.parametrize(
    ("case", "k_dim", "batch"), spread([c for c in DISTRIBUTIONS if c.name not in SAME])
)
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


# -- heads ----------------------------------------------------------------------------------------

MODELS = {
    "gaussian": lambda k: nn.Sequential(MLP(3, 8), GaussianHead(8, k, init_gain=1.0)),
    "nw": lambda k: nn.Sequential(MLP(3, 8), NormalWishartHead(8, k, init_gain=1.0)),
    "diagonal": lambda k: nn.Sequential(
        MLP(3, 8), NormalWishartHead(8, k, covariance="diagonal", init_gain=1.0)
    ),
    "mixture": lambda k: nn.Sequential(
        MLP(3, 8), GaussianMixtureHead(8, k, n_members=3, init_gain=1.0)
    ),
}


@EVERY_BATCH
@EVERY_K
@pytest.mark.parametrize("name", list(MODELS))
def test_stacked_models_equal_a_loop(name, k_dim, batch, device, dtype):
    """An ensemble trained as one: vmap of functional_call over stacked weights."""
    models = [MODELS[name](k_dim).to(device, dtype) for _ in range(3)]
    weights, buffers = stack_module_state(models)
    x = random_normal((*batch, 3)).to(device, dtype)

    def measures(weights, buffers):
        out = functional_call(models[0], (weights, buffers), (x,))
        return out.expected_entropy(), out.total_covariance(), out.expected_pairwise_kl()

    found = vmap(measures)(weights, buffers)
    for row, model in enumerate(models):
        out = model(x)
        expected = (out.expected_entropy(), out.total_covariance(), out.expected_pairwise_kl())
        for value, want in zip(found, expected, strict=True):
            assert_close(value[row].detach(), want.detach(), **tolerance(dtype))


@EVERY_BATCH
@EVERY_K
def test_stacked_training_steps_equal_a_loop(k_dim, batch, device, dtype):
    models = [MODELS["nw"](k_dim).to(device, dtype) for _ in range(3)]
    weights, buffers = stack_module_state(models)
    x, y = (random_normal((*batch, n), n).to(device, dtype) for n in (3, k_dim))
    eye = torch.eye(k_dim, device=device, dtype=dtype)
    prior = NormalWishart.from_excess(torch.zeros_like(eye[0]), eye, 0.1, 0.1)

    def loss(weights, buffers):
        out = functional_call(models[0], (weights, buffers), (x,))
        return losses.reverse_kl(out, y, prior, beta=3.0).mean()

    gradients, values = vmap(grad_and_value(loss))(weights, buffers)
    for row, model in enumerate(models):
        expected = losses.reverse_kl(model(x), y, prior, beta=3.0).mean()
        expected.backward()
        assert_close(values[row].detach(), expected.detach(), **tolerance(dtype))
        for key, parameter in model.named_parameters():
            assert_close(gradients[key][row].detach(), parameter.grad, **tolerance(dtype))


# -- compile --------------------------------------------------------------------------------------

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
        value, gradients = _gradients(step, model, x)
        found, found_gradients = _gradients(compiled, model, x)
        assert_close(found, value, rel=1e-5, abs=1e-6)
        for one, two in zip(found_gradients, gradients, strict=True):
            assert_close(one, two, rel=1e-3, abs=1e-5)
    assert len(compilations) == 1, "compiled again for the same shapes"


# Tracing takes seconds. It sees a batch by its number of axes, and the algebra goes three ways:
# numbers at K = 1, loops written out up to K = 3, matrices beyond. Each way with one batch shape,
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
        value, gradients = _gradients(step, model, x)
        found, found_gradients = _gradients(compiled, model, x)
        assert_close(found, value, rel=1e-5, abs=1e-6)
        for one, two in zip(found_gradients, gradients, strict=True):
            assert_close(one, two, rel=1e-3, abs=1e-5)
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
    """Every answer at K = 1; beyond, what the record of uncertainty and a likelihood need."""
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
