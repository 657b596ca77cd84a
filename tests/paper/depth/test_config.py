"""Settings: which methods one concerns, and which values are none."""

from dataclasses import replace

import pytest

from priornet_paper.depth.config import METHODS, Config


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
