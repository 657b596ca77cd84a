"""Proper scores of a predictive: likelihood, CRPS, intervals."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, Normal
from torch.distributions import StudentT as TorchStudentT

from priornet.checks import check_shape, check_values, checked_target, common_tensors, target_mean
from priornet.distributions import NormalMixture, StudentT, TransformedUnivariate, as_gaussian
from priornet.special.elementwise import horner, normal_cdf
from priornet.special.gamma import log_gamma_gap
from priornet.special.maps import CoordinateMaps
from priornet.special.student_t import student_t_cdf

# a as a series in u, radius 1/2: -ln 2, then (-1)^n (1 - 2^(1-n)) zeta(n, 1/2) / n for u^(n-1).
_NEAR = 1 / 16
_ZETA = torch.special.zeta(torch.arange(2.0, 18.0, dtype=torch.float64), 0.5).tolist()
_SLOPE = (
    -math.log(2),
    *((-1) ** n * (1 - 2.0 ** (1 - n)) * zeta / n for n, zeta in enumerate(_ZETA, start=2)),
)
# For mapped targets: where to cut the line, in normal scores, and nodes in each piece.
_CUTS, _NODES = (-7.0, -5.0, -3.5, -2.3, -1.4, -0.7, 0.0, 0.7, 1.4, 2.3, 3.5, 5.0, 7.0), 6
_EXPM1 = tuple(1 / math.factorial(k) for k in range(1, 14))


def standard_student_t_crps(z: Tensor, excess: Tensor) -> Tensor:
    """Compute the CRPS of a standard Student-T at ``z``, given df - 2; ``inf`` for df <= 1/2."""
    z, excess = torch.broadcast_tensors(z, excess)
    proper = excess > -1.5
    # From eps^-2 degrees of freedom on the T is a Gaussian to the last digit, infinity included.
    excess = torch.where(proper, excess, 0.0).clamp(max=torch.finfo(z.dtype).eps ** -2)
    df, shifted = excess + 2, excess + 1
    slope = _gamma_slope(excess)
    rate = slope + 0.5 * _growth(z / torch.sqrt(df))
    centre = torch.exp(log_gamma_gap(0.5 * df)) / math.sqrt(2 * math.pi)  # density at 0
    spread = centre * df * torch.exp(shifted * slope) * rate * _relative(-shifted * rate)
    crps = z * (2 * student_t_cdf(z, df) - 1) - 2 * spread
    return torch.where(proper, crps, torch.inf)


def _growth(r: Tensor) -> Tensor:
    """Compute ln(1 + r^2) without overflow."""
    far = r.abs() > 1
    small, large = torch.where(far, 0.0, r), torch.where(far, r.abs(), 1.0)
    return torch.where(
        far, 2 * torch.log(large) + torch.log1p(large**-2), torch.log1p(small * small)
    )


def _gamma_slope(excess: Tensor) -> Tensor:
    """Compute the slope ``a``: by a series near df = 1, by gamma functions away from it."""
    shifted = excess + 1
    near = shifted.abs() < _NEAR
    series = horner(torch.where(near, shifted, 0.0), _SLOPE)
    df = torch.where(near, 3.0, excess + 2)  # where the series serves, any other df will do
    log_ratio = log_gamma_gap(0.5 * df) - log_gamma_gap(df - 0.5) - 0.5 * torch.log(2 - 1 / df)
    return torch.where(near, series, log_ratio / (df - 1))


def _relative(w: Tensor) -> Tensor:
    """Compute (exp(w) - 1) / w, smooth through 0."""
    near = w.abs() < 0.25
    series = horner(torch.where(near, w, 0.0), _EXPM1)
    far = torch.where(near, 1.0, w)
    return torch.where(near, series, torch.expm1(far) / far)


def crps(distribution: Distribution, y: Tensor) -> Tensor:
    r"""Compute the continuous ranked probability score of a predictive.

    .. math:: \mathrm{CRPS}(F, y) = \int_{-\infty}^{\infty} (F(x) - 1_{x \ge y})^2\, dx

    Lower is better, in the target's units; 0 is perfect. It is proper: the true distribution scores
    best. Over vectors it is the sum over coordinates; :func:`nll` scores their dependence too.

    Formulas: Gneiting and Raftery (2007) for the Gaussian; Jordan, Krueger and Lerch (2019) for the
    Student-T, ``inf`` for df <= 1/2; Grimit et al. (2006) for mixtures, of order :math:`M^2`. That
    of a mapped target is integrated piece by piece: to about five digits, three for a Student-T of
    little more than two degrees of freedom.

    Args:
        distribution: Gaussian, Student-T, mixture of Gaussians, or a map of one of these; event
            ``()`` or ``(K,)``.
        y: Targets, shape ``(*batch, *event)``.

    Returns:
        One score per target, shape ``(*batch,)``; differentiable.

    Example:
        >>> crps(Normal(torch.zeros(2), 1.0), torch.tensor([0.0, 3.0]))
        tensor([0.2337, 2.4366])
    """
    y = scored_target(distribution, y)
    single = coordinates(distribution)
    if isinstance(single, Normal):
        score = single.scale * _standard_normal_crps((y - single.loc) / single.scale)
    elif isinstance(single, StudentT):
        z = (y - single.loc) / single.scale
        score = single.scale * standard_student_t_crps(z, single.excess)
    elif isinstance(single, TorchStudentT):
        z = (y - single.loc) / single.scale
        score = single.scale * standard_student_t_crps(z, single.df - 2)
    elif isinstance(single, NormalMixture):
        score = _mixture_crps(single, y)
    elif isinstance(single, TransformedUnivariate):
        score = _mapped_crps(single, y)
    else:
        raise NotImplementedError(
            f"no closed-form CRPS for {type(distribution).__name__}; give a Gaussian, a Student-T "
            "or a mixture of Gaussians."
        )
    return score.sum(-1) if distribution.event_shape else score


def nll(distribution: Distribution, y: Tensor) -> Tensor:
    r"""Compute the negative log-likelihood :math:`-\ln p(y)` of the targets, constants kept.

    Lower is better, in nats per target, joint over the coordinates of a vector. No score is
    perfect: a density has no upper bound.

    Args:
        distribution: Anything with a ``log_prob``, batch ``(*batch,)``, event ``()`` or ``(K,)``.
        y: Targets, shape ``(*batch, *event)``.

    Returns:
        One value per target, shape ``(*batch,)``.

    Example:
        >>> nll(Normal(torch.zeros(2), 1.0), torch.tensor([0.0, 3.0]))
        tensor([0.9189, 5.4189])
    """
    y = scored_target(distribution, y)
    return -distribution.log_prob(y)


def rmse(prediction: Tensor, y: Tensor) -> Tensor:
    """Compute the root mean squared error over the first axis: lower is better, 0 is perfect.

    Args:
        prediction: Predicted means, shape ``(N,)`` or ``(N, K)``.
        y: Targets, same shape.

    Returns:
        A scalar, or one value per coordinate, shape ``(K,)``, in the target's units.

    Example:
        >>> rmse(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.4142)
    """
    prediction, y = common_tensors(prediction=prediction, y=y)
    check_shape("y", y, prediction.shape, " Give one target per prediction.")
    if prediction.ndim == 0 or len(prediction) == 0:
        raise ValueError(f"`prediction` must hold one or more rows; got {tuple(prediction.shape)}.")
    return (prediction - y).square().mean(0).sqrt()


def interval_score(lower: Tensor, upper: Tensor, y: Tensor, coverage: float) -> Tensor:
    r"""Compute an interval's width plus a penalty for a target outside (Gneiting & Raftery, 2007).

    .. math:: (u - l) + \tfrac2\alpha (l - y)_+ + \tfrac2\alpha (y - u)_+, \qquad
        \alpha = 1 - \mathrm{coverage}

    Lower is better, in the target's units. It is proper: the true quantiles score best.

    Args:
        lower: Lower ends, any shape.
        upper: Upper ends, same shape.
        y: Targets, same shape.
        coverage: Share of targets that the interval claims to cover, in (0, 1).

    Returns:
        One score per target, same shape.

    Example:
        >>> interval_score(torch.zeros(2), torch.ones(2), torch.tensor([0.5, 1.5]), coverage=0.9)
        tensor([ 1., 11.])
    """
    lower, upper, y = common_tensors(lower=lower, upper=upper, y=y)
    check_shape("upper", upper, lower.shape)
    check_shape("y", y, lower.shape)
    if not 0 < coverage < 1:
        raise ValueError(f"`coverage` must lie between 0 and 1; got {coverage:g}.")
    check_values("upper", upper, upper >= lower, "no smaller than `lower`")
    outside = torch.relu(lower - y) + torch.relu(y - upper)
    return (upper - lower) + 2 / (1 - coverage) * outside


def coordinates(distribution: Distribution) -> Distribution:
    """Return each coordinate's distribution: batch ``(*batch, *event)``, event ``()``."""
    if not distribution.event_shape:
        return distribution
    marginals = getattr(distribution, "marginals", None)
    if marginals is not None:
        return marginals()
    base = getattr(distribution, "base_dist", None)
    if base is not None and not base.event_shape:
        return base
    return as_gaussian(distribution).marginals()


