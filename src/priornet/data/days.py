"""Dates, moments and durations as days; dates and moments count from the start of 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_days", "as_moments", "days_of"]

_DAY = 86_400.0  # seconds
_DAY_IN_MICROSECONDS = 86_400e6


def as_days(values: Any) -> NDArray[np.float64]:
    """NumPy's moments or durations as days, nan for NaT."""
    missing = np.isnat(values)
    unit = "M8[us]" if values.dtype.kind == "M" else "m8[us]"
    days = values.astype(unit).astype(np.int64) / _DAY_IN_MICROSECONDS
    return np.where(missing, np.nan, days)


def as_moments(days: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """The other way: days since the start of 1970 as moments, to the nearest microsecond."""
    return (days * _DAY_IN_MICROSECONDS).round().astype("M8[us]")


def days_of(value: Any) -> float:
    """One date, moment or duration as days; a moment without a zone counts as UTC."""
    if isinstance(value, np.datetime64):
        return float(as_days(value))
    if isinstance(value, timedelta):
        return value.total_seconds() / _DAY
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return value.timestamp() / _DAY
