"""Accuracy, likelihood, OOD detection and correlations of the depth experiment."""

from _depth_results import depth_content, seeds
from priornet.evaluation.results import summary
from priornet_paper.page.depth_tables import (
    accuracy,
    detection,
    gamma_table,
    gammas_of,
    likelihood,
    methods_of,
    ranks,
)
from priornet_paper.page.numbers import published_depth, read_scores


def lines_of(*contents):
    ours = read_scores({content["dataset"]: content for content in contents})
    return accuracy(ours, published_depth())


def row(lines, method):
    return next(line for line in lines if line.startswith(f"| **{method}**"))


def test_the_papers_number_stands_below_ours():
    content = depth_content("kitti")
    content["methods"]["EnD2"]["rmse"] = seeds(4.0, 2, 0.25)
    assert "| 4.000 ± 0.250<br>3.367 |" in row(lines_of(content), "EnD2")


def test_nll_on_nyu_is_also_given_in_metres():
    lines = lines_of(depth_content("nyu"))
    assert "<br>0.83 (-1.47) |" in row(lines, "EnD2")
    assert any("units of 10 m" in line for line in lines)
    assert "<br>1.42 |" in row(lines_of(depth_content("kitti")), "EnD2")


def test_what_a_method_does_not_have_is_a_dash():
    cells = row(lines_of(depth_content("nyu")), "DD").split(" | ")
    assert cells[-2:] == ["&ndash;<br>&ndash;", "&ndash;<br>&ndash; |"]


def test_a_failed_model_stays_in_the_tables():
    content = depth_content("nyu")
    content["methods"]["DER"]["nll"] = summary([1.0, float("nan"), 2.0])
    assert "| not finite<br>1.26 (-1.04) |" in row(lines_of(content), "DER")
    assert "DER" in methods_of(read_scores({"nyu": content}), "nyu", has_belief=True)


def test_variants_come_last_and_the_ablation_not_at_all():
    ours = read_scores({"nyu": depth_content("nyu")})
    assert methods_of(ours, "nyu")[0] == "DD"
    assert methods_of(ours, "nyu", has_belief=True)[0] == "Single"
    assert methods_of(ours, "nyu")[-1] == "EnD2-T1"
    assert "NWPN-g0" not in methods_of(ours, "nyu")


def test_quantiles_and_areas_are_shown_to_the_error():
    lines = likelihood(read_scores({"nyu": depth_content("nyu")}))
    (found,) = [line for line in lines if line.startswith("| EnD2 |")]
    # The standard error of three values 0.001 apart is 0.001 / sqrt(3).
    assert found.split(" | ")[1:] == [
        "2.50 ± 0.00",
        "4.50 ± 0.00",
        "4.95 ± 0.00",
        "5.00 ± 0.00",
        "0.100 ± 0.001",
        "0.100 ± 0.001",
        "0.100 ± 0.001 |",
    ]
    assert not any(line.startswith("| DD") for line in lines)


def lines_of_of_detection(content):
    return detection(read_scores({content["dataset"]: content}), published_depth())


def row_of_detection(lines, *start):
    (found,) = [line for line in lines if line.startswith(f"| {' | '.join(start)} |")]
    return found


def test_ours_stands_before_the_papers():
    content = depth_content("nyu")
    content["methods"]["EnD2"]["ood_auc"]["kitti"]["epkl"] = seeds(0.75, 3, 0.0)
    found = row_of_detection(lines_of_of_detection(content), "KITTI", "EnD2").split(" | ")
    assert found[5] == "0.750 ± 0.000 (0.938)"
    assert found[7] == "0.500 ± 0.001 |"  # the paper does not report expected entropies


def test_churches_are_not_there_and_the_table_says_so():
    lines = lines_of_of_detection(depth_content("nyu"))
    assert "no images (0.964)" in row_of_detection(lines, "LSUN church", "EnD2")
    assert "not available" in lines[0]


def test_nwpn_is_not_scored_on_what_it_learnt():
    lines = lines_of_of_detection(depth_content("nyu"))
    assert not any(line.startswith("| KITTI | NWPN |") for line in lines)
    assert row_of_detection(lines, "LSUN bedroom", "NWPN")


