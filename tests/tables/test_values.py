"""Values become numbers or dates where all of them are, and labels otherwise."""

import datetime

import numpy as np
import pytest

from priornet.tables.columns import CellError, Numbers, Texts
from priornet.tables.values import from_objects, from_uniques, label_of, labelled


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
def test_objects_that_are_all_of_a_kind_are_numbers(values, numbers, is_date):
    column = from_objects(values, "a")
    assert isinstance(column, Numbers)
    assert column.is_date == is_date
    np.testing.assert_array_equal(column.values, numbers)


def test_objects_of_several_kinds_are_labels():
    column = from_objects([1, "x", float("nan"), datetime.date(1970, 1, 3), 1.0], "a")
    assert isinstance(column, Texts)
    assert column.labels == ("1", "x", "1970-01-03")
    assert column.codes.tolist() == [0, 1, -1, 2, 0]


def test_numbers_that_were_declared_labels_stay_labels():
    column = from_uniques(np.array([1, 0, -1]), [7, 8.5], "a", is_declared=True)
    assert isinstance(column, Texts)
    assert (column.labels, column.is_declared) == (("7", "8.5"), True)
    assert column.codes.tolist() == [1, 0, -1]


def test_a_hole_among_distinct_values_is_a_hole():
    column = from_uniques(np.array([0, 1, 2, -1]), ["x", None, "y"], "a")
    assert isinstance(column, Texts)
    assert column.labels == ("x", "y")
    assert column.codes.tolist() == [0, -1, 1, -1]


def test_labels_that_became_one_have_one_code():
    column = labelled(np.array([0, 1, 2, 3, -1]), ["x", "", "y", "x"])
    assert column.labels == ("x", "y")
    assert column.codes.tolist() == [0, -1, 1, 0, -1]


@pytest.mark.parametrize("value", [(1, 2), frozenset({1}), [1]], ids=lambda v: type(v).__name__)
def test_a_collection_is_refused_with_its_place(value):
    with pytest.raises(CellError, match=f'column "a", row 2: {type(value).__name__} is neither'):
        from_objects(["x", None, value], "a")
