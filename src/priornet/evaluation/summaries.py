"""Means over folds or seeds with what they are the means of, as results files hold them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

__all__ = ["check_scores", "check_summaries", "signature_of", "summary"]

_SIGNATURE = ("device", "versions", "processor", "commit", "dirty")


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Mean, standard deviation and standard error over folds or seeds, with the raw values.

    With a single value the two spreads are unknown: None. A value that is not finite becomes None
    as well, for JSON has no name for it, and takes the mean with it.

    Example:
        >>> summary([1.0, 3.0])["sem"]
        1.0
    """
    n = len(values)
    mean = math.fsum(values) / n if all(map(math.isfinite, values)) else math.nan
    std = math.dist(values, [mean] * n) / math.sqrt(n - 1) if n > 1 else math.nan
    return {
        "mean": _finite(mean),
        "std": _finite(std),
        "sem": _finite(std / math.sqrt(n)),
        "values": [_finite(v) for v in values],
    }


def check_summaries(found: Any, n_values: int | None = None, where: str = "") -> None:
    """Refuse results in which a mean or a spread is not that of its values, however deep it lies.

    Args:
        found: What :func:`summary` made, or dictionaries and lists that hold such things.
        n_values: How many values each must have.
        where: Name of what is checked, for the message.

    Raises:
        ValueError: The first one that is not whole.
    """
    if isinstance(found, list):
        for inner in cast("list[Any]", found):
            check_summaries(inner, n_values, where)
    elif isinstance(found, dict):
        content = cast("dict[str, Any]", found)
        if "values" in content or "mean" in content:
            _check_summary(content, n_values, where)
            return
        for name, inner in content.items():
            check_summaries(inner, n_values, f"{where}.{name}" if where else name)


def check_scores(
    method: Any, names: Iterable[str], groups: Iterable[str] = (), n_values: int | None = None
) -> None:
    """Refuse results of a method that lacks one of its scores, or is not whole elsewhere.

    Args:
        method: All that is known of it.
        names: Scores that it must have, each made by :func:`summary`.
        groups: Groups of scores that it must have.
        n_values: How many values each must have.

    Raises:
        ValueError: The first one that is missing or not whole.
    """
    content = cast("dict[str, Any]", method) if isinstance(method, dict) else {}
    for name in names:
        found = content.get(name)
        if not isinstance(found, dict) or "values" not in found:
            raise ValueError(f"{name}: no mean over folds")
    for name in groups:
        if not isinstance(content.get(name), dict):
            raise ValueError(f"{name}: no scores in it")
    check_summaries(content, n_values)


def signature_of(results: Mapping[str, Any], method: Mapping[str, Any]) -> dict[str, Any]:
    """Origin of one method in a results file: its own signature, or the file's where it has none.

    Of a signed method the file tells device and versions, which all of its methods share, but not
    the processor, which may be that of others.

    Args:
        results: A whole results file, which older versions signed once for all methods.
        method: What it holds of one method.
    """
    known = {**results, "processor": None} if "commit" in method else results
    found = {**known, **method}
    return {name: found[name] for name in _SIGNATURE if name in found}


def _check_summary(found: dict[str, Any], n_values: int | None, where: str) -> None:
    values: Any = found.get("values")
    if isinstance(found.get("mean"), list):  # a curve, the mean of curves
        return
    if not isinstance(values, list) or not values or not all(map(_is_number, values)):
        raise ValueError(f"{where}: its values are not numbers")
    numbers = cast("list[float | None]", values)
    if n_values is not None and len(numbers) != n_values:
        raise ValueError(f"{where}: {len(numbers)} values where there should be {n_values}")
    for name, expected in summary([math.nan if v is None else v for v in numbers]).items():
        if name != "values" and not _is_close(found.get(name), expected):
            raise ValueError(f"{where}: its {name} is not that of its values")


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_close(given: Any, expected: float | None) -> bool:
    if given is None or expected is None or not _is_number(given):
        return given is None and expected is None
    return math.isclose(given, expected, rel_tol=1e-9, abs_tol=1e-12)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