def scored_target(distribution: Distribution, y: Tensor) -> Tensor:
    """Check for a distribution over targets, and for targets that fit it."""
    if not isinstance(distribution, Distribution):
        raise TypeError(f"`distribution` must be one; got {type(distribution).__name__}.")
    return checked_target(distribution, y, target_mean(distribution))


def _standard_normal_crps(z: Tensor) -> Tensor:
    return _absolute_moment(z, torch.ones_like(z)) - 1 / math.sqrt(math.pi)


def _absolute_moment(mean: Tensor, scale: Tensor) -> Tensor:
    r"""Compute :math:`E|X|` of a normal, :math:`\mu(2\Phi(z) - 1) + 2\sigma\phi(z)`."""
    z = mean / scale
    density = torch.exp(-0.5 * z * z) * math.sqrt(2 / math.pi)  # twice the standard normal's
    return mean * torch.erf(math.sqrt(0.5) * z) + scale * density


def _mixture_crps(mixture: NormalMixture, y: Tensor) -> Tensor:
    r"""Compute :math:`E|X - y| - \frac12 E|X - X'|` over every pair of components."""
    # There is no public way to the components with their axis last.
    means, scales = mixture._means, mixture._scales  # pyright: ignore[reportPrivateUsage]
    m = means.shape[-1]
    to_target = _absolute_moment(y.unsqueeze(-1) - means, scales).mean(-1)
    # Each component with itself, then with those a step away: memory stays at M values a target.
    among = scales.sum(-1) / math.sqrt(math.pi)
    for step in range(1, m):
        gap = means[..., step:] - means[..., : m - step]
        scale = torch.hypot(scales[..., step:], scales[..., : m - step])
        among = among + _absolute_moment(gap, scale).sum(-1)
    return to_target - among / (m * m)


