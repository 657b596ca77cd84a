"""Free memory of the machine or its container, and a check that a table fits into it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Measured: peaks of 566, 692 and 805 bytes a row with 10, 50 and 53 inputs, ten networks.
_BYTES_PER_INPUT, _BYTES_PER_ROW = 8, 500


def free_memory() -> int:
    """Return the bytes of free memory, of the machine or within the limit of a container."""
    return max(0, min(_of_machine(), *_of_groups(), sys.maxsize))


def check_fits(n_rows: int, n_inputs: int) -> None:
    """Refuse a table that is too large to learn from, before it fills the memory.

    Args:
        n_rows: Its rows.
        n_inputs: Inputs of the networks; or columns, while the inputs are not known.
    """
    per_row, free = _BYTES_PER_INPUT * n_inputs + _BYTES_PER_ROW, free_memory()
    if n_rows * per_row > free:
        raise ValueError(
            f"to learn from {n_rows} rows with {n_inputs} inputs takes about "
            f"{n_rows * per_row / 1e9:.1f} GB, and {free / 1e9:.1f} GB of memory are free: at most "
            f"{free // per_row} such rows fit; give fewer rows or columns, or a lower `max_labels`."
        )


def _of_machine() -> int:
    with suppress(OSError):  # only Linux has this file
        for line in (_PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        return sys.maxsize


def _of_groups() -> Iterator[int]:
    """Yield the bytes left in each control group of this process, of version 1 or 2."""
    lines: list[str] = []
    with suppress(OSError):
        lines = (_PROC / "self" / "cgroup").read_text().splitlines()
    for line in lines:
        _, kinds, place = line.split(":", 2)
        if kinds == "":
            root, names = _GROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            root = _GROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = root / place.strip("/")
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):  # no limit, or a group that is not visible here
                yield _left(folder, *names)
            if folder == root:
                break


def _left(group: Path, limit: str, used: str, reclaimable: str) -> int:
    """Return the limit less what is used; files in the cache make room when it is needed."""
    counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    most, taken = (int((group / name).read_text()) for name in (limit, used))
    return most - taken + int(counts.get(reclaimable, 0))
