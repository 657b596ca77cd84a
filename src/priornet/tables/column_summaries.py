"""Summaries of columns as training read them, and warnings about columns that look wrong.

Two things look wrong: a few values that hold most of a column's variance, as typing errors do; and
labels that look like numbers, dates or times in spellings that are not read as such (``1,200``,
``$950``, ``5%``, ``2012/01/01``, ``12:30``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Literal

import numpy as np

from priornet.messages import warn_user
from priornet.tables.encoding import RawColumn
from priornet.tables.values import MISSING_WORDS, FloatArray, as_moments, parse_labels, shown

CLIPPED = 100.0
"""Training clips a value that is this many times as far from the median as the farthest other one.

Wrong decimal points, units and filled-in codes are that far. In a simulation of 500 rows, none of
1000 lognormal columns (log standard deviation 2) had such a value, of 1000 Cauchy columns some ten.
"""
LEAST_IDS, _HARDLY_REPEATED = 20, 0.8  # rows; labels per row from which they hardly repeat
SHOWN = 5
"""Labels in a line, and warnings of one table."""
_LISTED = 30  # columns by name


class TableWarning(UserWarning):
    """A warning about a table that its model learnt from."""


class ColumnWarning(TableWarning):
    """A warning about a column that training may read otherwise than it is meant."""


@dataclass(frozen=True)
class Dominant:
    """A few values that hold most of a column's variance.

    Attributes:
        rows: Their rows.
        values: The values.
        times: Their distance from the median, in that of the farthest other value.
        share: Their share of the variance.
        low: Smallest of the other values.
        high: Largest of the other values.
    """

    rows: tuple[int, ...]
    values: tuple[float, ...]
    times: float
    share: float
    low: float
    high: float

    @property
    def is_clipped(self) -> bool:
        """Check if training clips them to the range of the other values."""
        return self.times >= CLIPPED

    def taken(self, values: FloatArray) -> FloatArray:
        """Clip values as training does."""
        return np.clip(values, self.low, self.high) if self.is_clipped else values

    def notice(self, place: str, row: Callable[[int], object], *, is_date: bool = False) -> str:
        """Describe the values, and how training uses them.

        Args:
            place: The column, as messages name it.
            row: Gives the user's name for a row.
            is_date: Show the values as dates.
        """
        rows = ", ".join(str(row(one)) for one in self.rows)
        values = ", ".join(_shown_value(value, is_date) for value in self.values)
        ends = {self.high if value > self.high else self.low for value in self.values}
        taken = " and ".join(_shown_value(end, is_date) for end in sorted(ends))
        s, are, hold = ("s", "are", "hold") if len(self.rows) > 1 else ("", "is", "holds")
        then = (
            f"Training takes {taken} instead, the nearest of the others."
            if self.is_clipped
            else "Training takes it as it is; if it is right, the column's logarithm may serve "
            "better."
        )
        return (
            f"{place}, row{s} {rows}: {values} {are} {self.times:.0f} times as far from the median "
            f"as any other value, and {hold} {self.share:.1%} of the variance. {then} Correct it, "
            "or leave the row out."
        )


@dataclass(frozen=True)
class ColumnSummary:
    """One raw column as training read it; a loaded model has no counts (None).

    Attributes:
        column: Its name, or its number where it has none.
        kind: Numbers, nothing but 0 and 1, dates, labels, or an id, from which no model learns.
        n_missing: Number of missing values.
        low: Smallest number or date that was not clipped; None for labels.
        high: Largest one.
        labels: A few labels, the most frequent first.
        n_labels: Number of labels; for a loaded model, of those with an output column.
        n_pooled: Number of rare labels that share one output column.
        n_rows: Number of training rows.
        dominant: Values that hold most of the variance.
        lookalike: Numbers, dates or times that these labels look like.
    """

    column: str | int
    kind: Literal["number", "boolean", "date", "label", "id"]
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
        """Describe the column in one line."""
        parts = [f"{shown(self.column)}: {self._content()}"]
        if self.kind == "id":
            parts.append("left out")
        elif self.n_pooled:
            parts.append(f"the {self.n_pooled} rarest pooled")
        if self.n_missing:
            parts.append(f"{self.n_missing} missing")
        return ", ".join(parts)

    def _content(self) -> str:
        if self.kind == "boolean":
            return "0 or 1"
        if self.low is not None and self.high is not None:
            low, high = (_shown_value(end, self.kind == "date") for end in (self.low, self.high))
            return f"{self.kind}, {low} to {high}"
        more = ", ..." if self.n_labels > len(self.labels) else ""
        count = "1 label" if self.n_labels == 1 else f"{self.n_labels} labels"
        return f"{count} ({', '.join(_cut(label) for label in self.labels)}{more})"

    def notes(self, row: Callable[[int], object] = lambda row: row) -> list[str]:
        """List problems of the column; ``row`` gives a row's name, by default its number."""
        place = f"column {shown(self.column)}"
        if self.lookalike is not None:
            kind, advice = self.lookalike.kind, self.lookalike.advice
            read = "is left out: it has" if self.kind == "id" else "is read as"
            return [
                f"{place} {read} labels ({self.n_labels} of them), though most look like a "
                f"{kind}: {advice}."
            ]
        count = f"{self.n_labels} labels in {self.n_rows} rows"
        reason = "nothing can be learnt from labels that hardly repeat"
        if self.kind == "id" and self.n_labels:
            return [f"{place} is left out: it has {count}, and {reason}. Group them to use them."]
        if self.kind == "id":
            return [
                f"{place} is left out: by its name it is an id, and all its whole numbers differ. "
                "Give it another name to learn from it."
            ]
        if self.dominant is not None:
            return [self.dominant.notice(place, row, is_date=self.kind == "date")]
        if self.hardly_repeats:
            return [f"{place} has {count}: {reason}. Leave it out, or group them."]
        return []

    @property
    def hardly_repeats(self) -> bool:
        """Check if nearly every row has a label of its own."""
        n_present = (self.n_rows or 0) - (self.n_missing or 0)
        return n_present >= LEAST_IDS and self.n_labels >= _HARDLY_REPEATED * n_present

    def to_json(self) -> dict[str, Any]:
        """Return all fields, ready for JSON; dates as text."""
        found = asdict(self)
        if self.kind == "date":
            for name in ("low", "high"):
                if found[name] is not None:
                    found[name] = _shown_value(found[name], True)
        return found


