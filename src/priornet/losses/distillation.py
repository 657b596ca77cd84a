"""Distilling an ensemble into one network: EnD2, proxy targets, EnD and MD-EnD."""

from __future__ import annotations

import functools
import math
from types import UnionType
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import kl_divergence

from priornet.checks import check_mask, check_same_kind, hidden, masked
from priornet.distributions import (
    CovarianceAverages,
    Gaussian,
    GaussianEnsemble,
    NormalWishart,
    PrecisionAverages,
    ProductNormalWishart,
    covariance_averages,
    precision_averages,
)
from priornet.distributions.averages import check_temperature
from priornet.losses import _kernels
from priornet.losses._closed_form import closed_form
from priornet.losses.prior_network import divergence
from priornet.special import triangular
from priornet.special.gamma import stirling_gap

Tempering = Literal["paper", "mean-preserving", "exact"]

_EXPLICIT = NormalWishart | ProductNormalWishart
_TARGET = ("loc", "precision_tril", "belief", "excess")


def endd(
    nw: NormalWishart | ProductNormalWishart,
    teacher: GaussianEnsemble | PrecisionAverages,
    temperature: Tensor | float = 1.0,
    tempering: Tempering = "paper",
    mask: Tensor | None = None,
) -> Tensor:
    r"""Compute the EnD2 loss: the likelihood of a teacher's members, Eqs. (15) to (17).

    .. math:: -\frac1{TM}\sum_m \ln \mathcal{NW}(\mu_m^T, \Lambda_m^T \mid m, L_T, T\kappa, \nu_T)

    Args:
        nw: Prediction with batch shape ``(*batch,)``.
        teacher: M Gaussians per input, or their :func:`precision_averages` at the same temperature.
        temperature: :math:`T \ge 1`, which moves members to their mean, Eq. (16): a number, or a
            tensor that broadcasts with the batch.
        tempering: What T does to the prediction. ``"paper"``: :math:`\nu_T = T\nu, L_T = L`, which
            moves the expected precision; ``"mean-preserving"``: :math:`T\nu, L/T`; ``"exact"``:
            :math:`K + T(\nu-K), L/T`, the density to the power T renormalised.
        mask: True where the target counts, shape ``(*batch,)``.

    Returns:
        Loss per element, shape ``(*batch,)``.

    Example:
        >>> ensemble = GaussianEnsemble(torch.randn(5, 3, 1), torch.ones(5, 3, 1))
        >>> nw = NormalWishart.from_excess(torch.zeros(3, 1), torch.ones(3, 1, 1), 1.0, 1.0)
        >>> endd(nw, ensemble, temperature=10.0).shape
        torch.Size([3])
    """
    if tempering not in ("paper", "mean-preserving", "exact"):
        raise ValueError(
            f'unknown tempering "{tempering}"; choose one of: paper, mean-preserving, exact.'
        )
    check_temperature(temperature, nw.batch_shape, nw.loc)
    _check_teacher(nw, teacher, PrecisionAverages, "its PrecisionAverages")
    check_mask(mask, nw.batch_shape)
    if isinstance(nw, NormalWishart):
        return masked(_endd(nw, teacher, temperature, tempering, mask), mask)
    # Each coordinate by itself.
    teacher = teacher.coordinates() if isinstance(teacher, GaussianEnsemble) else teacher
    t = temperature
    if isinstance(t, Tensor) and t.dim():
        t = t.unsqueeze(-1)
    return masked(_endd(nw.factors, teacher, t, tempering, mask).sum(-1), mask)


def _endd(
    nw: NormalWishart,
    teacher: GaussianEnsemble | PrecisionAverages,
    t: Tensor | float,
    tempering: Tempering,
    mask: Tensor | None,
) -> Tensor:
    """Compute EnD2 for any K; one target in closed form where possible."""
    if isinstance(teacher, GaussianEnsemble) and (mask is not None or nw.loc.shape[-1] != 1):
        teacher = precision_averages(teacher, t)
    if isinstance(teacher, PrecisionAverages):
        teacher = PrecisionAverages(**hidden(mask, **teacher._asdict()))

    def formula(nw: NormalWishart) -> Tensor:
        if isinstance(teacher, GaussianEnsemble):
            return _tempered(nw, precision_averages(teacher, t), t, tempering)
        return _tempered(nw, teacher, t, tempering)

    if nw.loc.shape[-1] != 1:
        return formula(nw)
    if isinstance(teacher, GaussianEnsemble):
        constants = teacher.means.squeeze(-1), teacher.covariances.squeeze((-2, -1))
    else:
        constants = (average.reshape(nw.batch_shape) for average in teacher)
    kernel = functools.partial(_kernels.endd, tempering=tempering)
    return closed_form(kernel, nw, (*(c.detach() for c in constants), t), formula)


