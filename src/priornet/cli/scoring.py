"""What ``priornet predict`` adds to each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from priornet.cli.errors import InputError
from priornet.tables.unseen import Tally, Unseen

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor

    from priornet.tables.preprocessing import RawColumn

__all__ = ["Scorer", "is_scored"]

_PER_TARGET = ("prediction", "lower", "upper", "total", "data", "knowledge")
_PER_ROW = ("in_domain", "verdict", "unseen")
_ENTROPIES = ("total_entropy", "data_entropy", "mutual_information", "epkl")
_PREFIX = "priornet_"


def is_scored(names: Sequence[str]) -> bool:
    """Tell whether the columns of a table end in those that a :class:`Scorer` adds.

    Files of earlier versions count too: they lack ``unseen``.
    """
    for prefix in (_PREFIX, ""):
        added = [name.removeprefix(prefix) if name.startswith(prefix) else "" for name in names]
        for last in ((), _ENTROPIES):
            for per_row in (_PER_ROW, _PER_ROW[:-1]):
                end = [*per_row, *last]
                start = len(added) - len(end) - len(_PER_TARGET)
                if start < 0 or added[start + len(_PER_TARGET) :] != end:
                    continue
                suffix = added[start].removeprefix(_PER_TARGET[0])  # of the last target, or none
                if added[start : -len(end)] == [f"{name}{suffix}" for name in _PER_TARGET]:
                    return True
    return False


class _Variances(NamedTuple):
    """The part of :class:`priornet.uncertainty.Uncertainty` that costs next to nothing."""

    total_variance: Tensor
    data_variance: Tensor
    knowledge_variance: Tensor


class Scorer:
    """Adds a model's columns to batches of rows.

    ``prediction``, ``lower`` and ``upper`` and the standard deviations ``total``, ``data`` and
    ``knowledge`` are in units of the target (total² = data² + knowledge²); with several targets
    each has the target's name behind it. ``in_domain`` is the share of reference rows at least as
    uncertain, empty for a model without knowledge uncertainty; ``verdict`` is a word; ``unseen``
    names the columns in which a row has what training never had, empty for most rows.

    Args:
        model: A fitted estimator.
        coverage: Of the interval from ``lower`` to ``upper``.
        method: Where the interval comes from.
        entropies: Whether to add ``total_entropy``, ``data_entropy``, ``mutual_information`` and
            ``epkl``, in nats.
        taken: Names that the table has; where one of ours is among them, all of ours begin with
            ``priornet_``.

    Attributes:
        names: The columns that it adds.
        prefix: What they begin with.
        targets: What the model predicts.
        columns: What training learnt about the columns that it reads.
        plain: Those that hold plain numbers: no dates, no decimal commas.
    """

    def __init__(
        self, model: Any, coverage: float, method: str, *, entropies: bool, taken: Sequence[str]
    ) -> None:
        self._fitted, self._coverage, self._method = model.fitted_, coverage, method
        self._entropies = _ENTROPIES if entropies else ()
        self.targets: tuple[str, ...] = tuple(self._fitted.targets.names)
        self.columns: tuple[RawColumn, ...] = self._fitted.preprocessor.columns_
        self.plain = [str(column.name) for column in self.columns if column.is_plain]
        one = len(self.targets) == 1
        suffixes = [""] if one else [f"_{name}" for name in self.targets]
        names = [f"{name}{suffix}" for suffix in suffixes for name in _PER_TARGET]
        names += [*_PER_ROW, *self._entropies]
        self.prefix = _PREFIX if set(names) & set(taken) else ""
        self.names = tuple(f"{self.prefix}{name}" for name in names)
        for name in self.names:
            if name in taken or self.names.count(name) > 1:
                raise InputError(f'the column "{name}", to be added, is there already; rename it.')

    def score(self, rows: Any, tally: Tally) -> list[pa.Array]:
        """Return the added columns for some rows, in the order of :attr:`names`.

        Args:
            rows: Some of the table.
            tally: Counts what training never had.
        """
        import pyarrow as pa
        import torch

        fitted = self._fitted
        unseen = Unseen()
        inputs = fitted.preprocessor.transform(rows, dtype=np.float32, tally=tally, unseen=unseen)
        standard = fitted.standard_belief(torch.from_numpy(inputs))
        predictive, record = fitted.moved(standard).predictive(), self._measured(standard)
        scale = torch.from_numpy(fitted.targets.scaling.scale)
        parts = [
            predictive.mean,
            *fitted.interval(predictive, self._coverage, self._method),
            record.total_variance.sqrt() * scale,
            record.data_variance.sqrt() * scale,
            record.knowledge_variance.sqrt() * scale,
        ]  # each (N, K)
        columns = [pa.array(part[:, k].numpy()) for k in range(len(self.targets)) for part in parts]
        columns.append(pa.array(fitted.familiarity(record), from_pandas=True))  # nan: no answer
        columns.append(pa.array(fitted.verdict(record, unseen), pa.string()))
        columns.append(pa.array(unseen.columns, pa.string(), mask=~unseen.rows))
        if self._entropies:
            record = fitted.in_units(record)
        for name in self._entropies:
            value = getattr(record, name)
            known = None if value is None else value.numpy()
            columns.append(
                pa.nulls(len(inputs), pa.float64()) if known is None else pa.array(known)
            )
        return columns

    def _measured(self, belief: Any) -> Any:
        """Of standardised targets: variances, and the slower entropies where they are wanted."""
        from priornet.uncertainty import uncertainty

        if self._entropies:
            return uncertainty(belief)
        return _Variances(
            *(
                covariance.diagonal(dim1=-2, dim2=-1)
                for covariance in (
                    belief.total_covariance(),
                    belief.data_covariance(),
                    belief.knowledge_covariance(),
                )
            )
        )
