"""The presets are what they say: the paper's values, and one budget for all methods."""

import json
from dataclasses import replace

import pytest

from priornet_paper.uci.config import (
    METHODS,
    PRESETS,
    Defaults,
    Paper,
    config_for,
    default_methods,
)


def test_the_papers_values():
    config = config_for("boston", "paper")
    assert isinstance(config, Paper)
    assert (config.hidden, config.epochs, config.batch_size) == (50, 100, 32)
    assert (config.n_members, config.n_folds, config.folds) == (10, 10, None)
    assert (config.ood_spread, config.prior_match, config.tempering) == (3.0, "precision", "paper")
    assert config.tied_evidence
    assert config.schedule == "cosine"  # the paper does not say


@pytest.mark.parametrize("dataset", ["msd", "protein"])
def test_larger_sets_have_larger_networks(dataset):
    assert config_for(dataset, "paper") == replace(Paper(), hidden=100)


def test_every_method_has_the_same_budget():
    budgets = {method: len(Paper().points(method)) for method in METHODS}
    assert set(budgets.values()) == {32}


def test_the_grid_names_what_the_paper_searches():
    config = Paper()
    searched = {name for method in METHODS for name in config.points(method)[0]}
    assert searched == {
        "learning_rate",
        "weight_decay",
        "prior_belief",
        "beta",
        "gamma",
        "temperature",
        "noise",
        "coefficient",
    }
    assert all(len({tuple(p.items()) for p in config.points(m)}) == 32 for m in METHODS)


@pytest.mark.parametrize("preset", PRESETS)
def test_configs_are_plain_data(preset):
    text = json.dumps(PRESETS[preset].to_json())
    assert json.loads(text)["seed"] == 0


def test_our_configuration_is_the_estimators_defaults():
    from priornet import DistilledRegressor

    given = Defaults().to_json()["estimators"]["EnD2"]
    own = DistilledRegressor().get_params()
    assert given.pop("class") == "DistilledRegressor"
    assert given.pop("calibration_fraction") == 0.0  # the only change: no conformal rows
    plain = {name: list(v) if isinstance(v, tuple) else v for name, v in own.items()}
    assert {name: plain[name] for name in given} == given


def test_methods_that_are_run_unless_named():
    assert default_methods(config_for("boston", "paper")) == METHODS
    assert default_methods(Defaults()) == ("Single", "ENSM", "EnD2", "NWPN", "DER")
    assert default_methods(Defaults(splits="canonical")) == ("ENSM", "EnD2")
