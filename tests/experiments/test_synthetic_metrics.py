"""What the synthetic experiment measures, held against predictors whose answers are known."""

from dataclasses import replace

import pytest
import torch

from priornet.data.synthetic import true_mean, true_std
from priornet.distributions import Gaussian, NormalWishart
from priornet.experiments.synthetic import PRESETS
from priornet.experiments.synthetic_metrics import measure, numbers, trace

CONFIG = replace(PRESETS["smoke"], n_test=500, n_curve=5)


def oracle(x):
    return Gaussian(true_mean(x), variance=true_std(x).square())


def doubter(x):
    """The truth, with knowledge variance that grows with the distance from the origin."""
    variance = true_std(x).square()
    precision = (1 / variance.sqrt()).unsqueeze(-1)
    belief = 1 / x.abs().squeeze(-1).clamp(min=1e-3)
    return NormalWishart.from_excess(true_mean(x), precision, belief, torch.full_like(belief, 1e6))


def test_the_truth_is_measured_as_the_truth():
    methods, truth = measure(CONFIG, {"oracle": oracle})
    found = methods["oracle"]
    assert (found["rmse"], found["nll"]) == (truth["rmse"], truth["nll"])
    assert found["data_std_error"]["mean"] == pytest.approx(0, abs=1e-6)
    assert found["out_of_domain"]["variance_of_mean"]["mean"] == 0
    assert found["ood_auc"]["variance_of_mean"]["mean"] == 0.5  # it cannot tell inside from outside


def test_doubt_that_grows_outwards_tells_the_outside_apart():
    methods, _ = measure(CONFIG, {"doubter": doubter})
    found = methods["doubter"]
    assert found["ood_auc"]["mutual_information"]["mean"] == 1
    assert found["data_std_error"]["mean"] == pytest.approx(0, abs=1e-3)
    assert found["total_std_error"]["mean"] > 0.1


def test_curves_show_mean_and_both_parts():
    curves = trace(CONFIG, {"doubter": doubter})
    x = torch.tensor(curves["x"])
    noise = true_std(x).square()
    assert curves["doubter"]["mean"] == pytest.approx(curves["truth"]["mean"])
    assert curves["doubter"]["data_std"] == pytest.approx(noise.sqrt().tolist(), rel=1e-4)
    knowledge = (x.abs().clamp(min=1e-3) * noise).sqrt()
    assert curves["doubter"]["knowledge_std"] == pytest.approx(knowledge.tolist(), rel=1e-4)


def test_numbers_keep_six_digits():
    assert numbers(torch.tensor([[1 / 3], [123456789.0]], dtype=torch.float64)) == [
        0.333333,
        123457000.0,
    ]
