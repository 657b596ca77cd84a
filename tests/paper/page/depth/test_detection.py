"""Foreign images told apart, and the weight of those that NWPN learns."""

from _depth_results import depth_content, seeds
from priornet.evaluation.results import summary
from priornet_paper.page.depth.detection import detection, gamma_table, gammas_of
from priornet_paper.page.depth.numbers import published_depth, read_depth


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


def with_weights(*values, of_seeds):
    """Results whose columns are all the same: one seed of each weight, and those of 0.01."""
    content = depth_content("nyu")
    weights = [0.005, 0.025, 0.05][: len(values)]
    names = {f"NWPN-g{w:g}": [v] for w, v in zip(weights, values, strict=True)}
    for name, found in (names | {"NWPN": of_seeds}).items():
        measures = ("total_entropy", "mutual_information", "total_variance")
        aucs = {"lsun_bedroom": dict.fromkeys(measures, summary(found))}
        scores = dict.fromkeys(("delta1", "rel", "rmse", "nll"), summary(found))
        content["methods" if name == "NWPN" else "variants"][name] = {**scores, "ood_auc": aucs}
    del content["variants"]["NWPN-g0"]
    return gamma_table(read_depth({"nyu": content}), {"nyu": content})


def test_seeds_of_each_weight_are_told_and_whether_they_differ_as_much_as_weights():
    calm = with_weights(0.5, 0.51, 0.52, of_seeds=[0.5, 0.6, 0.7])
    start = "Seeds of each gamma: 1 (0.005, 0.025, 0.05); 3 (0.01). "
    rest = "is larger than that over the seeds of 0.01 in"
    assert any(line.startswith(start) and f"{rest} no column: " in line for line in calm)
    wild = with_weights(0.5, 0.1, 0.9, of_seeds=[0.5, 0.51])
    assert any(f"{rest} every column." in line for line in wild)


def test_weights_of_one_seed_each_are_not_compared():
    lines = with_weights(0.5, 0.1, of_seeds=[0.5])
    assert "Seeds of each gamma: 1 (0.005, 0.01, 0.025)." in lines


def test_no_prior_network_no_table():
    content = depth_content("nyu")
    content["methods"].pop("NWPN")
    content["variants"].pop("NWPN-g0")
    assert "Not run." in gamma_table(read_depth({"nyu": content}), {"nyu": content})
