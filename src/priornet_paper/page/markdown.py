"""Markdown: tables, and numbers as a reader wants them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from priornet_paper.page.numbers import Number

__all__ = [
    "INCOMPLETE",
    "NOT_RUN",
    "decimals",
    "folded",
    "link",
    "marked",
    "shown",
    "signed",
    "table",
    "with_error",
]

NOT_RUN = "not run"
INCOMPLETE = "not run on the full table"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """Lines of a table; columns after the first ``left`` are aligned to the right."""
    rule = [":--" if column < left else "--:" for column in range(len(header))]
    return ["", *(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)), ""]


def folded(title: str, lines: Iterable[str]) -> list[str]:
    """Lines that a reader opens when wanted."""
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>", ""]


def link(text: str, heading: str) -> str:
    """A link to a heading of the same page, by the name that GitHub gives it.

    Example:
        >>> link("remark", "Depth: EnD2 with T = 10 (here)")
        '[remark](#depth-end2-with-t--10-here)'
    """
    kept = "".join(sign for sign in heading.lower() if sign.isalnum() or sign in " -_")
    return f"[{text}](#{kept.replace(' ', '-')})"


def decimals(value: float) -> int:
    """Decimals that show an RMSE or NLL to about three figures.

    Example:
        >>> [decimals(v) for v in (0.64, 3.2, 54.0)]
        [3, 2, 1]
    """
    size = abs(value)
    return 3 if size < 1 else 2 if size < 10 else 1


def shown(value: float, digits: int = 2) -> str:
    """A number with fixed decimals, never a negative zero.

    Example:
        >>> shown(-0.001), shown(1.005, 1)
        ('0.00', '1.0')
    """
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{round(value, digits) + 0.0:.{digits}f}"


def signed(value: float, digits: int = 2) -> str:
    """The same with its sign, for differences.

    Example:
        >>> signed(0.5), signed(-0.001)
        ('+0.50', '0.00')
    """
    text = shown(value, digits)
    return f"+{text}" if float(text) > 0 else text


def with_error(number: Number, digits: int = 2, *, is_signed: bool = False) -> str:
    """Mean and standard error.

    Example:
        >>> with_error(Number(3.524, 0.321)), with_error(Number(0.02), 3, is_signed=True)
        ('3.52 ± 0.32', '+0.020')
    """
    mean = signed(number.mean, digits) if is_signed else shown(number.mean, digits)
    return mean if number.error is None else f"{mean} ± {shown(number.error, digits)}"


def marked(text: str, is_miss: bool) -> str:
    """Bold with a cross where a goal is missed."""
    return f"**✗ {text}**" if is_miss else text
