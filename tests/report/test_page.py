"""The page around the charts: nothing in data runs, nothing is loaded, no half file is left."""

import json
import re

import pytest

from priornet.report.page import cell, facts, page, table, tag, write_page

EMPTY = {"data": [], "layout": {}}


def embedded(text):
    """The charts as a browser reads them."""
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize(
    "name", ["</script><script>alert(1)</script>", "<!--", "a & b", "\u2028", "]]>", "'\""]
)
def test_data_cannot_leave_its_script_element(name):
    chart = {"data": [{"name": name}], "layout": {}}
    text = page("t", "", {"one": chart})
    assert embedded(text) == {"one": chart}
    assert text.count("</script>") == 3  # the charts, Plotly, ours


def test_text_is_escaped_everywhere():
    evil = '<img src=x onerror="hack()">'
    parts = [
        tag("p", evil),
        facts({evil: evil}),
        table([evil], [[cell(evil), cell(evil, "number")]], numbers=[]),
        page(evil, "", {}).split("<style>")[0],
    ]
    for part in parts:
        assert "<img" not in part
        assert "&lt;img src=x onerror=&quot;hack()&quot;&gt;" in part


def test_not_a_number_is_refused_in_charts():
    with pytest.raises(ValueError, match="not JSON compliant"):
        page("t", "", {"one": {"data": [{"x": [float("nan")]}], "layout": {}}})


def test_only_the_pages_own_scripts_run(open_page, tmp_path):
    """A script that slipped in all the same is stopped by the policy; so are pictures' requests."""
    body = (
        "<script>window.hacked = 1</script>"
        '<img src="x" onerror="window.hacked = 1"><img src="https://example.org/a.png">'
        '<div class="chart" id="one"></div>'
    )
    path = write_page(page("t", body, {"one": EMPTY}), tmp_path / "page.html")
    opened = open_page(path)
    assert opened.page.evaluate("window.hacked") is None
    assert opened.finished == [path.as_uri()]
    assert sum("Content Security Policy" in text for text in opened.complaints) >= 2


def test_page_is_written_whole(tmp_path):
    path = write_page("new", tmp_path / "deep" / "page.html")
    assert path.read_text() == "new"
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]


def test_failed_write_leaves_the_old_page_and_no_rest(tmp_path):
    path = write_page("old", tmp_path / "page.html")
    with pytest.raises(UnicodeEncodeError):
        write_page("new \ud800", path)  # half a character cannot be written
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_folder_in_the_way_is_an_error_and_leaves_no_rest(tmp_path):
    (tmp_path / "page.html").mkdir()
    with pytest.raises(OSError, match=r"page\.html"):
        write_page("new", tmp_path / "page.html")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
