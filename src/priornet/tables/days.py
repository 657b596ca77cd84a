"""Dates, moments and durations as days; dates and moments count from the start of 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_days", "as_moments", "days_of"]

_DAY_IN_MICROSECONDS = 86_400e6
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FINE = ("us", "ns", "ps", "fs", "as")  # any moment of these units is one in microseconds


def as_days(values: Any) -> NDArray[np.float64]:
    """Convert NumPy's moments or durations to days, nan for NaT."""
    kind = values.dtype.kind
    fine = values.astype(f"{kind}8[us]")
    days = fine.astype(np.int64) / _DAY_IN_MICROSECONDS
    if np.datetime_data(values.dtype)[0] not in _FINE:
        # NumPy wraps around without a word where 64 bits cannot count the microseconds.
        whole = values.astype(f"{kind}8[D]")
        days = np.where(fine.astype(whole.dtype) == whole, days, whole.astype(np.int64))
    return np.where(np.isnat(values), np.nan, days)


def as_moments(days: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """The other way: days since the start of 1970 as moments, to the nearest microsecond."""
    return (days * _DAY_IN_MICROSECONDS).round().astype("M8[us]")


def days_of(value: Any) -> float:
    """Convert one date, moment or duration to days; a moment without a zone counts as UTC."""
    for method in ("to_datetime64", "to_timedelta64"):  # of pandas, in a unit of its own
        if hasattr(value, method):
            value = getattr(value, method)()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return float(as_days(value))
    if not isinstance(value, timedelta):
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if value.tzinfo is None:
            value = value.replace(tzinfo=UTC)
        value = value - _EPOCH
    return (value // _MICROSECOND) / _DAY_IN_MICROSECONDS
