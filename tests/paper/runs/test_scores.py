"""Scores of a belief, against their definitions."""

import math

import numpy as np
import pytest
import torch

from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart
from priornet.evaluation.scores import MEASURES
from priornet.metrics import prediction_rejection_ratio
from priornet_paper.runs.scores import SCORES, measures, score

N = 400


@pytest.fixture
def y():
    return np.random.default_rng(0).normal(0, 2, N)


def belief(excess=8.0, spread=2.0):
    one = torch.ones(N, 1, dtype=torch.float64)
    evidence = torch.linspace(1, 3, N, dtype=torch.float64)
    return NormalWishart.from_excess(
        torch.zeros(N, 1, dtype=torch.float64),
        one[..., None] / spread,
        evidence,
        excess * one[:, 0],
    )


def test_scores_of_a_known_gaussian(y):
    gaussian = Gaussian(
        torch.zeros(N, 1, dtype=torch.float64), torch.full((N, 1, 1), 0.5, dtype=torch.float64)
    )
    found = score(gaussian, y, gaussian)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(y**2)))
    nll = 0.5 * np.mean(y**2) / 4 + math.log(2) + 0.5 * math.log(2 * math.pi)
    assert found["nll"] == pytest.approx(nll)
    assert found["coverage90"] == pytest.approx(np.mean(np.abs(y) <= 2 * 1.6448536269514722))
    assert found["prr"]["mutual_information"] is None
    assert found["ood_auc"]["variance_of_mean"] is None
    assert found["ood_auc"]["total_variance"] == 0.5


def test_every_measure_of_a_normal_wishart(y):
    nw = belief()
    found = score(nw, y, belief(excess=2.0, spread=4.0))
    assert set(found["prr"]) == set(found["ood_auc"]) == set(MEASURES)
    assert all(isinstance(found[name], float) for name in SCORES)
    error = torch.from_numpy(y) ** 2
    variance = nw.knowledge_covariance()[..., 0, 0]
    assert found["prr"]["variance_of_mean"] == pytest.approx(
        float(prediction_rejection_ratio(error, variance))
    )
    assert found["ood_auc"]["variance_of_mean"] > 0.9
    curve = found["rejection"]
    assert set(curve) == {"fraction", "oracle", "random", "total_variance", "variance_of_mean"}
    assert all(values[0] == 1 and values[-1] == 0 for n, values in curve.items() if n != "fraction")
    assert curve["random"] == pytest.approx(1 - np.array(curve["fraction"]), abs=1e-5)


def test_measures_of_an_ensemble_add_up():
    rng = torch.Generator().manual_seed(0)
    means = torch.randn(5, N, 1, generator=rng, dtype=torch.float64)
    ensemble = GaussianEnsemble(means, torch.ones(5, N, 1, dtype=torch.float64))
    found = measures(ensemble)
    total, data, information = (
        found[name] for name in ("total_entropy", "expected_entropy", "mutual_information")
    )
    assert torch.allclose(total, data + information)
    sampled = ensemble.mutual_information_mc(4000, rng)
    assert abs(float((information - sampled).mean())) < 5e-3
