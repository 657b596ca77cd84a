"""Labels that look like numbers, dates or times in spellings that are not read as such.

:mod:`priornet.data.spelling` reads what programs write. What people write (``1,200``, ``$950``,
``5%``, ``2012/01/01``, ``12:30``) stays a label, and this module says how to write it instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from priornet.data.spelling import MISSING_WORDS, parse_labels

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
_DATE = re.compile(
    r"(?:(?P<year>\d{4})[/.](?P<month>\d{1,2})[/.](?P<day>\d{1,2})"
    r"|\d{1,2}[/.-]\d{1,2}[/.-](?:\d{4}|\d{2})"
    r"|\d{1,2}[ -][a-z]{3,9}\.?[ -]\d{2,4}|[a-z]{3,9}\.? \d{1,2},? \d{4})(?:[ t]\d{1,2}:.*)?",
    re.IGNORECASE,
)
_TIME = re.compile(r"(?P<hours>\d{1,3}):(?P<minutes>\d\d)(?::(?P<seconds>\d\d(?:\.\d+)?))?")
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
    return f'write "{word}" as {_iso(word)}'


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
    return int(found["hours"]) + int(found["minutes"]) / 60 + float(found["seconds"] or 0) / 3600


def _iso(word: str) -> str:
    found = _DATE.fullmatch(word)
    assert found is not None
    if found["year"] is None:  # day and month may stand in either order
        return "YEAR-MONTH-DAY, such as 2012-01-31"
    return f"{found['year']}-{int(found['month']):02d}-{int(found['day']):02d}"
