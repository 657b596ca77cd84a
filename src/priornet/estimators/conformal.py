r"""Split conformal prediction with normalised scores: intervals whose coverage is guaranteed.

Rows that no training saw give scores :math:`s_i = |y_i - \hat y_i| / \hat\sigma_i`. For a new
row the same score is as likely as any to rank anywhere among them, so an interval as wide as the
k-th smallest score, :math:`k = \lceil (n + 1) c \rceil`, holds the target with probability at
least c, whatever the model and the distribution (Lei et al., 2018).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["conformal_quantile", "conformal_rank", "conformal_scores"]

FloatArray = NDArray[np.float64]


def conformal_scores(y: FloatArray, mean: FloatArray, std: FloatArray) -> FloatArray:
    """Normalised scores, sorted for each target column, shape ``(n, K)``."""
    return np.sort(np.abs(y - mean) / std, axis=0)


def conformal_rank(n: int, coverage: float) -> int | None:
    """Which of n sorted scores reaches a coverage, from 1; None where they are too few."""
    # 1e-9: the product of (n + 1) and a decimal coverage must not exceed its own integer.
    rank = max(math.ceil((n + 1) * coverage - 1e-9), 1)
    return None if rank > n else rank


def conformal_quantile(scores: FloatArray, coverage: float) -> FloatArray:
    """The exact finite-sample quantile of sorted scores, one per target column.

    Example:
        >>> conformal_quantile(np.arange(1.0, 20.0)[:, None], coverage=0.9)
        array([18.])
    """
    n = len(scores)
    rank = conformal_rank(n, coverage)
    if rank is None:
        needed = math.ceil(coverage / (1 - coverage) - 1e-9)
        raise ValueError(
            f"coverage {coverage:g} needs at least {needed} calibration rows; {n} were held out: "
            "give more rows, or raise `calibration_fraction`."
        )
    return scores[rank - 1]
