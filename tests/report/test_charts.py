"""Chart specifications where no browser is needed: extremes, several targets, thinning."""

import json
from dataclasses import replace

import numpy as np
import pytest

from priornet.report import charts
from priornet.report.charts import chart, feature, line, text


def with_spread(evaluation, values):
    spread = {part: values for part in ("total", "data", "knowledge")}
    return replace(evaluation, row_spread=spread, row_spread_ood=None)


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 0.0, 0.0],
        [1.0, 1.0, 1.0],
        [0.0, 1.0, np.inf],
        [np.inf, np.inf, np.inf],
        [1e-300, 1, 1e300],
    ],
    ids=["zero", "equal", "every kind", "endless", "far apart"],
)
def test_histogram_counts_every_row_whatever_its_size(evaluation, values):
    drawn = charts.histogram(with_spread(evaluation, np.array(values)), "total")
    (stairs,) = drawn["data"]
    assert sum(stairs["y"]) == pytest.approx(1)
    json.dumps(drawn, allow_nan=False)


def test_several_targets_differ_by_dash_not_by_colour(two_targets):
    record = two_targets.evaluate()
    _, first, second = charts.calibration(record)["data"]
    assert first["line"]["color"] == second["line"]["color"] == record.model.colour
    assert first["line"]["dash"] != second["line"]["dash"]
    assert second["name"].startswith("size &lt;b&gt;")
    assert charts.unit(record) == "standardised sd"


def test_axes_of_predictions_go_by_values_not_by_endless_intervals(evaluation):
    ends = evaluation.intervals["predictive"]
    endless = replace(ends, lower=ends.lower - 1e9, upper=ends.upper + 1e9)
    drawn = charts.predicted_against_actual(
        replace(evaluation, intervals={"predictive": endless}), 0
    )
    low, high = drawn["layout"]["yaxis"]["range"]
    values = np.concatenate([evaluation.y, evaluation.prediction])
    assert low < values.min() < values.max() < high
    assert high - low < 1.2 * np.ptp(values)


@pytest.mark.parametrize(("factor", "kind"), [(1.0, None), (100.0, "log")])
def test_feature_axis_is_logarithmic_where_uncertainty_spans_decades(evaluation, factor, kind):
    panel = evaluation.panels[0]
    flat = np.ones_like(panel.median)
    sweep = np.linspace(1.0, factor, len(panel.sweep))
    made = replace(panel, low=flat, median=flat, high=flat, sweep=sweep)
    assert feature(evaluation, made)["layout"]["yaxis"].get("type") == kind


def test_dates_are_drawn_as_dates(evaluation):
    panel = next(panel for panel in evaluation.panels if panel.is_date)
    drawn = feature(evaluation, panel)
    assert drawn["layout"]["xaxis"]["type"] == "date"
    shown = np.array(drawn["data"][3]["x"], dtype="datetime64[D]")
    np.testing.assert_array_equal(shown.astype(int), np.floor(panel.sweep_at))


def test_text_is_escaped_after_it_is_cut():
    assert text("<b>x</b>") == "&lt;b&gt;x&lt;/b&gt;"
    assert text("<" * 10, most=4) == "&lt;&lt;&lt;…"
    assert text("a\n b\t c") == "a b c"


def test_lines_hold_numbers_or_dates():
    assert line(np.array([0.0, 1.0]), [1.0, np.nan], "n", "#000000")["y"] == [1.0, None]
    assert line(["2024-01-01"], [1.0], "n", "#000000")["x"] == ["2024-01-01"]


def test_legend_only_where_there_is_something_to_tell_apart():
    one = line([0], [0], "a", "#000000")
    hidden = {**one, "showlegend": False}
    for traces, shown in (([one], False), ([one, one], True), ([one, hidden], False)):
        assert chart(traces, x={}, y={})["layout"]["showlegend"] is shown
