"""One description of every distribution and loss, which the contract tests run over.

A case keeps the parameters apart from the object they make, so that the same case can be cast,
sliced, expanded, transformed and differentiated. Parameters are ``(*batch, *event)``, or
``(M, *batch, *event)`` where ``lead`` is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from _beliefs import BATCHES, DIMENSIONS, random_normal, random_tril, random_uniform
from priornet import losses
from priornet.distributions import (
    Gaussian,
    GaussianEnsemble,
    GaussianMixture,
    MultivariateStudentT,
    Normal,
    NormalMixture,
    NormalWishart,
    ProductNormalWishart,
    ProductStudentT,
    StudentT,
    Wishart,
)

__all__ = [
    "BATCHES",
    "DISTRIBUTIONS",
    "LOSSES",
    "MEMBERS",
    "DistributionCase",
    "LossCase",
    "Tensors",
    "answers",
    "cast",
    "points",
    "select",
    "settings",
    "spread",
]

Tensors = dict[str, Tensor]
Shape = tuple[int, ...]

MEMBERS = 6  # more than the largest K, so that the members' means span every direction


# -- random parameters ----------------------------------------------------------------------------


def _spd(k_dim: int, batch: Shape, seed: int) -> Tensor:
    tril = random_tril(k_dim, batch, seed)
    return tril @ tril.mT


def points(k_dim: int, batch: Shape) -> Tensors:
    """Where to evaluate: a target, a matrix, positive numbers, probabilities."""
    return {
        "y": random_normal((*batch, k_dim), 900),
        "matrix": _spd(k_dim, batch, 910),
        "positive": random_uniform(0.5, 2.0, (*batch, k_dim), 920),
        "probability": random_uniform(0.05, 0.95, batch, 930),
        "fraction": random_uniform(0.05, 0.95, (*batch, k_dim), 940),
    }


def cast(tensors: Tensors, *args: Any) -> Tensors:
    """``.to(...)`` on each."""
    return {name: value.to(*args) for name, value in tensors.items()}


def select(tensors: Tensors, index: tuple[int, ...], lead: dict[str, int] | int = 0) -> Tensors:
    """One batch element of each."""
    return {
        name: value[(slice(None),) * (lead if isinstance(lead, int) else lead[name]) + index]
        for name, value in tensors.items()
    }


# -- distributions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class DistributionCase:
    """A way to build a distribution, and what can be asked of it."""

    name: str
    build: Callable[..., Distribution]
    draw: Callable[[int, Shape], Tensors]
    event: Callable[[int], Shape]
    queries: dict[str, tuple[Callable[[Any, Tensors], Tensor], Callable[[int], Shape]]]
    sample_events: Callable[[int], tuple[Shape, ...]]
    lead: int = 0
    dimensions: tuple[int, ...] = DIMENSIONS

    def make(self, k_dim: int, batch: Shape, *to: Any) -> Any:
        """The distribution, with parameters converted by ``.to(*to)``."""
        return self.build(**cast(self.draw(k_dim, batch), *to))

    def sample(self, distribution: Any, shape: Shape = ()) -> Any:
        """Draws, reparameterised where that is possible."""
        draw = distribution.rsample if distribution.has_rsample else distribution.sample
        return draw(shape)


def answers(case: DistributionCase, distribution: Any, at: Tensors) -> Tensors:
    """Everything a distribution says, by name."""
    return {name: ask(distribution, at) for name, (ask, _) in case.queries.items()}


def _number(k_dim: int) -> Shape:
    return ()


def _vector(k_dim: int) -> Shape:
    return (k_dim,)


def _matrix(k_dim: int) -> Shape:
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


def _plain(shape: Callable[[int], Shape], *paths: str) -> dict[str, Any]:
    return {path: (_attribute(path), shape) for path in paths}


_KNOWLEDGE = _plain(_number, "mutual_information()", "predictive_entropy()")
_BELIEF = {
    "expected_log_prob": (lambda d, at: d.expected_log_prob(at["y"]), _number),
    "predictive.log_prob": (lambda d, at: d.predictive().log_prob(at["y"]), _number),
    **_plain(_number, "expected_entropy()", "expected_pairwise_kl()"),
    **_plain(_number, *(f"covariance_logdet().{p}" for p in ("total", "data", "knowledge"))),
    **_plain(_number, *(f"covariance_trace().{p}" for p in ("total", "data", "knowledge"))),
    **_plain(_matrix, "data_covariance()", "knowledge_covariance()", "total_covariance()"),
}
_OF_TARGETS = {
    "log_prob": (lambda d, at: d.log_prob(at["y"]), _number),
    **_plain(_vector, "mean", "variance", "stddev"),
    **_plain(_matrix, "covariance_matrix"),
    "marginals.log_prob": (lambda d, at: d.marginals().log_prob(at["y"]), _vector),
    "marginals.cdf": (lambda d, at: d.marginals().cdf(at["y"]), _vector),
    "marginals.icdf": (lambda d, at: d.marginals().icdf(at["fraction"]), _vector),
}
_OF_NUMBERS = {
    "log_prob": (lambda d, at: d.log_prob(at["y"][..., 0]), _number),
    "cdf": (lambda d, at: d.cdf(at["y"][..., 0]), _number),
    "icdf": (lambda d, at: d.icdf(at["probability"]), _number),
    **_plain(_number, "mean", "variance", "stddev"),
}
_OF_WISHART = {
    "log_prob": (lambda d, at: d.log_prob(at["matrix"]), _number),
    **_plain(_number, "entropy()", "expected_logdet()", "log_normalizer()", "df"),
    **_plain(_matrix, "mean", "mode", "scale_tril"),
}
_OF_NORMAL_WISHART = {
    "log_prob": (lambda d, at: d.log_prob((at["y"], at["matrix"])), _number),
    "log_prob_covariance": (
        lambda d, at: d.log_prob_covariance((at["y"], at["matrix"])),
        _number,
    ),
    "log_evidence": (lambda d, at: d.log_evidence(at["y"], 2.0), _number),
    "posterior.loc": (lambda d, at: d.posterior(at["y"], 2.0).loc, _vector),
    "posterior.belief": (lambda d, at: d.posterior(at["y"], at["probability"]).belief, _number),
    "posterior.excess": (lambda d, at: d.posterior(at["y"]).excess, _number),
    "posterior.tril": (lambda d, at: d.posterior(at["y"]).precision_tril, _matrix),
    "predictive.entropy": (lambda d, at: d.predictive().entropy(), _number),
    **_plain(_number, "entropy()", "df"),
    **_plain(_vector, "mean.mean", "mode.mean"),
    **_plain(_matrix, "mean.precision", "mode.precision", "scale_tril"),
    **_BELIEF,
    **_KNOWLEDGE,
}
_OF_PRODUCT = {
    "log_prob": (lambda d, at: d.log_prob((at["y"], at["positive"])), _number),
    "posterior.loc": (lambda d, at: d.posterior(at["y"], 2.0).loc, _vector),
    "posterior.belief": (lambda d, at: d.posterior(at["y"], at["probability"]).belief, _vector),
    "posterior.precision": (lambda d, at: d.posterior(at["y"]).precision, _vector),
    "predictive.entropy": (lambda d, at: d.predictive().entropy(), _number),
    "marginals.icdf": (lambda d, at: d.marginals().icdf(at["fraction"]), _vector),
    **_plain(_number, "entropy()"),
    **_plain(_vector, "mean.mean", "df"),
    **_plain(_matrix, "mean.precision"),
    **_BELIEF,
    **_KNOWLEDGE,
}
_OF_GAUSSIAN = {
    **_OF_TARGETS,
    **_plain(_number, "entropy()"),
    **_plain(_vector, "mode"),
    **_plain(_matrix, "precision_tril", "scale_tril"),
    **_BELIEF,
    **_KNOWLEDGE,
}
_OF_STUDENT_T = {
    **_OF_TARGETS,
    **_plain(_number, "entropy()", "df"),
    **_plain(_vector, "mode"),
    **_plain(_matrix, "scale_matrix", "scale_tril"),
}
_OF_ENSEMBLE = {
    "moment_matched_log_prob": (lambda d, at: d.moment_matched_log_prob(at["y"]), _number),
    "moment_matched.variance": (lambda d, at: d.moment_matched().variance, _vector),
    "predictive.variance": (lambda d, at: d.predictive().variance, _vector),
    **_plain(_vector, "mean.mean"),
    **_plain(_matrix, "mean.precision"),
    **_BELIEF,
}


def _normal_wishart(k_dim: int, batch: Shape) -> Tensors:
    return {
        "loc": random_normal((*batch, k_dim), 0),
        "scale_tril": random_tril(k_dim, batch, 10),
        "belief": random_uniform(0.5, 4.0, batch, 20),
        "df": k_dim + 1 + random_uniform(1.0, 9.0, batch, 30),
    }


def _normal_wishart_excess(k_dim: int, batch: Shape) -> Tensors:
    return {
        "loc": random_normal((*batch, k_dim), 0),
        "precision_tril": random_tril(k_dim, batch, 10),
        "belief": random_uniform(0.5, 4.0, batch, 20),
        "excess": random_uniform(1.0, 9.0, batch, 30),
    }


def _product(k_dim: int, batch: Shape) -> Tensors:
    shape = (*batch, k_dim)
    return {
        "loc": random_normal(shape, 0),
        "precision": random_uniform(0.3, 2.0, shape, 10),
        "belief": random_uniform(0.5, 4.0, shape, 20),
        "excess": random_uniform(1.0, 9.0, shape, 30),
    }


def _wishart(k_dim: int, batch: Shape) -> Tensors:
    return {
        "scale_tril": random_tril(k_dim, batch, 10),
        "df": k_dim + 1 + random_uniform(1.0, 9.0, batch, 30),
    }


def _wishart_excess(k_dim: int, batch: Shape) -> Tensors:
    return {
        "precision_tril": random_tril(k_dim, batch, 10),
        "excess": random_uniform(1.0, 9.0, batch, 30),
    }


def _gaussian(factor: str) -> Callable[[int, Shape], Tensors]:
    def draw(k_dim: int, batch: Shape) -> Tensors:
        loc = random_normal((*batch, k_dim), 0)
        if factor == "variance":
            return {"loc": loc, "variance": random_uniform(0.3, 2.0, (*batch, k_dim), 10)}
        return {"loc": loc, factor: random_tril(k_dim, batch, 10)}

    return draw


def _student_t(k_dim: int, batch: Shape) -> Tensors:
    return {
        "df": random_uniform(2.5, 9.0, batch, 30),
        "loc": random_normal(batch, 0),
        "scale": random_uniform(0.5, 2.0, batch, 10),
    }


def _normal(k_dim: int, batch: Shape) -> Tensors:
    return {"loc": random_normal(batch, 0), "scale": random_uniform(0.5, 2.0, batch, 10)}


def _product_student_t(k_dim: int, batch: Shape) -> Tensors:
    shape = (*batch, k_dim)
    return {
        "df": random_uniform(2.5, 9.0, shape, 30),
        "loc": random_normal(shape, 0),
        "scale": random_uniform(0.5, 2.0, shape, 10),
    }


def _multivariate_student_t(k_dim: int, batch: Shape) -> Tensors:
    return {
        "df": random_uniform(2.5, 9.0, batch, 30),
        "loc": random_normal((*batch, k_dim), 0),
        "scale_tril": random_tril(k_dim, batch, 10),
    }


def _ensemble(factor: str) -> Callable[[int, Shape], Tensors]:
    def draw(k_dim: int, batch: Shape) -> Tensors:
        shape = (MEMBERS, *batch)
        means = random_normal((*shape, k_dim), 0)
        if factor == "variances":
            return {"means": means, "covariances": random_uniform(0.3, 2.0, means.shape, 10)}
        if factor == "covariances":
            return {"means": means, "covariances": _spd(k_dim, shape, 10)}
        return {"means": means, "precision_tril": random_tril(k_dim, shape, 10)}

    return draw


def _normal_mixture(k_dim: int, batch: Shape) -> Tensors:
    shape = (MEMBERS, *batch)
    return {"means": random_normal(shape, 0), "scales": random_uniform(0.5, 2.0, shape, 10)}


def _pair(k_dim: int) -> tuple[Shape, ...]:
    return (k_dim,), (k_dim, k_dim)


def _two_vectors(k_dim: int) -> tuple[Shape, ...]:
    return (k_dim,), (k_dim,)


def _one_vector(k_dim: int) -> tuple[Shape, ...]:
    return ((k_dim,),)


def _one_number(k_dim: int) -> tuple[Shape, ...]:
    return ((),)


def _one_matrix(k_dim: int) -> tuple[Shape, ...]:
    return ((k_dim, k_dim),)


DISTRIBUTIONS = [
    DistributionCase(
        "NormalWishart", NormalWishart, _normal_wishart, _vector, _OF_NORMAL_WISHART, _pair
    ),
    DistributionCase(
        "NormalWishart.from_excess",
        NormalWishart.from_excess,
        _normal_wishart_excess,
        _vector,
        _OF_NORMAL_WISHART,
        _pair,
    ),
    DistributionCase(
        "ProductNormalWishart", ProductNormalWishart, _product, _vector, _OF_PRODUCT, _two_vectors
    ),
    DistributionCase("Wishart", Wishart, _wishart, _matrix, _OF_WISHART, _one_matrix),
    DistributionCase(
        "Wishart.from_excess",
        Wishart.from_excess,
        _wishart_excess,
        _matrix,
        _OF_WISHART,
        _one_matrix,
    ),
    *(
        DistributionCase(
            f"Gaussian({factor})", Gaussian, _gaussian(factor), _vector, _OF_GAUSSIAN, _one_vector
        )
        for factor in ("precision_tril", "scale_tril", "variance")
    ),
    DistributionCase(
        "StudentT",
        StudentT,
        _student_t,
        _number,
        {**_OF_NUMBERS, **_plain(_number, "entropy()", "df")},
        _one_number,
        dimensions=(1,),
    ),
    DistributionCase(
        "Normal",
        Normal,
        _normal,
        _number,
        {**_OF_NUMBERS, **_plain(_number, "entropy()", "mode")},
        _one_number,
        dimensions=(1,),
    ),
    DistributionCase(
        "ProductStudentT",
        ProductStudentT,
        _product_student_t,
        _vector,
        {**_OF_TARGETS, **_plain(_number, "entropy()"), **_plain(_vector, "mode", "df")},
        _one_vector,
    ),
    DistributionCase(
        "MultivariateStudentT",
        MultivariateStudentT,
        _multivariate_student_t,
        _vector,
        _OF_STUDENT_T,
        _one_vector,
    ),
    *(
        DistributionCase(
            f"GaussianEnsemble({factor})",
            GaussianEnsemble,
            _ensemble(factor),
            _vector,
            _OF_ENSEMBLE,
            _pair,
            lead=1,
        )
        for factor in ("covariances", "variances")
    ),
    DistributionCase(
        "GaussianEnsemble.from_precision_tril",
        GaussianEnsemble.from_precision_tril,
        _ensemble("precision_tril"),
        _vector,
        _OF_ENSEMBLE,
        _pair,
        lead=1,
    ),
    DistributionCase(
        "GaussianMixture",
        GaussianMixture,
        _ensemble("precision_tril"),
        _vector,
        _OF_TARGETS,
        _one_vector,
        lead=1,
    ),
    DistributionCase(
        "NormalMixture",
        NormalMixture,
        _normal_mixture,
        _number,
        _OF_NUMBERS,
        _one_number,
        lead=1,
        dimensions=(1,),
    ),
]


# -- losses ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LossCase:
    """A loss as a function of the prediction's parameters and of tensors that make the target."""

    name: str
    call: Callable[..., Tensor]  # (parameters, target, mask=None) -> (*batch,)
    draw: Callable[[int, Shape], Tensors]
    draw_target: Callable[[int, Shape], Tensors]
    lead: int = 0
    target_lead: int = 0
    dimensions: tuple[int, ...] = DIMENSIONS
    has_y: bool = field(default=True)


