"""Labels that look like numbers, dates or times in spellings that are not read as such.

:mod:`priornet.tables.spelling` reads what programs write. What people write (``1,200``, ``$950``,
``5%``, ``2012/01/01``, ``12:30``) stays a label, and so do all dates beside one that is none. This
module says how to write it instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from priornet.tables.spelling import MISSING_WORDS, parse_labels

__all__ = ["Lookalike", "find_lookalike"]

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
_LOOKS = (("number", _NUMBER), ("date", _DATE), ("time", _TIME))
_MOST_OF_THEM = 0.8  # of the labels look so
_LEAST = 3  # labels
_LOOKED_AT, _LONGEST = 1000, 40  # labels of a column, and letters of a number


@dataclass(frozen=True)
class Lookalike:
    """What the labels of a column look like.

    Attributes:
        kind: Number, date or time.
        advice: How to write them.
    """

    kind: str
    advice: str


def find_lookalike(labels: Sequence[str]) -> Lookalike | None:
    """Find what most labels of a column look like; None where that is nothing but labels.

    Example:
        >>> find_lookalike(["1,200", "950", "12,000"])
        Lookalike(kind='number', advice='write "1,200" as 1200')
    """
    words = [label.strip() for label in labels[:_LOOKED_AT]]
    words = [word for word in words if word.lower() not in MISSING_WORDS]
    for kind, look in _LOOKS:
        like = [word for word in words if len(word) <= _LONGEST and look.fullmatch(word)]
        if len(like) >= max(_LEAST, _MOST_OF_THEM * len(words)):
            return Lookalike(kind, _advice(kind, like, words))
    return None


def _advice(kind: str, like: Sequence[str], words: Sequence[str]) -> str:
    """Show by an example how to write the first label that is not read."""
    parser = "date" if kind == "date" else "number"
    unread = [word for word in like if parse_labels([word], parser) is None]
    others = [word for word in words if word not in set(like)]
    if not unread:
        if not others:  # all of them are read alone, as other numbers each
            return "write all of them with a point, without separators of thousands"
        return f'leave "{others[0][:40]}" and other words empty'
    word = unread[0]
    if kind == "number":
        return f'write "{word}" as {_plain(word)}'
    if kind == "time":
        return f'write "{word}" as hours, {_hours(word):.4g}'
    return _dated(word)


def _plain(word: str) -> str:
    """A number without currency, percent and thousands, with a point."""
    found = _NUMBER.fullmatch(word)
    assert found is not None
    digits = re.sub(rf"['\u2019{_SPACES}]", "", found["digits"])
    point, comma = digits.rfind("."), digits.rfind(",")
    if point >= 0 and comma >= 0:  # the last of them divides
        digits = digits.replace("," if comma < point else ".", "").replace(",", ".")
    elif comma >= 0:
        groups = digits.split(",")
        is_grouped = all(len(group) == 3 for group in groups[1:])
        digits = digits.replace(",", "" if is_grouped else ".")
    elif digits.count(".") > 1:
        digits = digits.replace(".", "")
    return ("-" if re.match(r"[^\d]*[-\u2212]", word) else "") + digits


def _hours(word: str) -> float:
    found = _TIME.fullmatch(word)
    assert found is not None
    hours = int(found["hours"])
    if found["half"] is not None:
        hours = hours % 12 + (12 if found["half"].lower() == "p" else 0)
    return hours + int(found["minutes"]) / 60 + float(found["seconds"] or 0) / 3600


def _dated(word: str) -> str:
    """How to write a date."""
    found = _DATE.fullmatch(word)
    assert found is not None
    iso = "YEAR-MONTH-DAY, such as 2012-01-31"  # day and month may stand in either order
    if found["year"] is not None:
        try:
            iso = str(date(int(found["year"]), int(found["month"]), int(found["day"])))
        except ValueError:
            return f'"{word}" is no date: correct it, or leave it empty'
    if found["time"] is not None:
        iso += ", the time behind it such as 13:30 or 13:30+01:00"
    return f'write "{word}" as {iso}'
