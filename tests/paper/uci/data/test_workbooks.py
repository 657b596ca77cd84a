"""Both Excel formats: one sheet, below its header, without the empty cells around."""

import numpy as np
import pytest

from _uci_files import xls, xlsx
from priornet_paper.uci.data.workbooks import parse_xls, parse_xlsx

VALUES = np.array([[1.5, 2.0, -3.25], [0.1, 1e-7, 79.98611076]])
HEADER = ["a (kg)", "b", "c"]


def test_xls_gives_the_numbers_of_a_sheet():
    np.testing.assert_allclose(parse_xls(xls(VALUES, HEADER), 3, 0), VALUES, rtol=1e-15)


def test_xlsx_gives_the_numbers_of_the_sheet_that_is_asked_for():
    book = xlsx([VALUES[:1], VALUES, VALUES[::-1]], HEADER)
    assert (parse_xlsx(book, 3, 1) == VALUES).all()
    assert (parse_xlsx(book, 3, 2) == VALUES[::-1]).all()


@pytest.mark.parametrize(
    ("parse", "book"),
    [(parse_xls, xls(VALUES, HEADER)), (parse_xlsx, xlsx([VALUES], HEADER))],
    ids=["xls", "xlsx"],
)
def test_wrong_sheets_and_widths_are_refused(parse, book):
    with pytest.raises(ValueError, match="the table is on sheet 8, and it has"):
        parse(book, 3, 7)
    with pytest.raises(ValueError, match="row 2 has 3 values instead of 4"):
        parse(book, 4, 0)


def test_a_hole_or_a_word_among_the_numbers_is_refused():
    rows = [*VALUES.tolist(), [1.0, None, 2.0]]
    with pytest.raises(ValueError, match="row 4 has 2 values"):
        parse_xlsx(xlsx([np.array(rows, dtype=object)], HEADER), 3, 0)
    rows[-1] = [1.0, "two", 2.0]
    with pytest.raises(ValueError, match="two"):
        parse_xlsx(xlsx([np.array(rows, dtype=object)], HEADER), 3, 0)


def test_a_sheet_without_numbers_is_refused():
    with pytest.raises(ValueError, match="no row of numbers"):
        parse_xlsx(xlsx([np.zeros((0, 3))], HEADER), 3, 0)
