"""Scores of the synthetic experiment, for predictors whose answers are known."""

from dataclasses import replace

import pytest
import torch

from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart
from priornet_paper.synthetic.config import PRESETS
from priornet_paper.synthetic.data import Data, true_mean, true_std
from priornet_paper.synthetic.score import against, measure, numbers, summarise, trace

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
    methods, truth = measure(CONFIG, 0, {"oracle": oracle})
    found = methods["oracle"]
    for name in ("rmse", "nll", "crps", "coverage90"):
        assert found[name] == truth[name]
    assert found["coverage90"] == pytest.approx(0.9, abs=5 * (0.09 / CONFIG.n_test) ** 0.5)
    for name in ("data_std_error", "data_std_error_median", "total_std_error"):
        assert found[name] == pytest.approx(0, abs=1e-6)
    assert found["data_std_slope"] == pytest.approx(1, abs=1e-5)
    assert found["out_of_domain"]["variance_of_mean"] == 0
    assert found["ood_auc"]["variance_of_mean"] == 0.5  # it cannot tell inside from outside


@pytest.mark.parametrize("seed", [0, 1])
def test_test_points_are_drawn_apart_from_the_training(seed):
    config = replace(CONFIG, n_runs=2, n_train=CONFIG.n_test)
    asked: list[torch.Tensor] = []

    def listener(x):
        asked.append(x)
        return oracle(x)

    measure(config, seed, {"listener": listener})
    trained = Data(config).x[config.seeds.index(seed)]
    assert not torch.isin(asked[0], trained).any()


def test_noise_that_is_not_seen_has_slope_zero():
    def flat(x):
        return Gaussian(true_mean(x), variance=torch.full_like(x, 0.04))

    found = measure(CONFIG, 0, {"flat": flat})[0]["flat"]
    assert found["data_std_slope"] == pytest.approx(0, abs=1e-5)
    assert found["data_std_error_median"] > 0.1


def test_doubt_that_grows_outwards_tells_the_outside_apart():
    found = measure(CONFIG, 0, {"doubter": doubter})[0]["doubter"]
    assert found["ood_auc"]["mutual_information"] == 1
    assert found["data_std_error"] == pytest.approx(0, abs=1e-3)
    assert found["total_std_error"] > 0.1
    # V[mu] = |x| sd(x)^2: at |x| about 20 outside and 5 inside.
    assert found["knowledge_growth"] == pytest.approx(
        found["out_of_domain_median"]["variance_of_mean"]
        / found["in_domain_median"]["variance_of_mean"]
    )


def test_ensemble_has_every_measure_though_two_have_no_closed_form():
    def pair(x):
        variance = torch.full((2, *x.shape), 0.25)
        return GaussianEnsemble(torch.stack([-x.abs(), x.abs()]), variance)

    found = measure(CONFIG, 0, {"pair": pair})[0]["pair"]
    # Two Gaussians far apart: one bit says which.
    information = found["out_of_domain"]["mutual_information"]
    assert information == pytest.approx(torch.tensor(2.0).log().item(), abs=1e-4)
    entropy = found["out_of_domain"]["expected_entropy"]
    assert found["out_of_domain"]["total_entropy"] == pytest.approx(entropy + information)


def test_student_is_held_against_its_teacher_point_by_point():
    def wide(x):
        return Gaussian(true_mean(x), variance=3 * true_std(x).square())

    found = against(CONFIG, 0, wide, oracle)
    for region in ("in_domain", "out_of_domain"):
        for part in ("data_variance", "total_variance"):
            assert found[region][part]["median"] == pytest.approx(3, rel=1e-4)
            assert found[region][part]["share_larger"] == 1


def test_summaries_keep_the_tree():
    found = summarise([{"a": 1.0, "b": {"c": 2.0}}, {"a": 3.0, "b": {"c": 2.0}}])
    assert (found["a"]["mean"], found["a"]["values"]) == (2.0, [1.0, 3.0])
    assert found["b"]["c"]["std"] == 0


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
