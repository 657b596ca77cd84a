"""Text tables: every separator, with and without header, and ARFF."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from _uci_files import lines, small, statlib
from priornet_paper.uci.data.texts import parse_arff, parse_text

NUMBERS = st.floats(-1e12, 1e12)
ARFF = """% Title: power plant
@relation plant

@attribute AT numeric
@attribute V REAL
@ATTRIBUTE PE integer

@DATA
% a comment among the rows
8.34,40.77,480
23.64, 58.49, 445
"""


@settings(deadline=None, max_examples=50)
@given(
    arrays(
        np.float64, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6), elements=NUMBERS
    ),
    st.sampled_from([",", ";", "\t", "  "]),
    st.booleans(),
)
def test_every_separator_gives_the_numbers_back(values, separator, has_header):
    header = separator.join(f'"column_{i}"' for i in range(values.shape[1])) + "\r\n"
    text = header * has_header + lines(values, separator)
    assert (parse_text(text.encode(), values.shape[1]) == values).all()


def test_rows_broken_into_two_lines_below_a_preface():
    values = small("boston")
    assert (parse_text(statlib(values), 14) == values).all()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 2 3\n4 5\n", "5 values do not make rows of 3"),
        ("1 2 3\n4 five 6\n", "five"),
        ("1,2,3\n4,5\n", "Expected 3 columns, got 2"),
        ("1,2,3\n4,,6\n", "''"),
        ("1;2;3\n4;x;6\n", "'x'"),
        ("a,b,c\n", "no row of numbers"),
        ("", "no row of numbers"),
    ],
)
def test_broken_rows_are_refused(text, problem):
    with pytest.raises(ValueError, match=problem):
        parse_text(text.encode(), 3)


def test_arff_rows_follow_the_data_mark():
    assert parse_arff(ARFF.encode(), 3).tolist() == [[8.34, 40.77, 480.0], [23.64, 58.49, 445.0]]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("@DATA", "", "no @data"),
        ("V REAL", "V {low,high}", "attribute V is not numeric"),
        ("40.77", "?", r"\?"),
    ],
)
def test_arff_that_is_not_a_table_of_numbers_is_refused(old, new, problem):
    with pytest.raises(ValueError, match=problem):
        parse_arff(ARFF.replace(old, new).encode(), 3)
