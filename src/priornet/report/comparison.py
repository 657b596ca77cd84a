"""Several models side by side on the same rows: one table, and their curves in one chart each."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from priornet.evaluation.evaluate_model import Evaluation
from priornet.evaluation.numbers import shown_number, shown_share
from priornet.report.charts import error_axis, rejection_lines
from priornet.report.page import Cell, cell, chart_box, page, table, tag, write_page
from priornet.report.traces import Chart, chart, line, share_axis, text


class Figure(NamedTuple):
    """A picture to show beside the models: PNG bytes, a heading and one sentence."""

    png: bytes
    title: str
    caption: str


class _Column(NamedTuple):
    """One metric of the table: where to find it, and how far it is from perfect."""

    title: str
    value: Callable[[dict[str, Any]], float | None]
    distance: Callable[[float], float]
    shown: Callable[[float | None], str] = shown_number


def _three(value: float | None) -> str:
    return shown_number(value, 3)


_COLUMNS = (
    _Column("RMSE", lambda m: m["rmse"], lambda v: v),
    _Column("NLL", lambda m: m["nll"], lambda v: v),
    _Column("CRPS", lambda m: m["crps"], lambda v: v),
    _Column(
        "90 % interval holds",
        lambda m: m["coverage"]["predictive"]["0.9"]["share"],
        lambda v: abs(v - 0.9),
        shown_share,
    ),
    _Column("Miscalibration", lambda m: m["miscalibration_area"], lambda v: v, _three),
    _Column("PRR, total", lambda m: m["prr"]["total_variance"], lambda v: -v, _three),
    _Column("PRR, knowledge", lambda m: m["prr"]["variance_of_mean"], lambda v: -v, _three),
    _Column("OOD AUC, total", lambda m: _foreign(m, "total_variance"), lambda v: -v, _three),
    _Column("OOD AUC, knowledge", lambda m: _foreign(m, "variance_of_mean"), lambda v: -v, _three),
)


def _foreign(metrics: dict[str, Any], measure: str) -> float | None:
    return metrics["ood_auc"][measure] if "ood_auc" in metrics else None


def write_comparison(
    evaluations: Sequence[Evaluation],
    path: str | os.PathLike[str],
    *,
    title: str = "Models side by side",
    lede: str = "",
    figures: Sequence[Figure] = (),
) -> Path:
    """Write a page that compares models evaluated on the same rows, whole or not at all.

    Args:
        evaluations: One per model, of the same rows and targets.
        path: The HTML file; folders on the way are made.
        title: Heading of the page.
        lede: A sentence under it; by default it says what was evaluated.
        figures: Pictures to show after the table and the curves.
    """
    page_text = render_comparison(evaluations, title=title, lede=lede, figures=figures)
    return write_page(page_text, path)


def render_comparison(
    evaluations: Sequence[Evaluation],
    *,
    title: str = "Models side by side",
    lede: str = "",
    figures: Sequence[Figure] = (),
) -> str:
    """The same as one HTML document."""
    _check(evaluations)
    first = evaluations[0]
    lede = lede or (
        f"{len(evaluations)} models of {', '.join(first.target_names)} on the same "
        f"{len(first.y):,} rows."
    )
    drawn = {"calibration": _calibration(evaluations), "rejection": _rejection(evaluations)}
    body = [
        f"<header>{tag('p', 'Comparison', 'eyebrow')}{tag('h1', title)}{tag('p', lede, 'lede')}"
        "</header>",
        _scores(evaluations),
        f'<h2>Their curves</h2><div class="grid">{_boxes()}</div>',
        *(_picture(figure) for figure in figures),
        tag("footer", "Made with priornet. This page holds everything it shows and loads nothing."),
    ]
    return page(title, "\n".join(body), drawn)


def _check(evaluations: Sequence[Evaluation]) -> None:
    if not evaluations:
        raise ValueError("a comparison needs one evaluation or more; got none.")
    first = evaluations[0]
    for other in evaluations[1:]:
        if other.target_names != first.target_names or other.y.shape != first.y.shape:
            raise ValueError(
                f'"{other.name}" was evaluated on {len(other.y)} rows of '
                f'{", ".join(other.target_names)}, "{first.name}" on {len(first.y)} rows of '
                f"{', '.join(first.target_names)}; compare models on the same rows."
            )


def _scores(evaluations: Sequence[Evaluation]) -> str:
    columns = [c for c in _COLUMNS if any(c.value(e.metrics) is not None for e in evaluations)]
    cells: list[list[Cell]] = []
    best = {column.title: _best(evaluations, column) for column in columns}
    for evaluation in evaluations:
        colour = f'<span class="swatch" style="--method:{evaluation.model.colour}"></span>'
        name, attributes = cell(evaluation.name, "name")
        line_cells: list[Cell] = [(colour + name, attributes)]
        for column in columns:
            value = column.value(evaluation.metrics)
            is_best = value is not None and column.distance(value) == best[column.title]
            line_cells.append(cell(column.shown(value), "number best" if is_best else "number"))
        cells.append(line_cells)
    head = ["Model", *(column.title for column in columns)]
    how = (
        "Lower is better for RMSE, NLL, CRPS and miscalibration, higher for PRR and OOD AUC; "
        "intervals should hold 90 %. The best of each column is bold."
    )
    made = table(head, cells, numbers=range(1, len(head)))
    return f'<section class="card">{tag("h3", "Scores")}{tag("p", how, "how")}{made}</section>'


def _best(evaluations: Sequence[Evaluation], column: _Column) -> float | None:
    values = [column.value(evaluation.metrics) for evaluation in evaluations]
    return min((column.distance(value) for value in values if value is not None), default=None)


def _calibration(evaluations: Sequence[Evaluation]) -> Chart:
    """Averaged over targets, where there are several."""
    traces = [line([0, 1], [0, 1], "perfect", "@muted", dash="dash")]
    for evaluation in evaluations:
        area = _three(evaluation.metrics["miscalibration_area"])
        name = f"{text(evaluation.name, 24)}, area {area}"
        observed = evaluation.observed.mean(1)
        traces.append(line(evaluation.expected, observed, name, evaluation.model.colour))
    return chart(traces, x=share_axis("expected share"), y=share_axis("observed share"))


def _rejection(evaluations: Sequence[Evaluation]) -> Chart:
    traces: list[dict[str, Any]] = []
    for evaluation in evaluations:
        lines = rejection_lines(evaluation, ["total_variance"])
        prr = _three(evaluation.metrics["prr"]["total_variance"])
        name, colour = f"{text(evaluation.name, 24)}, PRR {prr}", evaluation.model.colour
        traces.append(line(lines.fraction, lines.by["total_variance"], name, colour))
    y = error_axis(evaluations[0])
    return chart(traces, x=share_axis("share of rows rejected"), y=y)


def _boxes() -> str:
    return chart_box(
        "calibration",
        "Calibration",
        "Of all targets, the share below each predicted quantile: the nearer to the dashed line, "
        "the more a model means what it says.",
    ) + chart_box(
        "rejection",
        "Rejection",
        "Error left when the rows of the largest total uncertainty go to an expert who makes none: "
        "lower is better, at the left for the predictions, further right for the uncertainty.",
    )


def _picture(figure: Figure) -> str:
    data = base64.b64encode(figure.png).decode()
    image = f'<img alt="" src="data:image/png;base64,{data}">'
    caption = tag("figcaption", figure.caption)
    return f'{tag("h2", figure.title)}<figure class="card">{image}{caption}</figure>'
