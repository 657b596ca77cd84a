"""The depth half of the page: what it says of nothing, of one set, of both."""

from _depth_results import depth_content
from priornet_paper.page.depth.half import DEPTH_FIGURES, depth_parts


def test_nothing_run_is_said_plainly():
    parts = depth_parts({})
    assert list(parts) == ["Depth"]
    (line, _) = parts["Depth"].lines
    assert "has not been run on NYU and KITTI" in line
    assert "`results/depth/nyu.json` and no `results/depth/kitti.json`" in line
    assert len(parts["Depth"].goals) == 8


def test_the_other_set_is_said_to_be_missing():
    first = next(iter(depth_parts({"nyu": depth_content("nyu")}).values()))
    assert "has not been run on KITTI" in first.lines[0]


def test_both_sets_fill_every_part():
    parts = depth_parts({name: depth_content(name) for name in ("nyu", "kitti")})
    assert set(DEPTH_FIGURES) < set(parts)
    assert all(section.lines for section in parts.values())
    assert "not been run" not in parts["Depth: what differs from the paper"].lines[0]
