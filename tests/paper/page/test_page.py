"""The whole page: what it says of full, partial and empty results."""

import json

import pytest

from _depth_results import depth_content
from _results import around, content, paper_methods
from priornet_paper.page import ResultsError, make_page, write_page
from priornet_paper.page.numbers import SETS
from priornet_paper.page.results import Notes, read_folder


def page(folder, notes=None):
    return make_page(read_folder(folder.path), Notes(notes or {}))


def test_empty_folder_makes_a_page_that_claims_nothing(folder):
    text = page(folder)
    assert "reached" not in text
    assert "missed**" not in text
    assert "confirmed**" not in text
    assert text.count("**not measured**") == 13
    assert "The depth experiment has not been run" in text
    assert "Nothing has been run yet." in text


def test_summary_counts_goals(folder):
    for name in SETS:
        methods = paper_methods(name)
        methods["ENSM"]["nll"] = around(9.0)
        methods["EnD2"]["nll"] = around(9.0)
        folder.put(name, methods)
    text = page(folder)
    assert "| **✗ missed** | 30 of 40; " in text
    assert "| ✓ reached | 130 of 130: " in text
    assert "| ✓ reached | 5.0 min, 5 of 5 sets (cpu) |" in text
    assert "goals: 2 reached, 1 missed, " in text
    assert "changed after we had seen their scores (last column): 1." in text


def test_verdict_on_some_of_the_sets_is_called_preliminary(folder):
    for name in SETS[:-1]:
        folder.put(name, paper_methods(name))
    assert "| **so far confirmed** | Ensembles have the best RMSE |" in page(folder)
    folder.put(SETS[-1], paper_methods(SETS[-1]))
    assert "| **confirmed** | Ensembles have the best RMSE |" in page(folder)


def test_explanation_stands_beside_its_miss(folder):
    methods = paper_methods("boston")
    methods["EnD2"]["nll"] = around(9.0)
    methods["ENSM"]["rmse"] = around(99.0)
    folder.put("boston", methods)
    text = page(folder, {"paper/boston/nll/EnD2": "the student sleeps"})
    assert "- The student sleeps:\n  - boston, EnD2, NLL 9.00 against 2.50" in text
    assert "- Not explained yet:\n  - boston, ENSM, RMSE 99.00 against 3.52" in text


def test_notes_on_claims_stand_below_their_table(folder):
    text = page(folder, {"claims/support": "why", "claims/best-rmse": ["first", "second"]})
    claim = "Ensembles have the best RMSE"
    row = f"| **not measured** | {claim} ([note](#ensembles-have-the-best-rmse)) |  |"
    rows, notes = text.split("### Notes on the claims\n\n")
    assert row in rows
    assert notes.startswith(f"#### {claim}\n\n- first\n- second\n\n#### EnD2 over-estimates")
    assert "(synthetic)\n\nwhy\n\n## RMSE" in notes
    assert text.count("([note](") == 2
    assert "Notes on the claims" not in page(folder)


