"""Presets: they differ by data set, and unknown ones are refused."""

import pytest

from priornet.experiments.depth.config import Config
from priornet.experiments.depth.presets import PRESETS, config_for


def test_presets_follow_the_data_set():
    assert config_for("nyu", "fast") == Config()
    kitti = config_for("kitti", "fast")
    assert (kitti.dataset, kitti.height, kitti.width) == ("kitti", 192, 640)
    assert kitti.epochs > Config().epochs  # of fewer images
    assert (kitti.structure, kitti.student_epochs, len(kitti.seeds)) == (0.0, 75, 4)
    assert kitti.student_evenness == 0.5
    assert config_for("kitti", "paper").seeds == (0, 1)
    assert config_for("nyu", "paper").structure == 0  # which is ours
    for preset in PRESETS:
        assert config_for("kitti", preset).height % 2 == 0


def test_unknown_preset():
    with pytest.raises(ValueError, match='unknown preset "quick"; choose one of: fast, paper'):
        config_for("nyu", "quick")
