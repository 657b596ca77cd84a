"""The first page of a report: what the model is and how good, in words, tiles and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from priornet.evaluation.evaluate_model import Evaluation
from priornet.evaluation.numbers import NOTHING, shown_number, shown_share
from priornet.evaluation.rows import UntrustedRow
from priornet.evaluation.scores import MEASURES, level_name
from priornet.metrics import LEVELS
from priornet.report.charts import SHOWN_LEVEL
from priornet.report.page import Cell, cell, facts, table, tag

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


def row_table(evaluation: Evaluation) -> str:
    """Section with the table; several targets share a row, one after another."""
    columns: list[tuple[str, str]] = [
        ("Row", "text"),
        ("Verdict", "text"),
        ("Why", "text"),
        *(
            (f"{what}{suffix}", "number")
            for suffix in _suffixes(evaluation)
            for what in ("Predicted", "Low", "High", "Actual")
        ),
        *((title, "number") for title in _uncertainties(evaluation)),
    ]
    head = "".join(
        f'<th scope="col" data-kind="{kind}"{" class=number" if kind == "number" else ""}>'
        f'<button type="button">{tag("span", title)}</button></th>'
        for title, kind in columns
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{a}>{content}</td>" for content, a in _line(evaluation, row))
        + "</tr>"
        for row in evaluation.rows
    )
    return (
        f"<h2>Rows to trust least</h2>{tag('p', _how(evaluation), 'how')}"
        f'<div class="card long sortable"><div class="scroll"><table id="rows"><thead><tr>{head}'
        f"</tr></thead><tbody>{body}</tbody></table></div></div>"
    )


def _uncertainties(evaluation: Evaluation) -> tuple[str, ...]:
    """A model without knowledge uncertainty has no familiarity either."""
    return ("Data sd", "Knowledge sd", "Familiarity")[: 3 if evaluation.has_knowledge else 1]


def _suffixes(evaluation: Evaluation) -> list[str]:
    names = evaluation.target_names
    return [""] if len(names) == 1 else [f" {name}" for name in names]


def _how(evaluation: Evaluation) -> str:
    listed, all_rows = len(evaluation.rows), len(evaluation.y)
    which = f"{listed} of {all_rows:,} rows" if listed < all_rows else "All rows"
    return (
        f"{which}, the unfamiliar ones first: there the model has little to go by, and more data "
        "like them would help; noisy rows scatter whatever the model does. Low and high are the "
        f"ends of the {shown_share(SHOWN_LEVEL, 0)} interval. Click a header to sort."
    )


def _line(evaluation: Evaluation, row: UntrustedRow) -> list[Cell]:
    i, level = row.position, LEVELS.index(SHOWN_LEVEL)
    ends = evaluation.intervals["predictive"]
    verdict = (tag("span", row.verdict, f"verdict {row.verdict}"), "")
    cells = [cell(row.label), verdict, cell(row.reason, "reason")]
    for k in range(len(evaluation.target_names)):
        values = (
            evaluation.prediction[i, k],
            ends.lower[level, i, k],
            ends.upper[level, i, k],
            evaluation.y[i, k],
        )
        cells += [_number(value) for value in values]
    own = {
        "Data sd": _number(evaluation.row_spread["data"][i]),
        "Knowledge sd": _number(evaluation.row_spread["knowledge"][i]),
        "Familiarity": _number(row.familiarity, 3),
    }
    return cells + [own[title] for title in _uncertainties(evaluation)]


def _number(value: float, digits: int = 4) -> Cell:
    shown = shown_number(float(value), digits, is_padded=True)
    return cell(shown, "number", float(value))
