"""Distilling an ensemble into one network: EnD2, proxy targets, EnD and MD-EnD."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import Distribution, kl_divergence

from priornet.checks import check_mask, check_same_kind, values_visible
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
from priornet.losses.reduction import hidden, masked
from priornet.losses.scalar_endd import scalar_endd
from priornet.special import triangular
from priornet.special.gamma import stirling_gap

__all__ = ["Tempering", "end", "endd", "md_end", "proxy"]

Tempering = Literal["paper", "mean-preserving", "exact"]

_TARGET = ("loc", "precision_tril", "belief", "excess")


def endd(
    nw: NormalWishart | ProductNormalWishart,
    teacher: GaussianEnsemble | PrecisionAverages,
    temperature: float = 1.0,
    tempering: Tempering = "paper",
    mask: Tensor | None = None,
) -> Tensor:
    r"""Ensemble Distribution Distillation: likelihood of the members, Eqs. (15) to (17).

    .. math:: -\frac1{TM}\sum_m \ln \mathcal{NW}(\mu_m^T, \Lambda_m^T \mid m, L_T, T\kappa, \nu_T)

    The members enter only through averages, so the cost does not grow with M.

    Args:
        nw: Prediction with batch shape ``(*batch,)``.
        teacher: M Gaussians per input, or their :func:`precision_averages` at the same temperature.
        temperature: :math:`T \ge 1`; members move to their mean as it grows, Eq. (16).
        tempering: What T does to the prediction. ``"paper"``: :math:`\nu_T = T\nu, L_T = L`;
            ``"mean-preserving"``: :math:`T\nu, L/T`; ``"exact"``: :math:`K + T(\nu-K), L/T`, the
            density to the power T renormalised.
        mask: True where the target counts, shape ``(*batch,)``.

    Returns:
        Loss per element, shape ``(*batch,)``.

    Note:
        The paper's form moves the expected precision to :math:`T\nu L`, so the prediction does not
        sharpen around a fixed mean; the other two keep it.

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
    check_temperature(temperature)
    if isinstance(teacher, GaussianEnsemble):
        _check_teacher(nw.loc, teacher)
        if isinstance(nw, ProductNormalWishart):
            teacher = teacher.coordinates()
        teacher = precision_averages(teacher, temperature)
    else:
        _check_averages(nw, teacher, PrecisionAverages)
    _check_mask(mask, nw)
    teacher = PrecisionAverages(**hidden(mask, **teacher._asdict()))
    if isinstance(nw, ProductNormalWishart):
        return masked(_endd(nw.factors, teacher, temperature, tempering).sum(-1), mask)
    return masked(_endd(nw, teacher, temperature, tempering), mask)


def _endd(
    nw: NormalWishart, averages: PrecisionAverages, temperature: float, tempering: Tempering
) -> Tensor:
    k_dim, t = nw.k_dim, temperature
    belief, excess, tril = nw.belief, nw.excess, nw.precision_tril
    if t != 1:
        belief = t * belief
        # nu_T - K - 1, written in the excess so that a small one keeps its digits.
        excess = t * excess + (t - 1) * (1 if tempering == "exact" else k_dim + 1)
        if tempering == "paper":
            tril = math.sqrt(t) * tril  # P = nu L grows T-fold
        elif tempering == "exact":  # nu_T / (T nu) = 1 - K (T - 1) / (T nu)
            tril = tril * (1 - k_dim * (1 - 1 / t) / nw.df).sqrt()[..., None, None]
    if k_dim == 1 and values_visible(nw.loc, tril, belief, excess, *averages):
        parameters = (nw.loc[..., 0], tril[..., 0, 0], belief, excess)
        flat = (a.reshape(-1) for a in averages)
        loss = scalar_endd(
            _flat_likelihood, tuple(p.reshape(-1) for p in parameters), tuple(flat)
        ).reshape(nw.batch_shape)
    else:
        loss = _likelihood(nw.loc, tril, belief, excess, averages)
    return loss / t if t != 1 else loss


def _likelihood(
    loc: Tensor, tril: Tensor, belief: Tensor, excess: Tensor, averages: PrecisionAverages
) -> Tensor:
    """Negative log-likelihood of the members per element, from their averages, Eq. (15)."""
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


def _flat_likelihood(
    loc: Tensor, tril: Tensor, belief: Tensor, excess: Tensor, *a: Tensor
) -> Tensor:
    """The same for K = 1 and flat tensors."""
    anchor, shift, mean_tril, spread, gap = a
    averages = PrecisionAverages(
        anchor.unsqueeze(-1), shift.unsqueeze(-1), mean_tril[:, None, None], spread, gap
    )
    return _likelihood(loc.unsqueeze(-1), tril[:, None, None], belief, excess, averages)


