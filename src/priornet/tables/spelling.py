"""Numbers that text spells: with a point or a comma, true and false, dates, and holes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from priornet.tables.days import days_of

__all__ = ["MISSING_WORDS", "decimals_among_thousands", "parse_labels"]

FloatArray = NDArray[np.float64]

# What stands for a hole among numbers that arrive as text, in any case, blanks around it ignored.
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?", "-", "."})

# A comma that may group thousands. Of numbers with three decimals, a tenth end in a zero that
# programs leave out: so many show that a comma is decimal, and one mistyped cell does not.
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+")
_LEAST_DECIMAL, _DECIMAL_SHARE = 5, 0.05


def parse_labels(labels: Sequence[str], parser: str | None = None) -> tuple[str, FloatArray] | None:
    """The numbers that labels spell, and how to read them; None where one of them is no number.

    Tried in turn, unless ``parser`` names one: ``"number"`` (``12``, ``1e-3``), ``"comma"``
    (``1,5``: only where no point occurs and enough values show that the comma does not group
    thousands), ``"boolean"`` (true and false, in any case, also as 1 and 0; where it is named, any
    number) and ``"date"`` (ISO 8601, as days since 1970). :data:`MISSING_WORDS` become nan.

    Example:
        >>> parse_labels(["1,5", "n/a", "12"])
        ('comma', array([ 1.5,  nan, 12. ]))
    """
    words = [label.strip() for label in labels]
    given = [word for word in words if word.lower() not in MISSING_WORDS]
    for name in _PARSERS if parser is None else (parser,):
        if parser is None and name == "comma" and not _is_decimal_comma(given):
            continue
        values = [_PARSERS[name](word.lower()) for word in given]
        if None in values or (parser is None and name == "boolean" and not {*values} <= {0, 1}):
            continue
        found = iter(values)
        numbers = [math.nan if w.lower() in MISSING_WORDS else next(found) for w in words]
        return name, np.asarray(numbers, np.float64)
    return None


def _parse_number(word: str) -> float | None:
    if "_" in word:  # Python reads 1_000; people write such things in codes, not in numbers
        return None
    try:
        return float(word)
    except ValueError:
        return None


def _parse_comma(word: str) -> float | None:
    return None if "." in word else _parse_number(word.replace(",", ".", 1))


def _is_decimal_comma(words: Sequence[str]) -> bool:
    words = [word for word in words if "," in word]
    n_decimal = sum(_THOUSANDS.fullmatch(word) is None for word in words)
    is_share = n_decimal >= max(_LEAST_DECIMAL, _DECIMAL_SHARE * len(words))
    return n_decimal > 0 and (2 * n_decimal >= len(words) or is_share)


def decimals_among_thousands(labels: Sequence[str]) -> list[str]:
    """Return the few labels with a decimal comma where it groups thousands in most others.

    Example:
        >>> decimals_among_thousands(["3,122", "1,773", "12,5"])
        ['12,5']
    """
    words = [word for word in (label.strip() for label in labels) if "," in word]
    decimal = [word for word in words if not _THOUSANDS.fullmatch(word)]
    is_read = any(_parse_comma(word) is None for word in decimal) or _is_decimal_comma(words)
    return [] if is_read else decimal


def _parse_boolean(word: str) -> float | None:
    return {"true": 1.0, "false": 0.0}.get(word, _parse_number(word))


def _parse_date(word: str) -> float | None:
    try:
        return days_of(datetime.fromisoformat(word.upper()))
    except ValueError:
        return None


_PARSERS = {
    "number": _parse_number,
    "comma": _parse_comma,
    "boolean": _parse_boolean,
    "date": _parse_date,
}
