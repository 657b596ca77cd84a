"""Figures of the page: drawn from whole tables, shown where the files are."""

from _results import paper_methods
from priornet_paper.page.figures import draw_rejection, figures
from priornet_paper.page.results import read_folder

CURVES = {
    "fraction": [0.0, 0.5, 1.0],
    "oracle": [1.0, 0.1, 0.0],
    "random": [1.0, 0.5, 0.0],
    "total_variance": [1.0, 0.2, 0.0],
    "variance_of_mean": [1.0, 0.4, 0.0],
}


def methods(dataset):
    made = paper_methods(dataset)
    made["EnD2"]["rejection"] = CURVES
    return made


def test_rejection_curves_are_drawn_from_whole_tables(folder, tmp_path):
    folder.put("boston", methods("boston"))
    folder.put("wine", methods("wine"), complete=False)
    folder.put("power", paper_methods("power"))  # without curves
    assert draw_rejection(read_folder(folder.path), tmp_path / "images")
    text = (tmp_path / "images" / "rejection.svg").read_text()
    assert "<!-- boston, EnD² -->" in text
    assert "<!-- wine, EnD² -->" not in text
    assert (tmp_path / "images" / "rejection.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_is_drawn_from_nothing(folder, tmp_path):
    folder.put("wine", methods("wine"), complete=False)
    assert not draw_rejection(read_folder(folder.path), tmp_path / "images")
    assert not (tmp_path / "images").exists()


def test_figure_is_shown_by_its_path_beside_the_page(tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    (images / "rejection.png").touch()
    (shown,) = [line for line in figures(images, "rejection", "behaviours") if "](" in line]
    assert shown.endswith("](images/rejection.png)")
    assert figures(None, "rejection") == []
