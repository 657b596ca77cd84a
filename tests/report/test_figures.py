"""Figures as files: two forms, and the same bytes every time."""

from matplotlib.figure import Figure

from priornet.report.figures import write_figure


def make():
    figure = Figure()
    ax = figure.add_subplot()
    ax.plot([0, 1], [1, 0])
    ax.fill_between([0, 1], [0, 0], [1, 2])
    ax.set_title("a line")
    return figure


def test_both_forms_are_written_into_a_new_folder(tmp_path):
    paths = write_figure(make(), tmp_path / "new", "line")
    assert paths == {"png": tmp_path / "new/line.png", "svg": tmp_path / "new/line.svg"}
    assert paths["png"].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in paths["svg"].read_text()


def test_same_figure_gives_the_same_bytes(tmp_path):
    first, second = (write_figure(make(), tmp_path / name, "line") for name in ("a", "b"))
    for ending in ("png", "svg"):
        assert first[ending].read_bytes() == second[ending].read_bytes()


def test_files_hold_neither_date_nor_version(tmp_path):
    paths = write_figure(make(), tmp_path, "line")
    text = paths["svg"].read_text()
    assert "dc:date" not in text
    assert "matplotlib.org" not in text.lower().replace("xmlns", "")
    assert b"Software" not in paths["png"].read_bytes()
