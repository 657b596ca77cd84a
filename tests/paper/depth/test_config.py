"""Settings: which methods one concerns, and which values are none."""

from dataclasses import replace
from pathlib import Path

import pytest

from priornet.evaluation.results import read_results
from priornet_paper.depth.config import (
    DATASETS,
    METHODS,
    PRESETS,
    Config,
    config_for,
    variants,
    with_changes,
)


@pytest.mark.parametrize(
    ("change", "touched"),
    [
        ({"temperature": 5.0}, {"EnD2"}),
        ({"gamma": 0.5}, {"NWPN"}),
        ({"coefficient": 0.5}, {"DER"}),
        ({"early_split": True}, {"MD-EnD"}),
        ({"strange": 0.5}, {"EnD2", "EnD", "MD-EnD"}),
        ({"student_start": "imagenet"}, {"EnD2", "EnD", "MD-EnD"}),
        ({"n_members": 3}, {"ENSM", "EnD2", "EnD", "MD-EnD"}),
        ({"seeds": (9,), "gammas": (), "n_test": 3}, set()),
        ({"learning_rate": 0.5}, set(METHODS)),
    ],
)
def test_a_setting_touches_the_methods_that_look_at_it(change, touched):
    before, after = Config(), replace(Config(), **change)
    changed = {m for m in METHODS if before.settings_of(m) != after.settings_of(m)}
    assert changed == touched


def test_files_of_before_a_setting_were_made_without_it():
    old = Config().to_json()
    del old["structure"], old["strange"]
    without = replace(Config(), structure=0.0, strange=0.0)
    assert Config.from_json(old | {"student_structure": 0.0}) == without
    with pytest.raises(ValueError, match="unknown settings: student_structure"):
        Config.from_json(old | {"student_structure": 30.0})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "`epochs` must be at least 1; got 0"),
        ({"epochs": (1, 2)}, r"`epochs` takes one value; got \[1, 2\]"),
        ({"n_members": 1}, "`n_members` must be at least 2, for they are to disagree; got 1"),
        ({"dataset": "lsun"}, 'unknown dataset "lsun"; choose one of: nyu, kitti'),
        ({"encoder": "vgg"}, 'unknown encoder "vgg"; choose one of: efficientnet_lite0, densenet'),
        ({"schedule": "linear"}, 'unknown schedule "linear"; choose one of: cosine, constant'),
        ({"beta": 0.0}, "`beta` must be positive; got 0"),
        ({"flip": 1.5}, r"`flip` must lie in \[0, 1\]; got 1.5"),
        ({"seeds": ()}, "at least one seed"),
        ({"seeds": ("a",)}, "`seeds` must be finite and at least 0; got a"),
        ({"height": 33}, "`height` must be even"),
        ({"width": 20}, "`width` must be even and at least 22, .* 11 x 11 of them; got 20"),
        ({"student_epochs": 0}, "`student_epochs` must be at least 1, or null"),
        ({"holdout": 1.0}, "`holdout` must be below 1; got 1"),
        ({"zoom": 0.5}, "`zoom` must be finite and at least 1; got 0.5"),
        ({"encoder_rate": -1.0}, "`encoder_rate` must be finite and at least 0"),
        ({"gammas": (0.1, -0.1)}, "`gammas` must be finite and at least 0; got -0.1"),
        ({"gamma": float("nan")}, "`gamma` must be finite"),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(Config(), **change)


RESULTS = Path(__file__).parents[3] / "results" / "depth"


def test_presets_follow_the_data_set():
    assert config_for("nyu", "fast") == Config()
    kitti = config_for("kitti", "fast")
    assert (kitti.dataset, kitti.height, kitti.width) == ("kitti", 192, 640)
    assert kitti.epochs > Config().epochs  # of fewer images
    assert kitti.structure == Config().structure
    assert kitti.epochs_of("EnD2") / kitti.epochs == Config().epochs_of("EnD2") / Config().epochs
    assert (kitti.student_evenness, len(kitti.seeds)) == (0.5, 4)
    assert config_for("kitti", "paper").seeds == (0, 1)
    assert config_for("nyu", "paper").structure == 0  # which is ours
    for preset in PRESETS:
        assert config_for("kitti", preset).height % 2 == 0


@pytest.mark.parametrize("dataset", DATASETS)
def test_preset_is_what_the_results_were_made_with(dataset):
    found = read_results(RESULTS / f"{dataset}.json")
    assert Config.from_json(found["config"]) == config_for(dataset, "fast")


def test_unknown_preset():
    with pytest.raises(ValueError, match='unknown preset "quick"; choose one of: fast, paper'):
        config_for("nyu", "quick")


def test_settings_from_a_command_line():
    given = ["epochs=3", "learning_rate=1", "norm=batch", "gammas=[0, 0.1]", "student_epochs=9"]
    config = with_changes(Config(), given, "4,5")
    assert config.epochs == 3
    assert config.learning_rate == 1.0
    assert isinstance(config.learning_rate, float)
    assert config.norm == "batch"
    assert config.gammas == (0, 0.1)
    assert config.student_epochs == 9
    assert config.seeds == (4, 5)


@pytest.mark.parametrize(
    ("given", "seeds", "message"),
    [
        (["epoch=3"], "", '"epoch=3" is not NAME=VALUE with one of these names: average, batch'),
        (["epochs"], "", '"epochs" is not NAME=VALUE'),
        (["epochs=many"], "", '`epochs` cannot be "many": it is 50 in the preset'),
        (["epochs=1.5"], "", '`epochs` cannot be "1.5"'),
        (["proxy=1"], "", '`proxy` cannot be "1": it is False in the preset'),
        ([], "0;1", 'seeds must be numbers such as 0,1; got "0;1"'),
    ],
)
def test_settings_that_are_none(given, seeds, message):
    with pytest.raises(ValueError, match=message):
        with_changes(Config(), given, seeds)


def test_configurations_of_variants():
    names = ["NWPN", "EnD2-T10", "EnD2-proxy"]
    found = {r.name: r for r in variants(Config(), names, ablation=True)}
    assert list(found) == [
        "EnD2-T10",
        "EnD2-proxy",
        "NWPN",
        "NWPN-g0",
        "NWPN-g0.005",
        "NWPN-g0.025",
        "NWPN-g0.05",
    ]
    assert found["EnD2-T10"].config.temperature == 10
    assert found["EnD2-proxy"].config.proxy
    assert found["NWPN-g0"].config.gamma == 0
    assert found["NWPN-g0"].config.seeds == (0,)  # an ablation need not be run with all
    assert found["NWPN"].config.seeds == (0, 1, 2)
    assert [r.name for r in found.values() if r.is_default] == ["NWPN"]


@pytest.mark.parametrize("name", ["end2", "NWPN-gmany", "NWPN-g-1", "Single-g1"])
def test_unknown_methods_are_refused(name):
    with pytest.raises(ValueError, match=f'unknown method "{name}"; choose from: DD, Single'):
        variants(Config(), [name])
