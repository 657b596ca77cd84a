"""Ranking by uncertainty: rejection, out-of-domain detection, rank correlation."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from priornet.checks import check_shape, check_values, common_tensors


class RejectionCurve(NamedTuple):
    """Error left after rejecting a share of the examples, in the error's units; lower is better."""

    fraction: Tensor
    """Share of the examples rejected, ``k / N``, shape ``(N + 1,)``."""
    uncertainty: Tensor
    """Error left when the most uncertain go first, shape ``(N + 1,)``."""
    random: Tensor
    """Error left, in expectation, when chance decides, shape ``(N + 1,)``."""
    oracle: Tensor
    """Error left when the largest errors go first, the lowest curve, shape ``(N + 1,)``."""


@torch.no_grad()
def prediction_rejection_ratio(error: Tensor, uncertainty: Tensor) -> Tensor:
    r"""Compute the share of the oracle's gain over random rejection that an uncertainty achieves.

    The areas between the curves of :func:`rejection_curve` are covariances with midranks:

    .. math::
        \mathrm{PRR} = \frac{A_\mathrm{random} - A_\mathrm{uncertainty}}
                            {A_\mathrm{random} - A_\mathrm{oracle}}
                     = \frac{\operatorname{cov}(e, \operatorname{rank} u)}
                            {\operatorname{cov}(e, \operatorname{rank} e)}

    1 is perfect (the order of the errors), 0 is chance or a constant, -1 the reverse of perfect.

    Paper: appendix "Prediction Rejection Ratio" (unnumbered), arXiv:2006.11590v2. The error left is
    divided by N throughout; forms that divide by the number of examples *retained*, or end the
    curves early, are no ratio of covariances.

    Args:
        error: Error of each prediction, such as the squared error, finite, shape ``(N,)``, N >= 2.
        uncertainty: Uncertainty of each prediction, higher is rejected first, shape ``(N,)``.

    Returns:
        Scalar tensor in [-1, 1]; ``nan`` when all errors are equal.

    Example:
        >>> error = torch.tensor([0.1, 4.0, 0.2, 1.0])
        >>> prediction_rejection_ratio(error, uncertainty=torch.tensor([1.0, 9.0, 2.0, 3.0]))
        tensor(1.)
    """
    error, uncertainty = _check_pair(error, uncertainty)
    # Dividing by a power of two is exact, and the sums then neither overflow nor underflow.
    peak = error.abs().max()
    power_of_two = peak / (2 * torch.frexp(peak).mantissa)
    error = error / power_of_two
    # Centred ranks make the mean irrelevant in exact arithmetic; without it the sums round less.
    deviation = error - error.mean()
    achieved = (deviation * _centred_midranks(uncertainty)).sum()
    achievable = (deviation * _centred_midranks(error)).sum()
    return torch.where(achievable > 0, achieved / achievable, torch.nan)


@torch.no_grad()
def rejection_curve(error: Tensor, uncertainty: Tensor) -> RejectionCurve:
    r"""Compute the error left after rejecting the k most uncertain, with random and oracle curves.

    .. math:: R_k = \frac1N \sum_{i\ \mathrm{retained}} e_i, \qquad k = 0, \dots, N

    Lower is better; ties are averaged. Trapezoid areas give :func:`prediction_rejection_ratio`,
    which is itself more accurate where errors hardly differ.

    Paper: appendix "Prediction Rejection Ratio" (unnumbered), arXiv:2006.11590v2.

    Args:
        error: Error of each prediction, such as the squared error, finite, shape ``(N,)``, N >= 2.
        uncertainty: Uncertainty of each prediction, higher is rejected first, shape ``(N,)``; may
            be infinite.

    Returns:
        Four tensors of shape ``(N + 1,)``, from nothing rejected (the mean error) to all (zero).

    Example:
        >>> curve = rejection_curve(torch.tensor([1.0, 2.0, 5.0]), torch.tensor([0.2, 0.1, 0.3]))
        >>> curve.uncertainty
        tensor([2.6667, 1.0000, 0.6667, 0.0000])
    """
    error, uncertainty = _check_pair(error, uncertainty)
    n = len(error)
    fraction = torch.arange(n + 1, device=error.device).to(error.dtype) / n
    share = error / n
    return RejectionCurve(
        fraction=fraction,
        uncertainty=_left_after_rejection(share, uncertainty),
        random=share.sum() * fraction.flip(0),
        oracle=_left_after_rejection(share, error),
    )


def _left_after_rejection(share: Tensor, score: Tensor) -> Tensor:
    """Sum of the shares left after rejecting the k highest scores, k = 0..N, linear across ties."""
    ordered, order = score.sort()
    # Summed from the retained end, so that the small values near full rejection keep their digits.
    kept = torch.cat([share.new_zeros(1), share[order].cumsum(0)])  # (N + 1,), by number retained
    start, stop = _tie_bounds(ordered)
    retained = torch.arange(1, len(share) + 1, device=share.device)
    across_tie = (retained - start).to(share.dtype) / (stop - start)  # 1 where there is no tie
    kept[1:] = torch.lerp(kept[start], kept[stop], across_tie)
    return kept.flip(0)


