"""The report about one model: an evaluation in, one HTML file out that opens anywhere, offline."""

from __future__ import annotations

import os
from pathlib import Path

from priornet.evaluation.chart_data import n_shown
from priornet.evaluation.evaluate_model import Evaluation
from priornet.evaluation.scores import PARTS
from priornet.report import charts, tables
from priornet.report.charts import Chart
from priornet.report.page import chart_box, page, tag, write_page

_MEANING = {
    "total": "Everything the model is unsure about.",
    "data": "Noise in the targets: more rows would not remove it.",
    "knowledge": "What the model has not learnt: more rows like these would remove it.",
}


def write_report(evaluation: Evaluation, path: str | os.PathLike[str]) -> Path:
    """Write the report, whole or not at all.

    Args:
        evaluation: What :func:`priornet.evaluation.evaluate` returned.
        path: The HTML file; folders on the way are made.
    """
    return write_page(render_report(evaluation), path)


def render_report(evaluation: Evaluation) -> str:
    """Make the report as one HTML document."""
    drawn: dict[str, Chart] = {}
    sections = [
        tables.header(evaluation),
        tables.tiles(evaluation),
        tables.tables(evaluation),
        tables.about(evaluation),
        _quality(evaluation, drawn),
        _uncertainty(evaluation, drawn),
        tables.row_table(evaluation),
        _features(evaluation, drawn),
        tag("footer", "Made with priornet. This page holds everything it shows and loads nothing."),
    ]
    title = f"{evaluation.name}: {', '.join(evaluation.target_names)}"
    return page(title, "\n".join(sections), drawn)


def _quality(evaluation: Evaluation, drawn: dict[str, Chart]) -> str:
    predicted: list[str] = []
    n_rows, n_drawn = len(evaluation.y), n_shown(len(evaluation.y))
    sample = "" if n_drawn == n_rows else f" A random {n_drawn:,} of {n_rows:,} rows are drawn."
    for k, target in enumerate(evaluation.target_names):
        identifier = f"predicted-{k}"
        drawn[identifier] = charts.predicted_against_actual(evaluation, k)
        how = (
            "Each dot is a row and its bar the 90 % interval: on the dashed line the prediction is "
            f"right, and a bar that crosses it holds the actual value.{sample}"
        )
        title = "Predicted and actual"
        title += f": {target}" if len(evaluation.target_names) > 1 else ""
        predicted.append(chart_box(identifier, title, how))
    drawn["calibration"] = charts.calibration(evaluation)
    drawn["rejection"] = charts.rejection(evaluation)
    curves = [
        chart_box(
            "calibration",
            "Calibration",
            "Of all targets, the share below each predicted quantile: on the dashed line the model "
            "means what it says; the area between the two is the miscalibration, 0 at best.",
        ),
        chart_box(
            "rejection",
            "Rejection",
            "Error left when the most uncertain rows go to an expert who makes none: the nearer to "
            "the oracle, which knows the errors, the better the uncertainty finds them.",
        ),
    ]
    wide = " wide" if len(predicted) == 1 else ""
    return (
        "<h2>How good are the predictions?</h2>"
        f'<div class="grid pairs{wide}">{"".join(predicted)}</div>'
        f'<div class="grid">{"".join(curves)}</div>'
    )


def _uncertainty(evaluation: Evaluation, drawn: dict[str, Chart]) -> str:
    boxes: list[str] = []
    for part in PARTS if evaluation.has_knowledge else PARTS[:1]:
        identifier = f"histogram-{part}"
        drawn[identifier] = charts.histogram(evaluation, part)
        how = f"{_MEANING[part]} Further right is less certain."
        if evaluation.spread_ood is not None:
            how = f"{_MEANING[part]} The dashed rows are out of domain: further right is better."
            if part == "data":
                how = f"{_MEANING[part]} It need not tell the dashed, out-of-domain rows apart."
        boxes.append(chart_box(identifier, f"{part.capitalize()} uncertainty", how))
    note = ""
    if not evaluation.has_knowledge:
        note = tag(
            "p",
            "This model has no knowledge uncertainty: a single network cannot say what it has not "
            "learnt, so all its uncertainty is data uncertainty.",
            "how",
        )
    return (
        f'<h2>How uncertain is the model?</h2>{note}<div class="grid thirds">{"".join(boxes)}</div>'
    )


def _features(evaluation: Evaluation, drawn: dict[str, Chart]) -> str:
    boxes: list[str] = []
    for j, panel in enumerate(evaluation.panels):
        identifier = f"feature-{j}"
        drawn[identifier] = charts.feature(evaluation, panel)
        how = (
            "Where training saw nothing, the dashed line should rise."
            if panel.kind == "numeric"
            else "In a category that stands higher, the model is less certain."
        )
        boxes.append(chart_box(identifier, panel.name, how))
    n_features = len(evaluation.model.feature_names)
    which = ""
    if len(evaluation.panels) < n_features:
        which = (
            f" Of {n_features} features these are the {len(evaluation.panels)} along which it "
            "changes most."
        )
    first, *others = evaluation.target_names
    of = "standardised targets" if others else first
    how = (
        f"{evaluation.panel_part.capitalize()} uncertainty along each feature, as standard "
        f"deviation (sd) of {of}: over the evaluated "
        "rows, and for one row that moves along this feature alone while the others keep their "
        f"median or commonest value.{which}"
    )
    title = "Where does it know little?" if evaluation.has_knowledge else "Where is it uncertain?"
    return (
        f"{tag('h2', title)}{tag('p', how, 'how')}{_key(evaluation.model.colour)}"
        f'<div class="grid thirds plain">{"".join(boxes)}</div>'
    )


def _key(colour: str) -> str:
    """Explain the lines of all panels, once."""
    signs = {
        "median of the rows": '<path d="M0 6h26" stroke="currentColor" stroke-width="2.5"/>',
        "middle 80 % of the rows": '<rect width="26" height="12" fill="currentColor" '
        'opacity="0.25"/>',
        "this feature alone": '<path d="M0 6h26" stroke="var(--ink)" stroke-width="2" '
        'stroke-dasharray="6 4"/>',
        "outside the training range": '<rect width="26" height="12" fill="var(--shade)"/>',
    }
    items = "".join(
        f'<li><svg width="26" height="12" aria-hidden="true">{sign}</svg>{tag("span", name)}</li>'
        for name, sign in signs.items()
    )
    return f'<ul class="key" style="--method:{colour}">{items}</ul>'
