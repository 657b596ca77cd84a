"""Differences, misses and goals, against arithmetic done by hand."""

import pytest

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


def test_cells_of_a_part_say_so_unless_they_are_empty():
    assert in_part(["1.5", "", "not run"]) == ["1.5<br>not run on the full table", "", "not run"]
