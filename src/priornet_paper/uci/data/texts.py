"""Tables in text files: between commas, semicolons, tabs or blanks, and ARFF."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

from priornet_paper.uci.data.extras import need

__all__ = ["parse_arff", "parse_text"]

_NUMERIC = ("numeric", "real", "integer")


def parse_text(content: bytes, n_columns: int) -> NDArray[np.float64]:
    """Numbers in rows; lines before the first row of numbers are a header.

    Args:
        content: The file.
        n_columns: How many there must be. Where blanks separate them, a row may be broken into
            several lines, as in the older form of the Boston table.
    """
    start, delimiter = _first_row(content)
    body = content[start:]
    if delimiter is None:
        return _in_rows(np.array(body.split(), dtype=np.float64), n_columns)
    return _delimited(body, delimiter, n_columns)


def parse_arff(content: bytes, n_columns: int) -> NDArray[np.float64]:
    """The rows of an ARFF file whose attributes are all numeric."""
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
    """Where the first line of numbers starts, and what stands between them (None: blanks)."""
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
