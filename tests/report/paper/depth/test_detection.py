"""Foreign images told apart, and the weight of those that NWPN learns."""

from _depth_results import depth_content, seeds
from priornet.report.paper.depth.detection import detection, gamma_table, gammas_of
from priornet.report.paper.depth.scores import published_depth, read_depth


def lines_of(content):
    return detection(read_depth({content["dataset"]: content}), published_depth())


def row(lines, *start):
    (found,) = [line for line in lines if line.startswith(f"| {' | '.join(start)} |")]
    return found


def test_ours_stands_before_the_papers():
    content = depth_content("nyu")
    content["methods"]["EnD2"]["ood_auc"]["kitti"]["epkl"] = seeds(0.75, 3, 0.0)
    found = row(lines_of(content), "KITTI", "EnD2").split(" | ")
    assert found[5] == "0.750 ± 0.000 (0.938)"
    assert found[7] == "0.500 ± 0.001 |"  # the paper does not report expected entropies


def test_churches_are_not_there_and_the_table_says_so():
    lines = lines_of(depth_content("nyu"))
    assert "no images (0.964)" in row(lines, "LSUN church", "EnD2")
    assert "not to be had" in lines[0]


def test_nwpn_is_not_scored_on_what_it_learnt():
    lines = lines_of(depth_content("nyu"))
    assert not any(line.startswith("| KITTI | NWPN |") for line in lines)
    assert row(lines, "LSUN bedroom", "NWPN")


def test_weights_are_those_of_the_variants_and_of_the_method_itself():
    content = depth_content("nyu")
    assert gammas_of(content) == {0.0: "NWPN-g0", content["config"]["gamma"]: "NWPN"}


def test_ablation_beside_the_papers():
    contents = {name: depth_content(name) for name in ("nyu", "kitti")}
    contents["kitti"]["variants"] = {"NWPN-g0.025": contents["kitti"]["methods"]["NWPN"]}
    contents["kitti"]["methods"].pop("NWPN")
    lines = gamma_table(read_depth(contents), contents)
    first, second = [i for i, line in enumerate(lines) if line.startswith("| gamma")]
    zero = lines[first + 3].split(" | ")
    assert zero[0] == "| 0"
    assert zero[4].endswith("(0.84)")  # -1.46 in units of ten metres
    assert zero[5].endswith("(0.691)")  # by the entropy on NYU,
    assert "(" not in zero[6]
    (weight,) = [line for line in lines[second:] if line.startswith("| 0.025")]
    assert weight.split(" | ")[6].endswith("(1.000)")  # by the mutual information on KITTI


def test_no_prior_network_no_table():
    content = depth_content("nyu")
    content["methods"].pop("NWPN")
    content["variants"].pop("NWPN-g0")
    assert "Not run." in gamma_table(read_depth({"nyu": content}), {"nyu": content})
