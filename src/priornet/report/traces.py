"""Building blocks of charts: Plotly specifications as plain dictionaries.

A colour that starts with ``@`` stands for one of the page's own (``@ink``, ``@muted``, ``@faint``,
``@shade``): the page fills it in, and again when it turns dark or is printed. Text that comes from
data must pass :func:`text`, for Plotly reads tags in it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.evaluation.numbers import json_list, shown_date, shown_number

Chart = dict[str, Any]
"""``data`` and ``layout``, as Plotly takes them."""


def text(value: object, most: int = 60) -> str:
    """Text that comes from data, such that Plotly shows it as it is; cut where it is long."""
    plain = " ".join(str(value).split())
    plain = plain if len(plain) <= most else plain[: most - 1] + "…"
    return html.escape(plain, quote=False)


def translucent(colour: str, alpha: float) -> str:
    """A ``#rrggbb`` colour that lets the ground through.

    Example:
        >>> translucent("#0072B2", 0.25)
        'rgba(0,114,178,0.25)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def dates(days: Iterable[float]) -> list[Any]:
    """Days since 1970 as Plotly takes dates."""
    return [shown_date(day) for day in days]


def line(
    x: Iterable[Any],
    y: Iterable[float],
    name: str,
    colour: str,
    *,
    dash: str = "solid",
    width: float = 2.0,
) -> dict[str, Any]:
    """One line; ``x`` may be dates."""
    places = list(x)
    is_text = bool(places) and isinstance(places[0], str)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": places if is_text else json_list(places),
        "y": json_list(y),
        "line": {"color": colour, "dash": dash, "width": width},
        "hovertemplate": "%{x:.3~g}, %{y:.3~g}" if not is_text else "%{x}, %{y:.3~g}",
    }


def share_axis(title: str) -> dict[str, Any]:
    """An axis from 0 to 100 %."""
    return {"title": title, "range": [0, 1], "tickformat": ".0%", "dtick": 0.25}


def log_ticks(values: NDArray[np.float64]) -> dict[str, Any]:
    """A logarithmic axis with a few round numbers on it, whatever the range spans."""
    low, high = float(np.log10(values.min())), float(np.log10(values.max()))
    span = high - low
    steps = (1, 2, 5) if span < 1.3 else (1, 3) if span < 2.3 else (1,)
    every = max(1, round(span / 6))
    powers = range(int(np.floor(low)), int(np.ceil(high)) + 1, every)
    ticks = [step * 10.0**power for power in powers for step in steps]
    shown = [tick for tick in ticks if low - 0.05 <= np.log10(tick) <= high + 0.05]
    return {
        "type": "log",
        "tickmode": "array",
        "tickvals": shown,
        "ticktext": [shown_number(tick) for tick in shown],
    }


def chart(traces: list[dict[str, Any]], *, x: dict[str, Any], y: dict[str, Any]) -> Chart:
    """A chart in the page's style; the axes' titles may be plain strings."""
    return {
        "data": traces,
        "layout": {
            "xaxis": _axis(x),
            "yaxis": _axis(y),
            "showlegend": len([t for t in traces if t.get("showlegend", True)]) > 1,
        },
    }


def _axis(settings: dict[str, Any]) -> dict[str, Any]:
    title = settings.get("title", "")
    return {
        "zeroline": False,
        "showline": True,
        "automargin": True,
        "gridcolor": "@grid",
        "linecolor": "@faint",
        **settings,
        # No larger than the ticks: a title that is longer than its axis would be cut.
        "title": {"text": title, "standoff": 8, "font": {"size": 12}},
    }