_NW: Any = NormalWishart.from_excess
_TEACHER: Any = GaussianEnsemble


def _targets(k_dim: int, batch: Shape) -> Tensors:
    return {"y": random_normal((*batch, k_dim), 900)}


def _teacher(factor: str) -> Callable[[int, Shape], Tensors]:
    def draw(k_dim: int, batch: Shape) -> Tensors:
        shape = (MEMBERS, *batch)
        means = random_normal((*shape, k_dim), 950)
        if factor == "variances":
            return {"means": means, "covariances": random_uniform(0.3, 2.0, means.shape, 960)}
        return {"means": means, "covariances": _spd(k_dim, shape, 960)}

    return draw


def _prior(product: bool, k_dim: int, like: Tensor) -> NormalWishart | ProductNormalWishart:
    if product:
        ones = like.new_ones(k_dim)
        return ProductNormalWishart(0.5 * ones, 0.75 * ones, 0.25 * ones, 0.5 * ones)
    eye = torch.eye(k_dim, dtype=like.dtype, device=like.device)
    return NormalWishart.from_excess(0.5 * like.new_ones(k_dim), 0.75 * eye, 0.25, 0.5)


def _prior_network(loss: Any, product: bool) -> Callable[..., Tensor]:
    build: Any = ProductNormalWishart if product else NormalWishart.from_excess

    def call(parameters: Tensors, target: Tensors, mask: Tensor | None = None) -> Tensor:
        loc = parameters["loc"]
        prior = _prior(product, loc.shape[-1], loc)
        return loss(build(**parameters), target["y"], prior, beta=3.0, mask=mask)

    return call


