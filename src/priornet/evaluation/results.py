"""Results as data: how every experiment summarises, signs and writes what it measured."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from priornet._version import __version__
from priornet.evaluation.summaries import signature_of, summary
from priornet.writing import write_bytes

__all__ = [
    "preset_of",
    "provenance",
    "provenance_of",
    "read_results",
    "signature_of",
    "summary",
    "write_results",
]

_KINDS = {"family": "cpu family", "model": "model"}
_PACKAGE = Path(__file__).resolve().parents[1]
_NUMBERS = re.compile(r'\[[^][{}"]*\]')  # arrays without strings: each goes on one line


def preset_of(config: Any, presets: Mapping[str, Any]) -> str:
    """Name of the preset that a config is, whatever its seed; ``"custom"`` where it is none."""
    same = (name for name, p in presets.items() if replace(p, seed=config.seed) == config)
    return next(same, "custom")


def provenance() -> dict[str, Any]:
    """Versions of what ran, the commit of the source if it is a git checkout, and the processor.

    Processors round differently, and training carries that far.
    """
    commit, dirty = _commit()
    return {
        "versions": {
            "priornet": __version__,
            "python": platform.python_version(),
            "torch": metadata.version("torch"),
            "numpy": metadata.version("numpy"),
        },
        "processor": _processor(),
        "commit": commit,
        "dirty": dirty,
    }


def provenance_of(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of results put together from signed parts; all commits, where there are several."""
    return {
        "versions": parts[0]["versions"],
        "processor": _all_of("processor", parts),
        "commit": _all_of("commit", parts),
        "dirty": _is_dirty(parts),
    }


def _all_of(name: str, parts: Iterable[Mapping[str, Any]]) -> str | None:
    """What parts say under a name, each thing once; None where none says anything."""
    found = {one for part in parts for one in (part.get(name) or "").split(", ") if one}
    return ", ".join(sorted(found)) or None


def _is_dirty(parts: Iterable[Mapping[str, Any]]) -> bool | None:
    """Whether any part ran with changed files; None where one does not know."""
    found = [part["dirty"] for part in parts]
    return None if None in found else any(found)


def _processor() -> str | None:
    """The name that the system gives it, with family and model: hosts of virtual ones hide more."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    first: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        first.setdefault(name.strip(), value.strip())
    name = first.get("model name", "") or platform.processor()
    kind = [f"{word} {first[key]}" for word, key in _KINDS.items() if key in first]
    return " ".join([name, *([f"({' '.join(kind)})"] if kind else [])]).replace(",", "") or None


def _commit() -> tuple[str | None, bool | None]:
    """The checked-out commit, and whether tracked files differ from it."""
    root = _PACKAGE.parents[1]
    if not (root / "pyproject.toml").is_file() or _git(root, "rev-parse", "--show-prefix") != "":
        return None, None  # installed somewhere: a repository around it would not be ours
    commit = _git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    return commit, None if changes is None else changes != ""


def _git(root: Path, *arguments: str) -> str | None:
    """Output of a git command, or None when it fails or there is no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Write results as JSON, whole or not at all: a reader never sees half a file."""
    text = json.dumps(results, indent=1, allow_nan=False, ensure_ascii=False)
    text = _NUMBERS.sub(lambda array: " ".join(array[0].split()), text)
    write_bytes(path, f"{text}\n".encode())


def read_results(path: Path) -> dict[str, Any]:
    """Read what :func:`write_results` wrote."""
    return json.loads(path.read_text(encoding="utf-8"))
