"""A results folder and notes are read whole, and what cannot be used is refused by name."""

import json

import pytest

from _depth_results import depth_content
from _results import CONFIG, content, paper_methods
from priornet.evaluation.results import summary
from priornet_paper.page.results import Notes, ResultsError, read_folder, read_notes
from priornet_paper.page.sections import Miss, listing


def test_runs_are_found_by_kind_and_data_set(folder):
    folder.put("power", paper_methods("power"), n_rows=9568)
    folder.put("boston", paper_methods("boston"), n_rows=506)
    folder.put("boston", paper_methods("boston"), "beyond")
    folder.put("boston", paper_methods("boston"), "splits")
    (folder.path / "uci" / "boston.smoke.json").write_text("{}")
    results = read_folder(folder.path)
    assert results.datasets("paper") == ["boston", "power"]
    assert results.datasets("beyond") == results.datasets("splits") == ["boston"]
    assert results.get("paper", "wine") is None
    assert results.synthetic is None


def test_scores_leave_out_tables_that_are_not_whole(folder):
    folder.put("boston", paper_methods("boston"))
    folder.put("msd", paper_methods("msd"), complete=False)
    results = read_folder(folder.path)
    assert results.scores("paper").datasets == ["boston"]
    msd = results.get("paper", "msd")
    assert msd is not None
    assert not msd.is_complete


@pytest.mark.parametrize("text", ["", "[]", '{"dataset": "bos', "{}", "null"])
def test_damaged_file_is_refused_by_name(folder, text):
    folder.put("boston", paper_methods("boston")).write_text(text)
    with pytest.raises(ResultsError, match=r"boston\.json: .*run it again"):
        read_folder(folder.path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"preset": "smoke"}, 'its preset is "smoke", its name promises "paper"'),
        ({"dataset": "wine"}, 'its dataset is "wine", its name promises "boston"'),
        ({"methods": {"ENSM": {"nll": 3.0}}}, "not in the form of results"),
    ],
)
def test_file_that_is_not_what_its_name_says_is_refused(folder, change, reason):
    path = folder.put("boston", paper_methods("boston"))
    path.write_text(json.dumps(content("boston", paper_methods("boston")) | change))
    with pytest.raises(ResultsError, match=reason):
        read_folder(folder.path)


def test_numbers_that_do_not_belong_together_are_refused(folder):
    for again, config in ((0, CONFIG), (1, {**CONFIG, "seed": 1})):
        methods = paper_methods("boston")
        folder.put("boston", methods, "beyond", again=again, config=config)
    methods["ENSM"]["nll"]["values"][0] = None
    folder.put("boston", methods, "beyond", again=1, config=config)
    with pytest.raises(ResultsError, match=r"beyond\.json: ENSM\.nll: its mean .*; run it again"):
        read_folder(folder.path)


def test_depth_whose_numbers_do_not_belong_together_is_refused(folder):
    given = depth_content("nyu")
    given["methods"]["EnD2"]["rel"]["mean"] = 0.01
    folder.put_depth("nyu", given)
    with pytest.raises(ResultsError, match=r"nyu\.json: EnD2\.rel: its mean is not that"):
        read_folder(folder.path)


def test_run_of_some_folds_is_refused(folder):
    folder.put("boston", paper_methods("boston"), config={**CONFIG, "folds": [0, 3]})
    with pytest.raises(ResultsError, match=r"boston\.json: ran only folds 0, 3"):
        read_folder(folder.path)


def test_splits_must_be_the_published_ones(folder):
    folder.put("boston", paper_methods("boston"), "splits", config={**CONFIG, "splits": "folds"})
    with pytest.raises(ResultsError, match="does not say splits"):
        read_folder(folder.path)


