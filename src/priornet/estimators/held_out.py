r"""Limits from held-out rows: the width of intervals, and the uncertainty of ordinary rows.

**Conformal intervals.** Rows that no training saw give scores :math:`s_i = |y_i - \hat y_i| /
\hat\sigma_i`. For a new row the same score is as likely as any to rank anywhere among them, so an
interval as wide as the k-th smallest score, :math:`k = \lceil (n + 1) c \rceil`, holds the target
with probability at least c, whatever the model and the distribution (Lei et al., 2018).

**Verdicts.** Reference rows are rows of the training table, the held-out ones where there are
enough. Beside them, a row gets one plain word:

- ``unfamiliar``: the model has not learnt such rows. Fewer than 1 % of the reference rows have as
  much knowledge uncertainty. More data of this kind would help.
- ``noisy``: familiar, but targets scatter here: the data standard deviation is over 1.5 times that
  of the median reference row. More data would not help.
- ``trust``: neither.

A row with what training never had (:mod:`priornet.tables.encoding`) is ``unfamiliar`` whatever its
uncertainty: a network shows none where a median took the place of a missing value. A model that
learnt from fewer than :data:`FEWEST` rows calls all of them unfamiliar.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

UNFAMILIAR = 0.01
"""A row whose in-domain score is below this is unfamiliar."""
NOISY = 1.5
"""A familiar row is noisy when its data standard deviation exceeds the median by this factor."""
FEWEST = 20
"""A model that learnt from fewer rows calls every row unfamiliar.

With 2 to 15 rows of a smooth function with noise, the 90 % intervals of an ensemble's trusted rows
held between 0 and 83 % of new targets on average; with 20 rows, 90 %.
"""
WORDS = ("trust", "noisy", "unfamiliar")

_KEPT = 2000


@dataclass(frozen=True)
class Reference:
    """The uncertainty of reference rows, in units of the standardised targets.

    Attributes:
        knowledge: Knowledge variance of reference rows, sorted, ``(n,)``; at most 2000 quantiles.
        data: Median of their data standard deviation.
    """

    knowledge: FloatArray
    data: float

    @classmethod
    def of(cls, knowledge: FloatArray, data: FloatArray) -> Self:
        """Make the record from the variances of reference rows, each ``(n,)``."""
        ordered = np.sort(knowledge)
        if len(ordered) > _KEPT:
            ordered = ordered[np.linspace(0, len(ordered) - 1, _KEPT).round().astype(int)]
        return cls(ordered, float(np.sqrt(np.median(data))))

    @property
    def has_knowledge(self) -> bool:
        """Tell if the model has knowledge uncertainty; a single Gaussian has none."""
        return bool(self.knowledge[-1] > 0)

    @property
    def is_enough(self) -> bool:
        """Tell if there are rows enough to call a row trusted or noisy."""
        return len(self.knowledge) >= FEWEST  # of few rows all are reference rows

    def familiarity(self, knowledge: FloatArray) -> FloatArray:
        """Compute the share of reference rows that are at least as uncertain: 1 is ordinary.

        It is a conformal p-value; nan where the model has no knowledge uncertainty.
        """
        if not self.has_knowledge:
            return np.full(len(knowledge), np.nan)
        n = len(self.knowledge)
        as_uncertain = n - np.searchsorted(self.knowledge, knowledge, side="left")
        return (1 + as_uncertain) / (1 + n)

    @property
    def limit(self) -> float:
        """Return the knowledge variance above which a row is unfamiliar.

        With few reference rows no score is below 1 %; the limit is then the largest of them.
        """
        if not self.has_knowledge:
            return math.inf
        n = len(self.knowledge)
        n_rare = int(((1 + np.arange(n)) / (1 + n) < UNFAMILIAR).sum())
        return float(self.knowledge[-max(n_rare, 1)])

    def words(
        self,
        knowledge: FloatArray,
        data: FloatArray,
        unseen: NDArray[np.bool_] | Literal[False] = False,
    ) -> NDArray[np.object_]:
        """Return ``trust``, ``noisy`` or ``unfamiliar`` for each row, from its two variances.

        Rows with what training never had are ``unseen``.
        """
        unfamiliar = ~(knowledge <= self.limit) | unseen  # nan is unfamiliar
        noisy = np.sqrt(data) > NOISY * self.data
        return np.where(unfamiliar, WORDS[2], np.where(noisy, WORDS[1], WORDS[0])).astype(object)


def conformal_scores(y: FloatArray, mean: FloatArray, std: FloatArray) -> FloatArray:
    """Compute normalised scores, sorted for each target column, shape ``(n, K)``."""
    return np.sort(np.abs(y - mean) / std, axis=0)


def conformal_rank(n: int, coverage: float) -> int | None:
    """Return the rank, from 1, of the score that reaches a coverage; None if n is too small."""
    # 1e-9: the product of (n + 1) and a decimal coverage must not exceed its own integer.
    rank = max(math.ceil((n + 1) * coverage - 1e-9), 1)
    return None if rank > n else rank


def conformal_quantile(scores: FloatArray, coverage: float) -> FloatArray:
    """Return the exact finite-sample quantile of sorted scores, one per target column.

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
