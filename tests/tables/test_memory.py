"""Free memory is the machine's or the container's, and a table that exceeds it is refused."""

import numpy as np
import pandas as pd
import pytest

from priornet import GaussianRegressor
from priornet.estimators import ColumnWarning
from priornet.tables import memory

MEGABYTE = 1 << 20


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that writes the files of a machine with 900 MB of available memory."""
    monkeypatch.setattr(memory, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "cgroup")

    def write(place, **files):
        folder = tmp_path / place
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(str(text))

    write("proc", meminfo=f"MemTotal: 9999999 kB\nMemAvailable: {900 * 1024} kB\n")
    return write


def test_a_machine_without_groups_has_what_is_available(machine):
    assert memory.free_memory() == 900 * MEGABYTE


def group_2(limit, used, cache):
    counts = f"anon 5\ninactive_file {cache * MEGABYTE}\n"
    limit = limit if limit == "max" else limit * MEGABYTE
    return {"memory__max": limit, "memory__current": used * MEGABYTE, "memory__stat": counts}


@pytest.mark.parametrize(
    ("inner", "outer", "free"),
    [
        (("max", 10, 0), ("max", 10, 0), 900),
        ((500, 100, 30), ("max", 200, 0), 430),
        (("max", 10, 0), (300, 280, 5), 25),
        ((100, 120, 0), ("max", 0, 0), 0),
    ],
    ids=["no limit", "own limit", "limit of a group around it", "more used than allowed"],
)
def test_limits_of_groups_count(machine, inner, outer, free):
    machine("proc/self", cgroup="0::/jobs/one\n")
    machine("cgroup/jobs/one", **group_2(*inner))
    machine("cgroup/jobs", **group_2(*outer))
    assert memory.free_memory() == free * MEGABYTE


def test_limits_of_the_first_version_count(machine):
    machine("proc/self", cgroup="5:cpu:/x\n4:memory:/x\n0::/\n")
    machine(
        "cgroup/memory/x",
        memory__limit_in_bytes=200 * MEGABYTE,
        memory__usage_in_bytes=150 * MEGABYTE,
        memory__stat=f"total_inactive_file {50 * MEGABYTE}\n",
    )
    assert memory.free_memory() == 100 * MEGABYTE


def test_a_system_without_these_files_is_asked_for_its_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_PROC", tmp_path)
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    assert memory.free_memory() > 100 * MEGABYTE


def test_labels_that_make_a_table_too_wide_are_refused(monkeypatch):
    labels = [f"l{i % 200}" for i in range(2000)]
    monkeypatch.setattr(memory, "free_memory", lambda: 2_500_000)
    table, y = pd.DataFrame({"t": labels}), np.arange(2000.0)
    with pytest.raises(ValueError, match=r"2000 rows with 200 inputs .* at most 1190 such rows"):
        GaussianRegressor(epochs=1).fit(table, y)
    with pytest.warns(ColumnWarning, match="rare labels share one column"):
        GaussianRegressor(epochs=1, max_labels=50, random_state=0).fit(table, y)
