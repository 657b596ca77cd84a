"""Original archives, downloaded with Pooch into the user's cache."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from priornet.tables.read import first_line
from priornet_paper.uci.data.extras import need
from priornet_paper.uci.data.folders import cache, file_names, missing, url_file
from priornet_paper.uci.data.registry import Dataset

__all__ = ["download"]

_SECONDS = 60
_CHUNK_BYTES = 1 << 20


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