def _mapped_crps(single: TransformedUnivariate, y: Tensor) -> Tensor:
    r"""Integrate :math:`(F(t) - 1_{h(t) \ge y})^2\, h'(t)` over t, between quantiles of t."""
    base, own = single.base, single.target_map
    cuts = y.new_tensor(_CUTS)
    if isinstance(base, NormalMixture):
        means, scales = base.components
        edges = (means.unsqueeze(-1) + scales.unsqueeze(-1) * cuts).flatten(-2).movedim(-1, 0)
    else:
        # Lower quantiles, and their mirror images: upper levels would round to 1.
        levels = normal_cdf(cuts[cuts < 0]).reshape(-1, *[1] * len(single.batch_shape))
        low, middle = base.icdf(levels.expand(-1, *single.batch_shape)), base.loc
        edges = torch.cat([low, middle[None].expand_as(low[:1]), (2 * middle - low).flip(0)])
    t = own.forward(y)
    edges = edges.expand(-1, *torch.broadcast_shapes(t.shape, single.batch_shape))
    inside = t.clamp(edges.amin(0), edges.amax(0))
    maps = own.maps if isinstance(own, CoordinateMaps) else (own,)
    most = max(len(one.edges) for one in maps)
    padded = [[*one.edges, *[one.high] * (most - len(one.edges))] for one in maps]
    bends = t.new_tensor(padded).T.squeeze(-1)
    bends = bends.reshape(most, *[1] * (t.dim() + 1 - bends.dim()), *bends.shape[1:])
    bends = bends.clamp(edges.amin(0), edges.amax(0)).expand(most, *inside.shape)
    edges = torch.cat([edges, inside[None], bends]).sort(0).values
    total = (y - own.inverse(inside)).abs()  # where F is 0 or 1
    for node, weight in zip(*np.polynomial.legendre.leggauss(_NODES), strict=True):
        at = edges[:-1] + (0.5 + 0.5 * float(node)) * edges.diff(dim=0)
        miss = base.cdf(at) - (at >= inside).to(at.dtype)
        parts = edges.diff(dim=0) * miss * miss * torch.exp(own.log_slope(at))
        total = total + 0.5 * float(weight) * parts.sum(0)
    return total
