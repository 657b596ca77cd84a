"""Accuracy, likelihood and calibration beside the paper's."""

from _depth_results import depth_content, seeds
from priornet.evaluation.results import summary
from priornet_paper.page.depth.accuracy import accuracy, likelihood, methods_of
from priornet_paper.page.depth.numbers import published_depth, read_depth


def lines_of(*contents):
    ours = read_depth({content["dataset"]: content for content in contents})
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
    assert "DER" in methods_of(read_depth({"nyu": content}), "nyu", has_belief=True)


def test_variants_come_last_and_the_ablation_not_at_all():
    ours = read_depth({"nyu": depth_content("nyu")})
    assert methods_of(ours, "nyu")[0] == "DD"
    assert methods_of(ours, "nyu", has_belief=True)[0] == "Single"
    assert methods_of(ours, "nyu")[-1] == "EnD2-T1"
    assert "NWPN-g0" not in methods_of(ours, "nyu")


def test_quantiles_and_areas_are_shown_to_the_error():
    lines = likelihood(read_depth({"nyu": depth_content("nyu")}))
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