def _out_of_domain(parameters: Tensors, target: Tensors, mask: Tensor | None = None) -> Tensor:
    loc = parameters["loc"]
    nw = _NW(**parameters)
    return losses.reverse_kl(nw, None, _prior(False, loc.shape[-1], loc), beta=0.0, mask=mask)


def _from_teacher(build: Any, loss: Any, **options: Any) -> Callable[..., Tensor]:
    def call(parameters: Tensors, target: Tensors, mask: Tensor | None = None) -> Tensor:
        return loss(build(**parameters), _TEACHER(**target), mask=mask, **options)

    return call


def _from_targets(build: Any, loss: Any, **options: Any) -> Callable[..., Tensor]:
    def call(parameters: Tensors, target: Tensors, mask: Tensor | None = None) -> Tensor:
        return loss(build(**parameters), target["y"], mask=mask, **options)

    return call


def _teacher_case(
    name: str, build: Any, draw: Any, loss: Any, teacher: str = "covariances", **options: Any
) -> LossCase:
    call = _from_teacher(build, loss, **options)
    return LossCase(name, call, draw, _teacher(teacher), target_lead=1, has_y=False)


_PRECISION = _gaussian("precision_tril")

LOSSES = [
    LossCase("gaussian_nll", _from_targets(Gaussian, losses.gaussian_nll), _PRECISION, _targets),
    LossCase(
        "gaussian_nll(StudentT)",
        _from_targets(lambda **p: _NW(**p).predictive(), losses.gaussian_nll),
        _normal_wishart_excess,
        _targets,
    ),
    LossCase("beta_nll", _from_targets(Gaussian, losses.beta_nll), _gaussian("variance"), _targets),
    *(
        LossCase(
            f"{loss.__name__}({'product' if product else 'full'})",
            _prior_network(loss, product),
            _product if product else _normal_wishart_excess,
            _targets,
        )
        for loss in (losses.reverse_kl, losses.forward_kl)
        for product in (False, True)
    ),
    LossCase("reverse_kl(beta=0)", _out_of_domain, _normal_wishart_excess, _targets, has_y=False),
    LossCase(
        "evidential",
        _from_targets(_NW, losses.evidential, coefficient=0.1),
        _normal_wishart_excess,
        _targets,
    ),
    _teacher_case("endd", _NW, _normal_wishart_excess, losses.endd),
    *(
        _teacher_case(
            f"endd({tempering})",
            _NW,
            _normal_wishart_excess,
            losses.endd,
            temperature=5.0,
            tempering=tempering,
        )
        for tempering in ("paper", "mean-preserving", "exact")
    ),
    _teacher_case(
        "endd(product)", ProductNormalWishart, _product, losses.endd, "variances", temperature=5.0
    ),
    _teacher_case("proxy", _NW, _normal_wishart_excess, losses.proxy),
    _teacher_case("proxy(product)", ProductNormalWishart, _product, losses.proxy, "variances"),
    _teacher_case("end", Gaussian, _PRECISION, losses.end),
    LossCase(
        "md_end",
        _from_teacher(GaussianEnsemble.from_precision_tril, losses.md_end),
        _ensemble("precision_tril"),
        _teacher("covariances"),
        lead=1,
        target_lead=1,
        has_y=False,
    ),
]


def _label(case: Any, k_dim: int, batch: Shape) -> str:
    return f"{case.name}-K{k_dim}-{'x'.join(map(str, batch))}"


def settings(
    cases: list[Any], dimensions: Shape = DIMENSIONS, batches: tuple[Shape, ...] = BATCHES
) -> list[Any]:
    """Every (case, K, batch) as pytest parameters."""
    import pytest

    return [
        pytest.param(case, k_dim, batch, id=_label(case, k_dim, batch))
        for case in cases
        for k_dim in dimensions
        if k_dim in case.dimensions
        for batch in batches
    ]


def spread(cases: list[Any]) -> list[Any]:
    """Every (case, K) with one batch shape, the next one each time, so that all are met with all.

    For slow tests of what ``settings`` covers elsewhere: the K of a case go different ways through
    the algebra, and its batch shapes the same way.
    """
    import pytest

    turns = [
        (case, k_dim, BATCHES[(place + turn) % len(BATCHES)])
        for place, case in enumerate(cases)
        for turn, k_dim in enumerate(DIMENSIONS)
        if k_dim in case.dimensions
    ]
    return [pytest.param(*setting, id=_label(*setting)) for setting in turns]
