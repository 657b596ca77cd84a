"""Facts about the tables."""

import pytest

from priornet_paper.uci.data import DATASETS, UciError
from priornet_paper.uci.data.registry import dataset

# Rows and features as in the paper's table of data sets and on the pages of the archive.
SIZES = {
    "boston": (506, 13),
    "concrete": (1030, 8),
    "energy": (768, 8),
    "power": (9568, 4),
    "wine": (1599, 11),
    "protein": (45730, 9),
    "msd": (515345, 90),
    "naval": (11934, 16),
    "ct_slices": (53500, 384),
}


def test_sizes_are_the_published_ones():
    assert {name: (d.n_rows, d.n_features) for name, d in DATASETS.items()} == SIZES


@pytest.mark.parametrize("name", DATASETS)
def test_columns_are_features_target_and_what_is_dropped(name):
    known = DATASETS[name]
    assert known.name == name
    assert len(set(known.columns)) == len(known.columns)
    assert {*known.feature_names, known.target, *known.dropped} == set(known.columns)
    assert not {known.target, *known.dropped} & set(known.feature_names)
    assert all(url.startswith("http") for url in known.urls)


def test_second_targets_and_patients_are_no_features():
    assert DATASETS["energy"].dropped == ("Y2_cooling_load",)
    assert DATASETS["naval"].dropped == ("decay_turbine",)
    assert DATASETS["ct_slices"].dropped == ("patientId",)


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(UciError, match=r'"wine-red"; choose one of: boston, concrete, .*ct_slices'):
        dataset("wine-red")
