"""Charts of a report as Plotly specifications: plain dictionaries of numbers from the evaluation.

A colour that starts with ``@`` stands for one of the page's own (``@ink``, ``@muted``, ``@faint``,
``@shade``): the page fills it in, and again when it turns dark or is printed. Text that comes from
data must pass :func:`text`, for Plotly reads tags in it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

from priornet.evaluation.chart_data import (
    Dots,
    category_range,
    log_ticks,
    panel_ticks,
    predictions,
    rejection_lines,
    shares,
)
from priornet.evaluation.evaluate_model import Evaluation
from priornet.evaluation.features import Panel
from priornet.evaluation.numbers import json_list, shown_date, shown_number

Chart = dict[str, Any]
"""``data`` and ``layout``, as Plotly takes them."""

_DASHES = ("solid", "dot", "dashdot", "longdash")
_MOST_LETTERS = 24  # of all category names, side by side


def predicted_against_actual(evaluation: Evaluation, target: int) -> Chart:
    """Draw each row's prediction with its interval, over the actual value."""
    found = predictions(evaluation, target)
    colour, name = evaluation.model.colour, text(evaluation.target_names[target], 32)
    inside = {"color": colour, "symbol": "circle", "size": 5}
    outside = {"color": "@ink", "symbol": "x", "size": 5}
    return chart(
        [
            line(found.diagonal, found.diagonal, "prediction = actual", "@muted", dash="dash"),
            _dots(found.inside, "actual inside interval", inside, translucent(colour, 0.3)),
            _dots(found.outside, "outside", outside, "@faint"),
        ],
        x={"title": f"actual {name}", "range": json_list(found.actual_range)},
        y={"title": f"predicted {name}", "range": json_list(found.predicted_range)},
    )


def _dots(dots: Dots, name: str, marker: dict[str, Any], bar: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name} ({len(dots.actual)})",
        "x": json_list(dots.actual),
        "y": json_list(dots.predicted),
        "text": [text(label) for label in dots.labels],
        "error_y": _bars(dots.below, dots.above, bar, 1),
        "marker": marker,
        "hovertemplate": "row %{text}<br>actual %{x:.4~g}<br>predicted %{y:.4~g}<extra></extra>",
    }


def _bars(
    below: Iterable[float], above: Iterable[float], colour: str, thickness: int
) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": json_list(above),
        "arrayminus": json_list(below),
        "thickness": thickness,
        "width": 0,
        "color": colour,
    }


def calibration(evaluation: Evaluation) -> Chart:
    """Draw observed against expected probability, a line per target, beside the diagonal."""
    colour, several = evaluation.model.colour, len(evaluation.target_names) > 1
    traces = [line([0, 1], [0, 1], "perfect", "@muted", dash="dash")]
    for k, (target, dash) in enumerate(zip(evaluation.target_names, cycle(_DASHES))):
        area = shown_number(evaluation.metrics["targets"][target]["miscalibration_area"], 3)
        label = f"{text(target if several else evaluation.name, 24)}, area {area}"
        x, y = evaluation.expected, evaluation.observed[:, k]
        curve = line(x, y, label, colour, dash=dash, width=2.5)
        if not several:
            curve |= {"fill": "tonexty", "fillcolor": translucent(colour, 0.15)}
        traces.append(curve)
    return chart(traces, x=share_axis("expected share"), y=share_axis("observed share"))


def rejection(evaluation: Evaluation) -> Chart:
    """Draw the error left after handing the most uncertain rows to an expert."""
    measures = {"total_variance": ("total", "solid")}
    if evaluation.has_knowledge:
        measures["variance_of_mean"] = ("knowledge", "dashdot")
    lines = rejection_lines(evaluation, measures)
    traces = [
        line(lines.fraction, lines.random, "random", "@muted", dash="dot"),
        line(lines.fraction, lines.oracle, "oracle", "@muted", dash="dash"),
    ]
    for name, (part, dash) in measures.items():
        prr = shown_number(evaluation.metrics["prr"][name], 3)
        label = f"{part} uncertainty, PRR {prr}"
        colour = evaluation.model.colour
        traces.append(line(lines.fraction, lines.by[name], label, colour, dash=dash, width=2.5))
    return chart(traces, x=share_axis("share of rows rejected"), y=error_axis(evaluation))


def error_axis(evaluation: Evaluation) -> dict[str, Any]:
    """Make the axis of the error that is left."""
    kind = "standardised" if len(evaluation.target_names) > 1 else "mean"
    return {"title": f"{kind} squared error left", "rangemode": "tozero"}


def unit(evaluation: Evaluation) -> str:
    """Name the unit of standard deviations of a whole row, short enough for a small chart."""
    first, *others = evaluation.target_names
    return "standardised sd" if others else f"sd of {text(first, 20)}"


def histogram(evaluation: Evaluation, part: str) -> Chart:
    """Draw the sizes of one kind of uncertainty, in and out of the domain."""
    colour, outside = evaluation.model.colour, evaluation.row_spread_ood
    groups = [evaluation.row_spread[part], *([] if outside is None else [outside[part]])]
    edges, (own, *others) = shares(groups)
    # A staircase keeps its steps on a logarithmic axis, where bars would not.
    area: dict[str, Any] = {"fill": "tozeroy", "fillcolor": translucent(colour, 0.25)}
    traces = [line(edges, own, "evaluated rows", colour) | area]
    traces += [line(edges, other, "out-of-domain rows", "@ink", dash="dash") for other in others]
    for stairs in traces:
        stairs["line"]["shape"] = "hv"
        stairs["hovertemplate"] = "from %{x:.3~g}: %{y:.1%}<extra></extra>"
    return chart(
        traces,
        x={"title": unit(evaluation), **log_axis(log_ticks(edges))},
        y={"title": "share of rows", "tickformat": ".0%", "rangemode": "tozero"},
    )


