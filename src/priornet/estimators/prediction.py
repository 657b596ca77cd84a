"""Uncertainty of a table's rows as arrays, and as a frame."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

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
        index: That of the frame with the inputs; None where they were no frame.
    """

    total_entropy: FloatArray | None
    data_entropy: FloatArray
    mutual_information: FloatArray | None
    epkl: FloatArray
    total_variance: FloatArray
    data_variance: FloatArray
    knowledge_variance: FloatArray
    target_names: tuple[str, ...] = ("y",)
    index: Any = field(default=None, repr=False, compare=False)

    def measures(self) -> dict[str, FloatArray]:
        """Return the measures by name, without those of None."""
        values = {own.name: getattr(self, own.name) for own in fields(self)}
        del values["target_names"], values["index"]
        return {name: value for name, value in values.items() if value is not None}

    def to_frame(self, index: Any = None) -> pd.DataFrame:
        """One row per input, one column per measure (and target); measures of None are left out.

        Args:
            index: Of the frame; by default that of the inputs where they were one, else positions.
        """
        import pandas as pd

        columns: dict[str, FloatArray] = {}
        for name, value in self.measures().items():
            if value.ndim == 1:
                columns[name] = value
            else:
                columns |= {f"{name}_{own}": value[:, k] for k, own in enumerate(self.target_names)}
        return pd.DataFrame(columns, index=self.index if index is None else index)