def summarise(label: str | int, column: RawColumn) -> ColumnSummary:
    """Make the summary of a column without counts; ``label`` is its name, or its number."""
    n_missing = None if column.has_missing else 0
    if column.kind == "numeric":
        kind = column.parser if column.parser in ("boolean", "date") else "number"
        return ColumnSummary(label, kind, n_missing, column.minimum, column.maximum)
    return ColumnSummary(
        label,
        "label",
        n_missing,
        labels=column.categories[:SHOWN],
        n_labels=len(column.categories),
        n_pooled=None if column.has_other else 0,
    )


def column_notes(
    summaries: Sequence[ColumnSummary], row: Callable[[int], object] = lambda row: row
) -> list[str]:
    """List problems of the columns, and the columns that pool rare labels."""
    notes = [note for summary in summaries for note in summary.notes(row)]
    pooled = [
        f"{shown(one.column)} ({one.n_pooled} of {one.n_labels})"
        for one in summaries
        if one.n_pooled and one.kind != "id"
    ]
    if pooled:
        more = f" and {len(pooled) - _LISTED} more" if len(pooled) > _LISTED else ""
        notes.append(f"rare labels share one column in {', '.join(pooled[:_LISTED])}{more}.")
    return notes


def warn_of_columns(notes: Sequence[str]) -> None:
    """Warn with the first notes, and count the others."""
    for note in notes[:SHOWN]:
        warn_user(note, ColumnWarning)
    if len(notes) > SHOWN:
        more = len(notes) - SHOWN
        warn_user(f"{more} more such columns: see `describe_columns()`.", ColumnWarning)


def summary_lines(summaries: Sequence[ColumnSummary]) -> list[str]:
    """Return one line per column; for a wide table the first ones and a count of the others."""
    lines = [str(summary) for summary in summaries[:_LISTED]]
    rest = Counter(summary.kind for summary in summaries[_LISTED:])
    if rest:
        kinds = ", ".join(f"{count} of kind {kind}" for kind, count in rest.most_common())
        lines.append(f"and {len(summaries) - _LISTED} more columns: {kinds}")
    return lines


def _shown_value(value: float, is_date: bool) -> str:
    if not is_date:
        return f"{value:.6g}"
    moment = str(as_moments(np.array([value]))[0])
    return moment.removesuffix("T00:00:00.000000").removesuffix(".000000")


def _cut(label: str) -> str:
    return label if len(label) <= 24 else f"{label[:24]}..."


# -- labels that look like numbers, dates or times -------------------------------------------------

