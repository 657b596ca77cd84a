"""Several models on one page: the best marked, every curve in its method's colour."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure as MatplotlibFigure

from priornet.estimators import EvidentialRegressor
from priornet.evaluation import evaluate
from priornet.methods import COLOURS
from priornet.report import write_comparison
from priornet.report.comparison import Figure, render_comparison


@pytest.fixture(scope="module")
def evaluations(ensemble, make_table):
    """An ensemble and a Student-T, on the same rows."""
    model = EvidentialRegressor(hidden=(16,), epochs=10, random_state=0)
    model.fit(*make_table(400, seed=0))
    return [ensemble.evaluate(), evaluate(model, ensemble.X, ensemble.y, ensemble.X_ood)]


@pytest.fixture(scope="module")
def png():
    figure = MatplotlibFigure(figsize=(2, 1))
    figure.add_subplot().plot([0, 1])
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def opened(open_page, evaluations, png, tmp_path_factory):
    path = tmp_path_factory.mktemp("comparison") / "comparison.html"
    figures = [Figure(png, "A <figure>", "What it shows.")]
    write_comparison(evaluations, path, title="Two <models>", figures=figures)
    return open_page(path, viewport={"width": 390, "height": 800})


def test_page_is_silent_and_fits_a_phone(opened):
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 390
    assert opened.page.locator("h1").inner_text() == "Two <models>"


def test_curves_are_those_of_the_models_in_their_colours(opened, evaluations):
    _, *curves = opened.chart("calibration")
    for drawn, evaluation in zip(curves, evaluations, strict=True):
        np.testing.assert_allclose(drawn["y"], evaluation.observed[:, 0], rtol=1e-6)
        colour = COLOURS[evaluation.model.method]
        channels = ",".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
        assert drawn["colour"] == f"rgb({channels})"
    left = opened.chart("rejection")
    for drawn, evaluation in zip(left, evaluations, strict=True):
        assert drawn["y"][0] == pytest.approx(evaluation.error.mean(), rel=1e-6)
        assert drawn["y"][-1] == pytest.approx(0, abs=1e-6)


def test_best_of_each_column_is_bold(opened, evaluations):
    rows = opened.page.locator("tbody tr")
    first = ["RMSE", "NLL", "CRPS"]
    scores = np.array([[e.metrics[name.lower()] for name in first] for e in evaluations])
    for i in range(len(evaluations)):
        cells = rows.nth(i).locator("td")
        for j in range(len(first)):
            is_bold = "best" in (cells.nth(j).get_attribute("class") or "")
            assert is_bold == (scores[i, j] == scores[:, j].min())


def test_figure_is_inline_and_drawn(opened):
    size = opened.page.locator("figure img").evaluate("image => image.naturalWidth")
    assert size == 200
    assert opened.page.locator("h2", has_text="A <figure>").count() == 1


def test_models_of_other_rows_are_refused(evaluations, single):
    with pytest.raises(ValueError, match='"Single" was evaluated on 150 rows of y, "Ensemble" on'):
        render_comparison([evaluations[0], single.evaluate()])


def test_nothing_to_compare_is_refused():
    with pytest.raises(ValueError, match="one evaluation or more; got none"):
        render_comparison([])
