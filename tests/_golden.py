"""Golden values: results kept as files, which a change of structure must leave as they are.

``PRIORNET_GOLDEN=exact`` demands the same bits, for work on one machine; ``PRIORNET_GOLDEN=write``
writes the files anew and skips the tests. A number that is meant to change is written in a commit
of its own, which names the old and the new value.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

VALUES = Path(__file__).parent / "golden" / "values"

# Another processor adds float32 numbers in another order. Trainings of a few steps make at most
# 1e-5 of that (ATEN_CPU_CAPABILITY=default beside AVX-512). A changed formula shows.
RELATIVE, ABSOLUTE = 1e-4, 1e-9

# Keys of results that differ from run to run.
PASSING = frozenset({"commit", "dirty", "processor", "rows_per_second", "seconds", "versions"})

_SUMMARY = ("mean", "std", "sem", "values")
_LONG = 40  # numbers; of longer lists the mean and as many samples are kept


def assert_golden(
    name: str,
    found: Mapping[str, Any],
    *,
    loosely: Mapping[str, float] = MappingProxyType({}),
    for_ever: bool = False,
) -> None:
    """Compare results with ``golden/values/NAME.json``.

    Args:
        name: The file, without its ending.
        found: Numbers, words and lists of them, in dictionaries.
        loosely: Absolute tolerance of all below these keys, where another processor may change
            more: ranks of near ties, gradients that are zero but for rounding.
        for_ever: Write the file only where there is none.
    """
    mode = os.environ.get("PRIORNET_GOLDEN", "near")
    assert mode in ("near", "exact", "write"), f"PRIORNET_GOLDEN={mode}: near, exact or write"
    path, new = VALUES / f"{name}.json", dict(_leaves(found))
    if mode == "write" and not (for_ever and path.exists()):
        _write(path, new)
        pytest.skip(f"golden/values/{name}.json is written anew")
    old: dict[str, Any] = json.loads(path.read_text())
    wrong = [f"{key}: was {old[key]}, is gone" for key in old if key not in new]
    wrong += [f"{key}: is new: {new[key]}" for key in new if key not in old]
    for key in old:
        if key in new:
            tolerance = max((loosely.get(part, 0.0) for part in key.split("/")), default=0.0)
            wrong += _differences(key, old[key], new[key], tolerance, mode == "exact")
    if wrong:
        shown = "\n".join(f"  {name}: {line}" for line in wrong[:12])
        pytest.fail(f"{len(wrong)} golden values changed ({mode}):\n{shown}", pytrace=False)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten results to ``(path, number, word or list)``."""
    if isinstance(value, Mapping) and tuple(value) == _SUMMARY:
        value = [*(value[key] for key in _SUMMARY[:3]), *value["values"]]
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key not in PASSING:
                yield from _leaves(part, f"{path}/{key}".lstrip("/"))
        return
    if isinstance(value, (list, tuple, np.ndarray)):
        if any(isinstance(part, Mapping) for part in _flat(value)):
            yield from _leaves({str(i): part for i, part in enumerate(value)}, path)
            return
        value = _short([_plain(part) for part in _flat(value)])
    yield path, value if isinstance(value, list) else _plain(value)


def _flat(value: Any) -> Iterator[Any]:
    for part in value:
        if isinstance(part, (list, tuple, np.ndarray)):
            yield from _flat(part)
        else:
            yield part


def _plain(value: Any) -> Any:
    """Make a value that JSON keeps; nan and infinity become words."""
    value = value.item() if isinstance(value, np.generic) else value
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _short(values: list[Any]) -> list[Any]:
    """Keep the mean and some values of a long list of numbers."""
    if len(values) <= _LONG or not all(isinstance(value, (int, float)) for value in values):
        return values
    some = np.linspace(0, len(values) - 1, _LONG).round().astype(int)
    return [len(values), math.fsum(values) / len(values), *(values[i] for i in some)]


def _differences(key: str, old: Any, new: Any, tolerance: float, exact: bool) -> Iterator[str]:
    """Name the values that differ; half of a list's numbers are larger than its unit."""
    if isinstance(old, list) != isinstance(new, list) or (
        isinstance(old, list) and len(old) != len(new)
    ):
        yield f"{key}: was {old}, is {new}"
        return
    pairs = list(zip(old, new, strict=True)) if isinstance(old, list) else [(old, new)]
    unit = float(np.median([abs(was) for was, _ in pairs if isinstance(was, float)] or [0.0]))
    for i, (was, now) in enumerate(pairs):
        if was == now or (not exact and math.isinf(tolerance)):
            continue
        if not exact and isinstance(was, float) and isinstance(now, float):
            allowed = max(tolerance, RELATIVE * max(abs(was), unit) + ABSOLUTE)
            if abs(was - now) <= allowed:
                continue
        yield f"{key}[{i}]: was {was!r}, is {now!r}"


def _write(path: Path, values: Mapping[str, Any]) -> None:
    """Write one value a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