def test_further_draws_are_those_of_runs_that_are_there(folder):
    folder.put("boston", paper_methods("boston"), "beyond")
    for dataset in ("boston", "wine"):
        for seed in (10, 2):
            config = {**CONFIG, "seed": seed}
            folder.put(dataset, paper_methods(dataset), "beyond", again=seed, config=config)
    found = read_folder(folder.path).draws
    assert found.keys() == {"boston"}
    assert [draw.content["config"]["seed"] for draw in found["boston"]] == [2, 10]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"seed": 0}, "another run of boston has its seed, 0"),
        ({"seed": 1, "n_members": 5}, r"its settings or rows are not those of boston\."),
    ],
)
def test_draws_that_must_not_be_put_together_are_refused(folder, change, reason):
    folder.put("boston", paper_methods("boston"), "beyond")
    config = {**CONFIG, **change}
    folder.put("boston", paper_methods("boston"), "beyond", again=1, config=config)
    with pytest.raises(ResultsError, match=rf"again.1.boston\.beyond\.json: {reason}"):
        read_folder(folder.path)


def test_missing_folds_are_refused(folder):
    methods = paper_methods("boston")
    methods["EnD2"]["nll"] = summary([1.0])
    folder.put("boston", methods, "beyond")
    with pytest.raises(ResultsError, match=r"EnD2\.nll: 1 values where there should be 2"):
        read_folder(folder.path)


def test_a_draw_of_fewer_rows_is_refused(folder):
    folder.put("boston", paper_methods("boston"), "beyond", n_rows=506)
    other = {**CONFIG, "seed": 1}
    folder.put("boston", paper_methods("boston"), "beyond", again=1, config=other, n_rows=100)
    with pytest.raises(ResultsError, match="its settings or rows are not those"):
        read_folder(folder.path)


def test_depth_is_read_by_data_set(folder):
    folder.put_depth("kitti")
    (folder.path / "depth" / "nyu.smoke.json").write_text("{")  # another preset's
    assert list(read_folder(folder.path).depth) == ["kitti"]


def test_earlier_depth_configurations_come_in_the_order_that_is_written(folder):
    for name in ("nyu-a", "nyu-b", "kitti-a"):
        folder.put_depth(name.partition("-")[0], again=name)
    folder.put_order({"nyu": ["nyu-b", "nyu-a"], "kitti": ["kitti-a"]})
    found = read_folder(folder.path)
    assert {name: list(files) for name, files in found.earlier.items()} == {
        "nyu": ["nyu-b", "nyu-a"],
        "kitti": ["kitti-a"],
    }
    assert found.depth == {}


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ({}, r"order\.json: must name every file beside it once.*: nyu-a\."),
        ({"nyu": ["nyu-a", "nyu-b"]}, r"order\.json: must name"),
        ({"nyu": ["nyu-a", "nyu-a"]}, r"order\.json: must name"),
        ({"nyu": ["nyu-a"], "make3d": []}, r"order\.json: must name"),
        ({"nyu": ["nyu-a"], "kitti": 1}, r"order\.json: must name"),
        ({"kitti": ["nyu-a"]}, r'nyu-a\.json: its dataset is "nyu"'),
    ],
)
def test_an_order_that_is_not_that_of_the_files_is_refused(folder, order, message):
    folder.put_depth("nyu", again="nyu-a")
    folder.put_order(order)
    with pytest.raises(ResultsError, match=message):
        read_folder(folder.path)


def test_earlier_depth_configurations_without_an_order_are_refused(folder):
    folder.put_depth("nyu", again="nyu-a")
    with pytest.raises(ResultsError, match=r"order\.json: must name"):
        read_folder(folder.path)


def test_new_seeds_are_read_beside_the_first(folder):
    for name in ("nyu", "kitti"):
        folder.put_depth(name)
    folder.put_new_seeds("kitti")
    found = read_folder(folder.path)
    assert list(found.new_seeds) == ["kitti"]
    assert found.new_seeds["kitti"]["config"]["seeds"] == [100, 101]
    assert found.depth["kitti"]["config"]["seeds"] == [0, 1]


