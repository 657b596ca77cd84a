"""A frame of an Arrow table reads the same: its rows, columns and values stay."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from priornet.tables.containers import read_table
from priornet.tables.frames import as_frame, unnamed_indices


def test_what_pandas_takes_for_an_index_stays_a_column():
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([7, 9], name="id"))
    assert list(as_frame(pa.Table.from_pandas(frame)).columns) == ["x", "id"]
    frame.index.name = None
    assert list(as_frame(pa.Table.from_pandas(frame)).columns) == ["x", "__index_level_0__"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"": [0.0, 1, 2], "x": [3, 4, 5]}, [""]),
        ({"Unnamed: 0": [0, 1, 2], "x": [3, 4, 5]}, ["Unnamed: 0"]),
        ({"": [0, 1, 2], "Unnamed: 0": [0, 1, 2], "x": [3, 4, 5]}, ["", "Unnamed: 0"]),
        ({"": [1, 2, 3], "x": [3, 4, 5]}, []),
        ({"": [0, 2, 1], "x": [3, 4, 5]}, []),
        ({"": [0, 1, np.nan], "x": [3, 4, 5]}, []),
        ({"": ["0", "1", "b"], "x": [3, 4, 5]}, []),
        ({"x": [3, 4, 5], "": [0, 1, 2]}, []),
        ({"n": [0, 1, 2], "x": [3, 4, 5]}, []),
        ({"x": [3, 4, 5], "__index_level_0__": [7, 8, 9]}, ["__index_level_0__"]),
    ],
)
def test_an_index_without_a_name_is_known_by_its_place_and_counts(columns, expected):
    assert unnamed_indices(pd.DataFrame(columns)) == tuple(expected)


def test_numbers_that_were_names_are_text_as_in_the_file():
    table = pa.Table.from_pandas(pd.DataFrame([[1, 2]], columns=[0, 1]))
    assert list(as_frame(table).columns) == table.column_names == ["0", "1"]


@pytest.mark.parametrize("values", [["a", "b", None], ["a", "a", "b"]], ids=["missing", "twice"])
def test_dictionaries_that_are_no_categories_of_pandas(values):
    table = pa.table({"a": pa.DictionaryArray.from_arrays([0, 1, 2, None], pa.array(values))})
    found = [read_table(given).column(0) for given in (table, as_frame(table))]
    own = [[c.labels[i] if i >= 0 else None for i in c.codes] for c in found]  # type: ignore
    assert own[0] == own[1] == [*values, None]
    assert str(as_frame(table)["a"].dtype) == "category"


def test_types_that_pandas_has_stay_what_they_were():
    table = pa.table({"i": [1, 2], "f": [0.5, None], "t": ["x", "y"], "b": [True, False]})
    frame = as_frame(table)
    assert [frame[name].dtype.kind for name in "ifb"] == ["i", "f", "b"]
    assert frame["t"].tolist() == ["x", "y"]
    moments = pa.table({"m": pa.array([datetime.datetime(9999, 12, 31)])})
    assert as_frame(moments)["m"].dtype == np.dtype("M8[us]")


def test_rows_can_be_taken_of_every_type():
    arrays = {
        "date": pa.array([datetime.date(1, 1, 1), None]),
        "time": pa.array([datetime.time(1), None]),
        "null": pa.nulls(2),
        "view": pa.array([b"x", None], pa.binary_view()),
        "list": pa.array([[1], None]),
        "uuid": pa.array([b"0123456789abcdef", None], pa.uuid()),
    }
    for name, array in arrays.items():
        frame = as_frame(pa.table({name: array}))
        assert len(frame.iloc[[1, 0, 1]]) == 3
