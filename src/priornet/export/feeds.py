"""A table in the form that an exported graph takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.data.columns import Column, read_table
from priornet.data.matching import as_labels, as_numbers
from priornet.data.preprocessing import RawColumn, TablePreprocessor
from priornet.export.columns import INPUT, input_names

__all__ = ["feeds"]


def feeds(preprocessor: TablePreprocessor, X: Any) -> dict[str, NDArray[Any]]:
    """Inputs of the graph for the rows of a table.

    Args:
        preprocessor: Of the model, which reads this table without complaint.
        X: A table with the columns of training, in any order where they have names.
    """
    table = read_table(X)
    known, given = preprocessor.feature_names_in_, table.names
    order = range(preprocessor.n_features_in_)
    places = order if known is None or given is None else [given.index(name) for name in known]
    columns = [
        _feed(column, table.label(place), table.column(place))
        for column, place in zip(preprocessor.columns_, places, strict=True)
    ]
    names = input_names(preprocessor)
    if names is None:
        return {INPUT: np.concatenate(columns, axis=1)}
    return dict(zip(names, columns, strict=True))


def _feed(column: RawColumn, name: str | int, raw: Column) -> NDArray[Any]:
    """One column ``(rows, 1)``: numbers, or text as training spelled it."""
    if column.kind == "numeric":
        return as_numbers(column, name, raw).reshape(-1, 1)
    texts = as_labels(column, raw)
    return np.array([*texts.labels, ""], object)[texts.codes].reshape(-1, 1)  # code -1: the last
