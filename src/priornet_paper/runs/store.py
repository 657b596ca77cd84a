"""Finished parts of a run on disk, and the results file that they become.

A run that was interrupted goes on where it stopped. Every part carries a fingerprint of everything
that it depends on; a part that is damaged, or has another fingerprint, is reported and made again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from priornet.evaluation import provenance_of, read_results, signature_of, write_results
from priornet.messages import warn_user
from priornet.nn import read_tensors, write_tensors

Groups = dict[str, dict[str, Any]]
"""Scores by method, in each group of a results file."""

_NO_RESULTS = (OSError, ValueError, KeyError, TypeError, AttributeError)


def fingerprint(content: Any) -> str:
    """Return a short hash of plain data, the same on every machine."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Store:
    """A folder of finished parts.

    A part is a JSON file; one whose name ends in ``.safetensors`` also holds tensors.

    Args:
        folder: Where the parts are kept; None to keep none.
        message: Called with one line about each part that cannot be used.
    """

    def __init__(self, folder: Path | None, message: Callable[[str], object] = warn_user) -> None:
        self.folder, self.message = folder, message

    def path(self, name: str) -> Path:
        """Return the file of a part."""
        assert self.folder is not None
        return self.folder / name

    def read(
        self,
        name: str,
        fingerprint: Callable[[], str],
        is_whole: Callable[[Mapping[str, Any]], bool] = lambda _: True,
    ) -> dict[str, Any] | None:
        """Read what is known of a part, or return None if it has to be made.

        Args:
            name: File name of the part.
            fingerprint: Called, if there is such a file, for the fingerprint that it must have.
            is_whole: Checks the content.
        """
        if self.folder is None:
            return None
        path = self.path(name)
        try:
            has_tensors = path.suffix == ".safetensors"
            part: Any = read_tensors(path).state if has_tensors else read_results(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.message(f"{path}: not readable ({error}); it is made again.")
            return None
        if isinstance(part, dict) and part.get("fingerprint") == fingerprint() and is_whole(part):
            return part
        self.message(f"{path}: made with other settings or other data, or damaged; made again.")
        return None

    def write(
        self,
        name: str,
        fingerprint: str,
        part: Mapping[str, Any],
        tensors: Mapping[str, Tensor] | None = None,
    ) -> dict[str, Any]:
        """Keep a part; return it with its fingerprint."""
        signed = {"fingerprint": fingerprint, **part}
        if self.folder is not None and tensors is not None:
            write_tensors(self.path(name), tensors, signed)
        elif self.folder is not None:
            write_results(self.path(name), signed)
        return signed

    def clear(self) -> None:
        """Remove the parts, once a results file holds them, and the folder above if it is empty."""
        if self.folder is None:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.parent.is_dir() and not any(self.folder.parent.iterdir()):
            self.folder.parent.rmdir()


def read_finished(path: Path, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    """Read a results file; return None if there is none, or if it is not the wanted one.

    Raises:
        ValueError: The file is there but is no results file.
    """
    if not path.exists():
        return None
    try:
        found = read_results(path)
        return found if is_wanted(found) else None
    except _NO_RESULTS as error:
        problem = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path}: not a results file ({problem}).") from error


def merge_results(
    path: Path,
    new: dict[str, Any],
    select: Callable[[dict[str, Any]], Groups],
    rank: Callable[[str], int],
    totals: Callable[[dict[str, Any], Groups, Groups], dict[str, Any]],
) -> tuple[dict[str, Any], list[str]]:
    """Merge new results into an existing file, and keep the methods that were not run again.

    Args:
        path: Where the results will be written; need not exist.
        new: The new results.
        select: Returns the methods of the old results that stay valid, by group.
        rank: Place of a method in the order of results.
        totals: Returns other entries that change, given the old results, their methods that are
            kept, and the methods of old and new together.

    Returns:
        The results for the file, in which every method has its own provenance, and the names of
        the methods that are dropped.
    """
    try:
        old = read_results(path)
        kept = select(old)
        lost = [
            name for group in kept for name in old[group] if name not in kept[group] | new[group]
        ]
        if not any(kept.values()):
            return new, lost
        groups = {
            group: dict(sorted((own | new[group]).items(), key=lambda item: rank(item[0])))
            for group, own in kept.items()
        }
        signatures = [signature_of(old, one) for own in kept.values() for one in own.values()]
        more = {**totals(old, kept, groups), **provenance_of([new, *signatures])}
        return {**new, **groups, **more}, lost
    except _NO_RESULTS:
        return new, []  # there is no results file to keep anything of: the new one replaces it


def write_merged(
    path: Path,
    new: dict[str, Any],
    merged: Callable[[Path, dict[str, Any]], tuple[dict[str, Any], list[str]]],
    message: Callable[[str], object],
) -> dict[str, Any]:
    """Write new results, merged into an existing file; say what is replaced and dropped."""
    if path.exists():
        message(f"{path}: replacing the existing results file.")
    results, lost = merged(path, new)
    if lost:
        message(f"{path}: dropping {', '.join(lost)} (another run, or other settings).")
    write_results(path, results)
    return results
