"""Queries of a distribution, and the shape of each answer after the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from _contract.tensors import Shape, Tensors


def number(k_dim: int) -> Shape:
    return ()


def vector(k_dim: int) -> Shape:
    return (k_dim,)


def matrix(k_dim: int) -> Shape:
    return (k_dim, k_dim)


def _attribute(path: str) -> Callable[[Any, Tensors], Tensor]:
    """Follow ``a.b().c``: calls where a step ends in brackets."""

    def ask(distribution: Any, at: Tensors) -> Tensor:
        value = distribution
        for step in path.split("."):
            value = getattr(value, step.removesuffix("()"))
            value = value() if step.endswith("()") else value
        return value

    return ask


def plain(shape: Callable[[int], Shape], *paths: str) -> dict[str, Any]:
    return {path: (_attribute(path), shape) for path in paths}


_KNOWLEDGE = plain(number, "mutual_information()", "predictive_entropy()")
_BELIEF = {
    "expected_log_prob": (lambda d, at: d.expected_log_prob(at["y"]), number),
    "predictive.log_prob": (lambda d, at: d.predictive().log_prob(at["y"]), number),
    **plain(number, "expected_entropy()", "expected_pairwise_kl()"),
    **plain(number, *(f"covariance_logdet().{p}" for p in ("total", "data", "knowledge"))),
    **plain(number, *(f"covariance_trace().{p}" for p in ("total", "data", "knowledge"))),
    **plain(matrix, "data_covariance()", "knowledge_covariance()", "total_covariance()"),
}
OF_TARGETS = {
    "log_prob": (lambda d, at: d.log_prob(at["y"]), number),
    **plain(vector, "mean", "variance", "stddev"),
    **plain(matrix, "covariance_matrix"),
    "marginals.log_prob": (lambda d, at: d.marginals().log_prob(at["y"]), vector),
    "marginals.cdf": (lambda d, at: d.marginals().cdf(at["y"]), vector),
    "marginals.icdf": (lambda d, at: d.marginals().icdf(at["fraction"]), vector),
}
OF_NUMBERS = {
    "log_prob": (lambda d, at: d.log_prob(at["y"][..., 0]), number),
    "cdf": (lambda d, at: d.cdf(at["y"][..., 0]), number),
    "icdf": (lambda d, at: d.icdf(at["probability"]), number),
    **plain(number, "mean", "variance", "stddev"),
}
OF_WISHART = {
    "log_prob": (lambda d, at: d.log_prob(at["matrix"]), number),
    **plain(number, "entropy()", "expected_logdet()", "log_normalizer()", "df"),
    **plain(matrix, "mean", "mode", "scale_tril"),
}
OF_NORMAL_WISHART = {
    "log_prob": (lambda d, at: d.log_prob((at["y"], at["matrix"])), number),
    "log_prob_covariance": (
        lambda d, at: d.log_prob_covariance((at["y"], at["matrix"])),
        number,
    ),
    "log_evidence": (lambda d, at: d.log_evidence(at["y"], 2.0), number),
    "posterior.loc": (lambda d, at: d.posterior(at["y"], 2.0).loc, vector),
    "posterior.belief": (lambda d, at: d.posterior(at["y"], at["probability"]).belief, number),
    "posterior.excess": (lambda d, at: d.posterior(at["y"]).excess, number),
    "posterior.tril": (lambda d, at: d.posterior(at["y"]).precision_tril, matrix),
    "predictive.entropy": (lambda d, at: d.predictive().entropy(), number),
    **plain(number, "entropy()", "df"),
    **plain(vector, "mean.mean", "mode.mean"),
    **plain(matrix, "mean.precision", "mode.precision", "scale_tril"),
    **_BELIEF,
    **_KNOWLEDGE,
}
OF_PRODUCT = {
    "log_prob": (lambda d, at: d.log_prob((at["y"], at["positive"])), number),
    "posterior.loc": (lambda d, at: d.posterior(at["y"], 2.0).loc, vector),
    "posterior.belief": (lambda d, at: d.posterior(at["y"], at["probability"]).belief, vector),
    "posterior.precision": (lambda d, at: d.posterior(at["y"]).precision, vector),
    "predictive.entropy": (lambda d, at: d.predictive().entropy(), number),
    "marginals.icdf": (lambda d, at: d.marginals().icdf(at["fraction"]), vector),
    **plain(number, "entropy()"),
    **plain(vector, "mean.mean", "df"),
    **plain(matrix, "mean.precision"),
    **_BELIEF,
    **_KNOWLEDGE,
}
OF_GAUSSIAN = {
    **OF_TARGETS,
    **plain(number, "entropy()"),
    **plain(vector, "mode"),
    **plain(matrix, "precision_tril", "scale_tril"),
    **_BELIEF,
    **_KNOWLEDGE,
}
OF_STUDENT_T = {
    **OF_TARGETS,
    **plain(number, "entropy()", "df"),
    **plain(vector, "mode"),
    **plain(matrix, "scale_matrix", "scale_tril"),
}
OF_ENSEMBLE = {
    "moment_matched_log_prob": (lambda d, at: d.moment_matched_log_prob(at["y"]), number),
    "moment_matched.variance": (lambda d, at: d.moment_matched().variance, vector),
    "predictive.variance": (lambda d, at: d.predictive().variance, vector),
    **plain(vector, "mean.mean"),
    **plain(matrix, "mean.precision"),
    **_BELIEF,
}
