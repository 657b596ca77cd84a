"""Averages over a teacher's members, which are all that distillation needs of it.

The likelihood of M Gaussians under a Normal-Wishart depends on them only through four averages, so
its cost does not grow with M. The temperature of Eq. (16), arXiv:2006.11590v2, is applied already.
Averages have no gradient: a teacher is a constant.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Size, Tensor

from priornet.checks import check_setting, check_values, values_visible
from priornet.distributions.ensemble import GaussianEnsemble
from priornet.special import triangular
from priornet.special.elementwise import cache_pieces, phi, plain_phi

_FEW_MEMBERS = 16
Kernel = Callable[[Tensor, Tensor], Tensor]


class PrecisionAverages(NamedTuple):
    r"""Averages that EnD2 sees, for a batch of inputs.

    Attributes:
        anchor: Mean of the first member, ``(*batch, K)``.
        shift: From there to the precision-weighted mean :math:`m_w =
            (\sum\Lambda)^{-1}\sum\Lambda\mu`; their sum would round away the disagreement of close,
            large means.
        precision_tril: Cholesky factor of the mean precision :math:`\bar\Lambda`.
        spread: :math:`S = \frac1M\sum(\mu-m_w)^\top\Lambda(\mu-m_w)`, ``(*batch,)``.
        gap: Jensen gap :math:`\ln|\bar\Lambda| - \frac1M\sum\ln|\Lambda| \ge 0`, ``(*batch,)``.
    """

    anchor: Tensor
    shift: Tensor
    precision_tril: Tensor
    spread: Tensor
    gap: Tensor

    @property
    def loc(self) -> Tensor:
        """Return the precision-weighted mean of the members."""
        return self.anchor + self.shift


class CovarianceAverages(NamedTuple):
    r"""Averages that EnD sees, for a batch of inputs.

    Attributes:
        anchor: Mean of the first member, ``(*batch, K)``.
        shift: From there to the mean of the member means.
        precision_tril: Cholesky factor of :math:`\bar\Sigma^{-1}`.
        scatter: Covariance of the member means, ``(*batch, K, K)``.
        gap: Jensen gap :math:`\ln|\bar\Sigma| - \frac1M\sum\ln|\Sigma| \ge 0`, ``(*batch,)``.
    """

    anchor: Tensor
    shift: Tensor
    precision_tril: Tensor
    scatter: Tensor
    gap: Tensor


def check_temperature(
    temperature: Tensor | float, batch: Size | None = None, like: Tensor | None = None
) -> None:
    """Check for at least 1: below it, members would move away from their mean."""
    if isinstance(temperature, Tensor):
        assert batch is not None
        assert like is not None
        check_setting("temperature", temperature, batch, like)
        if temperature.device.type == "cpu" and values_visible(temperature):
            good = (temperature >= 1) & torch.isfinite(temperature)
            check_values("temperature", temperature, good, "finite and at least 1")
    elif not 1 <= temperature < math.inf:
        raise ValueError(f"`temperature` must be finite and at least 1; got {temperature:g}.")


@torch.no_grad()
def precision_averages(
    teacher: GaussianEnsemble, temperature: Tensor | float = 1.0, *, exact_gap: bool = False
) -> PrecisionAverages:
    """Average the teacher's members, pulled towards their mean by ``temperature``, Eq. (16).

    Args:
        teacher: M Gaussians per input.
        temperature: At least 1; a number, or a tensor that broadcasts with the batch.
        exact_gap: Full relative precision of the gap also where members nearly agree, as a fit
            needs.
    """
    batch, k_dim, n_members = teacher.batch_shape, teacher.k_dim, teacher.n_members
    check_temperature(temperature, batch, teacher.means)
    keep, kernel = 2 / (temperature + 1), phi if exact_gap else plain_phi
    if isinstance(keep, Tensor):
        keep = keep.expand(batch).reshape(-1)
    means = teacher.means.detach().reshape(n_members, -1, k_dim)
    scalar = k_dim == 1 and values_visible(means, teacher.covariances)
    # The factors, where they are known and the temperature leaves them as they are.
    untempered = not isinstance(keep, Tensor) and keep == 1
    by_tril = teacher.has_precision_tril and untempered and not scalar
    matrices = teacher.precision_tril if by_tril else teacher.covariances
    matrices = matrices.detach().reshape(n_members, -1, k_dim, k_dim)
    parts: list[PrecisionAverages] = []
    for at in cache_pieces(means.shape[1], n_members, means.device):
        kept = keep[at] if isinstance(keep, Tensor) else keep
        if scalar:
            parts.append(_scalar_piece(means[:, at], matrices[:, at], kept, kernel))
        else:
            tril = matrices[:, at]
            if not by_tril:
                covariances = triangular.in_planes(_pulled(tril, kept))
                tril = triangular.precision_cholesky(covariances)
            parts.append(_matrix_piece(means[:, at], tril, kept, kernel))
    return PrecisionAverages(*(_join(columns, batch) for columns in zip(*parts, strict=True)))


def _join(columns: tuple[Tensor, ...], batch: Size) -> Tensor:
    """Join pieces ``(n, *event)`` to ``(*batch, *event)``, each matrix entry contiguous."""
    event = columns[0].shape[1:]
    if len(columns) == 1:
        return columns[0].reshape(batch + event)
    if not event:
        return torch.cat(columns).reshape(batch)
    planes = torch.cat([c.movedim(0, -1) for c in columns], -1)  # (*event, N)
    order = tuple(range(len(event)))
    return planes.unflatten(-1, batch).movedim(order, tuple(i - len(event) for i in order))


def _average(members: Tensor) -> Tensor:
    """Average over the members, the leading axis: as a sum, which a compiler fuses."""
    if torch.compiler.is_compiling() and len(members) <= _FEW_MEMBERS:
        return functools.reduce(torch.add, members.unbind(0)) / len(members)
    return members.mean(0)


def scalar_averages(
    means: Tensor, variances: Tensor, keep: Tensor | float, kernel: Kernel = plain_phi
) -> tuple[Tensor, ...]:
    """Compute the averages for K = 1 in eager mode, in place where that saves memory.

    Args:
        means: Member means ``(M, *batch)``.
        variances: Member variances ``(M, *batch)``.
        keep: Share of its own parameters that a member keeps, Eq. (16).
        kernel: How to evaluate the gap.
    """
    n_members, batch = len(means), means.shape[1:]
    if isinstance(keep, Tensor):
        keep = keep.expand(batch).reshape(-1)
    # Flat, so that sums over members round alike whatever the batch shape.
    means, variances = means.reshape(n_members, -1), variances.reshape(n_members, -1)
    offsets = means - means[0]  # differences first: exact between nearby numbers
    offsets, variances = _pulled(offsets, keep), _pulled(variances, keep)
    precisions = variances.reciprocal()
    mean_precision = precisions.sum(0).div_(n_members)
    shift = (precisions * offsets).sum(0).div_(n_members).div_(mean_precision)
    spread = offsets.sub_(shift).square_().mul_(precisions).sum(0).div_(n_members)
    # phi(t) = t - 1 - ln t averages to the gap, and is small where members agree.
    if kernel is phi:
        gaps = phi(precisions, mean_precision.expand_as(precisions))
    else:
        ratio = precisions.div_(mean_precision)
        logs = torch.log(ratio)
        gaps = ratio.sub_(1).sub_(logs)
    flat = (means[0], shift, mean_precision.sqrt_(), spread, gaps.sum(0).div_(n_members))
    return tuple(average.reshape(batch) for average in flat)


def _scalar_piece(
    means: Tensor, variances: Tensor, keep: Tensor | float, kernel: Kernel
) -> PrecisionAverages:
    anchor, shift, tril, spread, gap = scalar_averages(
        means.squeeze(-1), variances.flatten(-3), keep, kernel
    )
    return PrecisionAverages(
        anchor.unsqueeze(-1), shift.unsqueeze(-1), tril[:, None, None], spread, gap
    )


def _pulled(members: Tensor, keep: Tensor | float) -> Tensor:
    """Pull members towards their average, Eq. (16); ``keep`` is a number, or one per input."""
    if isinstance(keep, Tensor):
        keep = keep.reshape(-1, *(1,) * (members.dim() - 2))
    elif keep == 1:
        return members
    return torch.lerp(_average(members), members, keep)


def _matrix_piece(
    means: Tensor, tril: Tensor, keep: Tensor | float, kernel: Kernel
) -> PrecisionAverages:
    offsets = _pulled(means - means[0], keep)
    mean_tril = triangular.cholesky(_average(triangular.outer(tril)))
    weighted = _average(triangular.matvec(tril, triangular.transpose_matvec(tril, offsets)))
    shift = triangular.transpose_solve(mean_tril, triangular.solve(mean_tril, weighted))
    off = triangular.transpose_matvec(tril, offsets - shift)
    gap = _average(triangular.logdet_divergence(tril, mean_tril.expand_as(tril), kernel))
    spread = _average(triangular.sum_of_squares(off))
    return PrecisionAverages(means[0], shift, mean_tril, spread, gap)


@torch.no_grad()
def covariance_averages(teacher: GaussianEnsemble) -> CovarianceAverages:
    """Average the teacher's covariances and means."""
    tril = triangular.precision_cholesky(teacher.data_covariance())
    member_tril = teacher.precision_tril
    gap = triangular.logdet_divergence(tril.expand_as(member_tril), member_tril).mean(0)
    anchor = teacher.means[0].detach()
    shift = (teacher.means - anchor).mean(0)
    return CovarianceAverages(anchor, shift, tril, teacher.knowledge_covariance(), gap)
