"""A table in the form that an exported graph takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.data.columns import Column, Numbers, label_of, parse_labels, read_table
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
    raw = [table.column(place) for place in places]
    columns = [_feed(c, r) for c, r in zip(preprocessor.columns_, raw, strict=True)]
    names = input_names(preprocessor)
    if names is None:
        return {INPUT: np.concatenate(columns, axis=1)}
    return dict(zip(names, columns, strict=True))


def _feed(column: RawColumn, raw: Column) -> NDArray[Any]:
    """One column ``(rows, 1)``: numbers, or stripped text."""
    if column.kind == "categorical":
        if isinstance(raw, Numbers):
            labels = ["" if np.isnan(value) else label_of(value) for value in raw.values]
        else:
            labels = np.array([*raw.labels, ""], object)[raw.codes].tolist()  # code -1 is the last
        return np.array(labels, object).reshape(-1, 1)
    if isinstance(raw, Numbers):
        return raw.values.reshape(-1, 1)
    parsed = parse_labels(raw.labels, column.parser)
    assert parsed is not None  # the preprocessor read it
    return np.append(parsed[1], np.nan)[raw.codes].reshape(-1, 1)
