"""The files of tables: their names, the folders to look in, and downloads with Pooch."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from priornet._lazy import need_for
from priornet.messages import first_line
from priornet_paper.uci.data.registry import Dataset, UciError

VARIABLE = "PRIORNET_DATA"
_ENDINGS = (".zip", ".csv", ".txt", ".arff", ".xls", ".xlsx")
_SECONDS = 60
_CHUNK_BYTES = 1 << 20

need = partial(need_for, extra="uci", error=UciError)
"""Import a package that only some tables need."""


def cache() -> Path | None:
    """The user's cache, there or not; None without Pooch, which knows its place."""
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("priornet")).expanduser()


def roots() -> list[Path]:
    """The folders to look in: ``$PRIORNET_DATA``, then the user's cache."""
    named = os.environ.get(VARIABLE)
    if named and not Path(named).is_dir():
        raise UciError(f"{named}: ${VARIABLE} must name a folder, and there is none.")
    folders = [Path(named) if named else None, cache()]
    return [folder for folder in folders if folder is not None]


def places() -> list[Path]:
    """Each of those folders, and the folder ``uci`` in it."""
    return [place for root in roots() for place in (root, root / "uci")]


def url_file(url: str) -> str:
    """What a download is called."""
    return PurePosixPath(unquote(urlsplit(url).path)).name


def file_names(known: Dataset) -> list[str]:
    """Names that the file of a whole table has: copies of ours, the original, its archive."""
    copies = [f"{known.name}.parquet", f"{known.name}.npz"]
    downloads = [url_file(url) for url in known.urls]
    return [*copies, *dict.fromkeys([*known.files, *downloads])]


def find(names: Iterable[str]) -> Path | None:
    """The first of these files that is there; an earlier folder comes before an earlier name."""
    names = list(names)
    paths = (place / name for place in places() for name in names)
    return next((path for path in paths if path.is_file()), None)


def find_table(known: Dataset) -> Path | None:
    """The file of a table, under a name that it has or that we would give it."""
    return find([*file_names(known), *(f"{known.name}{ending}" for ending in _ENDINGS)])


def find_first_rows(known: Dataset) -> Path | None:
    """A file with the first rows of a table, where that is a thing."""
    if known.first_rows is None:
        return None
    stem = f"{known.name}_first{known.first_rows}"
    return find([f"{stem}.parquet", f"{stem}.npz"])


def missing(what: str, names: Iterable[str], remedy: str) -> UciError:
    """The error for a file that is nowhere.

    Args:
        what: Begins the sentence "... not here".
        names: What was looked for.
        remedy: Sentences that say what to do.
    """
    named, own = os.environ.get(VARIABLE), cache()
    looked = [f"${VARIABLE} ({named})" if named else f"${VARIABLE} (not set)"]
    looked.append("the cache (Pooch, which knows its place, is not installed)")
    if own is not None:
        looked[-1] = f"the cache ({own})"
    return UciError(
        f"{what} not here: looked in {' and '.join(looked)} for {', '.join(names)}. {remedy}"
    )


def download(known: Dataset) -> Path:
    """Download the original file of a table; nothing is left behind where that fails.

    Its content is the caller's to check: archives are packed anew now and then, so that their
    checksums say little.
    """
    pooch = need("pooch", "download tables")
    folder = cache()
    assert folder is not None  # Pooch is there
    failures: list[str] = []
    for url in known.urls:
        try:
            with _quiet(pooch.get_logger()):
                downloader = pooch.HTTPDownloader(chunk_size=_CHUNK_BYTES, timeout=_SECONDS)
                return Path(
                    pooch.retrieve(url, None, url_file(url), folder / "uci", downloader=downloader)
                )
        except OSError as error:  # what requests raises is one as well
            failures.append(f"{url}: {_reason(error)}")
    remedy = (
        f"Downloading failed ({'; '.join(failures)}): try again, or get the file elsewhere and put "
        "it into such a folder."
    )
    raise missing(f"{known.name} is", file_names(known), remedy)


def _reason(error: OSError) -> str:
    """Why a download failed, without the layers that the error went through."""
    requests = need("requests", "download tables")
    if isinstance(error, requests.Timeout):
        return "no answer"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return first_line(error)


@contextmanager
def _quiet(logger: logging.Logger) -> Generator[None]:
    """Without Pooch's advice about checksums."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
