"""Several models side by side on the same rows: one table, and their curves in one chart each."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from priornet.evaluation.chart_data import are_best, mean_calibration, rejection_lines
from priornet.evaluation.evaluate_model import Evaluation
from priornet.evaluation.numbers import shown_number, shown_share
from priornet.report.charts import Chart, chart, error_axis, line, share_axis, text
from priornet.report.page import Cell, card, cell, chart_box, page, table, tag, write_page


class Figure(NamedTuple):
    """A picture to show beside the models: PNG bytes, a heading and one sentence."""

    png: bytes
    title: str
    caption: str


class _Column(NamedTuple):
    """One score of the table, and its best value; None where lower is always better."""

    title: str
    places: tuple[str, ...]
    """Names on the way to the score in an evaluation's metrics."""
    perfect: float | None
    shown: Callable[[float | None], str] = shown_number

    def value(self, evaluation: Evaluation) -> float | None:
        """Look up the score of a model; None if it has none."""
        found: Any = evaluation.metrics
        for place in self.places:
            found = found and found.get(place)
        return found


def _three(value: float | None) -> str:
    return shown_number(value, 3)


_COLUMNS = (
    _Column("RMSE", ("rmse",), 0),
    _Column("NLL", ("nll",), None),
    _Column("CRPS", ("crps",), 0),
    _Column("90 % interval holds", ("coverage", "predictive", "0.9", "share"), 0.9, shown_share),
    _Column("Miscalibration", ("miscalibration_area",), 0, _three),
    _Column("PRR, total", ("prr", "total_variance"), 1, _three),
    _Column("PRR, knowledge", ("prr", "variance_of_mean"), 1, _three),
    _Column("OOD AUC, total", ("ood_auc", "total_variance"), 1, _three),
    _Column("OOD AUC, knowledge", ("ood_auc", "variance_of_mean"), 1, _three),
)


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
    """Make the page as one HTML document."""
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
    cells = [[_model_name(evaluation)] for evaluation in evaluations]
    head = ["Model"]
    for column in _COLUMNS:
        values = [column.value(evaluation) for evaluation in evaluations]
        best = are_best(values, column.perfect)
        if not any(best):
            continue
        head.append(column.title)
        for line_cells, value, is_best in zip(cells, values, best, strict=True):
            css = "number best" if is_best else "number"
            line_cells.append(cell(column.shown(value), css))
    how = (
        "Lower is better for RMSE, NLL, CRPS and miscalibration, higher for PRR and OOD AUC; "
        "intervals should hold 90 %. The best of each column is bold."
    )
    return card("Scores", how, table(head, cells, numbers=range(1, len(head))))


def _model_name(evaluation: Evaluation) -> Cell:
    name, attributes = cell(evaluation.name, "name")
    swatch = f'<span class="swatch" style="--method:{evaluation.model.colour}"></span>'
    return swatch + name, attributes


def _calibration(evaluations: Sequence[Evaluation]) -> Chart:
    """Draw a curve for each model, averaged over targets."""
    traces = [line([0, 1], [0, 1], "perfect", "@muted", dash="dash")]
    for evaluation in evaluations:
        area = _three(evaluation.metrics["miscalibration_area"])
        name = f"{text(evaluation.name, 24)}, area {area}"
        observed = mean_calibration(evaluation)
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
