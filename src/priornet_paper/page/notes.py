"""Explanations written by hand, printed beside the misses they are about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple, cast

from priornet_paper.page.results import ResultsError

__all__ = ["Miss", "Notes", "listing", "read_notes"]

UNEXPLAINED = "not explained yet"


class Miss(NamedTuple):
    """A goal missed in one place: a key such as ``paper/boston/rmse/EnD2``, and the numbers."""

    key: str
    text: str


Text = str | list[str]
"""A paragraph, or several."""


@dataclass
class Notes:
    """Texts by key or by pattern (``paper/*/prr/EnD2/epkl``); the exact key goes first."""

    texts: Mapping[str, Text] = field(default_factory=dict[str, Text])
    used: set[str] = field(default_factory=set[str])

    def about(self, key: str) -> list[str]:
        """The paragraphs for a key; none where nothing is said of it."""
        patterns = [key, *self.texts] if key in self.texts else list(self.texts)
        found = next((pattern for pattern in patterns if fnmatchcase(key, pattern)), None)
        if found is None:
            return []
        self.used.add(found)
        text = self.texts[found]
        return [text] if isinstance(text, str) else list(text)

    @property
    def unused(self) -> list[str]:
        """Keys that matched nothing so far: what they explain is no longer there."""
        return [key for key in self.texts if key not in self.used]


def read_notes(path: Path) -> Notes:
    """Notes from a JSON object of texts or lists of paragraphs; none where there is no file."""
    if not path.exists():
        return Notes()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ResultsError(f"{path}: cannot be read as JSON.") from error
    if not isinstance(content, dict):
        raise ResultsError(f"{path}: must be a JSON object from keys to texts.")
    texts = cast("dict[str, Any]", content)
    for key, text in texts.items():
        if not _is_text(text):
            raise ResultsError(
                f"{path}: `{key}` must be a text or a list of paragraphs, and none of them empty."
            )
    return Notes(texts)


def _is_text(found: Any) -> bool:
    paragraphs = cast("list[Any]", found) if isinstance(found, list) else [found]
    return bool(paragraphs) and all(isinstance(one, str) and one.strip() for one in paragraphs)


def listing(misses: list[Miss], notes: Notes) -> list[str]:
    """Every miss with its explanation; those that share one stand together under it."""
    groups: dict[str, list[str]] = {}
    for miss in misses:
        note = " ".join(notes.about(miss.key)) or UNEXPLAINED
        groups.setdefault(note, []).append(miss.text)
    lines: list[str] = []
    for note, texts in groups.items():
        lines += [f"- {note[:1].upper()}{note[1:].rstrip('.')}:", *(f"  - {t}" for t in texts)]
    return lines