def _tempered(
    nw: NormalWishart, averages: PrecisionAverages, t: Tensor | float, tempering: Tempering
) -> Tensor:
    """Compute Eq. (17) from the averages, for any K."""
    k_dim = nw.loc.shape[-1]
    if not isinstance(t, Tensor) and t == 1:
        return _likelihood(nw.loc, nw.precision_tril, nw.belief, nw.excess, averages)
    # nu_T - K - 1, written in the excess so that a small one keeps its digits.
    excess = t * nw.excess + (t - 1) * (1 if tempering == "exact" else k_dim + 1)
    tril = nw.precision_tril
    if tempering == "paper":  # P = nu L grows T-fold
        tril = tril * (t**0.5)[..., None, None] if isinstance(t, Tensor) else math.sqrt(t) * tril
    elif tempering == "exact":  # nu_T / (T nu) = 1 - K (T - 1) / (T nu)
        tril = tril * (1 - k_dim * (1 - 1 / t) / nw.df).sqrt()[..., None, None]
    return _likelihood(nw.loc, tril, t * nw.belief, excess, averages) / t


def _likelihood(
    loc: Tensor, tril: Tensor, belief: Tensor, excess: Tensor, averages: PrecisionAverages
) -> Tensor:
    """Compute the members' negative log-likelihood per element from their averages, Eq. (15)."""
    k_dim = loc.shape[-1]
    to_teacher = (averages.anchor - loc) + averages.shift
    off = triangular.sum_of_squares(
        triangular.transpose_matvec(averages.precision_tril, to_teacher)
    )
    # Eq. (19), normal part, then Wishart part; K/2 mean ln|Lambda| is what is left of both.
    loss = belief * (averages.spread + off) - k_dim * torch.log(belief / (2 * math.pi))
    from_mean = triangular.logdet_divergence(averages.precision_tril, tril) + averages.gap
    loss = loss + (excess + (k_dim + 1)) * from_mean
    mean_logdet = triangular.logdet(averages.precision_tril) - averages.gap
    return 0.5 * (loss + k_dim * mean_logdet) - stirling_gap(excess, k_dim)


def proxy(
    nw: NormalWishart | ProductNormalWishart,
    teacher: GaussianEnsemble | NormalWishart | ProductNormalWishart,
    mask: Tensor | None = None,
    max_belief: float = 1e8,
    max_excess: float = 1e8,
) -> Tensor:
    r"""Compute the KL from the student to the Normal-Wishart fitted to the members.

    .. math:: KL[q \| \hat p], \qquad \hat p = \arg\max \prod_m \hat p(\mu_m, \Lambda_m)

    Args:
        nw: Prediction with batch shape ``(*batch,)``.
        teacher: M Gaussians per input, or the :meth:`NormalWishart.fit` to them, made once.
        mask: True where the target counts, shape ``(*batch,)``.
        max_belief: Bound on the fitted belief, for members that coincide.
        max_excess: Bound on the fitted excess.
    """
    _check_teacher(nw, teacher, _EXPLICIT, "the NormalWishart fitted to it")
    check_mask(mask, nw.batch_shape)
    student = nw.factors if isinstance(nw, ProductNormalWishart) else nw
    if isinstance(teacher, GaussianEnsemble):
        members = teacher if student is nw else teacher.coordinates()
        teacher = NormalWishart.fit(members, max_belief, max_excess)
    target = teacher.factors if isinstance(teacher, ProductNormalWishart) else teacher
    if mask is not None:
        parameters = {name: getattr(target, name) for name in _TARGET}
        target = NormalWishart.unchecked(**hidden(mask, **parameters))
    loss = divergence(student, target)
    return masked(loss if student is nw else loss.sum(-1), mask)