_SPACES = " \u00a0\u2007\u2009\u202f"
_CURRENCY = r"(?:[$€£¥₹₩₽]|usd|eur|gbp|chf|jpy|inr|kr|rs\.?)"
_SIGN = r"[-+\u2212]?"
_DIGITS = (
    rf"(?:\d{{1,3}}(?:[,'\u2019{_SPACES}]\d{{3}})+(?:\.\d+)?"  # 1,200.50 and 1 200
    rf"|\d{{1,3}}(?:[.'\u2019{_SPACES}]\d{{3}})+(?:,\d+)?"  # 1.200,50
    r"|\d+(?:[.,]\d+)?(?:e[-+]?\d+)?)"
)
_NUMBER = re.compile(
    rf"{_SIGN}(?:{_CURRENCY}\s?)?{_SIGN}(?P<digits>{_DIGITS})\s?(?:%|‰|{_CURRENCY})?", re.IGNORECASE
)
_YEAR, _DAY = r"(?:[12]\d{3}|9999)", r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = re.compile(
    rf"(?:(?P<year>{_YEAR})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}})"
    rf"|{_DAY}[/.-]{_DAY}[/.-]{_YEAR}|{_DAY}[/-]{_DAY}[/-]\d\d"
    r"|(?:0[1-9]|[12]\d|3[01])\.(?:0[1-9]|[12]\d|3[01])\.\d\d"  # 4.3.16 may be a version
    rf"|{_YEAR}[-/](?:0?[1-9]|1[0-2])|(?:0?[1-9]|1[0-2])[-/]{_YEAR}|{_MONTH}\.?[ -]{_YEAR}"
    r"|\d{1,2}[ -][a-z]{3,9}\.?[ -]\d{2,4}|[a-z]{3,9}\.? \d{1,2},? \d{4})"
    r"(?P<time>,?[ t]\d{1,2}(?::.*|\s?[ap]\.?m\.?))?",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(?P<hours>\d{1,3}):(?P<minutes>\d\d)(?::(?P<seconds>\d\d(?:\.\d+)?))?"
    r"(?:\s?(?P<half>[ap])\.?m\.?)?",
    re.IGNORECASE,
)
_LOOKS = {"number": _NUMBER, "date": _DATE, "time": _TIME}
_LEAST, _LEAST_SHARE = 3, 0.8  # labels that look so
_MOST_LABELS, _LONGEST = 1000, 40  # labels that are checked, and letters of a number


@dataclass(frozen=True)
class Lookalike:
    """The ``kind`` that labels look like (number, date or time), and advice how to write them."""

    kind: str
    advice: str


def find_lookalike(labels: Sequence[str]) -> Lookalike | None:
    """Find the kind of value that most labels of a column look like; None for plain labels.

    Example:
        >>> find_lookalike(["1,200", "950", "12,000"])
        Lookalike(kind='number', advice='write "1,200" as 1200')
    """
    words = [label.strip() for label in labels[:_MOST_LABELS]]
    words = [word for word in words if word.lower() not in MISSING_WORDS]
    for kind, look in _LOOKS.items():
        matches = [look.fullmatch(word) for word in words if len(word) <= _LONGEST]
        like = [found for found in matches if found is not None]
        if len(like) >= max(_LEAST, _LEAST_SHARE * len(words)):
            return Lookalike(kind, _advice(kind, like, words))
    return None


def _advice(kind: str, like: Sequence[re.Match[str]], words: Sequence[str]) -> str:
    """Show by an example how to write the first label that is not read."""
    parser = "date" if kind == "date" else "number"
    for found in like:
        if parse_labels([found[0]], parser) is None:
            return {"number": _plain, "date": _dated, "time": _hours}[kind](found)
    read = {found[0] for found in like}
    others = [word for word in words if word not in read]
    if not others:  # each alone would be read, as another number
        return "write all of them with a point, without separators of thousands"
    return f'leave "{others[0][:40]}" and other words empty'


def _plain(found: re.Match[str]) -> str:
    """Return advice to write a number without currency, percent and thousands, with a point."""
    digits = re.sub(rf"['\u2019{_SPACES}]", "", found["digits"])
    point, comma = digits.rfind("."), digits.rfind(",")
    if point >= 0 and comma >= 0:  # the last one is the decimal separator
        digits = digits.replace("," if comma < point else ".", "").replace(",", ".")
    elif comma >= 0:
        is_grouped = all(len(group) == 3 for group in digits.split(",")[1:])
        digits = digits.replace(",", "" if is_grouped else ".")
    elif digits.count(".") > 1:
        digits = digits.replace(".", "")
    sign = "-" if re.match(r"[^\d]*[-\u2212]", found[0]) else ""
    return f'write "{found[0]}" as {sign}{digits}'


def _hours(found: re.Match[str]) -> str:
    """Return advice to write a time as hours."""
    hours = int(found["hours"])
    if found["half"] is not None:
        hours = hours % 12 + (12 if found["half"].lower() == "p" else 0)
    hours += int(found["minutes"]) / 60 + float(found["seconds"] or 0) / 3600
    return f'write "{found[0]}" as hours, {hours:.4g}'


def _dated(found: re.Match[str]) -> str:
    """Return advice to write a date as ISO 8601 does."""
    iso = "YEAR-MONTH-DAY, such as 2012-01-31"  # day and month may stand in either order
    if found["year"] is not None:
        try:
            iso = str(date(int(found["year"]), int(found["month"]), int(found["day"])))
        except ValueError:
            return f'"{found[0]}" is no date: correct it, or leave it empty'
    if found["time"] is not None:
        iso += ", the time behind it such as 13:30 or 13:30+01:00"
    return f'write "{found[0]}" as {iso}'
