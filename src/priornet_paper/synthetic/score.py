"""Scores of the synthetic experiment: metrics on fresh points, and curves for the figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from priornet.distributions import Gaussian
from priornet.evaluation import summary
from priornet.uncertainty import uncertainty
from priornet_paper.runs.scores import accuracy, measures, ranking
from priornet_paper.synthetic.config import Config
from priornet_paper.synthetic.data import (
    Belief,
    Predictor,
    sample_inputs,
    sample_targets,
    true_mean,
    true_std,
)


def _fresh_points(config: Config, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw inputs and targets inside, and inputs outside."""
    generator = torch.Generator().manual_seed(2 * seed + 1)  # not that of the training
    x = sample_inputs(config.n_test, 0.0, config.train_edge, generator)
    y = sample_targets(x, generator)
    return x, y, sample_inputs(config.n_test, *config.test_out_range, generator)


def summarise(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Make one tree of summaries from equal trees of numbers, a tree per repetition."""
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
    """Compute metrics of each method on fresh points of one repetition, and those of the truth."""
    x, y, x_out = _fresh_points(config, seed)
    perfect = Gaussian(true_mean(x), variance=true_std(x).square())
    methods = {
        name: _metrics(predict(x), predict(x_out), y, true_std(x))
        for name, predict in predictors.items()
    }
    return methods, accuracy(perfect, y.squeeze(-1))


def _metrics(inside: Belief, outside: Belief, y: Tensor, noise: Tensor) -> dict[str, Any]:
    known, known_out = measures(inside), measures(outside)
    error = (inside.predictive().mean - y).squeeze(-1).square()
    record = uncertainty(inside)
    data_std, total_std = record.data_variance.sqrt(), record.total_variance.sqrt()
    knowledge, knowledge_out = (m["variance_of_mean"].median() for m in (known, known_out))
    return {
        **accuracy(inside, y.squeeze(-1)),
        "data_std_error": (data_std / noise - 1).abs().mean().item(),
        "data_std_error_median": (data_std / noise - 1).abs().median().item(),
        "data_std_slope": _slope(noise.log(), data_std.log()),
        "total_std_error": (total_std / noise - 1).abs().mean().item(),
        "knowledge_growth": (knowledge_out / knowledge).item(),
        "in_domain": {name: m.mean().item() for name, m in known.items()},
        "out_of_domain": {name: m.mean().item() for name, m in known_out.items()},
        "in_domain_median": {name: m.median().item() for name, m in known.items()},
        "out_of_domain_median": {name: m.median().item() for name, m in known_out.items()},
        **ranking(error, known, known_out),
    }


def _slope(x: Tensor, y: Tensor) -> float:
    """Compute the slope of the least-squares line of y over x."""
    x, y = x - x.mean(), y - y.mean()
    return ((x * y).sum() / (x * x).sum()).item()


def against(config: Config, seed: int, student: Predictor, teacher: Predictor) -> dict[str, Any]:
    """Compare the variances of a student with those of its teacher, inside and outside.

    Returns:
        For each region and part the median over x of the ratio, and the share of x at which it
        exceeds 1.
    """
    x, _, x_out = _fresh_points(config, seed)
    found: dict[str, Any] = {}
    for region, inputs in (("in_domain", x), ("out_of_domain", x_out)):
        ours, theirs, own = uncertainty(student(inputs)), uncertainty(teacher(inputs)), {}
        for part in ("data_variance", "knowledge_variance", "total_variance"):
            ratio = getattr(ours, part) / getattr(theirs, part)
            larger = (ratio > 1).float().mean().item()
            own[part] = {"median": ratio.median().item(), "share_larger": larger}
        found[region] = own
    return found


@torch.no_grad()
def trace(config: Config, predictors: Mapping[str, Predictor]) -> dict[str, Any]:
    """Compute prediction and uncertainty over a grid wider than the data, for the figure."""
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
    """List values for JSON, to the digits that a plot can show."""
    return [float(f"{value:.6g}") for value in values.flatten().tolist()]
