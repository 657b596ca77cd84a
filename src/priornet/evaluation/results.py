"""Results as data: how every experiment summarises, signs and writes what it measured."""

from __future__ import annotations

import json
import math
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from priornet._version import __version__
from priornet.writing import write_bytes

_SIGNATURE = ("device", "versions", "processor", "commit", "dirty")
_KINDS = {"family": "cpu family", "model": "model"}
_PACKAGE = Path(__file__).resolve().parents[1]
_NUMBERS = re.compile(r'\[[^][{}"]*\]')  # arrays without strings: each goes on one line


def preset_of(config: Any, presets: Mapping[str, Any]) -> str:
    """Name the preset that equals a config but for its seed; ``"custom"`` if there is none."""
    same = (name for name, p in presets.items() if replace(p, seed=config.seed) == config)
    return next(same, "custom")


def provenance() -> dict[str, Any]:
    """Collect the versions that run, the commit of a git checkout, and the processor.

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
    """Combine the provenance of signed parts of results; several commits are all named."""
    return {
        "versions": parts[0]["versions"],
        "processor": _all_of("processor", parts),
        "commit": _all_of("commit", parts),
        "dirty": _is_dirty(parts),
    }


def _all_of(name: str, parts: Iterable[Mapping[str, Any]]) -> str | None:
    """Join the entries of parts under a name, each once; None if there are none."""
    found = {one for part in parts for one in (part.get(name) or "").split(", ") if one}
    return ", ".join(sorted(found)) or None


def _is_dirty(parts: Iterable[Mapping[str, Any]]) -> bool | None:
    """Tell if any part ran with changed files; None if that is unknown of one."""
    found = [part["dirty"] for part in parts]
    return None if None in found else any(found)


def _processor() -> str | None:
    """Name the processor, with family and model: hosts of virtual machines hide more."""
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
    """Return the checked-out commit, and True if tracked files differ from it."""
    root = _PACKAGE.parents[1]
    if not (root / "pyproject.toml").is_file() or _git(root, "rev-parse", "--show-prefix") != "":
        return None, None  # installed somewhere: a repository around it would not be ours
    commit = _git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    return commit, None if changes is None else changes != ""


def _git(root: Path, *arguments: str) -> str | None:
    """Run a git command; return its output, or None if it fails or there is no git."""
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


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Summarise folds or seeds: mean, standard deviation, standard error, the raw values.

    With a single value the two spreads are unknown: None. A value that is not finite becomes None
    as well, for JSON has no name for it, and takes the mean with it.

    Example:
        >>> summary([1.0, 3.0])["sem"]
        1.0
    """
    n = len(values)
    mean = math.fsum(values) / n if all(map(math.isfinite, values)) else math.nan
    std = math.dist(values, [mean] * n) / math.sqrt(n - 1) if n > 1 else math.nan
    return {
        "mean": _finite(mean),
        "std": _finite(std),
        "sem": _finite(std / math.sqrt(n)),
        "values": [_finite(v) for v in values],
    }


def check_summaries(found: Any, n_values: int | None = None, where: str = "") -> None:
    """Refuse results in which a mean or a spread is not that of its values, however deep it lies.

    Args:
        found: What :func:`summary` made, or dictionaries and lists that hold such things.
        n_values: Number of values that each must have.
        where: Name of what is checked, for the message.

    Raises:
        ValueError: The first one that is not whole.
    """
    if isinstance(found, list):
        for inner in cast("list[Any]", found):
            check_summaries(inner, n_values, where)
    elif isinstance(found, dict):
        content = cast("dict[str, Any]", found)
        if "values" in content or "mean" in content:
            _check_summary(content, n_values, where)
            return
        for name, inner in content.items():
            check_summaries(inner, n_values, f"{where}.{name}" if where else name)


def check_scores(
    method: Any, names: Iterable[str], groups: Iterable[str] = (), n_values: int | None = None
) -> None:
    """Refuse results of a method that lacks one of its scores, or holds a broken summary.

    Args:
        method: All that is known of it.
        names: Scores that it must have, each made by :func:`summary`.
        groups: Groups of scores that it must have.
        n_values: Number of values that each must have.

    Raises:
        ValueError: The first one that is missing or not whole.
    """
    content = cast("dict[str, Any]", method) if isinstance(method, dict) else {}
    for name in names:
        found = content.get(name)
        if not isinstance(found, dict) or "values" not in found:
            raise ValueError(f"{name}: no mean over folds")
    for name in groups:
        if not isinstance(content.get(name), dict):
            raise ValueError(f"{name}: no scores in it")
    check_summaries(content, n_values)


def signature_of(results: Mapping[str, Any], method: Mapping[str, Any]) -> dict[str, Any]:
    """Find the origin of one method in a results file: its own signature, or the file's.

    Of a signed method the file tells device and versions, which all of its methods share, but not
    the processor, which may be that of others.

    Args:
        results: A whole results file, which older versions signed once for all methods.
        method: What it holds of one method.
    """
    known = {**results, "processor": None} if "commit" in method else results
    found = {**known, **method}
    return {name: found[name] for name in _SIGNATURE if name in found}


def _check_summary(found: dict[str, Any], n_values: int | None, where: str) -> None:
    values: Any = found.get("values")
    if isinstance(found.get("mean"), list):  # a curve, the mean of curves
        return
    if not isinstance(values, list) or not values or not all(map(_is_number, values)):
        raise ValueError(f"{where}: its values are not numbers")
    numbers = cast("list[float | None]", values)
    if n_values is not None and len(numbers) != n_values:
        raise ValueError(f"{where}: {len(numbers)} values where there should be {n_values}")
    for name, expected in summary([math.nan if v is None else v for v in numbers]).items():
        if name != "values" and not _is_close(found.get(name), expected):
            raise ValueError(f"{where}: its {name} is not that of its values")


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_close(given: Any, expected: float | None) -> bool:
    if given is None or expected is None or not _is_number(given):
        return given is None and expected is None
    return math.isclose(given, expected, rel_tol=1e-9, abs_tol=1e-12)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
