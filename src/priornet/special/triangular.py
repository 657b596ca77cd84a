"""Algebra of small lower-triangular matrices, batched over leading axes.

A covariance or precision matrix travels as its Cholesky factor C, shape ``(*batch, K, K)``. For
K = 1, 2, 3 every operation is written out on the planes ``C[..., i, j]``: elementwise arithmetic
that fuses and vectorises, where LAPACK would be called once per matrix. Results come back in *plane
layout* (each ``[..., i, j]`` contiguous). Larger K falls back to batched linear algebra.

Products are sums of elementwise products, never ``matmul``: autocast would round that to half
precision.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from priornet.special.elementwise import phi

_UNROLLED = 3
_SUBSTITUTED = 8


def _planes(c: Tensor) -> list[list[Tensor]]:
    """Split the lower triangle into rows of planes."""
    return [[c[..., i, j] for j in range(i + 1)] for i in range(c.shape[-1])]


def _assemble(rows: list[list[Tensor]]) -> Tensor:
    """Join rows of planes (lower triangle, or full) to ``(*batch, K, K)`` in plane layout."""
    zero = torch.zeros_like(rows[0][0])
    planes = [plane for row in rows for plane in row + [zero] * (len(rows) - len(row))]
    stacked = torch.stack(planes)  # (K*K, *batch)
    return stacked.unflatten(0, (len(rows), len(rows))).movedim((0, 1), (-2, -1))


def in_planes(a: Tensor) -> Tensor:
    """Return the matrices with each entry contiguous; a copy unless they are already."""
    return a.movedim((-2, -1), (0, 1)).contiguous().movedim((0, 1), (-2, -1))


def _vector(planes: list[Tensor]) -> Tensor:
    """Join planes to ``(*batch, K)`` in plane layout."""
    return torch.stack(planes).movedim(0, -1)


def logdet(c: Tensor) -> Tensor:
    r"""Log-determinant :math:`\ln|CC^\top|`, shape ``(*batch,)``."""
    if c.shape[-1] == 1:
        return 2 * torch.log(c[..., 0, 0])
    return 2 * torch.log(c.diagonal(dim1=-2, dim2=-1)).sum(-1)


def sum_of_squares(v: Tensor) -> Tensor:
    r"""Compute the squared length :math:`v^\top v` over the last axis."""
    if v.shape[-1] > _UNROLLED:
        return (v * v).sum(-1)
    first, *rest = v.unbind(-1)
    total = first * first
    for plane in rest:
        total = total + plane * plane
    return total


def matvec(c: Tensor, v: Tensor) -> Tensor:
    """Compute the product :math:`C v`."""
    if c.shape[-1] == 1:
        return c[..., 0] * v
    if c.shape[-1] > _UNROLLED:
        return (c * v.unsqueeze(-2)).sum(-1)
    rows, parts = _planes(c), v.unbind(-1)
    return _vector([_dot(row, parts) for row in rows])


def _dot(left: list[Tensor], right: tuple[Tensor, ...] | list[Tensor]) -> Tensor:
    total = left[0] * right[0]
    for a, b in zip(left[1:], right[1:], strict=False):
        total = total + a * b
    return total


def transpose_matvec(c: Tensor, v: Tensor) -> Tensor:
    r"""Compute the product :math:`C^\top v`; its squared length is :math:`v^\top C C^\top v`."""
    k_dim = c.shape[-1]
    if k_dim == 1:
        return c[..., 0] * v
    if k_dim > _UNROLLED:
        return (c * v.unsqueeze(-1)).sum(-2)
    rows, parts = _planes(c), v.unbind(-1)
    columns = [[rows[i][j] for i in range(j, k_dim)] for j in range(k_dim)]
    return _vector([_dot(column, parts[j:]) for j, column in enumerate(columns)])


def _by_coordinate(c: Tensor) -> bool:
    """Decide to solve a coordinate at a time, as fast up to K = 8 and never in half precision."""
    return c.shape[-1] <= _SUBSTITUTED or torch.is_autocast_enabled(c.device.type)


def _forward_solve(c: Tensor, b: Tensor) -> Tensor:
    """Compute :math:`C^{-1} B`, for B ``(*batch, K, N)``."""
    if not _by_coordinate(c):
        return torch.linalg.solve_triangular(c, b, upper=False)
    rows: list[Tensor] = []
    for j in range(c.shape[-1]):
        rows.append(b[..., 0, :] / c[..., j, j, None])
        b = b[..., 1:, :] - c[..., j + 1 :, j, None] * rows[j].unsqueeze(-2)
    return torch.stack(rows, -2)


def _transpose_solve(c: Tensor, b: Tensor) -> Tensor:
    r"""Compute :math:`C^{-\top} B`, from the last coordinate up."""
    if not _by_coordinate(c):
        return torch.linalg.solve_triangular(c.mT, b, upper=True)
    rows: list[Tensor] = []
    for j in reversed(range(c.shape[-1])):
        rows.append(b[..., -1, :] / c[..., j, j, None])
        b = b[..., :-1, :] - c[..., j, :j, None] * rows[-1].unsqueeze(-2)
    return torch.stack(rows[::-1], -2)


def solve(c: Tensor, v: Tensor) -> Tensor:
    """Solve by forward substitution: :math:`C^{-1} v`."""
    if c.shape[-1] == 1:
        return v / c[..., 0]
    if c.shape[-1] > _UNROLLED:
        return _forward_solve(c, v.unsqueeze(-1)).squeeze(-1)
    out: list[Tensor] = []
    for i, (row, part) in enumerate(zip(_planes(c), v.unbind(-1), strict=True)):
        rest = part - _dot(row[:i], out) if i else part
        out.append(rest / row[i])
    return _vector(out)


def transpose_solve(c: Tensor, v: Tensor) -> Tensor:
    r"""Solve by back substitution: :math:`C^{-\top} v`."""
    k_dim = c.shape[-1]
    if k_dim == 1:
        return v / c[..., 0]
    if k_dim > _UNROLLED:
        return _transpose_solve(c, v.unsqueeze(-1)).squeeze(-1)
    rows, parts = _planes(c), v.unbind(-1)
    out: list[Tensor] = []  # from the last coordinate up
    for j in reversed(range(k_dim)):
        below = [rows[i][j] for i in reversed(range(j + 1, k_dim))]
        rest = parts[j] - _dot(below, out) if below else parts[j]
        out.append(rest / rows[j][j])
    return _vector(out[::-1])


def product(a: Tensor, b: Tensor) -> Tensor:
    """Compute the product A B of two lower-triangular matrices."""
    k_dim = a.shape[-1]
    if k_dim == 1:
        return a * b
    if k_dim > _UNROLLED:
        return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)
    left, right = _planes(a), _planes(b)
    return _assemble(
        [
            [_dot(left[i][j:], [right[k][j] for k in range(j, i + 1)]) for j in range(i + 1)]
            for i in range(k_dim)
        ]
    )


def outer(c: Tensor) -> Tensor:
    r"""Compute the matrix itself, :math:`C C^\top`."""
    k_dim = c.shape[-1]
    if k_dim == 1:
        return c * c
    if k_dim > _UNROLLED:
        return (c.unsqueeze(-2) * c.unsqueeze(-3)).sum(-1)
    rows = _planes(c)
    lower = [[_dot(rows[i][: j + 1], rows[j]) for j in range(i + 1)] for i in range(k_dim)]
    return _symmetric(lower)


def _symmetric(lower: list[list[Tensor]]) -> Tensor:
    k_dim = len(lower)
    return _assemble([[lower[max(i, j)][min(i, j)] for j in range(k_dim)] for i in range(k_dim)])


def inverse(c: Tensor) -> Tensor:
    """Compute the inverse :math:`C^{-1}`, lower triangular."""
    k_dim = c.shape[-1]
    if k_dim == 1:
        return c.reciprocal()
    if k_dim > _UNROLLED:
        eye = torch.eye(k_dim, dtype=c.dtype, device=c.device).expand_as(c)
        return _forward_solve(c, eye)
    return _assemble(_inverse_planes(_planes(c)))


def _inverse_planes(rows: list[list[Tensor]]) -> list[list[Tensor]]:
    out: list[list[Tensor]] = []
    for i, row in enumerate(rows):
        diagonal = row[i].reciprocal()
        entries = [-diagonal * _dot(row[j:i], [out[k][j] for k in range(j, i)]) for j in range(i)]
        out.append([*entries, diagonal])
    return out


def inverse_outer(c: Tensor) -> Tensor:
    r"""Compute the inverse of the matrix, :math:`(C C^\top)^{-1}`, symmetric."""
    k_dim = c.shape[-1]
    if k_dim > _UNROLLED:
        root = inverse(c)
        return (root.unsqueeze(-1) * root.unsqueeze(-2)).sum(-3)
    rows = _inverse_planes(_planes(c))
    columns = [[rows[i][j] for i in range(j, k_dim)] for j in range(k_dim)]
    # Entry (i, j), i >= j, is the product of columns i and j of the inverse, from row i on.
    lower = [[_dot(columns[i], columns[j][i - j :]) for j in range(i + 1)] for i in range(k_dim)]
    return _symmetric(lower)


def inverse_trace(c: Tensor) -> Tensor:
    r"""Trace :math:`\mathrm{tr}\,(C C^\top)^{-1}`, the squared Frobenius norm of the inverse."""
    if c.shape[-1] > _UNROLLED:
        return inverse(c).square().sum((-2, -1))
    entries = [e for row in _inverse_planes(_planes(c)) for e in row]
    return _dot(entries, entries)


def cholesky(a: Tensor) -> Tensor:
    """Compute the Cholesky factor; ``nan`` where the matrix is not positive definite."""
    k_dim = a.shape[-1]
    if k_dim == 1:
        return a.sqrt()
    if k_dim > _UNROLLED:
        factor, info = torch.linalg.cholesky_ex(a)
        bad = (info > 0)[..., None, None]
        return torch.where(bad, torch.full_like(factor, torch.nan), factor)
    return _assemble(_cholesky_planes(_planes(a)))


def _cholesky_planes(rows: list[list[Tensor]]) -> list[list[Tensor]]:
    out: list[list[Tensor]] = []
    for i, row in enumerate(rows):
        entries: list[Tensor] = []
        for j in range(i):
            rest = row[j] - _dot(entries, out[j]) if j else row[j]
            entries.append(rest / out[j][j])
        pivot = row[i] - _dot(entries, entries) if i else row[i]
        out.append([*entries, pivot.sqrt()])
    return out


def precision_cholesky(covariance: Tensor) -> Tensor:
    r"""Compute the Cholesky factor of :math:`\Sigma^{-1}` straight from :math:`\Sigma`.

    Factor :math:`\Sigma = U U^\top` from the last row up (U upper triangular): the factor is
    :math:`U^{-\top}`.
    """
    k_dim = covariance.shape[-1]
    if k_dim == 1:
        return covariance.rsqrt()
    if k_dim > _UNROLLED:
        flipped = cholesky(covariance.flip((-2, -1)))
        return inverse(flipped).flip((-2, -1)).mT
    # Reading the planes backwards is the flip; the transposed inverse is read backwards again.
    last = k_dim - 1
    flipped_rows = [
        [covariance[..., last - i, last - j] for j in range(i + 1)] for i in range(k_dim)
    ]
    root = _inverse_planes(_cholesky_planes(flipped_rows))
    return _assemble([[root[last - j][last - i] for j in range(i + 1)] for i in range(k_dim)])


def rank_one_inverse(a: Tensor, w: Tensor) -> Tensor:
    r"""Compute the Cholesky factor of :math:`(I + a w w^\top)^{-1}`, for ``a`` of the batch shape.

    With :math:`t_j = 1 + a\sum_{k>j} w_k^2` the factor has diagonal :math:`\sqrt{t_j/t_{j-1}}` and
    entries :math:`-a w_i w_j/\sqrt{t_j t_{j-1}}` below it: sums of squares, no cancellation.
    """
    a = a.unsqueeze(-1)
    from_here = 1 + (a * w * w).flip(-1).cumsum(-1).flip(-1)  # t_(j-1)
    after = torch.cat([from_here[..., 1:], torch.ones_like(from_here[..., :1])], -1)  # t_j
    scaled = (a * w) * after.rsqrt() * from_here.rsqrt()  # apart: their product may overflow
    below = -(w.unsqueeze(-1) * scaled.unsqueeze(-2)).tril(-1)
    return below + torch.diag_embed((after / from_here).sqrt())


def logdet_divergence(
    c: Tensor, c0: Tensor, kernel: Callable[[Tensor, Tensor], Tensor] = phi
) -> Tensor:
    r"""Log-determinant divergence :math:`\mathrm{tr}(P_0^{-1}P) - K - \ln|P_0^{-1}P| \ge 0`.

    With :math:`X = C_0^{-1}(C - C_0)`, :math:`P_0^{-1}P \simeq (I + X)(I + X)^\top`, and the
    divergence is :math:`\sum_i 2\varphi(1 + X_{ii}) + \|X\|_F^2`: no cancellation, however near the
    two are.

    Args:
        c: Cholesky factor of P, shape ``(*batch, K, K)``.
        c0: Cholesky factor of the reference :math:`P_0`, same shape.
        kernel: How to evaluate :math:`\varphi(a/b)`; ``plain_phi`` is cheaper, good to eps over t -
            1.
    """
    k_dim = c.shape[-1]
    if k_dim == 1:
        a, b = c[..., 0, 0], c0[..., 0, 0]
        x = (a - b) / b
        return 2 * kernel(a, b) + x * x
    if k_dim > _UNROLLED:
        x = _forward_solve(c0, c - c0)
        diagonals = c.diagonal(dim1=-2, dim2=-1), c0.diagonal(dim1=-2, dim2=-1)
        return 2 * kernel(*diagonals).sum(-1) + x.square().sum((-2, -1))
    rows, rows0 = _planes(c), _planes(c0)
    x_rows: list[list[Tensor]] = []
    terms: list[Tensor] = []
    for i in range(k_dim):
        entries: list[Tensor] = []
        for j in range(i + 1):  # forward substitution, column j of C - C0
            rest = rows[i][j] - rows0[i][j]
            if j < i:
                rest = rest - _dot(rows0[i][j:i], [x_rows[k][j] for k in range(j, i)])
            entries.append(rest / rows0[i][i])
        x_rows.append(entries)
        terms.append(2 * kernel(rows[i][i], rows0[i][i]) + _dot(entries, entries))
    return functools.reduce(torch.add, terms)
