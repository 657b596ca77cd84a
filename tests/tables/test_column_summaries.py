"""How training read each column, in a line and as JSON, and the notes on suspicious columns."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from priornet.tables.column_summaries import (
    ColumnWarning,
    column_notes,
    summary_lines,
    warn_of_columns,
)
from priornet.tables.preprocessing import TablePreprocessor

N = 100
ROWS = np.arange(N)


def summaries(table, weight=None):
    return TablePreprocessor().fit(table, weight).summaries_


def summary(values):
    return summaries({"c": values})[0]


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (ROWS - 2.5, '"c": number, -2.5 to 96.5'),
        (np.where(ROWS < 3, np.nan, ROWS), '"c": number, 3 to 99, 3 missing'),
        (["7", "n/a", *["1"] * 98], '"c": number, 1 to 7, 1 missing'),
        (ROWS % 2 == 0, '"c": 0 or 1'),
        (["true", "false"] * 50, '"c": 0 or 1'),
        (["2020-01-31", None, "2021-03-04"], '"c": date, 2020-01-31 to 2021-03-04, 1 missing'),
        (["red", None, "blue", "red"] * 25, '"c": 2 labels (red, blue), 25 missing'),
        (["red"] * N, '"c": 1 label (red)'),
        (
            [f"l{row % 60:02d}" for row in ROWS],
            '"c": 60 labels (l00, l01, l02, l03, l04, ...), the 11 rarest pooled',
        ),
    ],
)  # fmt: skip
def test_a_column_is_a_line(values, line):
    assert str(summary(np.asarray(values, object) if isinstance(values, list) else values)) == line


def test_columns_of_an_array_have_numbers():
    lines = summary_lines(summaries(np.arange(6.0).reshape(3, 2)))
    assert lines == ["0: number, 0 to 4", "1: number, 1 to 5"]


def test_rows_without_weight_are_not_counted():
    table = {"a": np.array([1.0, np.nan, 3.0, 99.0]), "b": np.array(["x", "y", "x", "z"], object)}
    a, b = summaries(table, np.array([1.0, 1.0, 2.0, 0.0]))
    assert (a.n_rows, a.n_missing, a.high) == (3, 1, 3)
    assert (b.n_rows, b.n_labels, b.labels) == (3, 2, ("x", "y"))


def test_wide_tables_are_shortened_in_lines_and_whole_in_json():
    table = {f"c{j}": np.arange(3.0) for j in range(40)} | {"d": np.array(["x", "y", "x"], object)}
    found = summaries(table)
    lines = summary_lines(found)
    assert len(lines) == 31
    assert lines[-1] == "and 11 more columns: 10 of kind number, 1 of kind label"
    assert len(json.loads(json.dumps([one.to_json() for one in found], allow_nan=False))) == 41


def test_json_has_what_the_line_has():
    dates = summary(np.asarray(["2020-01-31", None, "2021-03-04"], object)).to_json()
    assert (dates["kind"], dates["low"], dates["high"]) == ("date", "2020-01-31", "2021-03-04")
    assert dates["n_missing"] == 1
    labels = summary(np.asarray(["1,200", "1,300", "5"], object)).to_json()
    assert labels["lookalike"] == {"kind": "number", "advice": 'write "1,200" as 1200'}


def test_a_loaded_preprocessor_knows_all_but_the_counts():
    table = pd.DataFrame({"a": np.where(ROWS < 3, np.nan, ROWS), "b": [f"l{i % 60}" for i in ROWS]})
    loaded = TablePreprocessor.from_json(TablePreprocessor().fit(table).to_json())
    a, b = loaded.summaries_
    assert str(a) == '"a": number, 3 to 99'
    assert (a.n_missing, b.n_missing, b.n_pooled, b.n_labels) == (None, 0, None, 49)
    assert column_notes(loaded.summaries_) == []


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (
            [f"{1000 + row:,}" for row in ROWS],
            'column "c" is read as labels (100 of them), though most look like a number: write '
            '"1,000" as 1000.',
        ),
        (
            [f"n{row}" for row in ROWS],
            'column "c" has 100 labels in 100 rows: nothing can be learnt from labels that hardly '
            "repeat. Leave it out, or group them.",
        ),
        (
            np.where(ROWS == 7, 1e4, ROWS / 100),
            'column "c", row 7: 10000 is 19801 times as far from the median as any other value, '
            "and holds 99.0% of the variance. Training takes 0.99 instead, the nearest of the "
            "others. Correct it, or leave the row out.",
        ),
        (
            np.where(ROWS == 7, 20.0, ROWS / 100),
            'column "c", row 7: 20 is 39 times as far from the median as any other value, and '
            "holds 96.9% of the variance. Training takes it as it is; if it is right, the column's "
            "logarithm may serve better. Correct it, or leave the row out.",
        ),
    ],
)
def test_what_may_be_meant_otherwise_is_said(values, note):
    found = summary(np.asarray(values, object) if isinstance(values, list) else values)
    assert found.notes()[0] == note


def test_rows_are_called_as_the_user_counts_them():
    (found,) = summary(np.where(ROWS == 7, 1e4, ROWS / 100)).notes(lambda row: f"r{row + 1}")
    assert found.startswith('column "c", row r8: 10000')


@pytest.mark.parametrize(
    "values",
    [
        ROWS,
        (ROWS == 5).astype(float),
        [f"l{row % 50}" for row in ROWS],
        [f"n{row}" for row in range(19)],
        pd.Categorical([f"{1000 + row % 9:,}" for row in ROWS]),
    ],
    ids=["numbers", "rare indicator", "fifty labels", "few rows", "declared labels"],
)
def test_nothing_is_said_of_other_columns(values):
    found = summaries(pd.DataFrame({"c": values}))
    assert column_notes(found) == []


def test_every_column_that_pools_labels_is_named():
    many = np.array([f"l{row % 60:02d}" for row in ROWS], object)
    found = column_notes(summaries({"a": many, "b": many[::-1], "c": ROWS}))
    assert found == ['rare labels share one column in "a" (11 of 60), "b" (11 of 60).']


def test_many_warnings_are_few():
    notes = [f"note {i}" for i in range(12)]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warn_of_columns(notes)
    texts = [str(one.message) for one in heard]
    assert texts == [*notes[:5], "7 more such columns: see `describe_columns()`."]
    assert {one.category for one in heard} == {ColumnWarning}
