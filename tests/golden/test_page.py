"""The committed page of results is what ``priornet reproduce page`` writes."""

import shutil
from pathlib import Path

import pytest

from _golden_table import RUNNER
from priornet.cli import app

ROOT = Path(__file__).parents[2]


def test_the_committed_page_is_what_the_command_writes(tmp_path):
    docs, results = ROOT / "docs", ROOT / "results"
    if not results.is_dir():
        pytest.skip("the source archive comes without results")
    shutil.copytree(docs / "images", tmp_path / "images")  # the page shows those that are there
    notes = ("--notes", str(docs / "results-notes.json"))
    out = ("--out", str(tmp_path / "results.md"), "--overwrite")
    done = RUNNER.invoke(app, ["reproduce", "page", "--results", str(results), *notes, *out])
    assert done.exit_code == 0, done.output
    committed, written = (folder / "results.md" for folder in (docs, tmp_path))
    assert committed.read_bytes() == written.read_bytes(), "run `priornet reproduce page`"
    assert "results-notes.json" not in done.stderr  # every note explains something
