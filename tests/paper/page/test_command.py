"""``priornet reproduce page``: a page from a folder, or one line that says what is wrong."""

import json

import pytest

from _results import around, content, paper_methods


@pytest.fixture
def results(tmp_path):
    methods = paper_methods("boston")
    methods["EnD2"]["nll"] = around(9.0)
    file = tmp_path / "results" / "uci" / "boston.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(content("boston", methods)))
    return tmp_path / "results"


def test_page_is_written_where_asked(call, results, tmp_path):
    out = tmp_path / "new" / "page.md"
    found = call("reproduce", "page", "--results", results, "--out", out, "--notes", "none.json")
    assert found.exit_code == 0
    assert str(out) in found.stdout
    assert "boston, EnD2, NLL 9.00 against 2.50" in out.read_text()
    assert "not explained yet" in out.read_text().lower()


def test_notes_explain_and_those_about_nothing_are_reported(call, results, tmp_path):
    notes = tmp_path / "notes.json"
    notes.write_text(json.dumps({"paper/boston/nll/EnD2": "why", "paper/wine/*": "stale"}))
    out = tmp_path / "page.md"
    found = call("reproduce", "page", "--results", results, "--out", out, "--notes", notes)
    assert found.exit_code == 0
    assert "- Why:\n  - boston, EnD2, NLL" in out.read_text()
    assert "paper/wine/*" in found.stderr
    assert "paper/boston" not in found.stderr


def test_damaged_results_are_named_and_no_page_is_written(call, results, tmp_path):
    (results / "uci" / "boston.json").write_text("{")
    out = tmp_path / "page.md"
    found = call("reproduce", "page", "--results", results, "--out", out)
    assert found.exit_code == 2
    assert "boston.json: cannot be read as JSON; run it again." in found.stderr
    assert not out.exists()


def test_folder_that_is_not_there_is_named(call, tmp_path):
    found = call("reproduce", "page", "--results", tmp_path / "none")
    assert found.exit_code == 2
    assert "no such folder" in found.stderr
