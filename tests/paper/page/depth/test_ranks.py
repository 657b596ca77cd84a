"""Correlations of uncertainty with depth, errors and the ensemble's maps."""

from _depth_results import depth_content, seeds
from priornet_paper.page.depth.numbers import read_depth
from priornet_paper.page.depth.ranks import ranks


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
    lines = ranks(read_depth({"nyu": content}))
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
    lines = ranks(read_depth({"kitti": depth_content("kitti")}))
    found = [row.split(" | ")[0] for row in table(lines, "KITTI, with the ensemble's")]
    assert found == ["| EnD2", "| EnD2-T1", "| EnD", "| MD-EnD"]


def test_gaussians_have_no_knowledge_to_correlate():
    lines = ranks(read_depth({"kitti": depth_content("kitti")}))
    single = table(lines, "KITTI, with the error (rmse / rel)")[0]
    assert single == (
        "| Single | 0.40 / 0.30 | 0.40 / 0.30 | &ndash; | &ndash; | &ndash; | 0.40 / 0.30 |"
    )
