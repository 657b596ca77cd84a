"""Values become columns of numbers or labels; text that spells numbers is parsed."""

import datetime
import pickle

import numpy as np
import pytest

from priornet.tables.values import (
    CellError,
    Numbers,
    Table,
    Texts,
    as_days,
    as_moments,
    days_of,
    decimals_among_thousands,
    from_objects,
    from_uniques,
    label_of,
    labelled,
    parse_labels,
)


def test_a_matrix_and_its_columns_are_the_same_table():
    matrix = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    columns = tuple(Numbers(column) for column in matrix.T)
    for table in (Table(None, 2, matrix=matrix), Table(None, 2, columns)):
        assert table.n_columns == 3
        for j in range(3):
            column = table.column(j)
            assert isinstance(column, Numbers)
            np.testing.assert_array_equal(column.values, matrix[:, j])


def test_columns_are_labelled_by_name_or_by_number():
    columns = (Texts(np.array([0, -1]), ("x",)),) * 2
    assert [Table(("a", "b"), 2, columns).label(j) for j in range(2)] == ["a", "b"]
    assert [Table(None, 2, columns).label(j) for j in range(2)] == [0, 1]


@pytest.mark.parametrize(("column", "where"), [("a b", '"a b"'), (7, "7")])
def test_a_wrong_cell_is_named_with_its_place_also_from_another_process(column, where):
    for error in (
        CellError(column, 3, "no."),
        pickle.loads(pickle.dumps(CellError(column, 3, "no."))),
    ):
        assert str(error) == f"column {where}, row 3: no."
        assert (error.column, error.row, error.problem) == (column, 3, "no.")


def test_labels_do_not_depend_on_the_type_that_carried_them():
    assert {label_of(value) for value in (3, 3.0, np.float32(3), "3", " 3 ", b"3")} == {"3"}
    assert label_of(2.5) == "2.5"


@pytest.mark.parametrize(
    ("values", "numbers", "is_date"),
    [
        ([2, None, True, 1.5], [2, np.nan, 1, 1.5], False),
        ([datetime.date(1970, 1, 3), np.datetime64("NaT")], [2, np.nan], True),
        ([datetime.timedelta(hours=36)], [1.5], False),
    ],
)
def test_objects_of_one_kind_are_numbers(values, numbers, is_date):
    column = from_objects(values, "a")
    assert isinstance(column, Numbers)
    assert column.is_date == is_date
    np.testing.assert_array_equal(column.values, numbers)


def test_objects_of_several_kinds_are_labels():
    column = from_objects([1, "x", float("nan"), datetime.date(1970, 1, 3), 1.0], "a")
    assert isinstance(column, Texts)
    assert column.labels == ("1", "x", "1970-01-03")
    assert column.codes.tolist() == [0, 1, -1, 2, 0]


def test_numbers_of_a_categorical_type_are_labels():
    column = from_uniques(np.array([1, 0, -1]), [7, 8.5], "a", is_declared=True)
    assert isinstance(column, Texts)
    assert (column.labels, column.is_declared) == (("7", "8.5"), True)
    assert column.codes.tolist() == [1, 0, -1]


def test_a_missing_value_among_distinct_values_is_missing():
    column = from_uniques(np.array([0, 1, 2, -1]), ["x", None, "y"], "a")
    assert isinstance(column, Texts)
    assert column.labels == ("x", "y")
    assert column.codes.tolist() == [0, -1, 1, -1]


def test_labels_that_differ_by_blanks_have_one_code():
    column = labelled(np.array([0, 1, 2, 3, -1]), ["x", "", "y", "x"])
    assert column.labels == ("x", "y")
    assert column.codes.tolist() == [0, -1, 1, 0, -1]


@pytest.mark.parametrize("value", [(1, 2), frozenset({1}), [1]], ids=lambda v: type(v).__name__)
def test_a_collection_is_refused_with_its_place(value):
    with pytest.raises(CellError, match=f'column "a", row 2: {type(value).__name__} is neither'):
        from_objects(["x", None, value], "a")


EAST = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "days"),
    [
        (datetime.date(1970, 1, 3), 2),
        (datetime.datetime(1970, 1, 2, 12), 1.5),
        (datetime.datetime(1970, 1, 2, 14, tzinfo=EAST), 1.5),
        (np.datetime64("1969-12-31T06", "h"), -0.75),
        (datetime.timedelta(hours=-36), -1.5),
    ],
)
def test_one_value_in_days(value, days):
    assert days_of(value) == days


@pytest.mark.parametrize("unit", ["h", "s", "us", "ns"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_arrays_of_every_unit_in_days(kind, unit):
    hours = np.array([36, -6, "NaT"], f"{kind}[h]")
    np.testing.assert_array_equal(as_days(hours.astype(f"{kind}[{unit}]")), [1.5, -0.25, np.nan])


def test_moments_come_back_to_the_microsecond():
    moments = np.array(["1969-12-31T23:59:59.999999", "2024-02-29T12:34:56.789012"], "M8[us]")
    np.testing.assert_array_equal(as_moments(as_days(moments)), moments)


NAN = np.nan


@pytest.mark.parametrize(
    ("words", "parser", "numbers"),
    [
        (["12 ", "1e-3", "-.5"], "number", [12, 1e-3, -0.5]),
        (["1,5", "n/a", "12"], "comma", [1.5, NAN, 12]),
        (["1970-01-02", "1970-01-01T12:00Z", ""], "date", [1, 0.5, NAN]),
        (["NULL", "7"], "number", [NAN, 7]),
        (["True", "FALSE", ""], "boolean", [1, 0, NAN]),
    ],
)
def test_text_that_spells_numbers_is_parsed(words, parser, numbers):
    found = parse_labels(words)
    assert found is not None
    assert found[0] == parser
    np.testing.assert_array_equal(found[1], numbers)


@pytest.mark.parametrize(
    "words",
    [
        ["1", "two"],
        ["1,234", "5,678"],  # thousands or thousandths: nobody can tell
        ["1,5", "2.5"],
        ["1,234,5"],
        ["1_000"],
    ],
)
def test_text_that_spells_no_numbers_is_not_parsed(words):
    assert parse_labels(words) is None


def test_a_known_parser_reads_numbers_that_could_not_be_guessed():
    found = parse_labels(["1,234"], "comma")
    assert found is not None
    assert found[1].tolist() == [1.234]


GROUPED = [f"{n // 1000},{n % 1000:03d}" for n in range(1001, 5000, 7)]


@pytest.mark.parametrize("odd", ["12,5", "0,123", "1234,567"])
def test_one_odd_cell_does_not_turn_thousands_into_decimals(odd):
    assert parse_labels([*GROUPED, odd]) is None
    assert decimals_among_thousands([*GROUPED, "950", odd]) == [odd]
    assert decimals_among_thousands(GROUPED) == []


def test_three_decimals_without_their_last_zeros_are_decimals():
    numbers = np.random.default_rng(0).uniform(1, 100, 300).round(3)
    words = [str(number).replace(".", ",") for number in numbers]
    found = parse_labels(words)
    assert found is not None
    assert found[0] == "comma"
    np.testing.assert_array_equal(found[1], numbers)
    assert decimals_among_thousands(words) == []
