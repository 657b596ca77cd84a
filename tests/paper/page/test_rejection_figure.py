"""Prediction-rejection curves: what is drawn is what the results say."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from priornet.methods import COLOURS
from priornet_paper.page.rejection_figure import draw, plot_rejection


def table(name, curve=0.6):
    """Results of a table as the experiment writes them, with curves of a known shape."""
    x = np.linspace(0, 1, 11)
    rejection = {
        "fraction": x.tolist(),
        "oracle": ((1 - x) ** 3).tolist(),
        "random": (1 - x).tolist(),
        "total_variance": ((1 - curve) * (1 - x) + curve * (1 - x) ** 3).tolist(),
        "variance_of_mean": (1 - x).tolist(),
    }
    prr = {"total_variance": {"mean": curve}, "variance_of_mean": {"mean": 0.0}}
    entry = {"rejection": rejection, "prr": prr}
    return {"dataset": name, "methods": {"ENSM": entry, "EnD2": entry}}


def areas(ax):
    """Of the shaded regions, in units of the axes."""
    found = []
    for shade in ax.collections:
        x, y = shade.get_paths()[0].vertices.T
        found.append(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2)
    return found


def test_curves_are_the_arrays_of_the_results():
    results = table("boston")
    curves = results["methods"]["EnD2"]["rejection"]
    lines = plot_rejection(results, "EnD2", "total_variance").lines
    for line, name in zip(lines, ("oracle", "random", "total_variance"), strict=True):
        assert line.get_xdata() == pytest.approx(curves["fraction"])
        assert line.get_ydata() == pytest.approx(curves[name])


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_ratio_of_the_shaded_areas_is_the_number_shown(share):
    ax = plot_rejection(table("boston", share), "EnD2", "total_variance")
    possible, gained = areas(ax)
    assert gained / possible == pytest.approx(share, rel=1e-6)
    assert ax.texts[0].get_text() == f"PRR {share:.2f}"


def test_there_is_a_panel_for_each_table_method_and_measure():
    tables = [table("boston"), table("wine"), table("power")]
    figure = draw(tables, ("ENSM", "EnD2"), ("total_variance", "variance_of_mean"))
    assert len(figure.axes) == 12
    titles = [ax.get_title() for ax in figure.axes]
    assert titles[:3] == ["boston, Ensemble", "wine, Ensemble", "power, Ensemble"]
    assert titles[-1] == "power, EnD²"
    assert "variance of the mean" in figure.axes[3].get_ylabel()


def test_method_keeps_its_colour():
    line = plot_rejection(table("boston"), "ENSM", "total_variance").lines[-1]
    assert to_hex(str(line.get_color())).upper() == COLOURS["ENSM"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("NWPN", "total_variance"), 'boston: unknown method "NWPN"; choose one of: ENSM, EnD2.'),
        (("EnD2", "epkl"), 'no curve by "epkl"; choose one of: total_variance, variance_of_mean.'),
    ],
)
def test_what_is_not_there_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot_rejection(table("boston"), *arguments)


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        draw([])