def _centred_midranks(values: Tensor) -> Tensor:
    """Return ``2 r - (N + 1)`` for the midranks r along the last axis: integers that sum to 0."""
    ordered, order = values.sort(-1)
    start, stop = _tie_bounds(ordered)
    return torch.empty_like(order).scatter_(-1, order, start + stop - values.shape[-1])


def _tie_bounds(ordered: Tensor) -> tuple[Tensor, Tensor]:
    """Count, for each sorted value along the last axis, the smaller and the not larger ones."""
    n = ordered.shape[-1]
    place = torch.arange(n, device=ordered.device)
    differs = ordered[..., 1:] != ordered[..., :-1]
    end = torch.ones_like(ordered[..., :1], dtype=torch.bool)
    start = torch.where(torch.cat([end, differs], -1), place, 0).cummax(-1).values
    stop = torch.where(torch.cat([differs, end], -1), place + 1, n)
    return start, stop.flip(-1).cummin(-1).values.flip(-1)


def _check_pair(error: Tensor, uncertainty: Tensor) -> tuple[Tensor, Tensor]:
    error, uncertainty = common_tensors(error=error, uncertainty=uncertainty)
    error, uncertainty = rankable("error", error), rankable("uncertainty", uncertainty)
    check_shape("uncertainty", uncertainty, error.shape, " Give one value per error.")
    if len(error) < 2:
        raise ValueError(f"`error` must hold two examples or more to rank; it holds {len(error)}.")
    check_values("error", error, error.isfinite(), "finite (leave out what overflowed)")
    return error, uncertainty


def rankable(name: str, value: Tensor) -> Tensor:
    """Check for a vector that holds nothing without a rank; return it contiguous."""
    if value.ndim != 1:
        raise ValueError(
            f"`{name}` must have one axis, one value per example; got shape {tuple(value.shape)}. "
            "Flatten it, or reduce it to one value per example."
        )
    check_values(name, value, ~value.isnan(), "free of NaN (leave out what failed)")
    return value.contiguous()


@torch.no_grad()
def ood_auroc(score_in: Tensor, score_out: Tensor) -> Tensor:
    r"""Compute the area under the ROC curve of telling out-of-domain inputs by an uncertainty.

    .. math:: P(s_\mathrm{out} > s_\mathrm{in}) + \tfrac12 P(s_\mathrm{out} = s_\mathrm{in})

    1 is perfect, 0.5 is chance or a constant score, 0 the reverse of perfect. Only the order of the
    scores counts. Pairs are counted exactly, in integers, in :math:`O(N \log N)` time.

    Paper: the OOD detection tables, arXiv:2006.11590v2 (no equation).

    Args:
        score_in: Uncertainty of in-domain inputs, shape ``(N_in,)``; infinite values tie.
        score_out: Uncertainty of out-of-domain inputs, shape ``(N_out,)``, the same dtype.

    Returns:
        Scalar tensor in [0, 1].

    Example:
        >>> ood_auroc(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.3, 0.8, torch.inf]))
        tensor(0.9444)
    """
    score_in, score_out = _check_scores(score_in, score_out)
    ordered = score_in.sort().values
    score_out = score_out.sort().values  # for speed: neighbours are looked up close together
    # For each out-of-domain score, twice the in-domain scores it beats, a tie counting half.
    twice_beaten = torch.searchsorted(ordered, score_out)
    twice_beaten += torch.searchsorted(ordered, score_out, right=True)
    pairs = len(score_in) * len(score_out)
    return twice_beaten.sum().to(score_in.dtype) / (2 * pairs)


def _check_scores(score_in: Tensor, score_out: Tensor) -> tuple[Tensor, Tensor]:
    score_in, score_out = common_tensors(score_in=score_in, score_out=score_out)
    score_in, score_out = rankable("score_in", score_in), rankable("score_out", score_out)
    for name, score in (("score_in", score_in), ("score_out", score_out)):
        if len(score) == 0:
            raise ValueError(f"`{name}` must hold at least one score; it is empty.")
    return score_in, score_out


@torch.no_grad()
def spearman(a: Tensor, b: Tensor) -> Tensor:
    r"""Compute Spearman's rank correlation along the last axis.

    1 where one rises whenever the other does, -1 where it falls, about 0 (give or take
    :math:`1/\sqrt N`) where they are independent. Tied values share their average rank.

    Args:
        a: Shape ``(*batch, N)``, N >= 2; may be infinite.
        b: Same shape.

    Returns:
        Shape ``(*batch,)``, in double precision; ``nan`` where either is constant.

    Example:
        >>> spearman(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1.0, 10.0, 5.0, 100.0]))
        tensor(0.8000, dtype=torch.float64)
    """
    a, b = common_tensors(a=a, b=b)
    check_shape("b", b, a.shape, " Give one value of each.")
    if a.dim() == 0 or a.shape[-1] < 2:
        raise ValueError(f"`a` must hold two values or more to rank; got {tuple(a.shape)}.")
    for name, value in (("a", a), ("b", b)):
        check_values(name, value, ~value.isnan(), "free of NaN (leave out what failed)")
    rank_a, rank_b = _centred_midranks(a).double(), _centred_midranks(b).double()
    norm = (rank_a.square().sum(-1) * rank_b.square().sum(-1)).sqrt()
    return torch.where(norm > 0, (rank_a * rank_b).sum(-1) / norm, torch.nan)
