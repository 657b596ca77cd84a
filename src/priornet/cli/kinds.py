"""The kinds of files and folders that commands write, and how to know one of our own making."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "FIGURE",
    "IMAGE_TABLE",
    "MAPS",
    "MODEL",
    "ONNX",
    "PAGE",
    "PREDICTIONS",
    "PROGRAM",
    "REPORT",
    "RESULTS",
    "Kind",
]

_START = 1 << 16  # bytes in which a file says what it is
_RESULTS = re.compile(r'\{\n "(dataset|figure)": "')
_MAPS = ["depth.npy", "lower.npy", "upper.npy", "total.npy"]


@dataclass(frozen=True)
class Kind:
    """What an option writes.

    Attributes:
        called: A noun, as in "the report that is there".
        endings: Of its name; the endings of other kinds are refused.
        knows: Whether a file is of this kind and of our making; may raise what readers raise.
    """

    called: str
    endings: tuple[str, ...]
    knows: Callable[[Path], bool]

    def is_own(self, path: Path) -> bool:
        """Tell whether priornet made what is there; a damaged file is not known."""
        try:
            return self.knows(path)
        except (OSError, ValueError, EOFError, csv.Error, zipfile.BadZipFile):
            return False


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_START)


def _is_model(path: Path) -> bool:
    if not (path / "config.json").is_file():
        return False  # without the seconds that torch takes
    from priornet.estimators.persistence import is_model

    return is_model(path)


def _is_report(path: Path) -> bool:
    return b'<meta name="generator" content="priornet ' in _start(path)


def _is_onnx(path: Path) -> bool:
    return b"\x12\x08priornet\x1a" in _start(path)[:64]  # the field `producer_name`


def _is_program(path: Path) -> bool:
    with zipfile.ZipFile(path) as file:
        return any(name.endswith("extra/priornet.json") for name in file.namelist())


def _columns(path: Path) -> list[str]:
    """Names of the columns of a table, as its first line or its schema has them."""
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        import pyarrow.parquet as pq

        return list(pq.read_schema(path).names)
    plain = name.removesuffix(".gz")
    with gzip.open(path) if plain != name else path.open("rb") as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        return next(csv.reader(text, delimiter="\t" if plain.endswith(".tsv") else ","), [])


def _is_predictions(path: Path) -> bool:
    from priornet.estimators.prediction import is_scored

    return is_scored(_columns(path))


def _is_image_table(path: Path) -> bool:
    return _columns(path)[:5] == ["image", "depth", "total", "data", "knowledge"]


def _is_maps(path: Path) -> bool:
    with zipfile.ZipFile(path) as file:
        return file.namelist()[: len(_MAPS)] == _MAPS


def _is_results(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    try:
        content: Any = json.loads(text)
    except ValueError:  # damaged: known by its beginning
        return _RESULTS.match(text) is not None
    return isinstance(content, dict) and "priornet" in str(content.get("versions"))


def _is_figure(path: Path) -> bool:
    start = _start(path)
    return b"tEXtSource\x00priornet" in start or b"<dc:source>priornet</dc:source>" in start


def _is_page(path: Path) -> bool:
    return b"by `priornet reproduce\npage`: do not edit it" in _start(path)


_TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq")

MODEL = Kind("model", (".safetensors",), _is_model)
REPORT = Kind("report", (".html", ".htm"), _is_report)
ONNX = Kind("ONNX file", (".onnx",), _is_onnx)
PROGRAM = Kind("exported program", (".pt2",), _is_program)
PREDICTIONS = Kind("table of predictions", _TABLES, _is_predictions)
IMAGE_TABLE = Kind("table of images", _TABLES, _is_image_table)
MAPS = Kind("file of maps", (".npz",), _is_maps)
RESULTS = Kind("results file", (".json",), _is_results)
FIGURE = Kind("figure", (".png", ".svg"), _is_figure)
PAGE = Kind("page", (".md",), _is_page)
