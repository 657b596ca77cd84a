"""Distilling an ensemble into one network: EnD2, proxy targets, EnD and MD-EnD."""

from __future__ import annotations

import functools
import math
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import Distribution, kl_divergence

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
from priornet.losses._closed_form import closed_form, scalar_belief, scalar_parameters
from priornet.losses.prior_network import divergence
from priornet.special import triangular
from priornet.special.gamma import stirling_gap

Tempering = Literal["paper", "mean-preserving", "exact"]

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

    The members enter only through averages, so the cost does not grow with M.

    Args:
        nw: Prediction with batch shape ``(*batch,)``.
        teacher: M Gaussians per input, or their :func:`precision_averages` at the same temperature.
        temperature: :math:`T \ge 1`; members move to their mean as it grows, Eq. (16). A number, or
            a tensor that broadcasts with the batch: one per network of a stack.
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
    check_temperature(temperature, nw.batch_shape, nw.loc)
    product = isinstance(nw, ProductNormalWishart)
    if isinstance(teacher, GaussianEnsemble):
        _check_teacher(nw.loc, teacher)
        teacher = teacher.coordinates() if product else teacher
    else:
        _check_averages(nw, teacher, PrecisionAverages)
    _check_mask(mask, nw)
    factors, t = (nw.factors if product else nw), temperature
    if product and isinstance(t, Tensor) and t.dim():
        t = t.unsqueeze(-1)  # one axis more: the coordinates
    is_scalar = factors.k_dim == 1
    if isinstance(teacher, GaussianEnsemble) and (mask is not None or not is_scalar):
        teacher = precision_averages(teacher, t)
    if isinstance(teacher, PrecisionAverages):
        teacher = PrecisionAverages(**hidden(mask, **teacher._asdict()))
    if isinstance(teacher, PrecisionAverages) and not is_scalar:
        loss = _endd(factors, teacher, t, tempering)
    else:
        loss = _scalar_endd(factors, teacher, t, tempering)
    return masked(loss.sum(-1) if product else loss, mask)


def _scalar_endd(
    nw: NormalWishart,
    teacher: GaussianEnsemble | PrecisionAverages,
    temperature: Tensor | float,
    tempering: Tempering,
) -> Tensor:
    """Compute K = 1 in closed form where possible, from the members if they are known."""
    if isinstance(teacher, GaussianEnsemble):
        fixed = (teacher.means.squeeze(-1), teacher.covariances.squeeze((-2, -1)))
    else:
        anchor, shift, tril, spread, gap = teacher
        fixed = (anchor.squeeze(-1), shift.squeeze(-1), tril.squeeze((-2, -1)), spread, gap)
    number = None if isinstance(temperature, Tensor) else float(temperature)
    last = (temperature,) if isinstance(temperature, Tensor) else ()
    constants: tuple[Tensor, ...] = (*(f.detach() for f in fixed), *last)

    def composed(*tensors: Tensor) -> Tensor:
        student, given = scalar_belief(*tensors[:4]), tensors[4:]
        t = given[-1] if number is None else number
        if isinstance(teacher, GaussianEnsemble):
            means, variances = (v.unsqueeze(-1) for v in given[:2])
            averages = precision_averages(GaussianEnsemble(means, variances, False), t)
        else:
            anchor, shift, tril, spread, gap = given[:5]
            averages = PrecisionAverages(
                anchor.unsqueeze(-1), shift.unsqueeze(-1), tril[..., None, None], spread, gap
            )
        return _endd(student, averages, t, tempering)

    kernel = functools.partial(_kernels.endd, temperature=number, tempering=tempering)
    return closed_form(kernel, composed, nw, scalar_parameters(nw), constants)


def _endd(
    nw: NormalWishart,
    averages: PrecisionAverages,
    temperature: Tensor | float,
    tempering: Tempering,
) -> Tensor:
    k_dim, t = nw.k_dim, temperature
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
    factors = nw.factors if isinstance(nw, ProductNormalWishart) else nw
    target = teacher
    if mask is not None:
        parameters = {name: getattr(teacher, name) for name in _TARGET}
        target = NormalWishart.from_excess(**hidden(mask, **parameters), validate_args=False)
    loss = divergence(factors, target)
    return masked(loss.sum(-1) if factors is not nw else loss, mask)


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
    if isinstance(teacher, GaussianEnsemble):
        _check_teacher(gaussian.loc, teacher)
        teacher = covariance_averages(teacher)
    else:
        _check_averages(gaussian, teacher, CovarianceAverages)
    _check_mask(mask, gaussian)
    teacher = CovarianceAverages(**hidden(mask, **teacher._asdict()))
    if gaussian.loc.shape[-1] == 1:
        anchor, shift, tril, scatter, gap = teacher
        matrices = (tril.squeeze((-2, -1)), scatter.squeeze((-2, -1)))
        constants = (anchor.squeeze(-1), shift.squeeze(-1), *matrices, gap)
        return masked(_scalar_end(gaussian, constants), mask)
    return masked(_end(gaussian.loc, gaussian.precision_tril, teacher), mask)


def _end(loc: Tensor, tril: Tensor, teacher: CovarianceAverages) -> Tensor:
    """Compute Eq. (12) from the averages, for any K."""
    to_teacher = (teacher.anchor - loc) + teacher.shift
    off = triangular.sum_of_squares(triangular.transpose_matvec(tril, to_teacher))
    between = (triangular.outer(tril) * teacher.scatter).sum((-2, -1))
    within = triangular.logdet_divergence(tril, teacher.precision_tril) + teacher.gap
    return 0.5 * (within + between + off)


def _scalar_end(gaussian: Gaussian, constants: tuple[Tensor, ...]) -> Tensor:
    """Compute K = 1 in closed form where possible."""

    def composed(loc: Tensor, root: Tensor, *given: Tensor) -> Tensor:
        anchor, shift, tril, scatter, gap = given
        vectors = (anchor.unsqueeze(-1), shift.unsqueeze(-1))
        averages = CovarianceAverages(
            *vectors, tril[..., None, None], scatter[..., None, None], gap
        )
        return _end(loc.unsqueeze(-1), root[..., None, None], averages)

    parameters = (gaussian.loc.squeeze(-1), gaussian.precision_tril.squeeze((-2, -1)))
    return closed_form(_kernels.end, composed, gaussian, parameters, constants)


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
    if teacher.k_dim == 1:
        # The KL between two Gaussians is EnD from one member: no shift, no scatter, no gap.
        loc, tril = targets.loc.squeeze(-1), targets.precision_tril.squeeze((-2, -1))
        zero = torch.zeros_like(loc)
        per_head = _scalar_end(mixture.members, (loc, zero, tril, zero, zero))
    else:
        per_head = kl_divergence(targets, mixture.members)
    return masked(per_head.mean(0), mask)


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
