"""Building blocks of charts."""

import numpy as np
import pytest

from priornet.report.traces import chart, line, log_ticks, text


def test_text_is_escaped_after_it_is_cut():
    assert text("<b>x</b>") == "&lt;b&gt;x&lt;/b&gt;"
    assert text("<" * 10, most=4) == "&lt;&lt;&lt;…"
    assert text("a\n b\t c") == "a b c"


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.5), (0.2, 4.0), (0.01, 3.0), (1e-9, 1e9)])
def test_log_axis_has_a_few_round_ticks_inside(low, high):
    ticks = log_ticks(np.array([low, high]))["tickvals"]
    assert 1 <= len(ticks) <= 8
    assert all(0.85 * low <= tick <= 1.15 * high for tick in ticks)


def test_lines_hold_numbers_or_dates():
    assert line(np.array([0.0, 1.0]), [1.0, np.nan], "n", "#000000")["y"] == [1.0, None]
    assert line(["2024-01-01"], [1.0], "n", "#000000")["x"] == ["2024-01-01"]


def test_legend_only_where_there_is_something_to_tell_apart():
    one = line([0], [0], "a", "#000000")
    hidden = {**one, "showlegend": False}
    for traces, shown in (([one], False), ([one, one], True), ([one, hidden], False)):
        assert chart(traces, x={}, y={})["layout"]["showlegend"] is shown
