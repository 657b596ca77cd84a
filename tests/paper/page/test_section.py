"""Goals over several draws of the folds, and cells of tables that are not whole."""

import pytest

from priornet_paper.page.section import in_part, over_draws


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