def proxy(
    nw: NormalWishart | ProductNormalWishart,
    teacher: GaussianEnsemble | NormalWishart | ProductNormalWishart,
    mask: Tensor | None = None,
    max_belief: float = 1e8,
    max_excess: float = 1e8,
) -> Tensor:
    r"""Proxy-target distillation: KL from the student to the Normal-Wishart fitted to the members.

    .. math:: KL[q \| \hat p], \qquad \hat p = \arg\max \prod_m \hat p(\mu_m, \Lambda_m)

    The fit is closed-form (:meth:`NormalWishart.fit`); pass it instead of the ensemble when the
    same inputs come back every epoch.

    Args:
        nw: Prediction with batch shape ``(*batch,)``.
        teacher: M Gaussians per input, or the Normal-Wishart fitted to them.
        mask: True where the target counts, shape ``(*batch,)``.
        max_belief: Bound on the fitted belief, for members that coincide.
        max_excess: Bound on the fitted excess.
    """
    if isinstance(teacher, GaussianEnsemble):
        _check_teacher(nw.loc, teacher)
        if isinstance(nw, ProductNormalWishart):
            teacher = teacher.coordinates()
        teacher = NormalWishart.fit(teacher, max_belief, max_excess)
    if isinstance(teacher, ProductNormalWishart):
        teacher = teacher.factors
    if not isinstance(teacher, NormalWishart):
        raise TypeError(
            "`teacher` must be a GaussianEnsemble or the NormalWishart fitted to it; got "
            f"{type(teacher).__name__}."
        )
    _check_mask(mask, nw)
    target = NormalWishart.from_excess(
        **hidden(mask, **{name: getattr(teacher, name) for name in _TARGET}), validate_args=False
    )
    if isinstance(nw, ProductNormalWishart):
        return masked(kl_divergence(nw.factors, target).sum(-1), mask)
    return masked(kl_divergence(nw, target), mask)


def end(
    gaussian: Gaussian,
    teacher: GaussianEnsemble | CovarianceAverages,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Ensemble Distillation into one Gaussian, Eq. (12).

    .. math:: \frac1M\sum_m KL[\mathcal N_m \| \mathcal N]

    Its optimum is the moment match; disagreement between members becomes variance.

    Args:
        gaussian: Prediction with batch shape ``(*batch,)``.
        teacher: M Gaussians per input, or their :func:`covariance_averages`.
        mask: True where the target counts, shape ``(*batch,)``.
    """
    if isinstance(teacher, GaussianEnsemble):
        _check_teacher(gaussian.loc, teacher)
        teacher = covariance_averages(teacher)
    else:
        _check_averages(gaussian, teacher, CovarianceAverages)
    _check_mask(mask, gaussian)
    teacher = CovarianceAverages(**hidden(mask, **teacher._asdict()))
    tril = gaussian.precision_tril
    to_teacher = (teacher.anchor - gaussian.loc) + teacher.shift
    off = triangular.sum_of_squares(triangular.transpose_matvec(tril, to_teacher))
    between = (triangular.outer(tril) * teacher.scatter).sum((-2, -1))
    within = triangular.logdet_divergence(tril, teacher.precision_tril) + teacher.gap
    return masked(0.5 * (within + between + off), mask)


def md_end(
    mixture: GaussianEnsemble, teacher: GaussianEnsemble, mask: Tensor | None = None
) -> Tensor:
    r"""Mixture-density distillation: one head per member, in the teacher's order, Eq. (13).

    .. math:: \frac1M\sum_m KL[\mathcal N_m \| \mathcal N_m^{\text{head}}]

    Args:
        mixture: Prediction of M Gaussians per input.
        teacher: M Gaussians per input.
        mask: True where the target counts, shape ``(*batch,)``.
    """
    if not isinstance(teacher, GaussianEnsemble):
        raise TypeError(f"`teacher` must be a GaussianEnsemble; got {type(teacher).__name__}.")
    if mixture.n_members != teacher.n_members:
        raise ValueError(
            f"`mixture` has {mixture.n_members} heads but `teacher` has {teacher.n_members} "
            "members; MD-EnD pairs them one to one."
        )
    _check_teacher(mixture.means[0], teacher)
    _check_mask(mask, mixture)
    stacked = None if mask is None else mask.expand((teacher.n_members, *mask.shape))
    members = hidden(stacked, loc=teacher.means, precision_tril=teacher.precision_tril)
    targets = Gaussian(**members, validate_args=False)
    return masked(kl_divergence(targets, mixture.members).mean(0), mask)


def _check_mask(mask: Tensor | None, prediction: Distribution) -> None:
    if mask is not None:
        check_mask(mask, prediction.batch_shape)


def _check_averages(
    prediction: Distribution,
    averages: PrecisionAverages | CovarianceAverages,
    kind: type[PrecisionAverages] | type[CovarianceAverages],
) -> None:
    if not isinstance(averages, kind):
        raise TypeError(
            f"`teacher` must be a GaussianEnsemble or its {kind.__name__}; got "
            f"{type(averages).__name__}."
        )
    expected, hint = (*prediction.batch_shape, *prediction.event_shape), ""
    if isinstance(prediction, ProductNormalWishart):
        expected, hint = (*expected, 1), " (averages of `ensemble.coordinates()`)"
    if tuple(averages.anchor.shape) != expected:
        raise ValueError(
            f"`teacher` must hold averages of shape {expected}{hint}, like the prediction; got "
            f"{tuple(averages.anchor.shape)}."
        )


def _check_teacher(loc: Tensor, teacher: GaussianEnsemble) -> None:
    check_same_kind("teacher", teacher.means, "the prediction", loc)
    if teacher.means.shape[1:] != loc.shape:
        raise ValueError(
            f"`teacher` must have members of shape {tuple(loc.shape)}, like the prediction; got "
            f"{tuple(teacher.means.shape[1:])}."
        )
