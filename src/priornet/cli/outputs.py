"""The rule for every file that a command writes, checked before the work begins.

An output is never an input of the command, and never has the ending of another kind of file. What
is there is replaced, and named on standard error, where priornet made it; else only with
``--overwrite``.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import stat
import sys
import zipfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import typer

from priornet.messages import InputError, called

_START = 1 << 16  # bytes in which a file says what it is
_RESULTS = re.compile(r'\{\n "(dataset|figure)": "')
_MAPS = ["depth.npy", "lower.npy", "upper.npy", "total.npy"]


@dataclass(frozen=True)
class Kind:
    """A kind of file that an option writes."""

    called: str
    """A noun, as in "the report that is there"."""
    endings: tuple[str, ...]
    """Endings of its name; those of other kinds are refused."""
    knows: Callable[[Path], bool]
    """Tells a file of this kind and of priornet's making; may raise what readers raise."""

    def is_own(self, path: Path) -> bool:
        """Tell whether priornet made what is there; a damaged file is not known."""
        try:
            return self.knows(path)
        except (OSError, ValueError, EOFError, csv.Error, zipfile.BadZipFile):
            return False


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_START)


def _members(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as file:
        return file.namelist()


def _columns(path: Path) -> list[str]:
    """Read the names of the columns of a table from its first line or its schema."""
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        import pyarrow.parquet as pq

        return list(pq.read_schema(path).names)
    plain = name.removesuffix(".gz")
    with gzip.open(path) if plain != name else path.open("rb") as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        return next(csv.reader(text, delimiter="\t" if plain.endswith(".tsv") else ","), [])


def _is_model(path: Path) -> bool:
    if not (path / "config.json").is_file():
        return False  # without the seconds that torch takes
    from priornet.estimators.persistence import is_model

    return is_model(path)


def _is_predictions(path: Path) -> bool:
    from priornet.estimators.prediction import is_scored

    return is_scored(_columns(path))


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


_TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq")

MODEL = Kind("model", (".safetensors",), _is_model)
REPORT = Kind(
    "report",
    (".html", ".htm"),
    lambda path: b'<meta name="generator" content="priornet ' in _start(path),
)
ONNX = Kind(  # the field `producer_name`
    "ONNX file", (".onnx",), lambda path: b"\x12\x08priornet\x1a" in _start(path)[:64]
)
PROGRAM = Kind(
    "exported program",
    (".pt2",),
    lambda path: any(name.endswith("extra/priornet.json") for name in _members(path)),
)
PREDICTIONS = Kind("table of predictions", _TABLES, _is_predictions)
IMAGE_TABLE = Kind(
    "table of images",
    _TABLES,
    lambda path: _columns(path)[:5] == ["image", "depth", "total", "data", "knowledge"],
)
MAPS = Kind("file of maps", (".npz",), lambda path: _members(path)[: len(_MAPS)] == _MAPS)
RESULTS = Kind("results file", (".json",), _is_results)
FIGURE = Kind("figure", (".png", ".svg"), _is_figure)
PAGE = Kind(
    "page", (".md",), lambda path: b"by `priornet reproduce\npage`: do not edit it" in _start(path)
)
_KINDS = (MODEL, REPORT, ONNX, PROGRAM, PREDICTIONS, IMAGE_TABLE, MAPS, RESULTS, FIGURE, PAGE)


_NAMED = 3  # files that are named one by one
_ENDINGS = {ending for kind in _KINDS for ending in kind.endings}

Inputs = Iterable[str | Path | None]


def check_outputs(
    outputs: Iterable[tuple[Path | None, Kind]],
    inputs: Inputs = (),
    *,
    overwrite: bool,
    quiet: bool = False,
) -> None:
    """Refuse outputs that must not be written, and say what will be replaced.

    Args:
        outputs: Files, and of what kind each will be; None where there is none.
        inputs: Files and folders that the command reads; ``-`` is standard input.
        overwrite: Whether files that priornet did not make may be replaced.
        quiet: Whether to be silent about replacing files that it made.
    """
    named = [(path, kind) for path, kind in outputs if path is not None]
    read = [given for given in inputs if given is not None]
    replaced: list[tuple[Path, str]] = []
    for place, (path, kind) in enumerate(named):
        if path.is_dir():
            raise InputError(f"{path}: it is a folder; name a file in it.")
        _check_ending(path, kind)
        if any(_is_same(path, other) for other, _ in named[:place]):
            raise InputError(f"{path}: two outputs are to be written there; name two files.")
        _check_no_input(path, read)
        if path.exists():
            said = _check_replaceable(path, kind, overwrite=overwrite)
            if said and (overwrite or not quiet):
                replaced.append((path, said))
        _check_folder(path)
    _announce(replaced)


def check_model_folder(path: Path, inputs: Inputs = (), *, quiet: bool = False) -> None:
    """Refuse a folder for a model where neither nothing nor a model is; say what is replaced."""
    from priornet.estimators.persistence import CONFIG, WEIGHTS

    if str(path) == "-":
        raise InputError("-: a model cannot go to standard output; name a folder.")
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: a file of this name is there; name a folder for the model.")
    names = sorted(p.name for p in path.iterdir()) if path.is_dir() else []
    others = [name for name in names if name not in (CONFIG, WEIGHTS)]
    if others:
        raise InputError(
            f'{path}: the folder holds other files ("{others[0]}"); name a new folder.'
        )
    if path.exists() and os.path.samefile(path, os.curdir):  # the shell would keep the old one
        raise InputError(f"{path}: it is the working directory; name a folder in it.")
    if names and _holds_input(path, inputs):
        raise InputError(f"{path}: it is an input of this command; name another folder.")
    _check_in_no_input(path, [given for given in inputs if given is not None])
    if names and not MODEL.is_own(path):
        raise InputError(
            f'{path}: what the folder holds ("{names[0]}") is no model; name a new folder.'
        )
    _check_folder(path)  # the new folder is made beside the old one
    if names and not quiet:
        _announce([(path, MODEL.called)])


def check_standard_output(inputs: Inputs) -> None:
    """Refuse a standard output that the shell appends to an input: its end would never come."""
    try:
        found = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):  # it is closed, or no file
        return
    if not stat.S_ISREG(found.st_mode):  # a terminal is input and output
        return
    for given in inputs:
        if given is not None and _is_file(found, given):
            raise InputError(
                f"standard output: it goes to {called(given)}, an input of this command; name "
                "another file."
            )


