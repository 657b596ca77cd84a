"""Small-matrix algebra against ``torch.linalg`` and 50-digit arithmetic.

K = 1, 2 and 3 are written out, K = 5 is batched linear algebra: one suite for both.
"""

from __future__ import annotations

import mpmath as mp
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from _asserts import assert_close
from _beliefs import random_normal, random_tril
from priornet.special import triangular

DIMENSIONS = (1, 2, 3, 5)
EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)
BATCH = (4, 3)


def as_is(t: Tensor) -> Tensor:
    return t


def strided(t: Tensor) -> Tensor:
    """The same numbers with the batch axes innermost: what the unrolled functions return."""
    return t.movedim((0, 1), (-2, -1)).contiguous().movedim((-2, -1), (0, 1))


def expanded(t: Tensor) -> Tensor:
    """One matrix or vector, repeated by a stride of zero."""
    return t[:1, :1].expand(t.shape)


LAYOUTS = pytest.mark.parametrize("layout", [as_is, strided, expanded])


def factor(k_dim: int, layout, seed: int = 0) -> Tensor:
    return layout(random_tril(k_dim, BATCH, seed))


def vector(k_dim: int, layout) -> Tensor:
    return layout(random_normal((*BATCH, k_dim), seed=7))


@LAYOUTS
@EVERY_K
def test_determinant_traces_and_inverses_match_linalg(k_dim, layout):
    c = factor(k_dim, layout)
    matrix = c @ c.mT
    inverse = torch.linalg.inv(matrix)
    assert_close(triangular.logdet(c), torch.linalg.slogdet(matrix).logabsdet, abs=1e-12)
    assert_close(triangular.outer(c), matrix, abs=1e-14)
    assert_close(triangular.inverse(c), torch.linalg.inv(c), abs=1e-12)
    assert_close(triangular.inverse_outer(c), inverse, abs=1e-11)
    assert_close(triangular.inverse_trace(c), inverse.diagonal(dim1=-2, dim2=-1).sum(-1))


@LAYOUTS
@EVERY_K
def test_products_and_solves_match_linalg(k_dim, layout):
    c, v = factor(k_dim, layout), vector(k_dim, layout)
    column = v.unsqueeze(-1)
    assert_close(triangular.matvec(c, v), (c @ column).squeeze(-1), abs=1e-14)
    assert_close(triangular.transpose_matvec(c, v), (c.mT @ column).squeeze(-1), abs=1e-14)
    assert_close(triangular.solve(c, v), torch.linalg.solve(c, v), abs=1e-12)
    assert_close(triangular.transpose_solve(c, v), torch.linalg.solve(c.mT, v), abs=1e-12)
    assert_close(triangular.sum_of_squares(v), torch.linalg.vector_norm(v, dim=-1) ** 2)
    other = factor(k_dim, layout, seed=3)
    assert_close(triangular.product(c, other), c @ other, abs=1e-14)


@LAYOUTS
@EVERY_K
def test_factorisations_match_linalg(k_dim, layout):
    c = factor(k_dim, layout)
    matrix = layout((c @ c.mT).contiguous())
    assert_close(triangular.cholesky(matrix), torch.linalg.cholesky(matrix), abs=1e-13)
    expected = torch.linalg.cholesky(torch.linalg.inv(matrix))
    assert_close(triangular.precision_cholesky(matrix), expected, abs=1e-11)


@LAYOUTS
@EVERY_K
def test_logdet_divergence_matches_its_definition(k_dim, layout):
    c, c0 = factor(k_dim, layout), factor(k_dim, layout, seed=3)
    ratio = torch.linalg.solve(c0 @ c0.mT, c @ c.mT)
    trace = ratio.diagonal(dim1=-2, dim2=-1).sum(-1)
    expected = trace - k_dim - torch.linalg.slogdet(ratio).logabsdet
    assert_close(triangular.logdet_divergence(c, c0), expected, rel=1e-11)
    assert_close(triangular.logdet_divergence(c, c), torch.zeros(BATCH), abs=0)


