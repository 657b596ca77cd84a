"""Doubling and joining maps: bilinear by every implementation, with precise gradients."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.nn.functional import interpolate
from torch.utils._python_dispatch import TorchDispatchMode

from _asserts import assert_close
from _beliefs import random_normal
from priornet.nn.dense_depth import joining
from priornet.nn.dense_depth.joining import (
    doubled,
    doubled_by_products,
    doubled_with,
    joined_by_kernel,
)

SHAPES = [(1, 2, 3, 4), (2, 5, 1, 7), (3, 4, 6, 1)]
# Triton has an interpreter for machines without a GPU: TRITON_INTERPRET=1.
kernels_run = pytest.mark.skipif(
    find_spec("triton") is None
    or not (torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1"),
    reason="needs Triton and a GPU, or its interpreter (TRITON_INTERPRET=1)",
)


def expected_join(x, skip):
    return torch.cat([interpolate(x, scale_factor=2, mode="bilinear"), skip], 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_doubling_by_products_is_bilinear(shape):
    x = random_normal(shape).requires_grad_()
    expected = interpolate(x, scale_factor=2, mode="bilinear")
    found = doubled_by_products(x)
    assert_close(found, expected, rel=1e-12, abs=1e-12)
    weights = random_normal(tuple(expected.shape), seed=1)
    one, two = (torch.autograd.grad((y * weights).sum(), x)[0] for y in (found, expected))
    assert_close(one, two, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_joined_comes_behind(shape):
    batch, _, height, width = shape
    x, skip = random_normal(shape), random_normal((batch, 3, 2 * height, 2 * width), seed=1)
    assert_close(doubled_with(x, skip), expected_join(x, skip), rel=0)


class Called(TorchDispatchMode):
    """Names of the operators that are called."""

    def __init__(self):
        super().__init__()
        self.names = set[str]()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def called_on_a_gpu(dtype=torch.float32):
    with FakeTensorMode(), Called() as called:
        x = torch.empty(2, 3, 4, 5, device="cuda", dtype=dtype)
        found = doubled_with(x, torch.empty(2, 6, 8, 10, device="cuda", dtype=dtype))
    assert found.shape == (2, 9, 8, 10)
    return called.names


def test_a_gpu_without_triton_doubles_by_products(monkeypatch):
    monkeypatch.setattr(joining, "_HAS_TRITON", False)
    names = called_on_a_gpu()
    assert "bmm" in names
    assert "upsample_bilinear2d" not in names


@pytest.mark.parametrize(
    ("dtype", "capability", "by_kernel"),
    [
        (torch.bfloat16, (9, 0), True),
        (torch.float32, (8, 0), True),
        (torch.float32, (7, 5), False),
        (torch.float64, (9, 0), False),
    ],
)
def test_a_recent_gpu_joins_by_a_kernel(dtype, capability, by_kernel, monkeypatch):
    seen = []

    def kernel(x, skip):
        seen.append(x.dtype)
        return x.new_empty((2, 9, 8, 10))

    monkeypatch.setattr(joining, "_HAS_TRITON", True)
    monkeypatch.setattr(joining, "joined_by_kernel", kernel)
    monkeypatch.setattr(joining, "_compiles", lambda _: True)
    monkeypatch.setattr(joining, "_has_kernels", joining._has_kernels.__wrapped__)  # nothing kept
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    called_on_a_gpu(dtype)
    assert seen == [dtype] * by_kernel


def test_where_kernels_cannot_be_compiled_we_do_without_and_say_so(monkeypatch):
    def kernel(x, skip):
        raise RuntimeError("Failed to find C compiler.\nPlease specify one.")

    monkeypatch.setattr(joining, "joined_by_kernel", kernel)
    with pytest.warns(UserWarning, match=r"cannot compile here \(Failed to find C compiler\.\)"):
        assert not joining._compiles(torch.device("cpu"))


def test_kernels_do_not_run_where_tensors_stand_for_others(monkeypatch):
    monkeypatch.setattr(joining, "_has_kernels", lambda _: True)
    seen = []

    def look(x):
        seen.append(joining._kernels_run(x, x))
        return x

    x = torch.zeros(2, 1, 1, 1, 1)
    look(x)
    torch.vmap(look)(x)
    torch.func.grad(lambda x: look(x).sum())(x)
    assert seen == [True, False, False]


@pytest.fixture
def kernels_of_torch(monkeypatch):
    """The code around the kernels, where these cannot run."""

    def gather(grad, channels):
        old = grad.new_zeros(*grad.shape[:1], channels, grad.shape[2] // 2, grad.shape[3] // 2)
        with torch.enable_grad():
            new = interpolate(old.requires_grad_(), scale_factor=2, mode="bilinear")
        return torch.autograd.grad(new, old, grad[:, :channels])[0]

    kernels = SimpleNamespace(join=expected_join, gather=gather)
    monkeypatch.setitem(sys.modules, "priornet.nn.dense_depth.joining_kernels", kernels)


@pytest.mark.usefixtures("kernels_of_torch")
@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives_of_what_a_kernel_joins(shape):
    batch, _, height, width = shape
    x = random_normal(shape).requires_grad_()
    skip = random_normal((batch, 2, 2 * height, 2 * width), 1).requires_grad_()
    assert torch.autograd.gradcheck(joined_by_kernel, (x, skip))
    assert torch.autograd.gradgradcheck(joined_by_kernel, (x, skip))


@pytest.mark.usefixtures("kernels_of_torch")
def test_many_gradients_of_what_a_kernel_joins_at_once():
    x = random_normal((1, 2, 2, 3)).requires_grad_()
    skip = random_normal((1, 1, 4, 6), 1)
    found, expected = joined_by_kernel(x, skip), expected_join(x, skip)
    many = random_normal((5, *expected.shape), 2)
    one, reference = (
        torch.autograd.grad(y, x, many, is_grads_batched=True)[0] for y in (found, expected)
    )
    assert_close(one, reference, rel=1e-12, abs=1e-12)


def test_doubled_maps_keep_their_precision_inside_autocast():
    """Else what they are joined to would be widened with them."""
    x = random_normal((2, 3, 5, 40), 0).bfloat16()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        found = doubled(x)
    assert found.dtype == torch.bfloat16
    wide = interpolate(x.double(), scale_factor=2, mode="bilinear")
    assert_close(found.double(), wide, rel=2**-8, abs=1e-6)


# Channels and widths below, at and above what a program of the kernels takes.
@kernels_run
@pytest.mark.parametrize(
    ("channels", "n_skip", "height", "width"),
    [(5, 3, 4, 9), (130, 129, 1, 8), (128, 1, 5, 1), (16, 64, 3, 17)],
)
@pytest.mark.parametrize(
    ("dtype", "rel"), [(torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)]
)
def test_kernels_join_and_take_gradients_back(channels, n_skip, height, width, dtype, rel):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = random_normal((2, channels, height, width)).to(device, dtype).requires_grad_()
    skip = random_normal((2, n_skip, 2 * height, 2 * width), 1).to(device, dtype).requires_grad_()
    exact = [t.detach().double().requires_grad_() for t in (x, skip)]
    found, expected = joined_by_kernel(x, skip), expected_join(*exact)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert_close(found.double(), expected, rel=rel, abs=rel)
    weights = random_normal(tuple(expected.shape), 2).to(device, dtype)
    gradients = torch.autograd.grad(found, (x, skip), weights)
    reference = torch.autograd.grad(expected, exact, weights.double())
    for one, other in zip(gradients, reference, strict=True):
        assert_close(one.double(), other, rel=rel, abs=rel)


@kernels_run
def test_gradients_of_the_kernels_come_in_any_layout():
    """Such as that of an expanded scalar."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = random_normal((1, 4, 3, 5)).to(device, torch.float32).requires_grad_()
    joined_by_kernel(x, x.detach().new_zeros(1, 2, 6, 10)).sum().backward()
    assert x.grad is not None
    assert_close(x.grad, torch.full_like(x, 4.0), rel=1e-6)


@kernels_run
def test_second_derivatives_go_through_the_kernels():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = random_normal((2, 3, 4, 5)).to(device, torch.float32).requires_grad_()
    skip = random_normal((2, 2, 8, 10), 1).to(device, torch.float32)

    def curvature(join):
        (slope,) = torch.autograd.grad(join(x, skip).pow(3).sum(), x, create_graph=True)
        return slope.detach(), torch.autograd.grad(slope.square().sum(), x)[0]

    for found, expected in zip(curvature(joined_by_kernel), curvature(expected_join), strict=True):
        assert_close(found, expected, rel=1e-4, abs=1e-4)
