"""Parts of a Markdown page: tables, folded lines, links, marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOT_RUN = "not run"
INCOMPLETE = "not run on the full table"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """Format a table; columns after the first ``left`` are aligned to the right."""
    rule = [":--" if column < left else "--:" for column in range(len(header))]
    return ["", *(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)), ""]


def folded(title: str, lines: Iterable[str]) -> list[str]:
    """Wrap lines so that the reader opens them with a click."""
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>", ""]


def link(text: str, heading: str) -> str:
    """Format a link to a heading of the same page, by the name that GitHub gives it.

    Example:
        >>> link("note", "Depth: EnD2 with T = 10 (here)")
        '[note](#depth-end2-with-t--10-here)'
    """
    kept = "".join(sign for sign in heading.lower() if sign.isalnum() or sign in " -_")
    return f"[{text}](#{kept.replace(' ', '-')})"


def marked(text: str, is_miss: bool) -> str:
    """Format a text in bold with a cross if it is a missed goal."""
    return f"**✗ {text}**" if is_miss else text


def in_part(cells: Iterable[str]) -> list[str]:
    """Add a note to the cells of a run that had only a part of its table."""
    return [cell if cell in ("", NOT_RUN) else f"{cell}<br>{INCOMPLETE}" for cell in cells]
