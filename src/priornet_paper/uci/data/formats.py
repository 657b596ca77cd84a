"""Readers of table files: Parquet, NumPy, text, ARFF and Excel, also within archives."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.writing import whole_file
from priornet_paper.uci.data.registry import Dataset, need

Arrays = tuple[NDArray[np.float64], NDArray[np.float64]]

_DEEPEST = 3  # archives within archives
_NUMERIC = ("numeric", "real", "integer")


def read_parquet(path: Path, known: Dataset) -> Arrays:
    """Read inputs and targets by the names of the columns."""
    parquet = need("pyarrow.parquet", "read Parquet (a copy by `to_npz` needs NumPy alone)")
    file = parquet.ParquetFile(path, pre_buffer=False)
    wanted = [*known.feature_names, known.target]
    absent = [name for name in wanted if name not in file.schema_arrow.names]
    if absent:
        raise ValueError(f'it has no column "{absent[0]}"')
    table = file.read(columns=wanted)
    columns = [table.column(name).to_numpy().astype(np.float64) for name in wanted]
    return np.column_stack(columns[:-1]), columns[-1]


def read_npz(path: Path) -> Arrays:
    """Read the arrays ``inputs`` and ``targets``."""
    with np.load(path) as arrays:
        absent = {"inputs", "targets"} - set(arrays.files)
        if absent:
            raise ValueError(f'it has no array "{min(absent)}"')
        return arrays["inputs"].astype(np.float64), arrays["targets"].astype(np.float64)


def write_npz(path: Path, arrays: Arrays) -> None:
    """Write arrays for :func:`read_npz`."""
    named = path if path.name.endswith(".npz") else path.with_name(f"{path.name}.npz")
    with whole_file(named) as file:
        np.savez_compressed(file, inputs=arrays[0], targets=arrays[1])


def read_original(path: Path, known: Dataset) -> NDArray[np.float64]:
    """Read every column in the order of the original, shape ``(N, len(known.columns))``.

    A damaged file raises the exception of its reader, of any class.
    """
    return _parse(path.name, path.read_bytes(), known, _DEEPEST)


def _parse(name: str, content: bytes, known: Dataset, depth: int) -> NDArray[np.float64]:
    n_columns, ending = len(known.columns), PurePosixPath(name).suffix.lower()
    if ending == ".zip":
        return _parse(*_unpacked(content, known, depth), known, depth - 1)
    if ending == ".xls":
        return parse_xls(content, n_columns, known.sheet)
    if ending == ".xlsx":
        return parse_xlsx(content, n_columns, known.sheet)
    return parse_arff(content, n_columns) if ending == ".arff" else parse_text(content, n_columns)


def _unpacked(content: bytes, known: Dataset, depth: int) -> tuple[str, bytes]:
    """Unpack the table's own file from an archive, or an inner archive."""
    wanted = PurePosixPath(known.files[0]).name
    accepted = [wanted.lower(), f"{PurePosixPath(wanted).stem}.arff".lower()]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = {PurePosixPath(name).name.lower(): name for name in archive.namelist()}
        inner = [name for name in names if name.endswith(".zip")] if depth > 1 else []
        for name in (*accepted, *inner[:1]):
            if name in names:
                return names[name], archive.read(names[name])
    raise ValueError(f"the archive holds no {wanted}")


def parse_text(content: bytes, n_columns: int) -> NDArray[np.float64]:
    """Parse rows of ``n_columns`` numbers; lines before the first row of numbers are a header.

    If blanks separate the numbers, a row may be broken into several lines, as in the older form of
    the Boston table.
    """
    start, delimiter = _first_row(content)
    body = content[start:]
    if delimiter is None:
        return _in_rows(np.array(body.split(), dtype=np.float64), n_columns)
    return _delimited(body, delimiter, n_columns)


def parse_arff(content: bytes, n_columns: int) -> NDArray[np.float64]:
    """Parse the rows of an ARFF file whose attributes are all numeric."""
    position = 0
    for line in content.splitlines(keepends=True):
        position += len(line)
        words = line.decode("latin-1").split()
        keyword = words[0].lower() if words else ""
        if keyword == "@attribute" and words[-1].lower() not in _NUMERIC:
            raise ValueError(f"the attribute {words[1]} is not numeric")
        if keyword == "@data":
            break
    else:
        raise ValueError("it has no @data")
    lines = content[position:].splitlines()
    body = b"\n".join(line for line in lines if line.strip() and not line.startswith(b"%")) + b"\n"
    if _first_row(body)[0] != 0:  # below @data there is no header
        raise ValueError(f"not a row of numbers: {body.splitlines()[0][:60]!r}")
    return parse_text(body, n_columns)


def _first_row(content: bytes) -> tuple[int, str | None]:
    """Find the start of the first line of numbers, and their separator (None: blanks)."""
    position = 0
    for line in io.BytesIO(content):
        text = line.decode("latin-1").strip()
        delimiter = max(",;\t", key=text.count)
        separator = delimiter if delimiter in text else None
        if text and _are_numbers(text.split(separator)):
            return position, separator
        position += len(line)
    raise ValueError("it has no row of numbers")


def _are_numbers(words: list[str]) -> bool:
    try:
        [float(word) for word in words]
    except ValueError:
        return False
    return True


def _in_rows(values: NDArray[np.float64], n_columns: int) -> NDArray[np.float64]:
    if len(values) % n_columns:
        raise ValueError(f"{len(values)} values do not make rows of {n_columns}")
    return values.reshape(-1, n_columns)


def _delimited(body: bytes, delimiter: str, n_columns: int) -> NDArray[np.float64]:
    """Read by pyarrow, since the largest of these files has half a million rows."""
    purpose = "read text between commas"
    pa, csv = need("pyarrow", purpose), need("pyarrow.csv", purpose)
    names = [str(number) for number in range(n_columns)]
    table = csv.read_csv(
        pa.BufferReader(body),
        csv.ReadOptions(column_names=names),
        csv.ParseOptions(delimiter=delimiter),
        csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float64()), null_values=[]),
    )
    return np.column_stack([column.to_numpy() for column in table.columns])


def parse_xls(content: bytes, n_columns: int, sheet: int) -> NDArray[np.float64]:
    """Parse one sheet of an ``.xls`` workbook."""
    xlrd = need("xlrd", "read .xls files")
    book = xlrd.open_workbook(file_contents=content, logfile=io.StringIO())  # it would print
    _check_sheet(sheet, book.nsheets)
    page = book.sheet_by_index(sheet)
    return _numbers((page.row_values(row) for row in range(page.nrows)), n_columns)


def parse_xlsx(content: bytes, n_columns: int, sheet: int) -> NDArray[np.float64]:
    """Parse one sheet of an ``.xlsx`` workbook."""
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
    """Collect the rows below the header; empty cells at the edges of the sheet do not count."""
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
