"""The chart of one feature: uncertainty over the rows, and with all other features held."""

from __future__ import annotations

from typing import Any

import numpy as np

from priornet.evaluation.evaluate_model import Evaluation
from priornet.evaluation.features import Panel
from priornet.evaluation.numbers import json_list
from priornet.report.traces import Chart, chart, dates, line, log_ticks, text, translucent

__all__ = ["feature"]

_LOG_FROM = 20.0  # an axis is logarithmic where its largest value exceeds the smallest so much

_MOST_LETTERS = 24  # of all category names, side by side


def feature(evaluation: Evaluation, panel: Panel) -> Chart:
    """Uncertainty along one feature."""
    values = np.concatenate([panel.low, panel.high, panel.median, panel.sweep])
    seen = values[np.isfinite(values) & (values > 0)]
    axis: dict[str, Any] = {"title": f"{evaluation.panel_part} sd"}
    if len(seen) and seen.max() > _LOG_FROM * seen.min():
        axis |= log_ticks(seen)
    else:
        axis["rangemode"] = "tozero"
    draw = _numeric if panel.kind == "numeric" else _categorical
    drawn = draw(panel, evaluation.model.colour, axis)
    drawn["layout"]["showlegend"] = False  # one key above all panels says what is what
    return drawn


def _numeric(panel: Panel, colour: str, axis: dict[str, Any]) -> Chart:
    place = dates if panel.is_date else json_list
    at, reach = place(panel.at), panel.sweep_at[[0, -1]]
    top = line(at, panel.high, "", colour, width=0)
    top |= {"showlegend": False, "hoverinfo": "skip"}
    bottom = line(at, panel.low, "middle 80 % of rows", colour, width=0)
    bottom |= {"fill": "tonexty", "fillcolor": translucent(colour, 0.22), "hoverinfo": "skip"}
    median = line(at, panel.median, "median of rows", colour, width=2.5)
    median |= {"mode": "lines+markers", "marker": {"size": 4, "color": colour}}
    sweep = line(place(panel.sweep_at), panel.sweep, "other features held", "@ink", dash="dash")
    start, low, high, stop = place([reach[0], panel.train_low, panel.train_high, reach[1]])
    drawn = chart(
        [top, bottom, median, sweep],
        x={
            "title": text(panel.name, 32),
            "range": [start, stop],
            "type": "date" if panel.is_date else "linear",
        },
        y=axis,
    )
    outside = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "fillcolor": "@shade"}
    outside |= {"line": {"width": 0}, "layer": "below"}
    edges = ((start, low), (high, stop))
    drawn["layout"]["shapes"] = [{**outside, "x0": left, "x1": right} for left, right in edges]
    return drawn


def _categorical(panel: Panel, colour: str, axis: dict[str, Any]) -> Chart:
    places = list(range(len(panel.categories)))
    rows = {
        "type": "scatter",
        "mode": "markers",
        "name": "median and middle 80 % of rows",
        "x": places,
        "y": json_list(panel.median),
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": json_list(panel.high - panel.median),
            "arrayminus": json_list(panel.median - panel.low),
            "thickness": 6,
            "width": 0,
            "color": translucent(colour, 0.3),
        },
        "marker": {"size": 9, "color": colour},
        "text": [
            f"{text(name)}: {n} rows" for name, n in zip(panel.categories, panel.count, strict=True)
        ],
        "hovertemplate": "%{text}<br>median %{y:.3~g}<extra></extra>",
    }
    ink = {"width": 2, "color": "@ink"}
    held = {
        "type": "scatter",
        "mode": "markers",
        "name": "other features held",
        "x": places,
        "y": json_list(panel.sweep),
        "marker": {"size": 14, "color": "@ink", "symbol": "line-ew", "line": ink},
        "text": [text(name) for name in panel.categories],
        "hovertemplate": "%{text}<br>other features held %{y:.3~g}<extra></extra>",
    }
    names = [
        text(name, 16) + ("" if known else " (new)")
        for name, known in zip(panel.categories, panel.is_known, strict=True)
    ]
    categories = {
        "title": text(panel.name, 32),
        "tickmode": "array",
        "tickvals": places,
        "ticktext": names,
        "range": [-0.5, max(len(places), 1) - 0.5],
        # Leaning to the left: what leans to the right leaves the chart and is hidden.
        "tickangle": -35 if sum(map(len, names)) > _MOST_LETTERS else 0,
    }
    return chart([rows, held], x=categories, y=axis)
