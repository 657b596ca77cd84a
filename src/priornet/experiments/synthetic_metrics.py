"""What the synthetic experiment measures: metrics on fresh points, and curves for the figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from priornet import metrics
from priornet.data.synthetic import sample_inputs, sample_targets, true_mean, true_std
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart
from priornet.experiments.results import summary
from priornet.report.information import ensemble_information
from priornet.uncertainty import uncertainty

if TYPE_CHECKING:
    from priornet.experiments.synthetic import Config

__all__ = ["Belief", "Predictor", "against", "measure", "numbers", "summarise", "trace"]

Belief = Gaussian | GaussianEnsemble | NormalWishart
Predictor = Callable[[Tensor], Belief]


class _Points(NamedTuple):
    """Fresh points: inside with targets, and outside."""

    x: Tensor
    y: Tensor
    x_out: Tensor


def _fresh_points(config: Config, seed: int) -> _Points:
    generator = torch.Generator().manual_seed(2 * seed + 1)  # not that of the training
    x = sample_inputs(config.n_test, 0.0, config.train_edge, generator)
    y = sample_targets(x, generator)
    return _Points(x, y, sample_inputs(config.n_test, *config.test_out_range, generator))


def summarise(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One tree of summaries from equal trees of numbers, a tree per repetition."""
    return {
        name: summarise([run[name] for run in runs])
        if isinstance(value, Mapping)
        else summary([run[name] for run in runs])
        for name, value in runs[0].items()
    }


@torch.no_grad()
def measure(
    config: Config, seed: int, predictors: Mapping[str, Predictor]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metrics of each method on fresh points of one repetition, and those of the truth."""
    points = _fresh_points(config, seed)
    x, y, x_out = points
    perfect = Gaussian(true_mean(x), variance=true_std(x).square())
    methods = {
        name: _metrics(predict(x), predict(x_out), y, true_std(x))
        for name, predict in predictors.items()
    }
    return methods, _accuracy(perfect, y)


def _accuracy(belief: Belief, y: Tensor) -> dict[str, float]:
    predictive, target = belief.predictive().univariate(), y.squeeze(-1)
    place = predictive.cdf(target)
    return {
        "rmse": metrics.rmse(predictive.mean, target).item(),
        "nll": metrics.nll(predictive, target).mean().item(),
        "crps": metrics.crps(predictive, target).mean().item(),
        "coverage90": ((place >= 0.05) & (place <= 0.95)).float().mean().item(),
    }


def _metrics(inside: Belief, outside: Belief, y: Tensor, noise: Tensor) -> dict[str, Any]:
    measures, measures_out = _measures(inside), _measures(outside)
    error = (inside.predictive().mean - y).squeeze(-1).square()
    record = uncertainty(inside)
    data_std, total_std = record.data_variance.sqrt(), record.total_variance.sqrt()
    knowledge, knowledge_out = (m["variance_of_mean"].median() for m in (measures, measures_out))
    return {
        **_accuracy(inside, y),
        "data_std_error": (data_std / noise - 1).abs().mean().item(),
        "data_std_error_median": (data_std / noise - 1).abs().median().item(),
        "data_std_slope": _slope(noise.log(), data_std.log()),
        "total_std_error": (total_std / noise - 1).abs().mean().item(),
        "knowledge_growth": (knowledge_out / knowledge).item(),
        "in_domain": {name: m.mean().item() for name, m in measures.items()},
        "out_of_domain": {name: m.mean().item() for name, m in measures_out.items()},
        "in_domain_median": {name: m.median().item() for name, m in measures.items()},
        "out_of_domain_median": {name: m.median().item() for name, m in measures_out.items()},
        "prr": {
            name: metrics.prediction_rejection_ratio(error, m).item()
            for name, m in measures.items()
        },
        "ood_auc": {
            name: metrics.ood_auroc(m, measures_out[name]).item() for name, m in measures.items()
        },
    }


def _slope(x: Tensor, y: Tensor) -> float:
    """Slope of the least-squares line of y over x."""
    x, y = x - x.mean(), y - y.mean()
    return ((x * y).sum() / (x * x).sum()).item()


def _measures(belief: Belief) -> dict[str, Tensor]:
    """Every measure, under its name in the paper's tables; an ensemble's information by quadrature.

    A single Gaussian is sure of itself: its knowledge measures are zero.
    """
    record = uncertainty(belief)
    total, information = record.total_entropy, record.mutual_information
    if isinstance(belief, GaussianEnsemble):
        information = torch.from_numpy(ensemble_information(belief)).to(record.data_entropy)
        total = record.data_entropy + information
    assert total is not None
    assert information is not None
    return {
        "total_entropy": total,
        "expected_entropy": record.data_entropy,
        "mutual_information": information,
        "epkl": record.epkl,
        "total_variance": record.total_variance.squeeze(-1),
        "variance_of_mean": record.knowledge_variance.squeeze(-1),
    }


@torch.no_grad()
def against(config: Config, seed: int, student: Predictor, teacher: Predictor) -> dict[str, Any]:
    """Variances of a student over those of its teacher, inside and outside.

    Returns:
        For each region and part the median over x of the ratio, and the share of x at which it
        exceeds 1.
    """
    points = _fresh_points(config, seed)
    found: dict[str, Any] = {}
    for region, x in (("in_domain", points.x), ("out_of_domain", points.x_out)):
        ours, theirs = uncertainty(student(x)), uncertainty(teacher(x))
        ratios = {
            part: getattr(ours, part) / getattr(theirs, part)
            for part in ("data_variance", "knowledge_variance", "total_variance")
        }
        found[region] = {
            part: {
                "median": ratio.median().item(),
                "share_larger": (ratio > 1).float().mean().item(),
            }
            for part, ratio in ratios.items()
        }
    return found


@torch.no_grad()
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
