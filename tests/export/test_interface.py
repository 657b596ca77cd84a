"""Tables of any kind become the inputs of a graph; messages of torch are silenced."""

import logging
import warnings

import numpy as np
import pandas as pd
import pytest

from priornet.export import feeds
from priornet.export.interface import quiet
from priornet.tables.preprocessing import TablePreprocessor


def test_every_column_becomes_an_input_in_its_form():
    frame = pd.DataFrame(
        {
            "number": [1.5, np.nan],
            "label": [" red ", None],
            "day": pd.to_datetime(["1970-01-02T00:00", "1970-01-03T12:00"]),
            "comma": ["1,5", "n/a"],
            "flag": ["true", "false"],
        }
    )
    found = feeds(TablePreprocessor().fit(frame), frame[frame.columns[::-1]])
    assert list(found) == list(frame.columns)
    assert {values.shape for values in found.values()} == {(2, 1)}
    np.testing.assert_array_equal(found["number"][:, 0], [1.5, np.nan])
    assert found["label"][:, 0].tolist() == ["red", ""]
    np.testing.assert_array_equal(found["day"][:, 0], [1.0, 2.5])
    np.testing.assert_array_equal(found["comma"][:, 0], [1.5, np.nan])
    np.testing.assert_array_equal(found["flag"][:, 0], [1.0, 0.0])


def test_array_is_one_input():
    X = np.arange(6.0).reshape(3, 2)
    found = feeds(TablePreprocessor().fit(X), X)
    np.testing.assert_array_equal(found["X"], X)


def test_logger_and_warnings_are_silent_inside_only(caplog):
    logger = logging.getLogger("some.library")
    with quiet("some.library"):
        logger.warning("inside")
        warnings.warn("inside", stacklevel=1)
    logger.warning("after")
    assert [record.message for record in caplog.records] == ["after"]
    with pytest.warns(match="after"):
        warnings.warn("after", stacklevel=1)
