"""Does the uncertainty tell unfamiliar inputs from familiar ones?"""

from __future__ import annotations

import torch
from torch import Tensor

from priornet.checks import common_tensors
from priornet.metrics.rejection import rankable

__all__ = ["ood_auroc"]


@torch.no_grad()
def ood_auroc(score_in: Tensor, score_out: Tensor) -> Tensor:
    r"""Area under the ROC curve for telling out-of-domain from in-domain inputs by an uncertainty.

    The chance that a random out-of-domain input scores higher than a random in-domain one:

    .. math::
        \mathrm{AUROC} = P(s_\mathrm{out} > s_\mathrm{in})
                         + \tfrac12 P(s_\mathrm{out} = s_\mathrm{in})

    Higher is better; no unit. 1 is perfect (every out-of-domain score above every in-domain score),
    0.5 is what chance or a constant score gets, 0 is the reverse of perfect. Only the order of the
    scores counts. The pairs are counted exactly, in integers, in :math:`O(N \log N)` time.

    Paper: the OOD detection tables, arXiv:2006.11590v2 (no equation).

    Args:
        score_in: Uncertainty of in-domain inputs, shape ``(N_in,)``. Infinite values are fine (EPKL
            can be ``inf``) and tie with each other.
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
