"""Members that learnt from few rows, made more alike in what they say about noise.

A Normal-Wishart weighs members by their precision. From few rows a precision is learnt badly: a
member that is sure by chance moves the student's mean and makes it sure, where the ensemble's own
mixture still listens to the others. So each member takes a share of its covariance from all of
them, as if it had seen some rows more. Means and the average covariance stay: the ensemble's data,
knowledge and total variance are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from priornet.distill.teachers.protocol import Answers
from priornet.distributions import GaussianEnsemble
from priornet.special import triangular

__all__ = ["pool_answers", "pool_covariances", "pooled_share"]

# Settled on parts of 13 tables, 40 to 350 rows each, scored on the rows that were left.
_ROWS_OF_ALL = 12  # from which a member learns what the others say
_ENOUGH = 240  # rows of a member that need no help
_MOST = 0.5


def pooled_share(n_rows: int) -> float:
    """Share of a member's covariance that is taken from all: ``12 / n_rows - 1 / 20``, 0 to 1/2.

    Args:
        n_rows: Rows that each member learnt from.
    """
    return min(max(_ROWS_OF_ALL / n_rows - _ROWS_OF_ALL / _ENOUGH, 0.0), _MOST)


@torch.no_grad()
def pool_covariances(ensemble: GaussianEnsemble, share: float) -> GaussianEnsemble:
    r"""Members with covariances :math:`(1 - s)\Sigma_m + s\bar\Sigma`; their means stay.

    Args:
        ensemble: M Gaussians per input.
        share: :math:`s`, between 0 (as they are) and 1 (all alike).
    """
    if share == 0:
        return ensemble
    tril = ensemble.precision_tril  # C of the precision C C^T
    roots = triangular.inverse(tril)
    # All covariances seen from each member, C_m^T Sigma_j C_m: sums of squares, so that lopsided
    # covariances of several targets keep their digits.
    seen = torch.zeros_like(tril)
    for root in roots:
        relative = root @ tril
        seen += relative.mT @ relative
    own = torch.eye(ensemble.k_dim, dtype=tril.dtype, device=tril.device)
    factor = triangular.precision_cholesky(torch.lerp(own, seen / len(roots), share))
    # Where they differ beyond the range of numbers, far outside, members stay as they are.
    good = torch.isfinite(seen + factor).all(-1).all(-1).all(0)[..., None, None]
    pooled = torch.where(good, tril @ factor, tril)
    return GaussianEnsemble.from_precision_tril(ensemble.means, pooled, validate_args=False)


def pool_answers(answers: Iterator[Answers], share: float) -> Iterator[Answers]:
    """Answers of a teacher whose members are made more alike."""
    for answer in answers:
        yield replace(answer, ensemble=pool_covariances(answer.ensemble, share))
