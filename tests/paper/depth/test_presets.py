"""Presets: they differ by data set, and unknown ones are refused."""

from pathlib import Path

import pytest

from priornet.evaluation.results import read_results
from priornet_paper.depth.config import DATASETS, Config
from priornet_paper.depth.presets import PRESETS, config_for

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
