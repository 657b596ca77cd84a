"""Uncertainty of a table's rows as arrays, and as a frame."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RowUncertainty"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RowUncertainty:
    """Total, data and knowledge uncertainty of each row, in the units of the target.

    Entropies in nats: total = data + mutual information. Variances: total = data + knowledge; of
    shape ``(N,)`` for one target column given as a vector, else ``(N, K)``.

    Attributes:
        total_entropy: Entropy of the predictive; None where it has no closed form (an ensemble's).
        data_entropy: What more data would not remove.
        mutual_information: Knowledge uncertainty in nats; None where it has no closed form.
        epkl: Expected pairwise KL, an upper bound of the mutual information.
        total_variance: Variance of the predictive.
        data_variance: Its data part.
        knowledge_variance: Its knowledge part: the variance of the mean.
        target_names: Names of the target columns, for :meth:`to_frame`.
    """

    total_entropy: FloatArray | None
    data_entropy: FloatArray
    mutual_information: FloatArray | None
    epkl: FloatArray
    total_variance: FloatArray
    data_variance: FloatArray
    knowledge_variance: FloatArray
    target_names: tuple[str, ...] = ("y",)

    def to_frame(self, index: object = None) -> pd.DataFrame:
        """One row per input, one column per measure (and target); measures of None are left out."""
        import pandas as pd

        columns: dict[str, FloatArray] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "target_names" or value is None:
                continue
            if value.ndim == 1:
                columns[field.name] = value
            else:
                columns |= {
                    f"{field.name}_{name}": value[:, k] for k, name in enumerate(self.target_names)
                }
        return pd.DataFrame(columns, index=index)  # pyright: ignore[reportArgumentType]
