"""Tables in Excel files, the older kind and the newer."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet_paper.uci.data.extras import need

__all__ = ["parse_xls", "parse_xlsx"]


def parse_xls(content: bytes, n_columns: int, sheet: int) -> NDArray[np.float64]:
    """One sheet of an ``.xls`` workbook."""
    xlrd = need("xlrd", "read .xls files")
    book = xlrd.open_workbook(file_contents=content, logfile=io.StringIO())  # it would print
    _check_sheet(sheet, book.nsheets)
    page = book.sheet_by_index(sheet)
    return _numbers((page.row_values(row) for row in range(page.nrows)), n_columns)


def parse_xlsx(content: bytes, n_columns: int, sheet: int) -> NDArray[np.float64]:
    """One sheet of an ``.xlsx`` workbook."""
    openpyxl = need("openpyxl", "read .xlsx files")
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    try:
        _check_sheet(sheet, len(book.worksheets))
        return _numbers(book.worksheets[sheet].iter_rows(values_only=True), n_columns)
    finally:
        book.close()


def _check_sheet(sheet: int, n_sheets: int) -> None:
    if sheet >= n_sheets:
        raise ValueError(f"the table is on sheet {sheet + 1}, and it has {n_sheets}")


def _numbers(rows: Iterable[Sequence[Any]], n_columns: int) -> NDArray[np.float64]:
    """The rows below the header; empty cells at the edges of the sheet do not count."""
    found: list[list[float]] = []
    for number, row in enumerate(rows, start=1):
        cells = [cell for cell in row if cell not in (None, "")]
        if not cells or (not found and any(isinstance(cell, str) for cell in cells)):
            continue
        if len(cells) != n_columns or list(row[:n_columns]) != cells:
            raise ValueError(f"row {number} has {len(cells)} values instead of {n_columns}")
        found.append([float(cell) for cell in cells])
    if not found:
        raise ValueError("it has no row of numbers")
    return np.array(found)