def feature(evaluation: Evaluation, panel: Panel) -> Chart:
    """Draw the uncertainty along one feature: over the rows, and with all others held."""
    ticks = panel_ticks(panel)
    axis = {"title": f"{evaluation.panel_part} sd"}
    axis |= log_axis(ticks) if ticks else {"rangemode": "tozero"}
    draw = _numeric if panel.kind == "numeric" else _categorical
    drawn = draw(panel, evaluation.model.colour, axis)
    drawn["layout"]["showlegend"] = False  # one key above all panels says what is what
    return drawn


def _numeric(panel: Panel, colour: str, axis: dict[str, Any]) -> Chart:
    def place(values: Iterable[float]) -> list[Any]:
        return [shown_date(day) for day in values] if panel.is_date else json_list(values)

    at = place(panel.at)
    top = line(at, panel.high, "", colour, width=0)
    top |= {"showlegend": False, "hoverinfo": "skip"}
    bottom = line(at, panel.low, "middle 80 % of rows", colour, width=0)
    bottom |= {"fill": "tonexty", "fillcolor": translucent(colour, 0.22), "hoverinfo": "skip"}
    median = line(at, panel.median, "median of rows", colour, width=2.5)
    median |= {"mode": "lines+markers", "marker": {"size": 4, "color": colour}}
    sweep = line(place(panel.sweep_at), panel.sweep, "other features held", "@ink", dash="dash")
    ends = (panel.sweep_at[0], panel.train_low, panel.train_high, panel.sweep_at[-1])
    start, low, high, stop = place(ends)
    kind = "date" if panel.is_date else "linear"
    x = {"title": text(panel.name, 32), "range": [start, stop], "type": kind}
    drawn = chart([top, bottom, median, sweep], x=x, y=axis)
    outside = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "fillcolor": "@shade"}
    outside |= {"line": {"width": 0}, "layer": "below"}
    edges = ((start, low), (high, stop))
    drawn["layout"]["shapes"] = [{**outside, "x0": left, "x1": right} for left, right in edges]
    return drawn


def _categorical(panel: Panel, colour: str, axis: dict[str, Any]) -> Chart:
    places = list(range(len(panel.categories)))
    labels = [text(name) for name in panel.categories]
    markers = {"type": "scatter", "mode": "markers", "x": places}
    rows = {
        **markers,
        "name": "median and middle 80 % of rows",
        "y": json_list(panel.median),
        "error_y": _bars(panel.below, panel.above, translucent(colour, 0.3), 6),
        "marker": {"size": 9, "color": colour},
        "text": [f"{name}: {n} rows" for name, n in zip(labels, panel.count, strict=True)],
        "hovertemplate": "%{text}<br>median %{y:.3~g}<extra></extra>",
    }
    ink = {"width": 2, "color": "@ink"}
    held = {
        **markers,
        "name": "other features held",
        "y": json_list(panel.sweep),
        "marker": {"size": 14, "color": "@ink", "symbol": "line-ew", "line": ink},
        "text": labels,
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
        "range": category_range(panel),
        # Leaning to the left: what leans to the right leaves the chart and is hidden.
        "tickangle": -35 if len("".join(names)) > _MOST_LETTERS else 0,
    }
    return chart([rows, held], x=categories, y=axis)


# -- building blocks ------------------------------------------------------------------------------


def text(value: object, most: int = 60) -> str:
    """Escape text that comes from data, so that Plotly shows it as it is; cut it where it is long.

    Args:
        value: The text.
        most: Letters to keep.
    """
    plain = " ".join(str(value).split())
    plain = plain if len(plain) <= most else f"{plain[: most - 1]}…"
    return html.escape(plain, quote=False)


def translucent(colour: str, alpha: float) -> str:
    """Let the ground shine through a ``#rrggbb`` colour.

    Example:
        >>> translucent("#0072B2", 0.25)
        'rgba(0,114,178,0.25)'
    """
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return f"rgba({red},{green},{blue},{alpha})"


def line(
    x: Iterable[Any],
    y: Iterable[float],
    name: str,
    colour: str,
    *,
    dash: str = "solid",
    width: float = 2.0,
) -> dict[str, Any]:
    """Make one line; ``x`` may be dates."""
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
    """Make an axis from 0 to 100 %."""
    return {"title": title, "range": [0, 1], "tickformat": ".0%", "dtick": 0.25}


def log_axis(ticks: Sequence[float]) -> dict[str, Any]:
    """Make a logarithmic axis with ticks at given numbers."""
    shown = [shown_number(tick) for tick in ticks]
    return {"type": "log", "tickmode": "array", "tickvals": ticks, "ticktext": shown}


def chart(traces: list[dict[str, Any]], *, x: dict[str, Any], y: dict[str, Any]) -> Chart:
    """Make a chart in the page's style; the axes' titles may be plain strings."""
    named = [trace for trace in traces if trace.get("showlegend", True)]
    layout = {"xaxis": _axis(x), "yaxis": _axis(y), "showlegend": len(named) > 1}
    return {"data": traces, "layout": layout}


def _axis(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "zeroline": False,
        "showline": True,
        "automargin": True,
        "gridcolor": "@grid",
        "linecolor": "@faint",
        **settings,
        # No larger than the ticks: a title that is longer than its axis would be cut.
        "title": {"text": settings.get("title", ""), "standoff": 8, "font": {"size": 12}},
    }