@EVERY_K
def test_factors_are_lower_triangular(k_dim):
    c = factor(k_dim, as_is)
    for result in (
        triangular.inverse(c),
        triangular.product(c, c),
        triangular.cholesky(c @ c.mT),
        triangular.precision_cholesky(c @ c.mT),
    ):
        assert (result.triu(1) == 0).all()


@EVERY_K
def test_indefinite_matrix_has_no_factor(k_dim):
    good = torch.eye(k_dim, dtype=torch.float64)
    bad = good.clone()
    bad[-1, -1] = -1.0
    result = triangular.cholesky(torch.stack([good, bad]))
    assert_close(result[0], good)
    assert result[1].isnan().any()


def divergence_reference(c: Tensor, c0: Tensor) -> float:
    """The definition at 50 digits, from the factors as they were rounded."""
    with mp.workdps(50):
        a, b = mp.matrix(c.double().tolist()), mp.matrix(c0.double().tolist())
        ratio = mp.inverse(b * b.T) * (a * a.T)
        trace = sum(ratio[i, i] for i in range(ratio.rows))
        return float(trace - ratio.rows - mp.log(mp.det(ratio)))


@pytest.mark.parametrize("distance", [1e-7, 1e-5, 1e-3, 0.1, 10.0])
@pytest.mark.parametrize(("dtype", "rel"), [(torch.float64, 1e-12), (torch.float32, 3e-6)])
@EVERY_K
def test_divergence_of_near_factors_keeps_its_digits(k_dim, dtype, rel, distance):
    """Eq. (28), first bracket: second order in the distance, however small that is."""
    c0 = random_tril(k_dim, (6,), seed=1)
    c = (c0 * (1 + distance * random_tril(k_dim, (6,), seed=5))).to(dtype)
    c0 = c0.to(dtype)
    expected = torch.tensor(
        [divergence_reference(a, b) for a, b in zip(c, c0, strict=True)], dtype=torch.float64
    )
    assert_close(triangular.logdet_divergence(c, c0), expected, rel=rel)


@EVERY_K
def test_gradients_of_one_matrix(k_dim):
    c = random_tril(k_dim, (2,)).requires_grad_()
    for name in ("logdet", "outer", "inverse", "inverse_outer", "inverse_trace"):
        function = getattr(triangular, name)
        assert gradcheck(lambda t, f=function: f(t.tril()), c), name


@EVERY_K
def test_gradients_of_matrix_and_vector(k_dim):
    c = random_tril(k_dim, (2,)).requires_grad_()
    v = random_normal((2, k_dim), seed=7).requires_grad_()
    for name in ("matvec", "transpose_matvec", "solve", "transpose_solve"):
        function = getattr(triangular, name)
        assert gradcheck(lambda t, u, f=function: f(t.tril(), u), (c, v)), name
    assert gradcheck(triangular.sum_of_squares, v)


@EVERY_K
def test_gradients_of_two_matrices(k_dim):
    c, c0 = (random_tril(k_dim, (2,), seed).requires_grad_() for seed in (0, 3))
    assert gradcheck(lambda a, b: triangular.product(a.tril(), b.tril()), (c, c0))

    def divergence(a: Tensor, b: Tensor) -> Tensor:
        return triangular.logdet_divergence(a.tril(), b.tril())

    assert gradcheck(divergence, (c, c0))
    assert gradgradcheck(divergence, (c, c0))


@EVERY_K
def test_gradients_of_factorisations(k_dim):
    c = random_tril(k_dim, (2,)).requires_grad_()

    def through(function):
        return lambda t: function(t.tril() @ t.tril().mT)

    assert gradcheck(through(triangular.cholesky), c)
    assert gradcheck(through(triangular.precision_cholesky), c)
