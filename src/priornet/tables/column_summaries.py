"""How training read each column, in a line of text and as JSON, and what is suspicious about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from priornet.notices import warn_user
from priornet.tables.columns import Texts, shown
from priornet.tables.days import as_moments
from priornet.tables.lookalikes import Lookalike, find_lookalike
from priornet.tables.outliers import Dominant

__all__ = [
    "ColumnSummary",
    "ColumnWarning",
    "TableWarning",
    "column_notes",
    "label_summary",
    "number_summary",
    "outlier_notice",
    "summary_lines",
    "warn_of_columns",
]

_SHOWN = 5  # labels in a line, and warnings of one table
_LISTED = 30  # columns by name
_LEAST_ROWS, _MANY_LABELS = 20, 0.8  # labels per row from which they hardly repeat


class TableWarning(UserWarning):
    """Something about a table to know before its model is used."""


class ColumnWarning(TableWarning):
    """A column that training may read otherwise than it is meant."""


@dataclass(frozen=True)
class ColumnSummary:
    """How training read one raw column.

    Attributes:
        column: Its name, or its number where it has none.
        kind: Numbers, nothing but 0 and 1, dates, or labels.
        n_missing: Missing values; None for a loaded model, which has not kept the count.
        low: Smallest number or date that the scaling counts; None for labels.
        high: Largest one.
        labels: A few labels, the most frequent first.
        n_labels: All of them; for a loaded model those with a column of their own.
        n_pooled: Rare labels that share one column; None for a loaded model.
        n_rows: Rows of training; None for a loaded model.
        dominant: Values that hold most of the variance.
        lookalike: Numbers, dates or times that these labels look like.
    """

    column: str | int
    kind: Literal["number", "boolean", "date", "label"]
    n_missing: int | None = None
    low: float | None = None
    high: float | None = None
    labels: tuple[str, ...] = ()
    n_labels: int = 0
    n_pooled: int | None = 0
    n_rows: int | None = None
    dominant: Dominant | None = None
    lookalike: Lookalike | None = None

    def __str__(self) -> str:
        """One line."""
        parts = [f"{shown(self.column)}: {self._content()}"]
        if self.n_pooled:
            parts.append(f"the {self.n_pooled} rarest pooled")
        if self.n_missing:
            parts.append(f"{self.n_missing} missing")
        return ", ".join(parts)

    def _content(self) -> str:
        if self.kind == "boolean":
            return "0 or 1"
        if self.low is not None and self.high is not None:
            is_date = self.kind == "date"
            low, high = (_shown_value(value, is_date) for value in (self.low, self.high))
            return f"{self.kind}, {low} to {high}"
        more = ", ..." if self.n_labels > len(self.labels) else ""
        count = "1 label" if self.n_labels == 1 else f"{self.n_labels} labels"
        return f"{count} ({', '.join(_cut(label) for label in self.labels)}{more})"

    @property
    def is_barely_repeated(self) -> bool:
        """Whether there are nearly as many labels as rows."""
        if self.kind != "label" or self.n_rows is None or self.n_missing is None:
            return False
        n_present = self.n_rows - self.n_missing
        return n_present >= _LEAST_ROWS and self.n_labels >= _MANY_LABELS * n_present

    def notes(self, row: Callable[[int], object] = lambda row: row) -> list[str]:
        """Say what may be meant otherwise, each in one sentence or two.

        Args:
            row: What the user calls a row; by default its position, counted from 0.
        """
        place = f"column {shown(self.column)}"
        if self.dominant is not None:
            return [outlier_notice(place, self.dominant, row, is_date=self.kind == "date")]
        if self.lookalike is not None:
            kind, advice = self.lookalike.kind, self.lookalike.advice
            return [
                f"{place} is read as labels ({self.n_labels} of them), though most look like a "
                f"{kind}: {advice}."
            ]
        if self.is_barely_repeated:
            return [
                f"{place} has {self.n_labels} labels in {self.n_rows} rows: nothing can be learnt "
                "from labels that hardly repeat. Leave it out, or group them."
            ]
        return []

    def to_json(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        found = asdict(self)
        if self.kind == "date":
            for name in ("low", "high"):
                if found[name] is not None:
                    found[name] = _shown_value(found[name], True)
        return found


def number_summary(
    column: str | int,
    kind: str,
    low: float,
    high: float,
    n_rows: int | None,
    n_missing: int | None,
    dominant: Dominant | None = None,
) -> ColumnSummary:
    """Summarise a column of numbers or dates, by the parser that reads it."""
    name = kind if kind in ("boolean", "date") else "number"
    return ColumnSummary(
        column,
        name,  # pyright: ignore[reportArgumentType] (one of the three)
        n_missing=n_missing,
        low=low,
        high=high,
        n_rows=n_rows,
        dominant=dominant,
    )


def label_summary(column: str | int, texts: Texts, n_pooled: int, counts: Any) -> ColumnSummary:
    """Summarise a column of labels; ``counts`` are rows by label, of missing values the first."""
    order = np.argsort(-counts[1:], kind="stable")
    present = [texts.labels[i] for i in order if counts[i + 1] > 0]
    return ColumnSummary(
        column,
        "label",
        n_missing=int(counts[0]),
        labels=tuple(present[:_SHOWN]),
        n_labels=len(present),
        n_pooled=n_pooled,
        n_rows=int(counts.sum()),
        lookalike=None if texts.is_declared else find_lookalike(present),
    )


def column_notes(
    summaries: Sequence[ColumnSummary], row: Callable[[int], object] = lambda row: row
) -> list[str]:
    """Say which columns may be meant otherwise, and which of them pool their rare labels.

    Args:
        summaries: Of all columns.
        row: What the user calls a row.
    """
    notes = [note for summary in summaries for note in summary.notes(row)]
    pooled = [
        f"{shown(one.column)} ({one.n_pooled} of {one.n_labels})"
        for one in summaries
        if one.n_pooled
    ]
    if pooled:
        notes.append(f"rare labels share one column in {_listed(pooled)}.")
    return notes


def warn_of_columns(notes: Sequence[str]) -> None:
    """Warn by the first notes, and say how many more there are."""
    for note in notes[:_SHOWN]:
        warn_user(note, ColumnWarning)
    if len(notes) > _SHOWN:
        warn_user(
            f"{len(notes) - _SHOWN} more such columns: see `describe_columns()`.", ColumnWarning
        )


def outlier_notice(
    place: str, found: Dominant, row: Callable[[int], object], *, is_date: bool = False
) -> str:
    """Say where a handful of values rules a column, and what becomes of them.

    Args:
        place: What messages call the column.
        found: The values.
        row: What the user calls a row.
        is_date: Whether they are days.
    """
    rows = [str(row(one)) for one in found.rows]
    values = [_shown_value(value, is_date) for value in found.values]
    ends = {found.high if v > found.high else found.low for v in found.values}
    taken = " and ".join(_shown_value(end, is_date) for end in sorted(ends))
    several = len(rows) > 1
    who = f"{', '.join(values)} {'are' if several else 'is'} {found.times:.0f} times as far"
    then = (
        f"Training takes {taken} instead, the nearest of the others."
        if found.is_clipped
        else "Training takes it as it is; if it is right, the column's logarithm may serve better."
    )
    return (
        f"{place}, row{'s' if several else ''} {', '.join(rows)}: {who} from the median as any "
        f"other value, and {'hold' if several else 'holds'} {found.share:.1%} of the variance. "
        f"{then} Correct it, or leave the row out."
    )


def summary_lines(summaries: Sequence[ColumnSummary], most: int = _LISTED) -> list[str]:
    """Give one line per column; of a wide table the first ones and a count of the others."""
    lines = [str(summary) for summary in summaries[:most]]
    rest = Counter(summary.kind for summary in summaries[most:])
    if rest:
        kinds = ", ".join(f"{count} of kind {kind}" for kind, count in rest.most_common())
        lines.append(f"and {len(summaries) - most} more columns: {kinds}")
    return lines


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _shown_value(value: float, is_date: bool) -> str:
    if not is_date:
        return f"{value:.6g}"
    moment = str(as_moments(np.array([value]))[0])
    return moment.removesuffix("T00:00:00.000000").removesuffix(".000000")


def _cut(label: str) -> str:
    return label if len(label) <= 24 else f"{label[:24]}..."