def test_figures_are_shown_where_their_files_are(folder, tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    (images / "behaviours.png").touch()
    text = make_page(read_folder(folder.path), Notes(), images)
    assert "](images/behaviours.png)" in text
    assert text.count("![") == 1


def test_depth_results_fill_their_half(folder):
    for name in ("nyu", "kitti"):
        folder.put_depth(name)
    text = page(folder)
    assert "The depth experiment has not been run" not in text
    assert "| **confirmed** | Depth: NLL of EnD2, NWPN and DER is best |" in text
    assert "\n  - KITTI, NLL: EnD2 1.42, NWPN 1.52, DER 1.71, Single 2.98, " in text
    assert "| ✓ reached | Single: δ1 0.852, rel 0.122 |" in text
    assert "| depth | nyu | 795 | 600 | NVIDIA H200 |" in text
    assert "Settings of the depth experiment" in text


def test_earlier_depth_configurations_have_a_part_and_a_sentence_beside_the_goals(folder):
    folder.put_depth("nyu")
    before = page(folder)
    assert "earlier configurations" not in before
    assert "The speed of depth networks has goals of its own" in before
    folder.put_depth("nyu", again="nyu-first")
    folder.put_order({"nyu": ["nyu-first"]})
    text = page(folder, {"recipes/nyu-first": "It was the first."})
    sentence, rest = text.split("## What the paper claims")
    assert "configurations for depth, 2 on NYU, " in sentence
    assert "\n## Depth: earlier configurations\n" in rest
    assert "1. `results/depth/again/nyu-first.json`, 3 seeds: the present settings. It was" in rest


def test_new_seeds_have_a_part_a_sentence_and_a_line_of_how_they_were_made(folder):
    for name in ("nyu", "kitti"):
        folder.put_depth(name)
    assert "new seeds" not in page(folder)
    for name in ("nyu", "kitti"):
        folder.put_new_seeds(name)
    text = page(folder, {"new-seeds": "Nobody had seen them."})
    assert "With [new seeds](#depth-the-same-configurations-with-new-seeds), run once, " in text
    assert "\n## Depth: the same configurations with new seeds\n" in text
    assert "those of the first seeds. Nobody had seen them.\n" in text
    assert "| depth, new seeds | kitti | " in text


def test_depth_verdict_from_one_set_is_called_preliminary(folder):
    folder.put_depth("nyu")
    assert "| **so far confirmed** | Depth: NLL of EnD2, NWPN and DER is best |" in page(folder)


def test_explanations_reach_depth(folder):
    content = depth_content("nyu")
    content["methods"]["EnD2"]["nll"] = around(9.0)
    folder.put_depth("nyu", content)
    text = page(folder, {"depth/nyu/EnD2/nll": "the student sleeps"})
    assert "- The student sleeps:\n  - NYU, NLL: EnD2 9.000 (T = 10); " in text


def test_written_page_shows_the_depth_figures_it_drew(folder, tmp_path):
    folder.put_depth("kitti")
    out = tmp_path / "docs" / "page.md"
    write_page(folder.path, out, tmp_path / "none.json")
    text = out.read_text()
    for name in ("likelihood-kitti", "calibration-kitti", "detection", "gamma", "correlations"):
        assert f"](images/depth-{name}.png)" in text
    assert "](images/depth-likelihood-nyu.png)" not in text


def test_same_results_make_the_same_page(folder):
    folder.put("boston", paper_methods("boston"))
    assert page(folder) == page(folder)


def test_written_page_is_whole_and_damaged_results_leave_the_old_one(folder, tmp_path):
    out = tmp_path / "docs" / "page.md"
    file = folder.put("boston", paper_methods("boston"))
    notes = tmp_path / "notes.json"
    notes.write_text(json.dumps({"paper/*": "explains nothing"}))
    assert write_page(folder.path, out, notes).unused == ["paper/*"]
    before = out.read_text()
    assert before == page(folder)
    file.write_text("{")
    with pytest.raises(ResultsError, match=r"boston\.json"):
        write_page(folder.path, out, notes)
    assert out.read_text() == before
    assert [path.name for path in out.parent.iterdir()] == ["page.md"]


def test_tables_are_rectangular(folder):
    for name in SETS:
        folder.put(name, paper_methods(name, shift=0.2))
        folder.put(name, paper_methods(name), "beyond")
        folder.put(name, paper_methods(name), "splits")
    folder.put("msd", paper_methods("msd"), complete=False)
    folder.put_depth("nyu")
    folder.put_depth("kitti")
    blocks = page(folder).split("\n\n")
    tables = [block.split("\n") for block in blocks if block.startswith("|")]
    assert len(tables) > 10
    for lines in tables:
        assert len({line.count("|") for line in lines if line.startswith("|")}) == 1


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
