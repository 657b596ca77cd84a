"""What the synthetic experiment measures: metrics on fresh points, and curves for the figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from priornet import losses, metrics
from priornet.data.synthetic import sample_inputs, sample_targets, true_mean, true_std
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart
from priornet.experiments.results import summary
from priornet.uncertainty import uncertainty

if TYPE_CHECKING:
    from priornet.experiments.synthetic import Config

__all__ = ["Belief", "Predictor", "measure", "numbers", "trace"]

Belief = Gaussian | GaussianEnsemble | NormalWishart
Predictor = Callable[[Tensor], Belief]


def measure(
    config: Config, predictors: Mapping[str, Predictor]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metrics of each method on fresh points, and the accuracy of the true distribution."""
    generator = torch.Generator().manual_seed(2 * config.seed + 1)  # not that of the training
    x = sample_inputs(config.n_test, 0.0, config.train_edge, generator)
    y = sample_targets(x, generator)
    x_out = sample_inputs(config.n_test, *config.test_out_range, generator)
    perfect = Gaussian(true_mean(x), variance=true_std(x).square())
    methods = {
        name: _metrics(predict(x), predict(x_out), y, true_std(x))
        for name, predict in predictors.items()
    }
    return methods, _accuracy(perfect, y)


def _accuracy(belief: Belief, y: Tensor) -> dict[str, Any]:
    predictive = belief.predictive()
    error = (predictive.mean - y).squeeze(-1)
    return {
        "rmse": summary([error.square().mean().sqrt().item()]),
        "nll": summary([losses.gaussian_nll(predictive, y).mean().item()]),
    }


def _metrics(inside: Belief, outside: Belief, y: Tensor, noise: Tensor) -> dict[str, Any]:
    measures, measures_out = _measures(inside), _measures(outside)
    error = (inside.predictive().mean - y).squeeze(-1).square()
    record = uncertainty(inside)

    def off(variance: Tensor) -> dict[str, Any]:
        return summary([(variance.sqrt() / noise - 1).abs().mean().item()])

    return {
        **_accuracy(inside, y),
        "data_std_error": off(record.data_variance),
        "total_std_error": off(record.total_variance),
        "in_domain": {name: summary([m.mean().item()]) for name, m in measures.items()},
        "out_of_domain": {name: summary([m.mean().item()]) for name, m in measures_out.items()},
        "prr": {
            name: summary([metrics.prediction_rejection_ratio(error, m).item()])
            for name, m in measures.items()
        },
        "ood_auc": {
            name: summary([metrics.ood_auroc(m, measures_out[name]).item()])
            for name, m in measures.items()
        },
    }


def _measures(belief: Belief) -> dict[str, Tensor]:
    """Every measure that has a closed form, under its name in the paper's tables."""
    record = uncertainty(belief)
    named = {
        "total_entropy": record.total_entropy,
        "expected_entropy": record.data_entropy,
        "mutual_information": record.mutual_information,
        "epkl": record.epkl,
        "total_variance": record.total_variance.squeeze(-1),
        "variance_of_mean": record.knowledge_variance.squeeze(-1),
    }
    return {name: values for name, values in named.items() if values is not None}


def trace(config: Config, predictors: Mapping[str, Predictor]) -> dict[str, Any]:
    """Prediction and uncertainty over a grid that reaches beyond the data, for the figure."""
    x = torch.linspace(-config.curve_edge, config.curve_edge, config.n_curve).unsqueeze(-1)
    curves: dict[str, Any] = {
        "x": numbers(x),
        "truth": {"mean": numbers(true_mean(x)), "data_std": numbers(true_std(x))},
    }
    for name, predict in predictors.items():
        belief = predict(x)
        record = uncertainty(belief)
        curves[name] = {
            "mean": numbers(belief.predictive().mean),
            "total_std": numbers(record.total_variance.sqrt()),
            "data_std": numbers(record.data_variance.sqrt()),
            "knowledge_std": numbers(record.knowledge_variance.sqrt()),
        }
    return curves


def numbers(values: Tensor) -> list[float]:
    """Values for JSON, to the digits that a plot can show."""
    return [float(f"{value:.6g}") for value in values.flatten().tolist()]
