"""Numbers and dates as people read them, arrays as JSON takes them, curves as figures do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

NOTHING = "\u2013"  # a dash
_DIGITS = 7  # significant digits of an array in a page: more than any screen shows


def shown_number(value: float | None, digits: int = 4, *, is_padded: bool = False) -> str:
    """Write a number with a few significant digits, and a dash where there is none.

    Args:
        value: The number.
        digits: Number of significant digits.
        is_padded: Keep zeros at the end, for columns of numbers.

    Example:
        >>> [shown_number(v) for v in (1234567.0, 12345.6, 12.3456, -0.5, 0.00001234, 3.0)]
        ['1.235e+06', '12,346', '12.35', '-0.5', '1.234e-05', '3']
    """
    if value is None or math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "\u221e" if value > 0 else "-\u221e"
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    padded = f"{value:#.{digits}g}".rstrip(".")
    return padded if is_padded else f"{value:.{digits}g}"


def shown_share(value: float | None, digits: int = 1, sign: str = " %") -> str:
    """Write a share as a percentage.

    Example:
        >>> shown_share(0.9031)
        '90.3 %'
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{100 * value:.{digits}f}{sign}"


def shown_date(days: float) -> str:
    """Write a day as ISO 8601.

    Example:
        >>> shown_date(19723.0)
        '2024-01-01'
    """
    return str(np.datetime64("1970-01-01", "D") + np.timedelta64(math.floor(days), "D"))


def json_number(value: Any) -> float | None:
    """Convert to a plain number; None for what JSON has no name for: nan and the infinities."""
    number = float(value)
    return number if math.isfinite(number) else None


def json_list(values: Iterable[Any]) -> list[float | None]:
    """Convert an array to plain numbers of seven digits, None where they are not finite."""
    plain = np.asarray(values, np.float64).tolist()
    return [float(f"{v:.{_DIGITS}g}") if math.isfinite(v) else None for v in plain]


def band(mean: Sequence[float], deviation: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return two standard deviations below and above a curve."""
    pairs = list(zip(mean, deviation, strict=True))
    return [m - 2 * s for m, s in pairs], [m + 2 * s for m, s in pairs]


def thinned(values: Sequence[Any], most: int) -> Sequence[Any]:
    """Take every so-many-th value, so that about ``most`` are left."""
    return values[:: max(1, len(values) // most)]