def test_weights_are_those_of_the_variants_and_of_the_method_itself():
    content = depth_content("nyu")
    assert gammas_of(content) == {0.0: "NWPN-g0", content["config"]["gamma"]: "NWPN"}


def test_ablation_beside_the_papers():
    contents = {name: depth_content(name) for name in ("nyu", "kitti")}
    contents["kitti"]["variants"] = {"NWPN-g0.025": contents["kitti"]["methods"]["NWPN"]}
    contents["kitti"]["methods"].pop("NWPN")
    lines = gamma_table(read_scores(contents), contents)
    first, second = [i for i, line in enumerate(lines) if line.startswith("| gamma")]
    zero = lines[first + 3].split(" | ")
    assert zero[0] == "| 0"
    assert zero[4].endswith("(0.84)")  # -1.46 in units of ten metres
    assert zero[5].endswith("(0.691)")  # by the entropy on NYU,
    assert "(" not in zero[6]
    (weight,) = [line for line in lines[second:] if line.startswith("| 0.025")]
    assert weight.split(" | ")[6].endswith("(1.000)")  # by the mutual information on KITTI


def with_weights(*values, of_seeds):
    """Make results with equal columns: one seed of each weight, and several of 0.01."""
    content = depth_content("nyu")
    weights = [0.005, 0.025, 0.05][: len(values)]
    names = {f"NWPN-g{w:g}": [v] for w, v in zip(weights, values, strict=True)}
    for name, found in (names | {"NWPN": of_seeds}).items():
        measures = ("total_entropy", "mutual_information", "total_variance")
        aucs = {"lsun_bedroom": dict.fromkeys(measures, summary(found))}
        scores = dict.fromkeys(("delta1", "rel", "rmse", "nll"), summary(found))
        content["methods" if name == "NWPN" else "variants"][name] = {**scores, "ood_auc": aucs}
    del content["variants"]["NWPN-g0"]
    return gamma_table(read_scores({"nyu": content}), {"nyu": content})


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
    assert "Not run." in gamma_table(read_scores({"nyu": content}), {"nyu": content})


def table(lines, title):
    start = lines.index(f"**{title}**")
    return [line for line in lines[start + 2 : lines.index("", start + 3)] if line[0] == "|"][2:]


def test_each_table_holds_its_own_correlation():
    content = depth_content("nyu")
    content["methods"]["EnD2"]["spearman_depth"]["epkl"] = seeds(-0.25, 3, 0.0)
    content["methods"]["EnD2"]["spearman_error"]["epkl"] = {
        "rmse": seeds(0.11, 3),
        "rel": seeds(0.22, 3),
    }
    content["methods"]["EnD2"]["agreement"] = {
        "prediction": {"within_images": seeds(0.99, 3), "over_all": seeds(0.1, 3)},
        "epkl": {"within_images": seeds(0.77, 3), "over_all": seeds(0.1, 3)},
    }
    lines = ranks(read_scores({"nyu": content}))
    depth, error, maps = (
        next(r for r in table(lines, f"NYU, {t}") if r.startswith("| EnD2 |")).split(" | ")
        for t in ("with depth", "with the error (rmse / rel)", "with the ensemble's")
    )
    assert depth[4] == "-0.25 ± 0.00"
    assert error[4] == "0.11 / 0.22"
    assert maps[4] == "0.77 ± 0.00"
    assert maps[2] == "&ndash;"
    assert maps[-1] == "0.99 ± 0.00 |"


def test_only_students_are_compared_with_the_ensemble():
    lines = ranks(read_scores({"kitti": depth_content("kitti")}))
    found = [row.split(" | ")[0] for row in table(lines, "KITTI, with the ensemble's")]
    assert found == ["| EnD2", "| EnD2-T1", "| EnD", "| MD-EnD"]


def test_gaussians_have_no_knowledge_to_correlate():
    lines = ranks(read_scores({"kitti": depth_content("kitti")}))
    single = table(lines, "KITTI, with the error (rmse / rel)")[0]
    assert single == (
        "| Single | 0.40 / 0.30 | 0.40 / 0.30 | &ndash; | &ndash; | &ndash; | 0.40 / 0.30 |"
    )
