"""A table in the form that an exported graph takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.export.onnx.columns import INPUT, input_names
from priornet.tables.containers import read_table
from priornet.tables.encoding import as_labels, as_numbers
from priornet.tables.preprocessing import RawColumn, TablePreprocessor
from priornet.tables.values import Column

__all__ = ["feeds", "numbers"]


def feeds(preprocessor: TablePreprocessor, X: Any) -> dict[str, NDArray[Any]]:
    """Inputs of the graph for the rows of a table.

    Args:
        preprocessor: Of the model, which reads this table without complaint.
        X: A table with the columns of training, in any order where they have names.
    """
    columns = [_feed(*one) for one in _columns(preprocessor, X)]
    names = input_names(preprocessor)
    if names is None:
        return {INPUT: np.concatenate(columns, axis=1)}
    return dict(zip(names, columns, strict=True))


def numbers(preprocessor: TablePreprocessor, X: Any) -> NDArray[np.float64]:
    """The same as one matrix for programs that know no text: see ``torch_columns``.

    Args:
        preprocessor: Of the model, which reads this table without complaint.
        X: A table with the columns of training, in any order where they have names.
    """
    return np.column_stack([_numbers(*one) for one in _columns(preprocessor, X)])


def _columns(
    preprocessor: TablePreprocessor, X: Any
) -> Iterator[tuple[RawColumn, str | int, Column]]:
    """What training learnt of each column, what it is called now, and its values."""
    table = read_table(X)
    places = preprocessor.places(table, extra="ignore")
    for column, place in zip(preprocessor.columns_, places, strict=True):
        yield column, table.label(place), table.column(place)


def _numbers(column: RawColumn, name: str | int, raw: Column) -> NDArray[np.float64]:
    """One column ``(rows,)``; labels by their place in the list of training's."""
    if column.kind == "numeric":
        return as_numbers(column, name, raw)
    texts = as_labels(column, raw)
    place = {label: float(i) for i, label in enumerate(column.categories)}
    return np.array([*(place.get(text, -1.0) for text in texts.labels), np.nan])[texts.codes]


def _feed(column: RawColumn, name: str | int, raw: Column) -> NDArray[Any]:
    """One column ``(rows, 1)``: numbers, or text as training spelled it."""
    if column.kind == "numeric":
        return as_numbers(column, name, raw).reshape(-1, 1)
    texts = as_labels(column, raw)
    return np.array([*texts.labels, ""], object)[texts.codes].reshape(-1, 1)  # code -1: the last
