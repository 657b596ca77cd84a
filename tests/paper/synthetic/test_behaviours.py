"""The three beliefs behind the picture: what is drawn is what they say."""

import json

import numpy as np
import pytest

from priornet_paper.synthetic.behaviours import (
    BELIEFS,
    Config,
    run,
)


@pytest.fixture(scope="module")
def results():
    return run(Config(n_samples=400))


def area(panel):
    mean, log_precision = np.array(panel["mean"]), np.array(panel["log_precision"])
    return np.trapezoid(np.trapezoid(np.array(panel["density"]), mean, axis=1), log_precision)


@pytest.mark.parametrize("name", BELIEFS)
def test_density_over_mean_and_log_precision_integrates_to_one(results, name):
    assert area(results["panels"][name]) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("name", BELIEFS)
def test_predictive_is_the_average_of_the_gaussians(results, name):
    panel = results["panels"][name]
    y, means, stds = (np.array(panel[key]) for key in ("target", "means", "stds"))
    each = np.exp(-0.5 * ((y[:, None] - means) / stds) ** 2) / (stds * np.sqrt(2 * np.pi))
    standard_error = each.std(1) / np.sqrt(len(means))
    off = np.abs(each.mean(1) - np.array(panel["predictive"]))
    assert (off <= 5 * standard_error + 1e-4).all()


def test_gaussians_agree_but_for_knowledge_uncertainty(results):
    panels = results["panels"]
    spread = {name: np.std(panel["means"]) for name, panel in panels.items()}
    ratio = {name: np.std(np.log(panel["stds"])) for name, panel in panels.items()}
    assert spread["knowledge"] > 3 * max(spread["low"], spread["data"])
    assert ratio["knowledge"] > 3 * max(ratio["low"], ratio["data"])


def test_data_uncertainty_is_wide_and_sure(results):
    low, data = results["panels"]["low"], results["panels"]["data"]
    assert data["data_std"] > 2 * low["data_std"]
    assert data["knowledge_std"] < 0.2 * data["data_std"]


def test_results_are_plain_data_and_repeat(results):
    json.dumps(results, allow_nan=False)
    assert run()["panels"] == run()["panels"]
    assert run()["panels"] != run(Config(seed=1))["panels"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"precisions": (2.0, 1.0)}, "`precisions` a positive range"),
        ({"edge": 0.0}, "`edge` must be positive"),
        ({"n_grid": 1}, "`n_grid` must be at least 2; got 1"),
    ],
)
def test_config_that_cannot_be_drawn_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Config(**change)
