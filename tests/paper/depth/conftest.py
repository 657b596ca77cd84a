"""Three small sets of photographs, and settings with which they are learnt in a moment."""

from dataclasses import replace

import numpy as np
import pytest

from _depth_files import write_pairs, write_split
from priornet_paper.depth.config import PRESETS
from priornet_paper.depth.data import find_sources
from priornet_paper.depth.tasks import Plan


@pytest.fixture(scope="session")
def photographs(tmp_path_factory):
    """A folder with sets that look like NYU, KITTI and LSUN."""
    folder = tmp_path_factory.mktemp("sets")
    names = [f"{i:04d}" for i in range(10)]
    write_pairs(folder / "nyu_small", names, shape=(40, 72))
    parts = {name: "test" if i >= 6 else "train" for i, name in enumerate(names)}
    write_split(folder / "nyu_small", parts)
    roads = [f"um_{i:06d}" for i in (0, 1, 2, 3, 4, 93, 94)]  # the last two are for tests
    write_pairs(folder / "kitti_small", roads, shape=(36, 90), dtype=np.uint16)
    write_pairs(folder / "lsun_small", ["a", "b", "c"], shape=(30, 40), with_depth=False)
    return folder


@pytest.fixture
def plan(photographs, tmp_path):
    config = replace(
        PRESETS["smoke"],
        n_decoder=16,
        height=32,
        width=64,
        epochs=1,
        n_images=None,
        n_test=None,
        norm="batch",  # there are no weights whose statistics could be kept
    )
    return Plan(config, find_sources(photographs, "nyu"), tmp_path / "parts", information_draws=1)


@pytest.fixture(autouse=True)
def _fabric_alone(fabric_alone):
    pass
