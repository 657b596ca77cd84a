"""Whether plain values are what a signature says of its arguments: for values that come from files.

JSON knows lists where Python has tuples, and whole numbers that no float can hold; Python counts
true and false as numbers, and nan compares with nothing. All this is looked at here, once.
"""

from __future__ import annotations

import math
import types
from collections.abc import Sequence
from typing import Any, Literal, Union, cast, get_args, get_origin

__all__ = ["describe_hint", "fits_hint", "is_number", "shown_value"]

_LARGEST = 1e308  # compared, not converted: a whole number may exceed every float
_WORDS = {
    int: "a whole number, not negative",
    float: "a finite number, not negative",
    bool: "true or false",
    str: "a text",
    type(None): "null",
}


def is_number(value: object) -> bool:
    """A finite number; neither true nor false."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return (isinstance(value, int) or math.isfinite(value)) and abs(value) <= _LARGEST


def fits_hint(value: object, hint: Any) -> bool:
    """Whether a value read from JSON suits a type hint; numbers must not be negative.

    Knows int, float, bool, str, None, Literal, unions, and tuples, which are lists in JSON.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits_hint(value, one) for one in arguments)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in arguments)
    if origin is tuple:
        return isinstance(value, list) and _fit_each(cast(Any, value), arguments)
    if hint is float:
        return is_number(value) and cast(float, value) >= 0
    if hint is int:
        return is_number(value) and isinstance(value, int) and value >= 0
    return isinstance(value, hint)


def _fit_each(values: Sequence[Any], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        hints = (hints[0],) * len(values)
    pairs = zip(values, hints, strict=False)
    return len(values) == len(hints) and all(fits_hint(value, one) for value, one in pairs)


def describe_hint(hint: Any) -> str:
    """A type hint in words."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(describe_hint(one) for one in arguments)
    if origin is Literal:
        return " or ".join(f'"{one}"' for one in arguments)
    if origin is tuple:
        return f"a list of which each is {describe_hint(arguments[0])}"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))


def shown_value(value: object) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 1e18 else f"{str(value)[:20]}"
    return text if len(text) <= 60 else f"{text[:60]}..."
