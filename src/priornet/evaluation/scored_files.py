"""Scoring of table files of any length: predictions beside every row, in bounded memory."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import torch

from priornet.estimators import BaseRegressor, Prediction, PredictionError
from priornet.estimators.held_out import WORDS
from priornet.estimators.prediction import added_names
from priornet.messages import InputError
from priornet.tables.encoding import Tally
from priornet.tables.read import TableReader, check_columns, convert_known_numbers, located
from priornet.tables.write import TableWriter
from priornet.training.device import at_most, available_cores

if TYPE_CHECKING:
    import pyarrow as pa


Result = TypeVar("Result")
Progress = Callable[[int, int | None], None]
"""Called after each block with its rows, and with the rows of the file where they are known."""

_MOST_WORKERS = 4  # each holds a block in memory


def named_columns(model: Any) -> tuple[str, ...]:
    """Return the names of the columns that a model reads from a file."""
    names = model.fitted_.preprocessor.feature_names_in_
    if names is None:
        raise InputError("the model was trained on an array, whose columns have no names.")
    return names


def score_file(
    model: BaseRegressor,
    source: str | Path,
    out: str | Path = "-",
    *,
    coverage: float = 0.9,
    method: Literal["predictive", "conformal"] = "predictive",
    entropies: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write a table file again, with the columns of :meth:`~priornet.BaseRegressor.predict_table`.

    Blocks of rows are read, predicted side by side and written in their order, so that memory does
    not grow with the file. The output is written whole or not at all.

    Args:
        model: A fitted estimator whose columns have names.
        source: CSV or Parquet file; ``-`` for CSV on standard input.
        out: CSV or Parquet file; ``-`` for CSV on standard output.
        coverage: Coverage of the intervals.
        method: Method of the intervals: see :meth:`~priornet.BaseRegressor.predict_interval`.
        entropies: Add the measures of uncertainty in nats.
        progress: Called after each block with its rows, and with the rows of the file or None.

    Returns:
        Counts of rows, verdicts and values that training never had, ready for JSON.
    """
    tally, verdicts = Tally(), Counter(dict.fromkeys(WORDS, 0))
    with TableReader(source) as reader, TableWriter(out) as writer:
        intervals = {"coverage": coverage, "method": method}
        scorer = _Scorer(model, reader, intervals, entropies, writer.has_types)
        start = time.perf_counter()
        for rows, found in in_parallel(scorer.score, reader):
            writer.write(rows)
            tally.count(found.unseen)
            verdicts.update(found.verdict.tolist())
            if progress is not None:
                progress(rows.num_rows, reader.n_rows)
    seconds = time.perf_counter() - start
    known = {*scorer.columns, *scorer.targets}
    return {
        "n_rows": tally.n_rows,
        "n_rows_read": reader.n_read,
        "n_rows_written": writer.n_rows,
        "seconds": round(seconds, 3),
        "rows_per_second": round(tally.n_rows / seconds),
        "added_columns": list(scorer.names),
        "ignored_columns": [name for name in reader.names if name not in known],
        "verdicts": dict(verdicts),
        "unknown_labels": tally.unknown,
        "unexpected_holes": tally.imputed,
        "far_numbers": tally.far,
        "n_bare": tally.bare,
        "n_unseen": tally.unseen,
    }


class _Scorer:
    """Add a model's columns to blocks of a file."""

    def __init__(
        self,
        model: Any,
        reader: TableReader,
        intervals: dict[str, Any],
        entropies: bool,
        has_types: bool,
    ) -> None:
        self._fitted, self._path = model.fitted_, reader.path
        self._intervals, self._entropies = intervals, entropies
        names = named_columns(model)
        check_columns(reader.path, names, reader.names)
        self.columns: tuple[str, ...] = names
        self.targets: tuple[str, ...] = self._fitted.targets.names
        self.names = added_names(self.targets, reader.names, entropies=entropies)
        known = self._fitted.preprocessor.columns_
        # Text that the model reads as numbers becomes numbers in a file with types.
        is_converted = reader.is_text and has_types
        self._converted = [str(c.name) for c in known if c.is_plain] if is_converted else []

    def score(self, batch: pa.RecordBatch, first_row: int) -> tuple[pa.RecordBatch, Prediction]:
        """Predict a block that has ``first_row`` rows before it; add the model's columns to it."""
        import pyarrow as pa

        known = self._fitted.preprocessor.columns_
        rows = convert_known_numbers(batch.select(list(self.columns)), known)
        try:
            with located(self._path, first_row):
                found = self._fitted.predict(rows, dtype=np.float32, **self._intervals)
        except PredictionError as error:
            raise PredictionError(first_row + error.row, error.n_wrong) from error
        for name in self._converted:
            batch = batch.set_column(batch.schema.get_field_index(name), name, rows.column(name))
        schema, added = batch.schema, found.columns(entropies=self._entropies)
        columns = [*batch.columns]
        for name, values in zip(self.names, added, strict=True):
            columns.append(_as_arrow(name, values, len(batch)))
            schema = schema.append(pa.field(name, columns[-1].type))
        return pa.RecordBatch.from_arrays(columns, schema=schema), found


def _as_arrow(name: str, values: Any, n_rows: int) -> pa.Array:
    import pyarrow as pa

    if values is None:
        return pa.nulls(n_rows, pa.float64())
    if values.dtype == object:
        return pa.array(values, pa.string())
    return pa.array(values, from_pandas=name.endswith("in_domain"))  # nan: there is no score


def in_parallel(
    score: Callable[[Any, int], Result], batches: Iterable[Any]
) -> Generator[Result, None, None]:
    """Apply a function to every batch and the number of rows before it, and keep their order.

    One batch per core, each on a single thread of torch: arrays of a batch fit the cache, where
    threads that share an operation mostly wait for each other. Few batches are in memory at once.

    Args:
        score: Function of a batch.
        batches: Arrow batches.
    """
    n_workers = min(available_cores(), _MOST_WORKERS)
    waiting: deque[Future[Result]] = deque()
    # The limit belongs to a thread and to what it starts, so that each worker sets its own.
    with (
        at_most(1),
        ThreadPoolExecutor(n_workers, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        first_row = 0
        for batch in batches:
            waiting.append(pool.submit(score, batch, first_row))
            first_row += batch.num_rows
            if len(waiting) > n_workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
