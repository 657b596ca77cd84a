"""What differs from the paper comes from the settings in the results."""

from _depth_results import depth_content
from priornet_paper.page.depth.numbers import published_depth, read_depth
from priornet_paper.page.depth.setting import setting, setting_in_short


def text(*contents):
    return "\n".join(setting({content["dataset"]: content for content in contents}))


def row(lines, what):
    (found,) = [line for line in lines.split("\n") if line.startswith(f"| {what}")]
    return found


def test_every_setting_is_read_and_not_assumed():
    content = depth_content("nyu")
    before = text(content)
    content["n_train"] = 123
    content["config"] |= {
        "encoder": "densenet169",
        "epochs": 7,
        "student_epochs": 9,
        "student_start": "imagenet",
        "weight_decay": 0.0,
        "schedule": "constant",
        "warm_up": 0.0,
        "average": 0.0,
        "dropout": 0.0,
        "norm": "batch",
        "zoom": 1.0,
        "jitter": 0.0,
        "temperature": 3.0,
        "strange": 0.25,
        "structure": 3.0,
        "student_evenness": 0.5,
        "gamma": 0.25,
        "coefficient": 0.5,
        "precision": "float32",
    }
    after = text(content)
    assert "| 123 / 654 |" in row(after, "images for training")
    assert row(after, "encoder").endswith("| DenseNet-169 |")
    assert "7 epochs of batches of 16 (56 steps)" in row(after, "length")
    assert "from ImageNet weights, 9 epochs" in row(after, "students")
    assert (
        "25 % of images strange, pixels weighted by the teachers' variance to the power 0.5 |"
        in (row(after, "students"))
    )
    assert "likelihood, and 3 times DenseDepth's loss" in row(after, "Single, members")
    assert "| Adam, rate" in row(after, "optimiser")
    assert row(after, "averaged weights").endswith("| none | none |")
    assert row(after, "dropout").endswith("| none | none |")
    assert row(after, "augmentation").count("mirrored (0.5), channels swapped (0.25) |") == 2
    assert "T = 3 annealed" in row(after, "EnD2")
    assert row(before, "EnD2").count("T = 10 annealed") == 2  # the paper's, and ours
    assert "gamma = 0.25" in row(after, "NWPN")
    assert "regulariser 0.5" in row(after, "DER")
    changed = [a != b for a, b in zip(after.split("\n"), before.split("\n"), strict=True)]
    assert sum(changed) == 14


def test_a_column_for_each_set_that_was_run():
    both = text(depth_content("nyu"), depth_content("kitti"))
    assert "|  | the paper | NYU here | KITTI here |" in both
    assert "targets below 80 m" in both
    assert "KITTI here" not in text(depth_content("nyu"))


def test_methods_with_fewer_seeds_are_named():
    content = depth_content("nyu")
    assert row(text(content), "seeds").endswith(
        f"| {len(content['config']['seeds'])}, ensembles of 5 |"
    )
    content["methods"]["DER"]["rel"]["values"] = [0.2]
    assert row(text(content), "seeds").endswith("ensembles of 5; 1 for DER |")


def test_members_that_learn_the_likelihood_alone_are_as_in_the_paper():
    for change in ({"structure": 0.0}, {}):
        content = depth_content("nyu")
        del content["config"]["structure"]  # as in older files
        content["config"] |= change
        assert row(text(content), "Single, members").endswith("| likelihood | likelihood |")
        assert "DenseDepth's loss" not in row(text(content), "NWPN") + row(text(content), "DER")


def test_methods_without_densedepths_loss_are_named_where_others_have_it():
    table = text(depth_content("nyu"))
    for method in ("NWPN", "DER"):
        assert row(table, method).endswith(", without DenseDepth's loss of the mean |")


def test_maps_are_enlarged_otherwise_than_densedepth_does():
    found = row(text(depth_content("nyu")), "up-sampling in the decoder")
    assert found.endswith("| bilinear, corners aligned | bilinear, between pixel centres |")


def test_a_student_that_is_not_annealed_is_not_called_so():
    content = depth_content("nyu")
    content["config"]["temperature"] = 1.0
    assert row(text(content), "EnD2").count("annealed") == 1  # the paper's


def test_distance_from_the_paper_stands_beside_the_goals():
    content = depth_content("nyu")
    content["config"] |= {"strange": 0.25, "height": 96, "width": 128}
    scores = read_depth({"nyu": content})
    short = setting_in_short({"nyu": content}, scores, published_depth())
    assert f"NYU is {content['n_train']:,} training images at 96 x 128" in short
    own = scores.mean("nyu", "EnD2", "delta1")
    assert f"(EnD2's δ1: {own:.3f} here, 0.855 in the paper)" in short
    assert short.endswith("students see 25 % made-up out-of-domain images, the paper's none.")
    del content["config"]["strange"]  # as in older files
    assert "made-up" not in setting_in_short({"nyu": content}, scores, published_depth())
    assert setting_in_short({}, read_depth({}), published_depth()) == ""
