"""Summaries of columns, in a line and as JSON, and the notes on suspicious columns."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from priornet.tables.column_summaries import (
    ColumnWarning,
    column_notes,
    find_lookalike,
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
def test_each_column_has_one_line(values, line):
    assert str(summary(np.asarray(values, object) if isinstance(values, list) else values)) == line


def test_columns_of_an_array_are_numbered():
    lines = summary_lines(summaries(np.arange(6.0).reshape(3, 2)))
    assert lines == ["0: number, 0 to 4", "1: number, 1 to 5"]


def test_rows_without_weight_are_not_counted():
    table = {"a": np.array([1.0, np.nan, 3.0, 99.0]), "b": np.array(["x", "y", "x", "z"], object)}
    a, b = summaries(table, np.array([1.0, 1.0, 2.0, 0.0]))
    assert (a.n_rows, a.n_missing, a.high) == (3, 1, 3)
    assert (b.n_rows, b.n_labels, b.labels) == (3, 2, ("x", "y"))


def test_wide_tables_have_few_lines_and_all_columns_in_json():
    table = {f"c{j}": np.arange(3.0) for j in range(40)} | {"d": np.array(["x", "y", "x"], object)}
    found = summaries(table)
    lines = summary_lines(found)
    assert len(lines) == 31
    assert lines[-1] == "and 11 more columns: 10 of kind number, 1 of kind label"
    assert len(json.loads(json.dumps([one.to_json() for one in found], allow_nan=False))) == 41


def test_json_has_the_values_of_the_line():
    dates = summary(np.asarray(["2020-01-31", None, "2021-03-04"], object)).to_json()
    assert (dates["kind"], dates["low"], dates["high"]) == ("date", "2020-01-31", "2021-03-04")
    assert dates["n_missing"] == 1
    labels = summary(np.asarray(["1,200", "1,300", "5"], object)).to_json()
    assert labels["lookalike"] == {"kind": "number", "advice": 'write "1,200" as 1200'}


def test_a_loaded_preprocessor_has_no_counts():
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
def test_suspicious_columns_have_a_note(values, note):
    found = summary(np.asarray(values, object) if isinstance(values, list) else values)
    assert found.notes()[0] == note


def test_notes_name_rows_as_the_user_counts_them():
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
def test_other_columns_have_no_note(values):
    found = summaries(pd.DataFrame({"c": values}))
    assert column_notes(found) == []


def test_every_column_that_pools_labels_is_named():
    many = np.array([f"l{row % 60:02d}" for row in ROWS], object)
    found = column_notes(summaries({"a": many, "b": many[::-1], "c": ROWS}))
    assert found == ['rare labels share one column in "a" (11 of 60), "b" (11 of 60).']


def test_many_notes_make_few_warnings():
    notes = [f"note {i}" for i in range(12)]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warn_of_columns(notes)
    texts = [str(one.message) for one in heard]
    assert texts == [*notes[:5], "7 more such columns: see `describe_columns()`."]
    assert {one.category for one in heard} == {ColumnWarning}


ISO = [f"2022-01-{day:02d}" for day in range(1, 10)]


@pytest.mark.parametrize(
    ("labels", "kind", "advice"),
    [
        (["1,200", "950", "12,000"], "number", 'write "1,200" as 1200'),
        (["$950", "$1,200.50", "$3"], "number", 'write "$950" as 950'),
        (["1,200.50 €", "3 €", "4 €"], "number", 'write "1,200.50 €" as 1200.50'),
        (["1.200,50", "3,25", "1.000.000"], "number", 'write "1.200,50" as 1200.50'),
        (["5%", "12.5 %", "7%"], "number", 'write "5%" as 5'),
        (["1 200", "950", "1 000 000"], "number", 'write "1 200" as 1200'),
        (["1\u00a0200", "2\u202f950", "3'000"], "number", 'write "1\u00a0200" as 1200'),
        (["-$5", "\u22125", "$-7"], "number", 'write "-$5" as -5'),
        (["1,200", "2,400", "3,600"], "number", 'write "1,200" as 1200'),
        (["12", "15.5", "7", "9", "unknown"], "number", 'leave "unknown" and other words empty'),
        (["2012/01/01", "2012/1/5", "2013/12/31"], "date", 'write "2012/01/01" as 2012-01-01'),
        (["31.01.2012", "1.2.2012", "3.3.2013"], "date", "as YEAR-MONTH-DAY, such as 2012-01-31"),
        (["5 Jan 2012", "6 Feb 2012", "Mar 3, 2012"], "date", "as YEAR-MONTH-DAY"),
        (["12:30", "7:15", "23:59:30"], "time", 'write "12:30" as hours, 12.5'),
        (["01:30 PM", "7:15 AM", "12:00 am"], "time", 'write "01:30 PM" as hours, 13.5'),
        ([*ISO, "2020-02-30"], "date", '"2020-02-30" is no date: correct it, or leave it empty'),
        ([*ISO, "unknown"], "date", 'leave "unknown" and other words empty'),
        ([*ISO, "2022-1-5"], "date", 'write "2022-1-5" as 2022-01-05'),
        ([*ISO, "9999-12-31", "?", "none yet"], "date", 'leave "none yet"'),
        (["2022-01", "2022-02", "2022-12"], "date", 'write "2022-01" as YEAR-MONTH-DAY'),
        (["01/2022", "2/2022", "12/2022"], "date", "as YEAR-MONTH-DAY"),
        (["Jan 2020", "February 2021", "Sept. 2022"], "date", "as YEAR-MONTH-DAY"),
        ([f"{day} 01:30 PM" for day in ISO], "date", "2022-01-01, the time behind it such as 13"),
        ([f"{day} 01:30:00 CET" for day in ISO], "date", "or 13:30+01:00"),
    ],
)
def test_spellings_of_people_come_with_advice(labels, kind, advice):
    found = find_lookalike(labels)
    assert found is not None
    assert found.kind == kind
    assert advice in found.advice


@pytest.mark.parametrize(
    "labels",
    [
        ["red", "blue", "green"],
        ["A1", "B2", "C3", "D4"],
        ["S", "M", "L", "38", "40"],
        ["10.0.0.1", "10.0.0.2", "192.168.0.1"],
        ["1-2", "3-5", "6-9"],
        ["4.3.16", "4.3.17", "5.0.1"],
        ["45-67-89", "52-78-91", "60-60-60"],
        ["4.45.2016", "7.99.2017", "1.50.2018"],
        ["3012-44-1", "4012-44-2", "5012-44-3"],
        ["Model 2020", "Model 2021", "Type 2022"],
        ["2010/45", "2011/46", "2012/47"],
        ["12a", "13b", "14c"],
        ["5 km", "6 km", "7 km"],
        ["2012/01/01", "5%", "12:30", "red"],
        ["1,200", "?"],
        ["", "n/a", "-"],
        [],
    ],
)
def test_plain_labels_look_like_nothing_else(labels):
    assert find_lookalike(labels) is None
