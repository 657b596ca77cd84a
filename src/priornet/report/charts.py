"""The charts of a report about one model: an evaluation in, Plotly specifications out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from priornet.evaluation.evaluate_model import Evaluation
from priornet.evaluation.features import Panel
from priornet.evaluation.numbers import json_list, shown_number
from priornet.metrics import LEVELS, rejection_curve
from priornet.report.traces import (
    Chart,
    chart,
    dates,
    line,
    log_ticks,
    share_axis,
    text,
    translucent,
)

FloatArray = NDArray[np.float64]

SHOWN_LEVEL = 0.9
"""Coverage of the intervals that charts and tables show."""
_MOST_POINTS, _MOST_STEPS, _BINS = 2000, 400, 30
_DASHES = ("solid", "dot", "dashdot", "longdash")


def shown_points(n_rows: int) -> NDArray[np.int64]:
    """Rows to draw: all of them, or a sample that is the same every time."""
    if n_rows <= _MOST_POINTS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, _MOST_POINTS, replace=False))


def unit(evaluation: Evaluation) -> str:
    """What standard deviations of a whole row are measured in, short enough for a small chart."""
    first, *others = evaluation.target_names
    return "standardised sd" if others else f"sd of {text(first, 20)}"


def predicted_against_actual(evaluation: Evaluation, target: int) -> Chart:
    """Each row's prediction with its interval, over the actual value."""
    rows = shown_points(len(evaluation.y))
    ends, level = evaluation.intervals["predictive"], LEVELS.index(SHOWN_LEVEL)
    y, mean = evaluation.y[rows, target], evaluation.prediction[rows, target]
    lower, upper = ends.lower[level, rows, target], ends.upper[level, rows, target]
    inside = (lower <= y) & (y <= upper)
    colour = evaluation.model.colour
    diagonal = [min(y.min(), mean.min()), max(y.max(), mean.max())]
    traces = [line(diagonal, diagonal, "prediction = actual", "@muted", dash="dash")]
    for group, name, shade, bar, symbol in (
        (inside, "actual inside interval", colour, translucent(colour, 0.3), "circle"),
        (~inside, "outside", "@ink", "@faint", "x"),
    ):
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"{name} ({int(group.sum())})",
                "x": json_list(y[group]),
                "y": json_list(mean[group]),
                "text": [text(evaluation.row_labels[i]) for i in rows[group]],
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": json_list((upper - mean)[group]),
                    "arrayminus": json_list((mean - lower)[group]),
                    "thickness": 1,
                    "width": 0,
                    "color": bar,
                },
                "marker": {"color": shade, "symbol": symbol, "size": 5},
                "hovertemplate": "row %{text}<br>actual %{x:.4~g}<br>"
                "predicted %{y:.4~g}<extra></extra>",
            }
        )
    name = text(evaluation.target_names[target], 32)
    # The axes go by the values, not by the bars: one endless interval must not hide the rest.
    return chart(
        traces,
        x={"title": f"actual {name}", "range": _around(y)},
        y={"title": f"predicted {name}", "range": _around(np.concatenate([y, mean]))},
    )


def _around(values: FloatArray) -> list[float | None]:
    """A range a little wider than the values."""
    low, high = float(values.min()), float(values.max())
    pad = 0.05 * (high - low) or 1.0
    return json_list([low - pad, high + pad])


def calibration(evaluation: Evaluation) -> Chart:
    """Observed against expected probability, a line per target, beside the diagonal."""
    colour, several = evaluation.model.colour, len(evaluation.target_names) > 1
    traces = [line([0, 1], [0, 1], "perfect", "@muted", dash="dash")]
    for k, target in enumerate(evaluation.target_names):
        area = shown_number(evaluation.metrics["targets"][target]["miscalibration_area"], 3)
        name = text(target if several else evaluation.name, 24)
        curve = line(
            evaluation.expected,
            evaluation.observed[:, k],
            f"{name}, area {area}",
            colour,
            dash=_DASHES[k % len(_DASHES)],
            width=2.5,
        )
        if not several:
            curve |= {"fill": "tonexty", "fillcolor": translucent(colour, 0.15)}
        traces.append(curve)
    return chart(traces, x=share_axis("expected share"), y=share_axis("observed share"))


@dataclass(frozen=True)
class RejectionLines:
    """Rejection curves thinned to what a screen can show; ``by`` holds one per measure."""

    fraction: FloatArray
    random: FloatArray
    oracle: FloatArray
    by: dict[str, FloatArray]


def rejection_lines(evaluation: Evaluation, measures: list[str]) -> RejectionLines:
    """Error left by share rejected, for chance, the oracle and each measure."""
    error = torch.from_numpy(evaluation.error)
    steps = np.linspace(0, len(error), min(len(error), _MOST_STEPS) + 1).round().astype(int)
    curves = {
        name: rejection_curve(error, torch.from_numpy(evaluation.spread.measures[name]))
        for name in measures
    }
    first = next(iter(curves.values()))
    return RejectionLines(
        fraction=first.fraction.numpy()[steps],
        random=first.random.numpy()[steps],
        oracle=first.oracle.numpy()[steps],
        by={name: curve.uncertainty.numpy()[steps] for name, curve in curves.items()},
    )


def rejection(evaluation: Evaluation) -> Chart:
    """Error left after handing the most uncertain rows to an expert."""
    measures = {"total_variance": ("total", "solid")}
    if evaluation.has_knowledge:
        measures["variance_of_mean"] = ("knowledge", "dashdot")
    lines = rejection_lines(evaluation, list(measures))
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
    """The axis of the error that is left."""
    kind = "standardised" if len(evaluation.target_names) > 1 else "mean"
    return {"title": f"{kind} squared error left", "rangemode": "tozero"}


def histogram(evaluation: Evaluation, part: str) -> Chart:
    """How large one kind of uncertainty is, in and out of the domain."""
    groups = {"evaluated rows": evaluation.row_spread[part]}
    if evaluation.row_spread_ood is not None:
        groups["out-of-domain rows"] = evaluation.row_spread_ood[part]
    edges = _log_edges(np.concatenate(list(groups.values())))
    traces: list[dict[str, Any]] = []
    for name, values in groups.items():
        counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
        is_own = name == "evaluated rows"
        colour, dash = (evaluation.model.colour, "solid") if is_own else ("@ink", "dash")
        # A staircase keeps its steps on a logarithmic axis, where bars would not.
        stairs = line(edges, [*(counts / len(values)), 0.0], name, colour, dash=dash)
        stairs["line"]["shape"] = "hv"
        stairs["hovertemplate"] = "from %{x:.3~g}: %{y:.1%}<extra></extra>"
        if is_own:
            stairs |= {"fill": "tozeroy", "fillcolor": translucent(colour, 0.25)}
        traces.append(stairs)
    return chart(
        traces,
        x={"title": unit(evaluation), **log_ticks(edges)},
        y={"title": "share of rows", "tickformat": ".0%", "rangemode": "tozero"},
    )


def _log_edges(values: FloatArray) -> FloatArray:
    """Edges of bins of equal width on a logarithmic scale; zeros and infinities go to the ends."""
    usual = values[np.isfinite(values) & (values > 0)]
    if len(usual) == 0:
        return np.geomspace(0.1, 10.0, _BINS + 1)
    low, high = float(usual.min()), float(usual.max())
    if high < 1.5 * low:
        low, high = low / 1.25, high * 1.25
    return np.geomspace(low * (1 - 1e-9), high * (1 + 1e-9), _BINS + 1)


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
