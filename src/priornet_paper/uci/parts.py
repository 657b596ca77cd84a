"""Finished pieces of a long run, kept on disk: an interrupted run goes on where it stopped.

A part is one method on a few folds. It carries a fingerprint of the settings that made it; a part
that does not parse, or was made with other settings, is reported and made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from priornet.evaluation.results import write_results
from priornet.notices import warn_user
from priornet_paper.runs.scores import SCORES
from priornet_paper.uci.config import Config

__all__ = ["Parts"]


class Parts:
    """The parts of one data set and preset.

    Args:
        folder: Where they are kept.
        config: Settings; those of one method do not touch the parts of another.
        n_rows: Rows of the table.
    """

    def __init__(self, folder: Path, config: Config, n_rows: int) -> None:
        self.folder, self.config, self.n_rows = folder, config, n_rows

    def fingerprint(self, method: str) -> str:
        """Of all that the numbers of a method depend on."""
        text = json.dumps([self.config.settings_of(method), self.n_rows], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def path(self, method: str, folds: Sequence[int]) -> Path:
        """File of a part."""
        return self.folder / f"{method}.{'-'.join(map(str, folds))}.json"

    def read(self, method: str, folds: Sequence[int]) -> dict[str, Any] | None:
        """A part, or None where it has to be made."""
        path = self.path(method, folds)
        try:
            part = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            warn_user(f"{path}: not readable ({error}); it is made again.")
            return None
        if not self._is_whole(part, method, folds):
            warn_user(
                f"{path}: not a part of this run (other settings, or damaged); it is made again."
            )
            return None
        return part

    def _is_whole(self, part: Any, method: str, folds: Sequence[int]) -> bool:
        if not isinstance(part, dict) or part.get("fingerprint") != self.fingerprint(method):
            return False
        records = part.get("records")
        if not isinstance(records, list) or len(records) != len(folds):
            return False
        return all(
            isinstance(record, dict)
            and record.get("fold") == fold
            and all(isinstance(record.get(name), float) for name in SCORES)
            for record, fold in zip(records, folds, strict=True)
        )

    def write(self, method: str, folds: Sequence[int], part: dict[str, Any]) -> dict[str, Any]:
        """Keep a part."""
        part = {"fingerprint": self.fingerprint(method), **part}
        write_results(self.path(method, folds), part)
        return part