def make_folder(path: Path) -> None:
    """Make a folder that takes new files; now, not after the training."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot write there: {error.strerror}.") from error


def figure_paths(folder: Path, *names: str) -> list[tuple[Path, Kind]]:
    """Both files of each figure, as outputs."""
    return [(folder / f"{name}.{ending}", FIGURE) for name in names for ending in ("png", "svg")]


@contextmanager
def still_written(path: Path | None) -> Generator[None]:
    """Add to an error that an output from before it is there."""
    try:
        yield
    except Exception as error:
        if path is not None:
            error.add_note(f"Written before that: {path}.")
        raise


def _check_ending(path: Path, kind: Kind) -> None:
    """Refuse a name that says another kind."""
    name = path.name.lower()
    if name.endswith(kind.endings):
        return
    for ending in _ENDINGS:
        if name.endswith(ending):
            raise InputError(
                f"{path}: {ending} is the ending of another kind of file than the {kind.called} to "
                f"be written there; name a file that ends in {kind.endings[0]}."
            )


def _check_no_input(path: Path, inputs: Sequence[str | Path]) -> None:
    """Refuse a path that is an input, however it is spelled, or lies in a folder that is one."""
    for given in inputs:
        if _is_input(path, given):
            raise InputError(f"{path}: it is an input of this command; name another file.")
    _check_in_no_input(path, inputs)


def _check_in_no_input(path: Path, inputs: Sequence[str | Path]) -> None:
    for given in inputs:
        if os.path.isdir(given) and _is_inside(path, given):
            raise InputError(f"{path}: it lies in {given}, an input of this command; name another.")


def _check_replaceable(path: Path, kind: Kind, *, overwrite: bool) -> str | None:
    """Refuse to replace somebody's file; return what to call what is there."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path}: it is a device or a pipe; name a file.")
    if not os.access(path, os.W_OK):
        raise InputError(f"{path}: Permission denied.")
    if found.st_size == 0:
        return None
    if kind.is_own(path):
        return kind.called
    if not overwrite:
        raise InputError(
            f"{path}: the file that is there is no {kind.called} of priornet's making; name "
            "another file, or add --overwrite."
        )
    return "file"


def _is_same(path: Path, other: str | Path) -> bool:
    """Tell whether two paths are one file, however they are spelled, there or not."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def _is_input(path: Path, given: str | Path) -> bool:
    """Tell whether a path is an input, or another name for a file in a folder that is one."""
    is_standard = str(given) == "-"
    if not is_standard and _is_same(path, given):
        return True
    if not path.exists():
        return False
    found = path.stat()
    return (is_standard or found.st_nlink > 1) and _is_file(found, given)


def _is_file(found: os.stat_result, given: str | Path) -> bool:
    """Tell whether a file that is there is an input, or lies in a folder that is one."""
    try:
        if str(given) == "-":
            return os.path.samestat(found, os.fstat(sys.stdin.fileno()))
        if not os.path.isdir(given):
            return os.path.samestat(found, os.stat(given))
    except (OSError, ValueError, AttributeError):  # it is closed, or no file
        return False
    in_folder = (entry.stat() for entry in Path(given).iterdir() if entry.exists())
    return any(os.path.samestat(found, one) for one in in_folder)


def _is_inside(path: str | Path, folder: str | Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _holds_input(folder: Path, inputs: Inputs) -> bool:
    """Tell whether a folder is an input, or one lies in it."""
    return any(
        _is_same(folder, given) or _is_inside(given, folder)
        for given in inputs
        if given is not None and os.path.exists(given)
    )


def _check_folder(path: Path) -> None:
    """Refuse a place in a model, or where nothing can be written.

    The nearest folder that is there must take new files; the others will be made.
    """
    folder = Path(os.path.realpath(path)).parent  # a link stays, and leads to the new file
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if MODEL.is_own(nearest):
        raise InputError(f"{path}: {nearest} is the folder of a model; name another place.")
    try:
        with TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise InputError(f"{folder}: cannot write there: {error.strerror}.") from error


def _announce(replaced: Sequence[tuple[Path, str]]) -> None:
    """Say what will be replaced, in few lines."""
    for path, noun in replaced[:_NAMED]:
        typer.echo(f"{path}: the {noun} that is there will be replaced.", err=True)
    if len(replaced) > _NAMED:
        more = len(replaced) - _NAMED
        others = "1 more file" if more == 1 else f"{more} more files"
        typer.echo(f"So will {others}, down to {replaced[-1][0]}.", err=True)