def end(
    gaussian: Gaussian,
    teacher: GaussianEnsemble | CovarianceAverages,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Compute the loss of Ensemble Distillation into one Gaussian, Eq. (12).

    .. math:: \frac1M\sum_m KL[\mathcal N_m \| \mathcal N]

    Its optimum is the moment match; disagreement between members becomes variance.

    Args:
        gaussian: Prediction with batch shape ``(*batch,)``.
        teacher: M Gaussians per input, or their :func:`covariance_averages`.
        mask: True where the target counts, shape ``(*batch,)``.
    """
    _check_teacher(gaussian, teacher, CovarianceAverages, "its CovarianceAverages")
    check_mask(mask, gaussian.batch_shape)
    if isinstance(teacher, GaussianEnsemble):
        teacher = covariance_averages(teacher)
    return masked(_end(gaussian, CovarianceAverages(**hidden(mask, **teacher._asdict()))), mask)


def _end(gaussian: Gaussian, teacher: CovarianceAverages) -> Tensor:
    """Compute Eq. (12) from the averages; one target in closed form where possible."""

    def formula(gaussian: Gaussian) -> Tensor:
        tril = gaussian.precision_tril
        to_teacher = (teacher.anchor - gaussian.loc) + teacher.shift
        off = triangular.sum_of_squares(triangular.transpose_matvec(tril, to_teacher))
        between = (triangular.outer(tril) * teacher.scatter).sum((-2, -1))
        within = triangular.logdet_divergence(tril, teacher.precision_tril) + teacher.gap
        return 0.5 * (within + between + off)

    if gaussian.loc.shape[-1] != 1:
        return formula(gaussian)
    constants = tuple(average.reshape(gaussian.batch_shape) for average in teacher)
    return closed_form(_kernels.end, gaussian, constants, formula)


def md_end(
    mixture: GaussianEnsemble, teacher: GaussianEnsemble, mask: Tensor | None = None
) -> Tensor:
    r"""Compute the mixture-density loss: one head per member, in the teacher's order, Eq. (13).

    .. math:: \frac1M\sum_m KL[\mathcal N_m \| \mathcal N_m^{\text{head}}]

    Args:
        mixture: Prediction of M Gaussians per input.
        teacher: M Gaussians per input.
        mask: True where the target counts, shape ``(*batch,)``.
    """
    _check_teacher(mixture, teacher)
    if mixture.n_members != teacher.n_members:
        raise ValueError(
            f"`mixture` has {mixture.n_members} heads but `teacher` has {teacher.n_members} "
            "members; MD-EnD pairs them one to one."
        )
    check_mask(mask, mixture.batch_shape)
    stacked = None if mask is None else mask.expand((teacher.n_members, *mask.shape))
    members = hidden(stacked, loc=teacher.means, precision_tril=teacher.precision_tril)
    if teacher.k_dim == 1:
        # The KL between two Gaussians is EnD from one member: no shift, no scatter, no gap.
        loc, tril = members["loc"], members["precision_tril"]
        zero = torch.zeros_like(loc)
        single = CovarianceAverages(loc, zero, tril, torch.zeros_like(tril), zero[..., 0])
        per_head = _end(mixture.members, single)
    else:
        per_head = kl_divergence(Gaussian(**members, validate_args=False), mixture.members)
    return masked(per_head.mean(0), mask)


def _check_teacher(
    prediction: NormalWishart | ProductNormalWishart | Gaussian | GaussianEnsemble,
    teacher: object,
    other: type | UnionType = GaussianEnsemble,
    name: str = "",
) -> None:
    """Check for members, or averages of them, that fit the prediction; or for another kind."""
    if not isinstance(teacher, GaussianEnsemble | other):
        kinds = "a GaussianEnsemble" + (name and f" or {name}")
        raise TypeError(f"`teacher` must be {kinds}; got {type(teacher).__name__}.")
    expected, hint = (*prediction.batch_shape, *prediction.event_shape), ""
    if isinstance(teacher, GaussianEnsemble):
        loc = prediction.means if isinstance(prediction, GaussianEnsemble) else prediction.loc
        check_same_kind("teacher", teacher.means, "the prediction", loc)
        what, found = "members", tuple(teacher.means.shape[1:])
    elif isinstance(teacher, PrecisionAverages | CovarianceAverages):
        what, found = "averages", tuple(teacher.anchor.shape)
        if isinstance(prediction, ProductNormalWishart):
            expected, hint = (*expected, 1), " (averages of `ensemble.coordinates()`)"
    else:
        return  # a Normal-Wishart: the divergence checks it
    if found != expected:
        raise ValueError(
            f"`teacher` must have {what} of shape {expected}{hint}, like the prediction; got "
            f"{found}."
        )
