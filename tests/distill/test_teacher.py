"""A function is a teacher."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from priornet.distill import FunctionTeacher, TeacherError
from priornet.distill.teacher import columns_by_name


def lines(X):
    return np.stack([X[:, 0], -X[:, 0]]), np.ones((2, len(X)))


def test_it_is_called_with_the_table():
    means, variances = FunctionTeacher(lines).gaussians(np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(means, [[0, 2, 4], [0, -2, -4]])
    assert variances.shape == (2, 3)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="must be callable; got int"):
        FunctionTeacher(3)  # pyright: ignore


def test_the_size_of_a_function_is_unknown():
    assert FunctionTeacher(lines).n_bytes() is None


@pytest.mark.parametrize(
    "table",
    [np.ones((3, 2)), pd.DataFrame(np.ones((3, 2)), columns=["a", "b"]), {"a": np.ones(3)}],
    ids=["array", "frame", "mapping"],
)
def test_a_function_that_changes_its_table_changes_a_copy(table):
    def centred(rows):
        column = rows[:, 0] if isinstance(rows, np.ndarray) else rows["a"]
        column -= 5.0
        if not isinstance(rows, np.ndarray):
            rows["new"] = column
        return np.zeros((2, 3)), np.ones((2, 3))

    FunctionTeacher(centred).gaussians(table)
    assert "new" not in table
    values = table if isinstance(table, np.ndarray) else np.asarray(table["a"])
    assert (values == 1).all()


FRAME = pd.DataFrame({"b": [1, 2], "other": [0, 0], "a": [3, 4]})


def test_frames_and_mappings_are_put_in_order():
    assert columns_by_name(FRAME, ("a", "b")).columns.tolist() == ["a", "b"]
    assert list(columns_by_name({"b": [1], "c": [2], "a": [3]}, ("a", "b"))) == ["a", "b"]


def test_labels_that_are_numbers_are_found():
    frame = pd.DataFrame(np.arange(6).reshape(2, 3), columns=[1, 2, 3])
    assert columns_by_name(frame, ("3", "1")).to_numpy().tolist() == [[2, 0], [5, 3]]


def test_what_has_no_names_stays():
    array = np.ones((2, 2))
    assert columns_by_name(array, ("a", "b")) is array
    assert columns_by_name(FRAME, None) is FRAME


def test_a_missing_column_is_named():
    with pytest.raises(TeacherError, match='no column "z"'):
        columns_by_name(FRAME, ("a", "z"))
