"""One self-contained HTML page: everything inline, nothing loaded, nothing in data can run.

Every script stands in the page with its hash in the content security policy: whatever else might
slip in as a script is refused by the browser, and so is every request.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from priornet._version import __version__
from priornet.report.charts import Chart
from priornet.writing import write_bytes

Cell = tuple[str, str]
"""Content of a table cell, safe already, and attributes."""


def tag(name: str, content: object, css: str = "") -> str:
    """Make an element around plain text, which is escaped."""
    attribute = f' class="{html.escape(css)}"' if css else ""
    return f"<{name}{attribute}>{html.escape(str(content))}</{name}>"


def facts(pairs: Mapping[str, object], css: str = "facts") -> str:
    """List terms with their meaning; both are escaped."""
    rows = "".join(tag("dt", term) + tag("dd", value) for term, value in pairs.items())
    return f'<dl class="{css}">{rows}</dl>'


def cell(content: object, css: str = "", value: float | None = None) -> Cell:
    """Make a cell of plain text, escaped; ``value`` is what the column sorts by."""
    attributes = f' class="{html.escape(css)}"' if css else ""
    if value is not None:
        attributes += f' data-value="{value!r}"'
    return html.escape(str(content)), attributes


def table(head: Sequence[str], body: Iterable[Sequence[Cell]], *, numbers: Iterable[int]) -> str:
    """Make a table whose first column names its rows; ``numbers`` are columns of numbers."""
    right = set(numbers)
    headers = "".join(
        tag("th", title, "number") if i in right else tag("th", title)
        for i, title in enumerate(head)
    )
    lines: list[str] = []
    for (first, attributes), *others in body:
        cells = "".join(f"<td{a}>{content}</td>" for content, a in others)
        lines.append(f'<tr><th scope="row"{attributes}>{first}</th>{cells}</tr>')
    return (
        f'<div class="scroll"><table><thead><tr>{headers}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def chart_box(identifier: str, title: str, how: str) -> str:
    """Make a card with a chart and one sentence that says how to read it."""
    return card(title, how, f'<div class="chart" id="{html.escape(identifier)}"></div>')


def card(title: str, how: str, content: str) -> str:
    """Make a titled card with a sentence; the content is safe already."""
    return f'<section class="card">{tag("h3", title)}{tag("p", how, "how")}{content}</section>'


def page(title: str, body: str, charts: Mapping[str, Chart]) -> str:
    """Make the whole document.

    Args:
        title: Title of the window, plain text.
        body: Content, safe already.
        charts: Specifications by the id of the element that shows them.
    """
    from plotly.offline import get_plotlyjs

    scripts = [get_plotlyjs(), _resource("page.js")]
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"
    )
    code = "".join(f"<script>{script}</script>\n" for script in scripts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="priornet {html.escape(__version__)}">\n'
        '<link rel="icon" href="data:,">\n'
        f"{tag('title', title)}\n<style>\n{_resource('page.css')}</style>\n</head>\n<body>\n"
        f"<main>\n{body}\n</main>\n"
        f'<script type="application/json" id="charts">{_inline_json(charts)}</script>\n'
        f"{code}</body>\n</html>\n"
    )


def write_page(text: str, path: str | os.PathLike[str]) -> Path:
    """Write a page whole or not at all: a reader never sees half a file."""
    return write_bytes(path, text.encode())


def _resource(name: str) -> str:
    return resources.files("priornet.report").joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """Hash a script as the browser does: line ends are plain newlines there."""
    plain = script.replace("\r\n", "\n").replace("\r", "\n")
    return base64.b64encode(hashlib.sha256(plain.encode()).digest()).decode()


def _inline_json(value: Any) -> str:
    """Write JSON that cannot end the element around it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
