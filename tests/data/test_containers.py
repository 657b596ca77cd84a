"""Every container and column type gives the same columns; what is neither number nor text fails."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from priornet.data.columns import CellError, Numbers, Texts
from priornet.data.containers import read_table

NAN = np.nan


def values(table, index=0):
    column = read_table(table).column(index)
    assert isinstance(column, Numbers)
    return column.values.tolist()


def labels(table, index=0):
    column = read_table(table).column(index)
    assert isinstance(column, Texts)
    return [column.labels[code] if code >= 0 else None for code in column.codes]


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1, NAN, 3]),
        pd.Series([1, None, 3], dtype=object),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1, None, 3], dtype="Float32"),
        pd.Series([1, None, 3], dtype="int64[pyarrow]"),
        pd.Series([1, NAN, 3], dtype=pd.SparseDtype(float)),
        pd.Series([1, pd.NA, 3], dtype=object),
    ],
    ids=lambda series: str(series.dtype),
)
def test_numbers_of_every_pandas_type(series):
    np.testing.assert_array_equal(values(series.to_frame("a")), [1, NAN, 3])


@pytest.mark.parametrize("dtype", ["bool", "boolean", object])
def test_booleans_are_zero_and_one(dtype):
    assert values(pd.DataFrame({"a": pd.Series([True, False], dtype=dtype)})) == [1, 0]


@pytest.mark.parametrize("dtype", [object, "str", "string", "string[pyarrow]", "category"])
def test_text_of_every_pandas_type(dtype):
    series = pd.Series(["red", None, "blue"], dtype=dtype)
    assert labels(series.to_frame("a")) == ["red", None, "blue"]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None, 3]),
        pa.array([1, None, 3], pa.uint8()),
        pa.array([1.0, None, 3.0], pa.float32()),
        pa.array([Decimal("1"), None, Decimal("3")]),
        pa.chunked_array([[1, None], [3]]),
    ],
    ids=lambda array: str(array.type),
)
def test_numbers_of_every_arrow_type(array):
    np.testing.assert_array_equal(values(pa.table({"a": array})), [1, NAN, 3])


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["x", None, "y"]),
        pa.array(["x", None, "y"], pa.large_string()),
        pa.array(["x", None, "y"], pa.string_view()),
        pa.array(["x", None, "y"]).dictionary_encode(),
        pa.chunked_array([["x", None], ["y"]]),
        pa.chunked_array([pa.array(["x", None]), pa.array(["y"])]).dictionary_encode(),
    ],
    ids=lambda array: f"{type(array).__name__} {array.type}",
)
def test_text_of_every_arrow_type(array):
    assert labels(pa.table({"a": array})) == ["x", None, "y"]


def test_arrow_batch_and_empty_columns():
    batch = pa.record_batch({"a": pa.array([1.0, None]), "b": ["x", "y"]})
    np.testing.assert_array_equal(values(batch), [1, NAN])
    assert labels(batch, 1) == ["x", "y"]
    np.testing.assert_array_equal(values(pa.table({"a": pa.nulls(2)})), [NAN, NAN])
    assert labels(pa.table({"a": pa.array([], pa.string())})) == []


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.to_datetime(["1970-01-02 12:00", None])}),
        pd.DataFrame({"a": pd.to_datetime(["1970-01-02 12:00", None]).tz_localize("UTC")}),
        pd.DataFrame({"a": pd.to_datetime(["1970-01-02 14:00+02:00", None])}),
        pa.table({"a": pa.array([datetime.datetime(1970, 1, 2, 12), None])}),
        {"a": np.array(["1970-01-02T12", "NaT"], "M8[h]")},
        {"a": np.array([datetime.datetime(1970, 1, 2, 12), None], object)},
    ],
)
def test_moments_become_days_since_1970(table):
    column = read_table(table).column(0)
    assert isinstance(column, Numbers)
    assert column.is_date
    np.testing.assert_array_equal(column.values, [1.5, NAN])


def test_dates_and_durations():
    assert values({"a": np.array([datetime.date(1970, 1, 3)], object)}) == [2]
    assert values(pa.table({"a": pa.array([datetime.date(1970, 1, 3)])})) == [2]
    assert values(pd.DataFrame({"a": pd.to_timedelta(["36h"])})) == [1.5]
    assert values(pa.table({"a": pa.array([datetime.timedelta(hours=36)])})) == [1.5]
    assert values({"a": np.array([datetime.timedelta(hours=36)], object)}) == [1.5]


def test_object_array_of_numbers_and_text():
    table = np.array([[1, "x"], [None, " x "], [2.5, ""]], dtype=object)
    np.testing.assert_array_equal(values(table), [1, NAN, 2.5])
    assert labels(table, 1) == ["x", "x", None]


@pytest.mark.parametrize("container", [np.array, pd.DataFrame], ids=["array", "pandas"])
def test_values_that_are_neither_number_nor_text_are_refused_with_their_place(container):
    data = np.empty((2, 1), dtype=object)
    data[:, 0] = [1.0, {"foo": "bar"}]
    with pytest.raises(CellError, match="column 0, row 1: dict is neither"):
        read_table(container(data))


@pytest.mark.parametrize(
    "table",
    [np.array([[1j]]), pd.DataFrame({"a": [1j]}), {"a": np.array([1j, "x"], object)}, {"a": [1j]}],
)
def test_complex_numbers_are_refused(table):
    with pytest.raises(ValueError, match="omplex"):
        read_table(table)


def test_arrow_lists_are_refused_by_name():
    with pytest.raises(ValueError, match='column "a" has the type list'):
        read_table(pa.table({"a": pa.array([[1]])}))


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 2, 2)), 1.0])
def test_only_two_dimensions(array):
    with pytest.raises(ValueError, match="two dimensions"):
        read_table(array)


def test_mapping_of_unequal_columns_is_refused():
    with pytest.raises(ValueError, match='column "b"'):
        read_table({"a": [1, 2], "b": [1]})


def test_equal_names_are_refused():
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="'a'"):
        read_table(frame)
    with pytest.raises(ValueError, match="'a'"):
        read_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]))


def test_mixed_kinds_of_names_are_refused_and_numbers_are_no_names():
    with pytest.raises(TypeError, match="all text"):
        read_table(pd.DataFrame([[1, 2]], columns=["a", 1]))
    assert read_table(pd.DataFrame([[1, 2]])).names is None
