"""Explanations stand beside the misses they are about."""

import json

import pytest

from priornet_paper.page.notes import Miss, Notes, listing, read_notes
from priornet_paper.page.results import ResultsError

MISSES = [
    Miss("paper/boston/prr/EnD2/epkl", "boston"),
    Miss("paper/wine/prr/EnD2/epkl", "wine"),
    Miss("paper/wine/nll/ENSM", "wine, NLL"),
]


def test_miss_without_a_note_says_so():
    assert listing(MISSES[2:], Notes()) == ["- Not explained yet:", "  - wine, NLL"]


def test_pattern_explains_several_and_the_exact_key_goes_first():
    notes = Notes({"paper/*/prr/EnD2/epkl": "many.", "paper/wine/prr/EnD2/epkl": "one"})
    assert listing(MISSES, notes) == [
        *("- Many:", "  - boston"),
        *("- One:", "  - wine"),
        *("- Not explained yet:", "  - wine, NLL"),
    ]
    assert notes.unused == []


def test_note_about_nothing_is_known():
    notes = Notes({"paper/wine/nll/ENSM": "x", "paper/power/nll/ENSM": "y"})
    listing(MISSES, notes)
    assert notes.unused == ["paper/power/nll/ENSM"]


def test_notes_come_from_a_file_that_may_be_absent(tmp_path):
    path = tmp_path / "notes.json"
    assert read_notes(path).texts == {}
    path.write_text(json.dumps({"a": "b", "c": ["d", "e"]}))
    notes = read_notes(path)
    assert [notes.about(key) for key in "acx"] == [["b"], ["d", "e"], []]
    assert notes.unused == []


def test_paragraphs_about_a_miss_are_one_text():
    notes = Notes({"paper/wine/nll/ENSM": ["first.", "Second."]})
    assert listing(MISSES[2:], notes) == ["- First. Second:", "  - wine, NLL"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"a": 1}', '{"a": []}', '{"a": [1]}', '{"a": " "}', '{"a": ["b", ""]}'],
)
def test_damaged_notes_are_refused(tmp_path, text):
    path = tmp_path / "notes.json"
    path.write_text(text)
    with pytest.raises(ResultsError, match=r"notes\.json: .*(JSON|`a`)"):
        read_notes(path)
