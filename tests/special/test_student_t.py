"""Student-T probabilities and quantiles against mpmath, scipy, closed forms and limits."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special as scipy_special
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from _asserts import assert_close
from _beliefs import seeded
from _compile import compiles
from priornet.special import student_t
from priornet.special.student_t import student_t_cdf, student_t_icdf

DF = (0.01, 0.05, 0.3, 0.7, 1.0, 1.5, 2.5, 4.0, 9.0, 30.0, 300.0, 1e5, 1e8)
T = (1e-7, 1e-3, 0.05, 0.4, 0.9, 1.1, 1.7, 3.0, 6.0, 11.0, 40.0, 1e3, 1e8)
P = (1e-30, 1e-15, 1e-6, 1e-3, 0.025, 0.2, 0.4, 0.49, 0.4999, 0.5 - 1e-9)


def grid(*axes, dtype=torch.float64) -> tuple[Tensor, ...]:
    """Every combination of the values, one flat tensor for each axis."""
    mesh = torch.meshgrid(*(torch.tensor(a, dtype=dtype) for a in axes), indexing="ij")
    return tuple(m.flatten() for m in mesh)


def exact_tail(t, df):
    """P(T > t) for t > 0 from mpmath's incomplete beta function."""
    with mpmath.workdps(60 if t < 12 else 400):  # 1 - P loses as many digits as the tail is small
        t, df = mpmath.mpf(t), mpmath.mpf(df)
        square = t * t
        if square > df:
            return mpmath.betainc(df / 2, 0.5, 0, df / (df + square), regularized=True) / 2
        return (1 - mpmath.betainc(0.5, df / 2, 0, square / (df + square), regularized=True)) / 2


def exact_density(t, df):
    t, df = mpmath.mpf(t), mpmath.mpf(df)
    log_scale = mpmath.loggamma((df + 1) / 2) - mpmath.loggamma(df / 2)
    return mpmath.exp(log_scale - (df + 1) / 2 * mpmath.log1p(t * t / df)) / mpmath.sqrt(
        mpmath.pi * df
    )


def relative(actual: Tensor, exact: list) -> Tensor:
    errors = [abs(mpmath.mpf(a) / e - 1) for a, e in zip(actual.tolist(), exact, strict=True)]
    return torch.tensor([float(e) for e in errors], dtype=torch.float64)


