"""Words, tiles and tables of a report: the model, its scores, and the rows to trust least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from priornet.evaluation.evaluate_model import SHOWN_LEVEL, Evaluation
from priornet.evaluation.numbers import NOTHING, shown_number, shown_share
from priornet.evaluation.rows import UntrustedRow
from priornet.evaluation.scores import LEVEL_NAMES, MEASURES
from priornet.report.page import Cell, card, cell, facts, table, tag

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
    """Name the model, its targets, and how many rows to trust."""
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
    """Show the few numbers to look at first."""
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
            f"{part} uncertainty finds out-of-domain rows: 1 perfect, 0.5 chance",
        )
    boxes = "".join(
        f'<div class="card tile">{tag("dt", name)}'
        f"<dd>{tag('span', value)}{tag('span', note, 'note')}</dd></div>"
        for name, (value, note) in tiles.items()
    )
    return f'<dl class="tiles">{boxes}</dl>'


def tables(evaluation: Evaluation) -> str:
    """Show coverage, measures of uncertainty and, where there are several, targets."""
    boxes = [_coverage_table(evaluation), _measure_table(evaluation)]
    if len(evaluation.target_names) > 1:
        boxes.append(_target_table(evaluation))
    return f'<div class="grid pairs">{"".join(boxes)}</div>'


def _coverage_table(evaluation: Evaluation) -> str:
    scores = evaluation.metrics
    methods = list(scores["coverage"])
    head = ["Interval", *(f"{m}: {what}" for m in methods for what in ("holds, %", "width"))]
    body = []
    for level in LEVEL_NAMES:
        line = [cell(shown_share(float(level), 0))]
        for method in methods:
            covered = scores["coverage"][method].get(level)
            shown = NOTHING
            if covered is not None:
                share, spread = (
                    shown_share(covered[name], sign="") for name in ("share", "standard_error")
                )
                shown = f"{share} ± {spread}"
            width = scores["interval_width"][method].get(level)
            line += [cell(shown, "number"), cell(shown_number(width), "number")]
        body.append(line)
    how = (
        "An interval should hold as many targets as it says; among those that do, narrow is better."
    )
    made = table(head, body, numbers=range(1, len(head)))
    return card("Coverage of intervals", how, made)


def _measure_table(evaluation: Evaluation) -> str:
    scores = evaluation.metrics
    outside = scores.get("ood_auc")
    head = ["Measure of uncertainty", "PRR", *(["OOD AUC"] if outside else [])]
    body = [
        [
            cell(MEASURES[name]),
            cell(shown_number(prr, 3), "number"),
            *([cell(shown_number(outside[name], 3), "number")] if outside else []),
        ]
        for name, prr in scores["prr"].items()
    ]
    how = "PRR: does it find the errors? 1 is perfect, 0 is chance."
    if outside:
        how += " OOD AUC: does it find out-of-domain rows? 1 is perfect, 0.5 is chance."
    made = table(head, body, numbers=range(1, len(head)))
    return card("Measures of uncertainty", how, made)


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
    return card("Targets", how, made)


def about(evaluation: Evaluation) -> str:
    """Describe the model: class, features, training, parameters, versions."""
    model = evaluation.model
    columns = {
        "Features": model.feature_names,
        "Left out as ids": model.left_out,
        "Rare labels pooled": model.pooled,
    }
    shown = {
        "Method": f"{model.label} ({model.class_name})",
        "Target": ", ".join(evaluation.target_names),
        **{title: _named(names) for title, names in columns.items() if names},
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


def _named(names: Sequence[str]) -> str:
    """Count columns, and name the first."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{len(names)}: {', '.join(names[:_MOST_NAMES])}{more}"


def _trained(training: Mapping[str, Any]) -> dict[str, str]:
    """List the entries of the training, without the empty ones.

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
    """Write an entry of the training summary in a line."""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return shown_number(value)
    if isinstance(value, (list, tuple)):
        parts = [_plain(part) for part in value]
        return ", ".join(parts[:12]) + (", ..." if len(parts) > 12 else "")
    return str(value)


def row_table(evaluation: Evaluation) -> str:
    """Show the rows to trust least, in a table that sorts when a header is clicked."""
    columns = ["Row", "Verdict", "Why"]
    for name in evaluation.target_names:
        suffix = f" {name}" if len(evaluation.target_names) > 1 else ""
        columns += [f"{what}{suffix}" for what in ("Predicted", "Low", "High", "Actual")]
    columns += _uncertainties(evaluation)
    head = "".join(
        f'<th scope="col" data-kind="{kind}"{" class=number" if kind == "number" else ""}>'
        f'<button type="button">{tag("span", title)}</button></th>'
        for title, kind in zip(columns, chain(repeat("text", 3), repeat("number")), strict=False)
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
    """Name the columns; a model without knowledge uncertainty has no familiarity either."""
    return ("Data sd", "Knowledge sd", "Familiarity")[: 3 if evaluation.has_knowledge else 1]


def _how(evaluation: Evaluation) -> str:
    listed, all_rows = len(evaluation.rows), len(evaluation.y)
    which = f"{listed} of {all_rows:,} rows" if listed < all_rows else "All rows"
    return (
        f"{which}, the unfamiliar ones first: there the model has little to go by, and more data "
        "like them would help; noisy rows scatter whatever the model does. Low and high are the "
        f"ends of the {shown_share(SHOWN_LEVEL, 0)} interval. Click a header to sort."
    )


def _line(evaluation: Evaluation, row: UntrustedRow) -> list[Cell]:
    i, (lower, upper) = row.position, evaluation.ends(SHOWN_LEVEL)
    verdict = (tag("span", row.verdict, f"verdict {row.verdict}"), "")
    cells = [cell(row.label), verdict, cell(row.reason, "reason")]
    for values in zip(evaluation.prediction[i], lower[i], upper[i], evaluation.y[i], strict=True):
        cells += map(_number, values)
    own = {
        "Data sd": _number(evaluation.row_spread["data"][i]),
        "Knowledge sd": _number(evaluation.row_spread["knowledge"][i]),
        "Familiarity": _number(row.familiarity, 3),
    }
    return cells + [own[title] for title in _uncertainties(evaluation)]


def _number(value: float, digits: int = 4) -> Cell:
    shown = shown_number(float(value), digits, is_padded=True)
    return cell(shown, "number", float(value))
