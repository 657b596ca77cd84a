"""Settings, time and origin of the runs, and what differs from the paper."""

from _depth_results import depth_content
from _results import CONFIG, paper_methods
from priornet_paper.page.making import making, setting, setting_in_short
from priornet_paper.page.numbers import SETS, published_depth, read_scores
from priornet_paper.page.results import Notes, read_folder
from priornet_paper.page.sections import FAILS, HOLDS, UNFINISHED


def section(folder):
    return making(read_folder(folder.path), Notes())


def put_all(folder, **more):
    for name in SETS:
        folder.put(name, paper_methods(name), **more)
    (goal,) = section(folder).goals
    return goal


def test_time_is_the_sum_over_the_five_sets(folder):
    goal = put_all(folder, seconds=899.0)
    assert (goal.found, goal.state) == ("74.9 min, 5 of 5 sets (cpu)", HOLDS)


def test_too_long_is_a_miss(folder):
    assert put_all(folder, seconds=901.0).state == FAILS


def test_other_device_says_nothing_about_two_cores(folder):
    assert put_all(folder, device="NVIDIA H200").state == "measured on another device"


def test_some_sets_leave_the_time_open(folder):
    folder.put("boston", paper_methods("boston"))
    (goal,) = section(folder).goals
    assert (goal.found, goal.state) == ("1.0 min, 1 of 5 sets (cpu)", UNFINISHED)


def test_setting_is_named_once_with_the_sets_that_differ(folder):
    for name in SETS:
        folder.put(name, paper_methods(name), config=CONFIG | {"hidden": 50, "folds": None})
    folder.put("msd", paper_methods("msd"), config=CONFIG | {"hidden": 100, "folds": None})
    text = "\n".join(section(folder).lines)
    assert "| `hidden` | 50; 100 (msd) |" in text
    assert "| `folds` | none |" in text
    assert "| `grids.Single` | learning_rate 0.001 / 0.01 |" in text


def test_run_that_was_changed_or_cut_short_says_so(folder):
    folder.put("msd", paper_methods("msd"), complete=False, n_rows=1176, dirty=True)
    text = "\n".join(section(folder).lines)
    assert (
        "| paper | msd | first 1,176 | 60 | cpu | priornet 0.1, torch 2.8 | unknown | 0123456, "
        "changed |" in text
    )


def test_commits_of_several_parts_are_all_named(folder):
    folder.put("boston", paper_methods("boston"), commit="aaaaaaaaaa, bbbbbbbbbb")
    assert "aaaaaaa, bbbbbbb |" in "\n".join(section(folder).lines)


def test_methods_of_different_commits_stand_beside_their_own(folder):
    methods = paper_methods("boston")
    methods["NWPN"] |= {"commit": "cccccccccc", "dirty": True}
    folder.put("boston", methods, commit="aaaaaaaaaa")
    (line,) = [text for text in section(folder).lines if text.startswith("| paper | boston |")]
    assert line.endswith("| aaaaaaa: Single, ENSM, EnD2<br>ccccccc, changed: NWPN |")


def test_methods_of_different_processors_stand_beside_their_own(folder):
    methods = paper_methods("boston")
    methods["Single"]["processor"] = "X (family 1 model 2)"
    folder.put("boston", methods, commit="aaaaaaaaaa")
    (line,) = [text for text in section(folder).lines if text.startswith("| paper | boston |")]
    assert "| X (family 1 model 2): Single<br>unknown: ENSM, EnD2, NWPN | aaaaaaa |" in line


def test_what_is_to_be_known_of_the_runs_is_printed_above_them(folder):
    notes = Notes({"making": ["one", "two"]})
    assert "- one" not in making(read_folder(folder.path), notes).lines
    folder.put("boston", paper_methods("boston"))
    assert {"- one", "- two"} <= set(making(read_folder(folder.path), notes).lines)


def test_further_draws_are_listed_with_their_seed(folder):
    folder.put("boston", paper_methods("boston"), "beyond")
    config = {**CONFIG, "seed": 7}
    folder.put("boston", paper_methods("boston"), "beyond", again=7, config=config)
    assert any(line.startswith("| beyond, seed 7 | boston |") for line in section(folder).lines)


def test_nothing_run_is_said(folder):
    assert "Nothing has been run yet." in section(folder).lines


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
        "25 % of them out-of-domain, pixels weighted by the teachers' variance to the power 0.5 |"
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
    scores = read_scores({"nyu": content})
    short = setting_in_short({"nyu": content}, scores, published_depth())
    assert f"NYU is {content['n_train']:,} training images at 96 x 128" in short
    own = scores.mean("nyu", "EnD2", "delta1")
    assert f"(EnD2's δ1: {own:.3f} here, 0.855 in the paper)" in short
    assert short.endswith("students see 25 % made-up out-of-domain images, the paper's none.")
    del content["config"]["strange"]  # as in older files
    assert "made-up" not in setting_in_short({"nyu": content}, scores, published_depth())
    assert setting_in_short({}, read_scores({}), published_depth()) == ""
