"""Torch without its words about itself."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["quiet"]


@contextmanager
def quiet(name: str, level: int = logging.ERROR) -> Generator[None]:
    """No warnings, and nothing below a level from a logger.

    Args:
        name: Of the logger.
        level: The least that it says.
    """
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(level)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
