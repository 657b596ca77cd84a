"""The transfer set: inputs at which a student asks its teacher, and the raw rows for them.

A teacher's answers are free, so the inputs need not be the training inputs. New rows will lie near
the old ones, often on a thin surface in the space of all columns: rows between neighbours stay on
it. Noise on many scales covers what lies off that surface, where knowledge uncertainty is learnt.

In raw rows only numbers are moved. Everything else (text, categories, dates, truth values, missing
values, and numbers that the teacher reads as labels) keeps a value of one of the table's rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from priornet.tables.factor_analysis import FactorAnalysisGenerator
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.raw import num_rows, take_rows, without_arrow

_MOST_DISTANCES = 200_000_000  # of a search for neighbours; more rows look among fewer others
_LEAST_OTHERS = 1000


class Drawn(NamedTuple):
    """Inputs of a transfer set, and the rows of the table that they were made of."""

    inputs: Tensor
    """Standardised, ``(n, D)``."""
    centre: Tensor
    """Row around which each was drawn, ``(n,)``."""
    labels: Tensor
    """Row of which each has the labels and missing values, ``(n,)``."""


@dataclass(frozen=True)
class TransferSet:
    """A mix of rows between neighbours, noisy rows, mixtures of two rows, and generated rows.

    Noise is in standard deviations of the inputs. Columns of zeros and ones (labels, indicators of
    missing values) get no noise: they are exchanged with those of another row. Rows between
    neighbours are the share that the three others leave; with ``neighbours=0`` and ``near=0`` they
    are the training inputs themselves. Unlabelled rows join the training inputs, see
    :meth:`priornet.DistilledRegressor.fit`.
    """

    near: float = 0.0
    """Standard deviation of noise on the rows between neighbours."""
    far: tuple[float, float] = (0.05, 3.0)
    """Range of the noise on far rows: each row draws its own, uniformly in the logarithm."""
    far_share: float = 0.3
    """Share of far rows."""
    exchange: float = 0.2
    """Chance that a far row takes its labels from another row."""
    neighbours: int = 3
    """A near row lies between a training row and one of its so many neighbours; 0 to stay."""
    mixup_share: float = 0.0
    """Share of rows between any two training rows; they take the labels of the nearer one."""
    generator_share: float = 0.0
    """Share of rows whose numbers a widened factor analysis draws, as for prior networks:
    :class:`priornet.tables.factor_analysis.FactorAnalysisGenerator`."""

    def __post_init__(self) -> None:
        """Refuse impossible settings."""
        if not isinstance(self.far, (tuple, list)) or len(self.far) != 2:  # pyright: ignore[reportUnnecessaryIsInstance] (users need not check types)
            raise ValueError(f"`far` must be a range, such as (0.05, 3.0); got {self.far!r}.")
        low, high = self.far
        if not (self.near >= 0 and 0 < low <= high < math.inf):
            raise ValueError(
                "`near` must not be negative and `far` must be a positive range; got "
                f"{self.near:g} and {self.far}."
            )
        if self.neighbours < 0:
            raise ValueError(f"`neighbours` must not be negative; got {self.neighbours}.")
        for name in ("far_share", "exchange", "mixup_share", "generator_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"`{name}` must lie in [0, 1]; got {getattr(self, name):g}.")
        if self.far_share + self.mixup_share + self.generator_share > 1 + 1e-9:
            raise ValueError(
                "`far_share`, `mixup_share` and `generator_share` must not exceed 1 together; got "
                f"{self.far_share:g}, {self.mixup_share:g} and {self.generator_share:g}."
            )

    def draw(
        self, inputs: Tensor, n: int, generator: Generator, continuous: Sequence[bool] | None = None
    ) -> Drawn:
        """Draw ``n`` inputs around training inputs.

        Args:
            inputs: Standardised training inputs, shape ``(N, D)``.
            n: Number of inputs. Every row serves as a centre before any serves again.
            generator: Source of randomness, on the CPU.
            continuous: True for columns of numbers; by default all.
        """
        n_rows, n_columns = inputs.shape
        rounds = [torch.randperm(n_rows, generator=generator) for _ in range(-(-n // n_rows))]
        centre = torch.cat(rounds)[:n]
        low, high = (math.log(edge) for edge in self.far)
        kind = torch.rand(n, generator=generator)
        far = kind < self.far_share
        wide = torch.exp(low + (high - low) * torch.rand(n, generator=generator))
        scale = torch.where(far, wide, torch.full_like(wide, self.near))
        noise = torch.randn((n, n_columns), generator=generator) * scale.unsqueeze(-1)
        way = torch.where(far, 0.0, torch.rand(n, generator=generator))
        other = self._towards(inputs, centre, generator)
        mixed = ~far & (kind < self.far_share + self.mixup_share)
        if self.mixup_share > 0:
            other = torch.where(mixed, torch.randint(n_rows, (n,), generator=generator), other)
        x = inputs[centre]
        moved = torch.lerp(x, inputs[other], way.unsqueeze(-1).to(x)) + noise.to(x)
        generated = torch.zeros_like(far)
        if self.generator_share > 0:
            shares = self.far_share + self.mixup_share + self.generator_share
            generated = ~far & ~mixed & (kind < shares)
            moved[generated] = _generate(inputs, int(generated.sum()), generator, continuous)
        if continuous is None or all(continuous):
            return Drawn(moved, centre, centre)
        swap = generated | (far & (torch.rand(n, generator=generator) < self.exchange))
        labels = torch.where(swap, centre[torch.randperm(n, generator=generator)], centre)
        labels = torch.where(mixed & (way > 0.5), other, labels)
        number = torch.tensor(continuous).to(x.device)
        return Drawn(torch.where(number, moved, inputs[labels]), centre, labels)

    def _towards(self, inputs: Tensor, centre: Tensor, generator: Generator) -> Tensor:
        """Draw for each centre one of its nearest rows."""
        n_near = min(self.neighbours, len(inputs) - 1)
        if n_near == 0:
            return centre
        nearest = _nearest(inputs, n_near, generator)
        drawn = torch.randint(nearest.shape[1], (len(centre),), generator=generator)
        return nearest[centre, drawn]


def _generate(
    inputs: Tensor, n: int, generator: Generator, continuous: Sequence[bool] | None
) -> Tensor:
    """Draw numbers from a factor analysis; the other columns are 0 until they get labels."""
    number = torch.tensor(continuous or [True] * inputs.shape[1])
    rows = torch.zeros(n, inputs.shape[1], dtype=inputs.dtype, device=inputs.device)
    if number.any():
        model = FactorAnalysisGenerator().fit(inputs[:, number].double().cpu().numpy())
        rows[:, number] = model.sample(n, generator, dtype=inputs.dtype).to(rows)
    return rows


def _nearest(inputs: Tensor, n_near: int, generator: Generator) -> Tensor:
    """Find the rows nearest to each row, ``(N, n_near)``, among a part of many."""
    n_rows = len(inputs)
    n_others = min(n_rows, max(_MOST_DISTANCES // n_rows, _LEAST_OTHERS))
    others = torch.randperm(n_rows, generator=generator)[:n_others]
    pool, found = inputs[others], list[Tensor]()
    for rows in torch.arange(n_rows).split(1024):
        distance = torch.cdist(inputs[rows], pool)
        distance[(rows[:, None] == others).to(distance.device)] = math.inf  # not its own neighbour
        found.append(others[distance.topk(n_near, largest=False).indices.cpu()])
    return torch.cat(found)


class Questions:
    """A table whose rows can be moved, for teachers that read raw rows.

    Args:
        table: An array, a frame, an Arrow table (which teachers get as a frame), or a mapping.
        preprocessor: Fitted to the same columns.
        label_columns: Columns, by name or number, that are never moved.

    Attributes:
        continuous: True for standardised columns that may be moved.
    """

    def __init__(
        self,
        table: Any,
        preprocessor: TablePreprocessor,
        label_columns: Sequence[str | int] = (),
    ) -> None:
        self.table = without_arrow(table)
        self.preprocessor = preprocessor
        names = preprocessor.feature_names_in_
        self._order: list[str | int] = list(names or range(preprocessor.n_features_in_))
        for label in label_columns:
            if label not in self._order and not (isinstance(label, int) and names is not None):
                raise ValueError(f"the teacher's column {label!r} is not in the table.")
        fixed = {self._order[c] if isinstance(c, int) else c for c in label_columns}
        moved = {
            j
            for j, (column, name) in enumerate(zip(preprocessor.columns_, self._order, strict=True))
            if column.is_plain and name not in fixed and _holds_numbers(self.table, name)
        }
        self.continuous = [s.is_continuous and s.column in moved for s in preprocessor.source_]

    @property
    def inputs(self) -> NDArray[np.float64]:
        """Standardised rows of the table, as for training."""
        return self.preprocessor.within(self.preprocessor.transform(self.table))

    def draw(
        self, transfer: TransferSet, inputs: Tensor, n: int, generator: Generator
    ) -> tuple[Drawn, Any]:
        """Draw ``n`` inputs around the standardised rows, and make the same as raw rows."""
        drawn = transfer.draw(inputs, n, generator, self.continuous)
        drawn = drawn._replace(inputs=self._with_missing(drawn, inputs))
        return drawn, self.raw(drawn)

    def _with_missing(self, drawn: Drawn, inputs: Tensor) -> Tensor:
        """Give each missing number the input that stands for it in the row of the labels."""
        values = drawn.inputs.clone()
        place = {s.column: i for i, s in enumerate(self.preprocessor.source_) if s.is_continuous}
        for i, source in enumerate(self.preprocessor.source_):
            if source.role == "missing" and source.column in place:
                missing = inputs[drawn.labels, i] > 0.5
                k = place[source.column]
                values[missing, k] = inputs[drawn.labels[missing], k]
        return values

    def raw(self, drawn: Drawn) -> Any:
        """Make raw rows of drawn inputs, as a table of the given kind."""
        rows = take_rows(self.table, drawn.labels.cpu().numpy()).copy()
        is_array = isinstance(rows, np.ndarray)
        values = drawn.inputs.double().cpu().numpy()
        for i in np.flatnonzero(self.continuous):
            j = self.preprocessor.source_[i].column
            column = self.preprocessor.columns_[j]
            number = values[:, i] * column.scale + column.mean
            place = np.s_[:, j] if is_array else self._order[j]
            kept = np.asarray(rows[place], np.float64)
            rows[place] = np.where(np.isnan(kept), np.nan, number)
        return rows


def _holds_numbers(table: Any, name: str | int) -> bool:
    if isinstance(table, np.ndarray):
        return table.dtype.kind in "iuf"
    dtype = getattr(table[name], "dtype", None)
    return getattr(np.asarray(table[name]).dtype if dtype is None else dtype, "kind", "O") in "iuf"


def draw_inputs(
    X: Any,
    n: int,
    *,
    transfer: TransferSet | None = None,
    seed: int = 0,
    label_columns: Sequence[str | int] = (),
) -> Any:
    """Draw raw rows at which to ask a teacher that runs outside Python.

    Write them to a file, let the teacher add its answers, and read the file with
    :class:`~priornet.distill.StoredTeacher`.

    Args:
        X: The table.
        n: Number of rows.
        transfer: The transfer set; by default that of :class:`TransferSet`.
        seed: Source of randomness.
        label_columns: Columns of numbers that are labels.

    Example:
        >>> draw_inputs(np.random.default_rng(0).standard_normal((50, 3)), 1000).shape
        (1000, 3)
    """
    if n < 1:
        raise ValueError(f"`n` must be at least 1; got {n}.")
    table = np.asarray(X, np.float64) if isinstance(X, (list, np.ndarray)) else without_arrow(X)
    if num_rows(table) == 0:
        raise ValueError("`X` has no rows.")
    questions = Questions(table, TablePreprocessor().fit(table), label_columns)
    inputs = torch.from_numpy(questions.inputs)
    return questions.draw(transfer or TransferSet(), inputs, n, Generator().manual_seed(seed))[1]