def test_new_seeds_of_a_set_that_was_never_run_are_left_alone(folder):
    folder.put_new_seeds("nyu")
    assert read_folder(folder.path).new_seeds == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": {"structure": 3.0}}, r"its settings are not those of nyu\.json"),
        ({"config": {"seeds": [7, 1]}}, r"it shares seeds with nyu\.json"),
        ({"digests": {"test": "other"}}, r"its test images are not those of nyu\.json"),
        ({"preset": "smoke"}, 'its preset is "smoke"'),
    ],
)
def test_new_seeds_of_another_question_are_refused(folder, changes, message):
    folder.put_depth("nyu", depth_content("nyu") | {"digests": {"test": "these"}})
    path = folder.put_new_seeds("nyu", **changes)
    with pytest.raises(ResultsError, match=message) as caught:
        read_folder(folder.path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataset": "kitti"}, 'its dataset is "kitti", its name promises "nyu"'),
        ({"preset": "smoke"}, 'its preset is "smoke", its name promises "fast"'),
        ({"config": {"n_images": 8}}, "ran with n_images = 8; run it with all images"),
        ({"config": {"holdout": 0.1}}, "ran with holdout = 0.1; run it with all images"),
    ],
)
def test_depth_of_another_set_or_of_some_images_is_refused(folder, change, message):
    folder.put_depth("nyu", depth_content("nyu") | change)
    with pytest.raises(ResultsError, match=message):
        read_folder(folder.path)


def test_depth_without_its_parts_is_refused(folder):
    content = depth_content("nyu")
    content.pop("protocol")
    folder.put_depth("nyu", content)
    with pytest.raises(ResultsError, match=r"nyu\.json: not a results file: it has no `protocol`"):
        read_folder(folder.path)


MISSES = [
    Miss("paper/boston/prr/EnD2/epkl", "boston"),
    Miss("paper/wine/prr/EnD2/epkl", "wine"),
    Miss("paper/wine/nll/ENSM", "wine, NLL"),
]


def test_miss_without_a_note_says_so():
    assert listing(MISSES[2:], Notes()) == ["- Not explained yet:", "  - wine, NLL"]


def test_pattern_explains_several_and_the_exact_key_goes_first():
    notes = Notes({"paper/*/prr/EnD2/epkl": "many.", "paper/wine/prr/EnD2/epkl": "one"})
    assert listing(MISSES, notes) == [
        *("- Many:", "  - boston"),
        *("- One:", "  - wine"),
        *("- Not explained yet:", "  - wine, NLL"),
    ]
    assert notes.unused == []


def test_note_about_nothing_is_known():
    notes = Notes({"paper/wine/nll/ENSM": "x", "paper/power/nll/ENSM": "y"})
    listing(MISSES, notes)
    assert notes.unused == ["paper/power/nll/ENSM"]


def test_notes_come_from_a_file_that_may_be_absent(tmp_path):
    path = tmp_path / "notes.json"
    assert read_notes(path).texts == {}
    path.write_text(json.dumps({"a": "b", "c": ["d", "e"]}))
    notes = read_notes(path)
    assert [notes.about(key) for key in "acx"] == [["b"], ["d", "e"], []]
    assert notes.unused == []


def test_paragraphs_about_a_miss_are_one_text():
    notes = Notes({"paper/wine/nll/ENSM": ["first.", "Second."]})
    assert listing(MISSES[2:], notes) == ["- First. Second:", "  - wine, NLL"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"a": 1}', '{"a": []}', '{"a": [1]}', '{"a": " "}', '{"a": ["b", ""]}'],
)
def test_damaged_notes_are_refused(tmp_path, text):
    path = tmp_path / "notes.json"
    path.write_text(text)
    with pytest.raises(ResultsError, match=r"notes\.json: .*(JSON|`a`)"):
        read_notes(path)
