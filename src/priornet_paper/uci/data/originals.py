"""Tables in the form in which their authors distribute them, also within archives."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from priornet_paper.uci.data.registry import Dataset
from priornet_paper.uci.data.texts import parse_arff, parse_text
from priornet_paper.uci.data.workbooks import parse_xls, parse_xlsx

__all__ = ["read_original"]

_DEEPEST = 3  # archives within archives


def read_original(path: Path, known: Dataset) -> NDArray[np.float64]:
    """Every column of a table in the order of the original, shape ``(N, len(known.columns))``.

    Whatever is wrong with the file is an exception of the reader that met it.
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
    """The table's own file in an archive, or the archive that it is in."""
    wanted = PurePosixPath(known.files[0]).name
    accepted = [wanted.lower(), f"{PurePosixPath(wanted).stem}.arff".lower()]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = {PurePosixPath(name).name.lower(): name for name in archive.namelist()}
        inner = [name for name in names if name.endswith(".zip")] if depth > 1 else []
        for name in (*accepted, *inner[:1]):
            if name in names:
                return names[name], archive.read(names[name])
    raise ValueError(f"the archive holds no {wanted}")
