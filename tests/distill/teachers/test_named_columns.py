"""Columns are taken by name, in the order asked for; arrays stay as they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from priornet.distill import TeacherError
from priornet.distill.teachers.named_columns import by_name

FRAME = pd.DataFrame({"b": [1, 2], "other": [0, 0], "a": [3, 4]})


def test_frames_and_mappings_are_put_in_order():
    assert by_name(FRAME, ("a", "b")).columns.tolist() == ["a", "b"]
    assert list(by_name({"b": [1], "c": [2], "a": [3]}, ("a", "b"))) == ["a", "b"]


def test_labels_that_are_numbers_are_found():
    frame = pd.DataFrame(np.arange(6).reshape(2, 3), columns=[1, 2, 3])
    assert by_name(frame, ("3", "1")).to_numpy().tolist() == [[2, 0], [5, 3]]


def test_what_has_no_names_stays():
    array = np.ones((2, 2))
    assert by_name(array, ("a", "b")) is array
    assert by_name(FRAME, None) is FRAME


def test_a_missing_column_is_named():
    with pytest.raises(TeacherError, match='no column "z"'):
        by_name(FRAME, ("a", "z"))
