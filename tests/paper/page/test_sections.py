"""Differences, misses and goals, against arithmetic done by hand."""

import math
import statistics

import pytest

from priornet_paper.page.numbers import (
    Number,
    difference_in_errors,
    is_far_below,
    is_worse,
    paired,
    paired_ratio,
    pooled,
)
from priornet_paper.page.own_preset import over_draws
from priornet_paper.page.sections import (
    FAILS,
    HOLDS,
    NOT_RUN,
    UNFINISHED,
    Goal,
    Tally,
    in_part,
    state_of,
    tally,
)


def test_difference_is_in_units_of_the_combined_error():
    # hypot(0.05, 0.12) = 0.13; (2.79 - 2.53) / 0.13 = 2
    assert difference_in_errors(Number(2.79, 0.05), Number(2.53, 0.12)) == pytest.approx(2)
    assert difference_in_errors(Number(2.40, 0.05), Number(2.53, 0.12)) == pytest.approx(-1)


def test_without_any_error_only_the_sign_is_known():
    assert difference_in_errors(Number(2.0, 0.0), Number(1.0, 0.0)) == math.inf
    assert difference_in_errors(Number(1.0), Number(2.0)) == -math.inf
    assert difference_in_errors(Number(1.0), Number(1.0, 0.0)) == 0


@pytest.mark.parametrize(("mean", "worse"), [(2.78, False), (2.79, False), (2.80, True)])
def test_worse_means_more_than_two_errors_above(mean, worse):
    assert is_worse(Number(mean, 0.05), Number(2.53, 0.12)) == worse


@pytest.mark.parametrize(("mean", "below"), [(0.53, False), (0.52, False), (0.51, True)])
def test_far_below_means_by_more_than_the_margin(mean, below):
    assert is_far_below(Number(mean), Number(0.60)) == below


def test_paired_error_is_that_of_the_differences():
    # Differences -1, -1, -4: mean -2, standard deviation sqrt(3), error 1.
    gap = paired(Number(4, 9, (1, 4, 7)), Number(6, 9, (2, 5, 11)))
    assert gap.mean == -2
    assert gap.error == pytest.approx(1)
    ratio = paired_ratio(Number(4, 9, (1, 4, 7)), Number(6, 9, (2, 5, 11)))
    assert ratio.mean == pytest.approx(2 / 3)
    assert ratio.error == pytest.approx(1 / 6)


def test_runs_with_other_folds_are_one_number_over_all_folds():
    runs = [Number(2.0, 9.9, (1.0, 3.0)), Number(6.0, 9.9, (4.0, 8.0))]
    found = pooled(runs)
    assert (found.mean, found.values) == (4.0, (1.0, 3.0, 4.0, 8.0))
    assert found.error == pytest.approx(statistics.stdev([1, 3, 4, 8]) / 2)
    assert pooled(runs[:1]) is runs[0]
    with pytest.raises(ValueError, match="values of their folds"):
        pooled([*runs, Number(3.0)])


def test_other_folds_have_no_paired_error():
    assert paired(Number(4, 9, (1, 7)), Number(6, 9, (2, 5, 11))) == Number(-2)


def test_tally_leaves_out_what_was_not_measured():
    assert tally([True, None, False, True]) == Tally(2, 3, 4)


@pytest.mark.parametrize(
    ("count", "state"),
    [
        (Tally(0, 0, 10), NOT_RUN),
        (Tally(8, 8, 10), HOLDS),
        (Tally(7, 9, 10), UNFINISHED),
        (Tally(7, 10, 10), FAILS),
        (Tally(2, 5, 10), FAILS),
    ],
)
def test_goal_fails_only_when_it_can_no_longer_be_reached(count, state):
    assert state_of(count, 8) == state
    assert Goal.counted("eight of ten", count, 8).state == state


@pytest.mark.parametrize(
    ("cells", "first", "found"),
    [
        ([True, True], [True, True], "2 of 2"),
        ([True, True], [True, False], "2 of 2 over all folds, 1 with those of the first draw"),
        ([None, None], [True, True], ""),
    ],
)
def test_draws_are_told_of_where_the_first_differs(cells, first, found):
    goal = over_draws("both", cells, first)
    assert goal.found == found
    assert bool(goal.caveat) == ("first draw" in found)


def test_cells_of_a_part_say_so_unless_they_are_empty():
    assert in_part(["1.5", "", "not run"]) == ["1.5<br>not run on the full table", "", "not run"]
