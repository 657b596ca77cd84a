"""The table of the rows to trust least, which sorts when a header is clicked."""

from __future__ import annotations

from priornet.evaluation.evaluate_model import Evaluation
from priornet.evaluation.numbers import shown_number, shown_share
from priornet.evaluation.rows import UntrustedRow
from priornet.metrics import LEVELS
from priornet.report.charts import SHOWN_LEVEL
from priornet.report.page import Cell, cell, tag

__all__ = ["row_table"]


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
