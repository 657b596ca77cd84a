"""Numbers behind charts: thinned curves, round ticks, best scores."""

from dataclasses import replace

import numpy as np
import pytest

from priornet.evaluation.chart_data import are_best, log_ticks, rejection_lines


def test_long_rejection_curves_are_thinned_to_points_on_them(evaluation):
    times = 20
    measures = {name: np.tile(v, times) for name, v in evaluation.spread.measures.items()}
    many = replace(
        evaluation,
        error=np.tile(evaluation.error, times),
        spread=replace(evaluation.spread, measures=measures),
    )
    lines = rejection_lines(many, ["epkl"])
    assert len(lines.fraction) == 401
    assert (lines.fraction[0], lines.fraction[-1]) == (0, 1)
    assert lines.by["epkl"][0] == pytest.approx(evaluation.error.mean())
    assert (lines.oracle <= lines.by["epkl"] + 1e-9).all()


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.5), (0.2, 4.0), (0.01, 3.0), (1e-9, 1e9)])
def test_log_axis_has_a_few_round_ticks_inside(low, high):
    ticks = log_ticks(np.array([low, high]))
    assert 1 <= len(ticks) <= 8
    assert all(0.85 * low <= tick <= 1.15 * high for tick in ticks)


@pytest.mark.parametrize(
    ("values", "perfect", "best"),
    [
        ([2.0, 1.0, None], None, [False, True, False]),  # lower is better
        ([-3.0, 2.0], None, [True, False]),
        ([0.4, 0.9, None, 0.2], 1.0, [False, True, False, False]),
        ([0.75, 1.25, 0.5], 1.0, [True, True, False]),  # equally far
        ([None, None], 1.0, [False, False]),
    ],
)
def test_the_best_scores_are_the_nearest_to_the_perfect_one(values, perfect, best):
    assert are_best(values, perfect) == best
