"""Calibration of predictives: curves, the area beside them, coverage of intervals.

All rest on the probability integral transform :math:`p_i = F_i(y_i)`: where each target falls in
its own predictive. If the predictives are right, these are uniform on [0, 1].
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import Distribution

from priornet.checks import check_shape, check_values, common_tensors
from priornet.metrics.scoring import coordinates, scored_target

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""The coverages at which intervals are judged."""


class CalibrationCurve(NamedTuple):
    """Promised and observed shares of targets; a perfect curve is the diagonal."""

    expected: Tensor
    """Probabilities p, shape ``(L,)``."""
    observed: Tensor
    """Share of targets at or below their predictive's p-quantile, ``(L,)`` or ``(L, K)``."""


class Coverage(NamedTuple):
    """The share of targets inside intervals."""

    share: Tensor
    """Share of targets inside, a scalar or ``(K,)``; the nominal coverage is perfect."""
    standard_error: Tensor
    """Binomial standard error of that share, same shape; 0 where all are inside, or none."""


@torch.no_grad()
def pit(distribution: Distribution, y: Tensor) -> Tensor:
    """Compute the probability integral transform :math:`F(y)` of each target in its predictive.

    Over many targets of right predictives it is uniform on [0, 1]. Too many values near 0 and 1
    mean overconfidence, too many near 1/2 underconfidence.

    Args:
        distribution: Predictive with a ``cdf``, batch ``(*batch,)``, event ``()`` or ``(K,)``.
        y: Targets, shape ``(*batch, *event)``.

    Returns:
        Values in [0, 1], per coordinate, shape ``(*batch, *event)``.

    Example:
        >>> pit(torch.distributions.Normal(torch.zeros(3), 1.0), torch.tensor([-9.0, 0.0, 9.0]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    y = scored_target(distribution, y)
    return coordinates(distribution).cdf(y)


@torch.no_grad()
def calibration_curve(
    distribution: Distribution, y: Tensor, levels: Tensor | None = None
) -> CalibrationCurve:
    r"""Compute observed against expected probability per coordinate (Kuleshov et al., 2018).

    .. math:: \hat p(p) = \frac1N \#\{i : F_i(y_i) \le p\}

    The diagonal is perfect. A curve that is flat in the middle and steep at both ends is
    overconfident; steep in the middle, underconfident; above or below throughout, biased.

    Args:
        distribution: Predictive with a ``cdf``, batch ``(N,)``, event ``()`` or ``(K,)``.
        y: Targets, shape ``(N, *event)``.
        levels: Probabilities p at which to look; 0, 0.01, ..., 1 when None.

    Returns:
        Expected ``(L,)`` and observed ``(L,)`` or ``(L, K)``.

    Example:
        >>> prediction = torch.distributions.Normal(torch.zeros(4), 1.0)
        >>> y = torch.tensor([-1.0, -0.1, 0.1, 1.0])
        >>> calibration_curve(prediction, y, levels=torch.tensor([0.25, 0.5])).observed
        tensor([0.2500, 0.5000])
    """
    ordered = _ordered_pit(distribution, y)
    if levels is None:
        levels = torch.arange(101, device=ordered.device).to(ordered.dtype) / 100
    ordered, levels = common_tensors(pit=ordered, levels=levels)
    check_values("levels", levels, (levels >= 0) & (levels <= 1), "in [0, 1]")
    wanted = levels.expand(*ordered.shape[:-1], len(levels)).contiguous()
    counts = torch.searchsorted(ordered, wanted, right=True)
    observed = counts.to(ordered.dtype) / ordered.shape[-1]
    return CalibrationCurve(levels, observed.movedim(-1, 0))


@torch.no_grad()
def miscalibration_area(distribution: Distribution, y: Tensor) -> Tensor:
    r"""Compute the area between curve and diagonal, :math:`\int_0^1 |\hat p(p) - p|\,dp`, exactly.

    0 is perfect, 1/2 the worst (every target outside its predictive); N targets of right
    predictives score about :math:`0.31/\sqrt N`.

    Args:
        distribution: Predictive with a ``cdf``, batch ``(N,)``, event ``()`` or ``(K,)``.
        y: Targets, shape ``(N, *event)``.

    Returns:
        A scalar, or one value per coordinate, shape ``(K,)``.

    Example:
        >>> prediction = torch.distributions.Normal(torch.zeros(1), 1.0)
        >>> miscalibration_area(prediction, torch.tensor([0.0]))
        tensor(0.2500)
    """
    ordered = _ordered_pit(distribution, y)
    n = ordered.shape[-1]
    ends = ordered.new_tensor([0.0, 1.0]).expand(*ordered.shape[:-1], 2)
    edges = torch.cat([ends[..., :1], ordered, ends[..., 1:]], -1)  # (*K, N + 2)
    height = torch.arange(n + 1, device=ordered.device).to(ordered.dtype) / n
    # On each stair the difference height - p is linear; its signed primitive is (p - h)|p - h| / 2.
    left, right = edges[..., :-1] - height, edges[..., 1:] - height
    return 0.5 * (right * right.abs() - left * left.abs()).sum(-1)


@torch.no_grad()
def coverage(lower: Tensor, upper: Tensor, y: Tensor) -> Coverage:
    r"""Compute the share of targets inside their interval, ends included, and its standard error.

    .. math:: \hat c = \frac1N \#\{i : l_i \le y_i \le u_i\}, \qquad
        \mathrm{se} = \sqrt{\hat c (1 - \hat c) / N}

    Perfect is the nominal coverage: less is overconfident, more is wasteful.

    Args:
        lower: Lower ends, shape ``(N,)`` or ``(N, K)``.
        upper: Upper ends, same shape.
        y: Targets, same shape.

    Returns:
        Share and standard error, scalars or one per coordinate, shape ``(K,)``.

    Example:
        >>> coverage(torch.zeros(4), torch.ones(4), torch.tensor([0.1, 0.5, 0.9, 2.0])).share
        tensor(0.7500)
    """
    lower, upper, y = common_tensors(lower=lower, upper=upper, y=y)
    check_shape("upper", upper, lower.shape)
    check_shape("y", y, lower.shape)
    if lower.ndim == 0 or len(lower) == 0:
        raise ValueError(f"`lower` must hold one or more rows; got {tuple(lower.shape)}.")
    check_values("upper", upper, upper >= lower, "no smaller than `lower`")
    share = ((lower <= y) & (y <= upper)).to(y.dtype).mean(0)
    return Coverage(share, (share * (1 - share) / len(y)).sqrt())


def _ordered_pit(distribution: Distribution, y: Tensor) -> Tensor:
    """Sort the transforms, with the targets on the last axis, ``(*event, N)``."""
    if len(distribution.batch_shape) != 1 or distribution.batch_shape[0] == 0:
        raise ValueError(
            "`distribution` must have one batch axis, one predictive per target, and one or more; "
            f"got batch {tuple(distribution.batch_shape)}."
        )
    y = scored_target(distribution, y)
    check_values("y", y, ~y.isnan(), "free of NaN (leave out what is missing)")
    values = pit(distribution, y)
    check_values("pit", values, ~values.isnan(), "free of NaN: the predictive has failed")
    return values.movedim(0, -1).sort(-1).values.contiguous()
