"""Every container and column type gives the same columns; what is neither number nor text fails."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from priornet.tables.raw import as_frame, read_table, unnamed_indices
from priornet.tables.values import CellError, Numbers, Texts

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


@pytest.mark.parametrize("convert", [lambda table: table, as_frame], ids=["Arrow", "frame"])
def test_arrow_lists_are_refused_by_name(convert):
    with pytest.raises(ValueError, match='column "a" has the type list'):
        read_table(convert(pa.table({"a": pa.array([[1]])})))


FAR = [datetime.datetime(9999, 12, 31), None, datetime.datetime(1, 1, 1)]
FAR_DAYS = [(moment - datetime.datetime(1970, 1, 1)).days if moment else NAN for moment in FAR]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_dates_that_nanoseconds_cannot_hold_are_exact(unit, zone):
    table = pa.table({"a": pa.array(FAR, pa.timestamp(unit, zone))})
    for given in (table, table.to_pandas(), as_frame(table)):
        np.testing.assert_array_equal(values(given), FAR_DAYS)


@pytest.mark.parametrize(
    "table",
    [
        {"a": np.array(FAR, object)},
        {"a": np.array(FAR, "M8[s]")},
        pd.DataFrame({"a": pd.Series(FAR, dtype=object)}),
        pa.table({"a": pa.array(FAR, pa.date32())}),
        as_frame(pa.table({"a": pa.array(FAR, pa.date32())})),
        as_frame(pa.table({"a": pa.array(FAR, pa.date64())})),
    ],
)
def test_far_dates_in_every_container(table):
    np.testing.assert_array_equal(values(table), FAR_DAYS)


def test_durations_that_nanoseconds_cannot_hold_are_exact():
    table = pa.table({"a": pa.array([10**6 * 86_400, None, 36 * 3600], pa.duration("s"))})
    for given in (table, table.to_pandas(), as_frame(table)):
        np.testing.assert_array_equal(values(given), [10**6, NAN, 1.5])


def test_a_moment_is_the_same_number_as_an_object_and_as_a_type():
    moments = [datetime.datetime(2020, 3, 1, 7, 8, 9, micro) for micro in range(0, 999_983, 9973)]
    expected = values({"a": np.array(moments, "M8[us]")})
    assert values({"a": np.array(moments, object)}) == expected
    assert values({"a": np.array([pd.Timestamp(m) for m in moments], object)}) == expected
    durations = [moment - datetime.datetime(2020, 1, 1) for moment in moments]
    expected = values({"a": np.array(durations, "m8[us]")})
    assert values({"a": np.array(durations, object)}) == expected


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([b"x", None, b"y"]), ["x", None, "y"]),
        (pa.array([b"x", None, b"y"], pa.large_binary()), ["x", None, "y"]),
        (pa.array([b"x", None, b"y"], pa.binary(1)), ["x", None, "y"]),
        (pa.array([b"x", None, b"y"], pa.binary_view()), ["x", None, "y"]),
        (pa.array([datetime.time(12, 30), None], pa.time32("s")), ["12:30:00", None]),
        (pa.array([datetime.time(12, 30), None], pa.time64("ns")), ["12:30:00", None]),
        (pa.array(pd.period_range("2020-01", periods=2, freq="M")), ["2020-01", "2020-02"]),
        (pa.array(pd.interval_range(0, 2)), ["(0, 1]", "(1, 2]"]),
    ],
    ids=lambda array: str(getattr(array, "type", "")),
)
def test_types_that_are_labels_by_their_text(array, expected):
    table = pa.table({"a": array})
    for given in (table, as_frame(table)):
        assert labels(given) == expected


def test_decimals_are_rounded_to_the_nearest_number_in_every_container():
    decimals = [Decimal(text) for text in ("1234567890123456.7", "0.1", "99999999999999999.99")]
    table = pa.table({"a": pa.array(decimals, pa.decimal128(30, 4))})
    for given in (table, as_frame(table), table.to_pandas(types_mapper=pd.ArrowDtype)):
        assert values(given) == [float(decimal) for decimal in decimals]


def test_whole_numbers_that_no_float_holds_are_infinite():
    assert values({"a": np.array([10**400, -(10**400), 1], object)}) == [np.inf, -np.inf, 1]


def test_names_that_no_file_can_hold_are_refused():
    names = pd.Index(["a\ud800"], dtype=object)
    for table in ({names[0]: [1.0, 2.0]}, pd.DataFrame(np.ones((2, 1)), columns=names)):
        with pytest.raises(ValueError, match=r"'a\\ud800' is not text .* rename it"):
            read_table(table)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 2, 2)), 1.0])
def test_tables_of_other_than_two_dimensions_are_refused(array):
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


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.5, 2.5, 3.5]),
        np.array([1, 2, 3]),
        np.array([True, False, True]),
        np.array(["a", "b", "c"]),
        np.array(["a", 2, None], object),
        np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]"),
        np.array([1, 2, 3], "m8[s]"),
    ],
)
def test_masked_values_are_missing(values):
    masked = np.ma.array(values, mask=[False, True, False])
    for table in ({"a": masked}, masked.reshape(-1, 1)):
        column = read_table(table).column(0)
        missing = np.isnan(column.values) if isinstance(column, Numbers) else column.codes < 0
        assert list(missing[:2]) == [False, True]
        whole = read_table({"a": values[:1]}).column(0)
        assert type(column) is type(whole)


def test_an_index_that_pandas_wrote_stays_a_column():
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
def test_an_index_without_a_name_is_found_by_its_place_and_counts(columns, expected):
    assert unnamed_indices(pd.DataFrame(columns)) == tuple(expected)


def test_numbers_that_were_names_are_text_as_in_the_file():
    table = pa.Table.from_pandas(pd.DataFrame([[1, 2]], columns=[0, 1]))
    assert list(as_frame(table).columns) == table.column_names == ["0", "1"]


@pytest.mark.parametrize("values", [["a", "b", None], ["a", "a", "b"]], ids=["missing", "twice"])
def test_dictionaries_that_pandas_refuses_become_categories(values):
    table = pa.table({"a": pa.DictionaryArray.from_arrays([0, 1, 2, None], pa.array(values))})
    found = [read_table(given).column(0) for given in (table, as_frame(table))]
    own = [[c.labels[i] if i >= 0 else None for i in c.codes] for c in found]  # type: ignore
    assert own[0] == own[1] == [*values, None]
    assert str(as_frame(table)["a"].dtype) == "category"


def test_types_that_pandas_has_are_kept():
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