def live(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(x.clone().requires_grad_() for x in tensors)


def gradients(function, x: Tensor, df: Tensor) -> tuple[Tensor, ...]:
    """The value, and the gradient of its sum in both arguments."""
    x, df = live(x, df)
    value = function(x, df)
    return value.detach(), *torch.autograd.grad(value.sum(), (x, df))


@pytest.fixture(scope="module", autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


# Values


def test_lower_tail_matches_mpmath_relatively():
    t, df = grid(T, DF)
    keep = (t * t < 1300) | (df < 50)  # above 1e-300
    t, df = t[keep], df[keep]
    exact = [exact_tail(*pair) for pair in zip(t.tolist(), df.tolist(), strict=True)]
    assert min(exact) > mpmath.mpf("1e-300")
    assert relative(student_t_cdf(-t, df), exact).max() < 3e-13


def test_cdf_matches_scipy():
    generator = seeded(0)
    df = 10 ** (torch.rand(5000, generator=generator, dtype=torch.float64) * 5 - 1)
    t = torch.randn(5000, generator=generator, dtype=torch.float64) * 4
    exact = scipy_special.stdtr(df.numpy(force=True), t.numpy(force=True))
    assert_close(student_t_cdf(t, df), exact, rel=1e-11)


def test_quantile_matches_scipy():
    p, df = grid([1e-8, 1e-4, 0.01, 0.2, 0.45, 0.55, 0.9, 0.999], [0.5, 1.0, 2.0, 3.7, 20.0, 1e4])
    exact = scipy_special.stdtrit(df.numpy(force=True), p.numpy(force=True))
    assert_close(student_t_icdf(p, df), exact, rel=1e-9)


def test_quantile_solves_the_equation_in_mpmath():
    p, df = grid(P, DF)
    t = -student_t_icdf(p, df)
    finite = t < 1e300
    assert (p[~finite] ** (-1 / df[~finite]) > 1e290).all()  # only true overflow is infinite
    for p_, df_, t_ in zip(*(x[finite].tolist() for x in (p, df, t)), strict=True):
        error = (exact_tail(t_, df_) - mpmath.mpf(p_)) / exact_density(t_, df_) / t_
        assert abs(error) < 1e-14 * max(5, 40 / df_), (p_, df_)


def test_cauchy_closed_form():
    t = torch.linspace(-30, 30, 61, dtype=torch.float64)
    one = torch.ones_like(t)
    assert_close(student_t_cdf(t, one), torch.atan2(one, -t) / math.pi, rel=1e-14)
    p = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)
    assert_close(student_t_icdf(p, one[:50]), -1 / torch.tan(math.pi * p), rel=1e-13)


def test_two_degrees_closed_form():
    t = torch.linspace(-9, 9, 37, dtype=torch.float64)
    two = torch.full_like(t, 2.0)
    root = torch.sqrt(2 + t * t)
    assert_close(student_t_cdf(t, two), 1 / (root * (root - t)), rel=1e-14)
    p = torch.linspace(0.02, 0.98, 37, dtype=torch.float64)
    assert_close(student_t_icdf(p, two), (2 * p - 1) / torch.sqrt(2 * p * (1 - p)), rel=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_infinite_degrees_give_the_normal(dtype):
    t = torch.linspace(-5, 5, 41, dtype=dtype)
    df = torch.tensor(torch.inf, dtype=dtype)
    rel = 1e-13 if dtype == torch.float64 else 1e-5
    assert_close(student_t_cdf(t, df), scipy_special.ndtr(t.double().numpy(force=True)), rel=rel)
    p = torch.tensor([1e-12, 1e-4, 0.3, 0.5, 0.8], dtype=dtype)
    assert_close(student_t_icdf(p, df), scipy_special.ndtri(p.double().numpy(force=True)), rel=rel)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_edges_are_exact(dtype):
    df = torch.tensor([0.01, 1.0, 7.0, 1e8, torch.inf], dtype=dtype)
    for p, t in ((0.0, -torch.inf), (0.5, 0.0), (1.0, torch.inf)):
        assert (student_t_icdf(torch.full_like(df, p), df) == t).all()
        assert (student_t_cdf(torch.full_like(df, t), df) == p).all()
    for p in (-0.1, 1.1, torch.nan):
        assert student_t_icdf(torch.full_like(df, p), df).isnan().all()
    assert student_t_cdf(torch.full_like(df, torch.nan), df).isnan().all()


# Invariances


@given(st.floats(-1e6, 1e6), st.floats(-2, 8))
def test_reflection(t, log_df):
    pair = torch.tensor([t, -t], dtype=torch.float64)
    below, above = student_t_cdf(pair, torch.tensor(10.0**log_df, dtype=torch.float64))
    assert abs(below + above - 1) < 1e-15


@given(st.floats(1e-30, 0.5), st.floats(-1, 8))
def test_round_trip_from_probability(p, log_df):
    p = torch.tensor(p, dtype=torch.float64)
    df = torch.tensor(10.0**log_df, dtype=torch.float64)
    assert_close(student_t_cdf(student_t_icdf(p, df), df), p, rel=1e-12)


@given(st.floats(-30, 0), st.floats(-1, 4))
def test_round_trip_from_value(t, log_df):
    t = torch.tensor(t, dtype=torch.float64)
    df = torch.tensor(10.0**log_df, dtype=torch.float64)
    # Near 0 the probability 1/2 has no room for the digits of t.
    assert_close(student_t_icdf(student_t_cdf(t, df), df), t, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("df", DF)
def test_cdf_increases_across_the_seam_of_the_two_integrals(df):
    edge = math.sqrt(df * math.expm1(min(0.5, 1 / df)))
    t = torch.linspace(-1.01, -0.99, 201, dtype=torch.float64) * edge
    cdf = student_t_cdf(t, torch.tensor(df, dtype=torch.float64))
    assert (cdf.diff() > 0).all()
    assert (cdf.diff().diff().abs() < 2e-3 * cdf.diff().max()).all()


def test_broadcasting_and_reduction_of_gradients():
    t = torch.randn(4, 1, 3, dtype=torch.float64, generator=seeded(1))
    df = torch.tensor([[2.0], [5.0]], dtype=torch.float64)
    value, grad_t, grad_df = gradients(student_t_cdf, t, df)
    assert value.shape == (4, 2, 3)
    assert (grad_t.shape, grad_df.shape) == (t.shape, df.shape)
    assert_close(value, student_t_cdf(*(x.contiguous() for x in torch.broadcast_tensors(t, df))))


def test_many_elements_agree_with_few():
    t, df = grid(torch.linspace(-8, 8, 60).tolist(), torch.logspace(-2, 6, 50).tolist())
    assert t.numel() > student_t._FEW
    few = [
        gradients(student_t_cdf, *pair) for pair in zip(t.split(500), df.split(500), strict=True)
    ]
    for many, parts in zip(gradients(student_t_cdf, t, df), zip(*few, strict=True), strict=True):
        assert_close(many, torch.cat(parts), rel=1e-12)


# Gradients


def test_slope_in_df_matches_mpmath():
    t, df = grid((1e-7, 0.05, 0.7, 1.1, 3.0, 8.0), DF)
    exact = []
    for t_, df_ in zip(t.tolist(), df.tolist(), strict=True):
        step = mpmath.mpf(df_) * mpmath.mpf(10) ** -12
        rise = exact_tail(t_, df_ - step) - exact_tail(t_, df_ + step)
        exact.append(rise / (2 * step))
    _, _, slope = gradients(student_t_cdf, t, df)
    assert relative(slope, exact).max() < 1e-12


@pytest.mark.parametrize(("dtype", "rel"), [(torch.float32, 1e-5), (torch.float64, 1e-7)])
def test_slope_in_df_has_its_large_df_limit(dtype, rel):
    # Cornish-Fisher: t = z + z (z^2 + 1) / (4 df) + O(df^-2), at a fixed probability.
    p = torch.tensor([1e-4, 0.1, 0.3, 0.48, 0.7], dtype=dtype)
    df = torch.full_like(p, 1e8)
    z, _, slope = gradients(student_t_icdf, p, df)
    assert_close(slope * df * df, -z * (z * z + 1) / 4, rel=rel)


def test_gradcheck_in_every_argument():
    t = torch.tensor([-60.0, -3.0, -0.6, 0.0, 0.3, 1.0, 5.0], dtype=torch.float64)
    df = torch.tensor([1.2, 0.4, 2.0, 3.0, 0.1, 1.0, 200.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(student_t_cdf, live(t, df))
    p = torch.tensor([0.03, 0.2, 0.45, 0.5, 0.52, 0.8, 0.99], dtype=torch.float64)
    df = torch.tensor([1.2, 0.8, 2.0, 3.0, 0.5, 1.0, 200.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(student_t_icdf, live(p, df), rtol=1e-4)


def test_second_derivatives():
    t = torch.tensor([-6.0, -0.6, 0.3, 1.0, 5.0], dtype=torch.float64)
    df = torch.tensor([1.2, 2.0, 0.4, 1.0, 200.0], dtype=torch.float64)
    assert torch.autograd.gradgradcheck(student_t_cdf, live(t, df))
    p = torch.tensor([0.1, 0.4, 0.52, 0.8, 0.95], dtype=torch.float64)
    assert torch.autograd.gradgradcheck(student_t_icdf, live(p, df), rtol=1e-4)


def test_gradients_are_finite_over_the_range():
    t, df = grid((-torch.inf, *(-x for x in T), 0.0, *T, torch.inf), (*DF, torch.inf))
    for dtype in (torch.float32, torch.float64):
        for value in gradients(student_t_cdf, t.to(dtype), df.to(dtype)):
            assert value.isfinite().all()
    p, df = grid([1e-10, 1e-4, 0.1, 0.5, 0.9, 1 - 1e-6], [3.0, 10.0, 1e3, 1e8, torch.inf])
    for dtype in (torch.float32, torch.float64):
        for value in gradients(student_t_icdf, p.to(dtype), df.to(dtype)):
            assert value.isfinite().all()


def test_gradients_at_the_ends():
    p, df = torch.tensor([0.0, 1.0]), torch.tensor([3.0, 3.0])
    _, grad_p, grad_df = gradients(student_t_icdf, p, df)
    assert (grad_p == torch.inf).all()
    assert (grad_df == 0).all()


# float32


class OnlyFloat32(TorchDispatchMode):
    """Fails when any operation makes a float64 tensor."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        made = [x.dtype for x in tree_leaves(out) if isinstance(x, Tensor)]
        assert torch.float64 not in made, func
        return out


def test_float32_stays_float32():
    p, df = torch.tensor([1e-5, 0.5, 0.9]), torch.tensor([0.5, 3.0, 1e6])
    with OnlyFloat32():
        t, *_ = gradients(student_t_icdf, p, df)
        value, *_ = gradients(student_t_cdf, t, df)
        many = student_t_cdf(t.repeat(1000), df.repeat(1000))
    assert value.dtype == many.dtype == torch.float32


def test_float32_matches_float64():
    t, df = grid(T, DF, dtype=torch.float32)
    exact = gradients(student_t_cdf, -t.double(), df.double())
    keep = exact[0] > 1e-10
    for single, double in zip(gradients(student_t_cdf, -t, df), exact, strict=True):
        assert_close(single[keep], double[keep], rel=1e-5)


def test_float32_quantile_matches_float64():
    p, df = grid((1e-10, *P[2:-1]), DF, dtype=torch.float32)
    single, double = student_t_icdf(p, df), student_t_icdf(p.double(), df.double())
    assert (single.isinf() == (double.abs() > torch.finfo(torch.float32).max)).all()
    finite = single.isfinite()
    error = (single.double() / double - 1).abs()[finite]
    conditioning = 1 / df[finite]  # of the quantile in p; four roundings of p are granted
    assert (error < torch.clamp(5e-7 * conditioning, min=1e-5)).all()


# Transforms


def test_vmap_equals_loop():
    t = torch.tensor([-3.0, -0.1, 0.0, 0.8, 20.0], dtype=torch.float64)
    df = torch.tensor([0.3, 1.0, 5.0, 40.0, 2.0], dtype=torch.float64)
    cases: list[tuple[Callable[..., Tensor], Tensor]] = [
        (student_t_cdf, t),
        (student_t_icdf, torch.sigmoid(t)),
    ]
    for function, x in cases:
        slopes = torch.func.grad_and_value(function, argnums=(0, 1))
        batched = torch.func.vmap(slopes)(x, df)
        single = [slopes(a, b) for a, b in zip(x, df, strict=True)]
        assert_close(batched[1], torch.stack([value for _, value in single]), rel=1e-14)
        for i in (0, 1):
            assert_close(batched[0][i], torch.stack([grad[i] for grad, _ in single]), rel=1e-13)


T_AND_DF = (
    torch.tensor([-7.0, -1e-6, 0.0, 0.3, 1.0, 2.0, 50.0, 1e4, -0.4], dtype=torch.float64),
    torch.tensor([3.0, 9.0, 2.0, 1e7, 1.0, 0.2, 4.0, 0.7, torch.inf], dtype=torch.float64),
)


def assert_compiled_equals_eager(function, x: Tensor, df: Tensor, backend: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    expected = gradients(function, x, df)
    for actual, exact in zip(gradients(compiled, x, df), expected, strict=True):
        assert_close(actual, exact, rel=1e-12)


@compiles
@pytest.mark.parametrize("function", [student_t_cdf, student_t_icdf])
def test_one_graph_equals_eager(function, device):
    t, df = (argument.to(device) for argument in T_AND_DF)
    x = t if function is student_t_cdf else student_t_cdf(t, df)
    assert_compiled_equals_eager(function, x, df, "aot_eager")


@compiles
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_compiled_code_equals_eager(device):
    t, df = (argument.to(device) for argument in T_AND_DF)
    assert_compiled_equals_eager(student_t_cdf, t, df, "inductor")
