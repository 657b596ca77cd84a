"""The first page of a report: what the model is and how good, in words, tiles and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from priornet.evaluation.evaluate_model import Evaluation
from priornet.evaluation.numbers import NOTHING, shown_number, shown_share
from priornet.evaluation.scores import level_name
from priornet.evaluation.spread import MEASURES
from priornet.metrics import LEVELS
from priornet.report.page import cell, facts, table, tag

__all__ = ["about", "header", "tables", "tiles"]

_MOST_NAMES = 40
_NAMES = {
    "n_rows": "Training rows",
    "epochs": "Epochs",
    "batch_size": "Batch size",
    "best_epochs": "Best epoch of each network",
    "train_loss": "Training loss at the end",
    "validation_loss": "Validation loss at the best epoch",
    "seconds": "Seconds of training",
    "target": "Learnt of the teacher",
}


def header(evaluation: Evaluation) -> str:
    """What is predicted, on how many rows, and how many of them to trust."""
    metrics, targets = evaluation.metrics, ", ".join(evaluation.target_names)
    words = metrics["verdicts"]
    lede = (
        f"{len(evaluation.y):,} rows with {len(evaluation.model.feature_names)} features: "
        f"{words['trust']:,} to trust, {words['noisy']:,} noisy, {words['unfamiliar']:,} unfamiliar"
    )
    if metrics["n_ood_rows"]:
        lede += f"; and {metrics['n_ood_rows']:,} out-of-domain rows for comparison"
    title = tag("h1", f"{evaluation.name} predicts {targets}")
    eyebrow = tag("p", "How good, and where to trust it", "eyebrow")
    return f"<header>{eyebrow}{title}{tag('p', lede + '.', 'lede')}</header>"


def tiles(evaluation: Evaluation) -> str:
    """The few numbers to look at first."""
    scores, several = evaluation.metrics, len(evaluation.target_names) > 1
    covered = scores["coverage"]["predictive"]["0.9"]
    averaged = "average over targets" if several else "in units of the target"
    tiles = {
        "RMSE": (shown_number(scores["rmse"]), f"typical error, {averaged}; 0 is perfect"),
        "NLL": (shown_number(scores["nll"]), "nats per row; lower is better"),
        "CRPS": (shown_number(scores["crps"]), "error of the whole prediction; 0 is perfect"),
        "90 % interval holds": (
            shown_share(covered["share"]),
            f"± {shown_share(covered['standard_error'])} by chance; 90 % is perfect",
        ),
        "PRR": (
            shown_number(scores["prr"]["total_variance"], 3),
            "total uncertainty finds the errors: 1 perfect, 0 chance",
        ),
    }
    if "ood_auc" in scores:
        measure = "variance_of_mean" if evaluation.has_knowledge else "total_variance"
        part = "knowledge" if evaluation.has_knowledge else "total"
        tiles["OOD AUC"] = (
            shown_number(scores["ood_auc"][measure], 3),
            f"{part} uncertainty finds foreign rows: 1 perfect, 0.5 chance",
        )
    boxes = "".join(
        f'<div class="card tile">{tag("dt", name)}'
        f"<dd>{tag('span', value)}{tag('span', note, 'note')}</dd></div>"
        for name, (value, note) in tiles.items()
    )
    return f'<dl class="tiles">{boxes}</dl>'


def tables(evaluation: Evaluation) -> str:
    """Coverage, measures of uncertainty and, where there are several, targets."""
    boxes = [_coverage_table(evaluation), _measure_table(evaluation)]
    if len(evaluation.target_names) > 1:
        boxes.append(_target_table(evaluation))
    return f'<div class="grid pairs">{"".join(boxes)}</div>'


def _coverage_table(evaluation: Evaluation) -> str:
    scores = evaluation.metrics
    methods = list(scores["coverage"])
    head = ["Interval", *(f"{m}: {what}" for m in methods for what in ("holds, %", "width"))]
    body = []
    for level in map(level_name, LEVELS):
        line = [cell(shown_share(float(level), 0))]
        for method in methods:
            covered = scores["coverage"][method].get(level)
            shown = NOTHING
            if covered is not None:
                share, spread = 100 * covered["share"], 100 * covered["standard_error"]
                shown = f"{share:.1f} ± {spread:.1f}"
            width = scores["interval_width"][method].get(level)
            line += [cell(shown, "number"), cell(shown_number(width), "number")]
        body.append(line)
    how = (
        "An interval should hold as many targets as it says; among those that do, narrow is better."
    )
    made = table(head, body, numbers=range(1, len(head)))
    return _card("Coverage of intervals", how, made)


def _measure_table(evaluation: Evaluation) -> str:
    scores = evaluation.metrics
    foreign = scores.get("ood_auc")
    head = ["Measure of uncertainty", "PRR", *(["OOD AUC"] if foreign else [])]
    body = [
        [
            cell(MEASURES[name]),
            cell(shown_number(prr, 3), "number"),
            *([cell(shown_number(foreign[name], 3), "number")] if foreign else []),
        ]
        for name, prr in scores["prr"].items()
    ]
    how = "PRR: does it find the errors? 1 is perfect, 0 is chance."
    if foreign:
        how += " OOD AUC: does it find foreign rows? 1 is perfect, 0.5 is chance."
    made = table(head, body, numbers=range(1, len(head)))
    return _card("Measures of uncertainty", how, made)


def _target_table(evaluation: Evaluation) -> str:
    body = [
        [
            cell(name),
            cell(shown_number(scores["rmse"]), "number"),
            cell(shown_share(scores["coverage"]["predictive"]["0.9"]["share"]), "number"),
            cell(shown_number(scores["interval_width"]["predictive"]["0.9"]), "number"),
            cell(shown_number(scores["miscalibration_area"], 3), "number"),
        ]
        for name, scores in evaluation.metrics["targets"].items()
    ]
    head = ["Target", "RMSE", "90 % interval holds", "its width", "miscalibration area"]
    made = table(head, body, numbers=range(1, 5))
    how = "Each target by itself, in its own units; NLL and CRPS above are of all together."
    return _card("Targets", how, made)


def _card(title: str, how: str, content: str) -> str:
    """A titled card; the content is safe already."""
    return f'<section class="card">{tag("h3", title)}{tag("p", how, "how")}{content}</section>'


def about(evaluation: Evaluation) -> str:
    """What the model is: class, features, training, parameters, versions."""
    model = evaluation.model
    features = model.feature_names
    named = ", ".join(features[:_MOST_NAMES])
    if len(features) > _MOST_NAMES:
        named += f" and {len(features) - _MOST_NAMES} more"
    shown = {
        "Method": f"{model.label} ({model.class_name})",
        "Target": ", ".join(evaluation.target_names),
        "Features": f"{len(features)}: {named}",
        **({} if model.seed is None else {"Seed": model.seed}),
        **_trained(model.training),
    }
    settings = {name: value for name, value in model.parameters.items() if value != "None"}
    versions = ", ".join(f"{name} {version}" for name, version in model.versions.items())
    return (
        f'<h2>The model</h2><section class="card">{facts(shown)}'
        f"<details><summary>Parameters and versions</summary>"
        f"{facts({**settings, 'versions': versions})}</details></section>"
    )


def _trained(training: Mapping[str, Any]) -> dict[str, str]:
    """How it was trained, an entry a line, without the empty ones.

    The rows of a student are inputs at which it asked its teacher, and the table is the teacher's.
    """
    own = {name: value for name, value in training.items() if name != "teacher"}
    teacher: dict[str, Any] = dict(training.get("teacher") or {})
    shown: dict[str, str] = {}
    if teacher:
        shown["Training rows"] = _plain(teacher.pop("n_rows"))
        shown["Transfer inputs"] = _plain(own.pop("n_rows"))
    shown |= {_NAMES.get(name, name): _plain(v) for name, v in own.items() if v is not None}
    for name, value in teacher.items():
        if value is not None:
            named = _NAMES.get(name, name)
            shown[f"Teacher: {named[0].lower()}{named[1:]}"] = _plain(value)
    return shown


def _plain(value: object) -> str:
    """An entry of the training summary in a line."""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return shown_number(value)
    if isinstance(value, (list, tuple)):
        parts = [_plain(part) for part in value]
        return ", ".join(parts[:12]) + (", ..." if len(parts) > 12 else "")
    return str(value)
