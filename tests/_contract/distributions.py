"""Every distribution: how to build it, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.distributions import Distribution

from _beliefs import DIMENSIONS
from _contract import draws
from _contract.queries import (
    OF_ENSEMBLE,
    OF_GAUSSIAN,
    OF_NORMAL_WISHART,
    OF_NUMBERS,
    OF_PRODUCT,
    OF_STUDENT_T,
    OF_TARGETS,
    OF_WISHART,
    matrix,
    number,
    plain,
    vector,
)
from _contract.tensors import Shape, Tensors, cast
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
    TransformedMultivariate,
    TransformedUnivariate,
    Wishart,
)
from priornet.special.maps import AsinhMap, CoordinateMaps, LogMap, YeoJohnsonMap


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
        "NormalWishart", NormalWishart, draws.normal_wishart, vector, OF_NORMAL_WISHART, _pair
    ),
    DistributionCase(
        "NormalWishart.from_excess",
        NormalWishart.from_excess,
        draws.normal_wishart_excess,
        vector,
        OF_NORMAL_WISHART,
        _pair,
    ),
    DistributionCase(
        "ProductNormalWishart",
        ProductNormalWishart,
        draws.product,
        vector,
        OF_PRODUCT,
        _two_vectors,
    ),
    DistributionCase("Wishart", Wishart, draws.wishart, matrix, OF_WISHART, _one_matrix),
    DistributionCase(
        "Wishart.from_excess",
        Wishart.from_excess,
        draws.wishart_excess,
        matrix,
        OF_WISHART,
        _one_matrix,
    ),
    *(
        DistributionCase(
            f"Gaussian({factor})",
            Gaussian,
            draws.gaussian(factor),
            vector,
            OF_GAUSSIAN,
            _one_vector,
        )
        for factor in ("precision_tril", "scale_tril", "variance")
    ),
    DistributionCase(
        "StudentT",
        StudentT,
        draws.student_t,
        number,
        {**OF_NUMBERS, **plain(number, "entropy()", "df")},
        _one_number,
        dimensions=(1,),
    ),
    DistributionCase(
        "Normal",
        Normal,
        draws.normal,
        number,
        {**OF_NUMBERS, **plain(number, "entropy()", "mode")},
        _one_number,
        dimensions=(1,),
    ),
    DistributionCase(
        "ProductStudentT",
        ProductStudentT,
        draws.product_student_t,
        vector,
        {**OF_TARGETS, **plain(number, "entropy()"), **plain(vector, "mode", "df")},
        _one_vector,
    ),
    DistributionCase(
        "MultivariateStudentT",
        MultivariateStudentT,
        draws.multivariate_student_t,
        vector,
        OF_STUDENT_T,
        _one_vector,
    ),
    *(
        DistributionCase(
            f"GaussianEnsemble({factor})",
            GaussianEnsemble,
            draws.ensemble(factor),
            vector,
            OF_ENSEMBLE,
            _pair,
            lead=1,
        )
        for factor in ("covariances", "variances")
    ),
    DistributionCase(
        "GaussianEnsemble.from_precision_tril",
        GaussianEnsemble.from_precision_tril,
        draws.ensemble("precision_tril"),
        vector,
        OF_ENSEMBLE,
        _pair,
        lead=1,
    ),
    DistributionCase(
        "GaussianMixture",
        GaussianMixture,
        draws.ensemble("precision_tril"),
        vector,
        OF_TARGETS,
        _one_vector,
        lead=1,
    ),
    DistributionCase(
        "NormalMixture",
        NormalMixture,
        draws.normal_mixture,
        number,
        OF_NUMBERS,
        _one_number,
        lead=1,
        dimensions=(1,),
    ),
]


_CYCLE = (
    AsinhMap(0.2, 1.5, -2.0, 1.0),
    YeoJohnsonMap(0.0, 1.0, -3.0, 2.0, power=0.6),
    LogMap(-50.0, 40.0, high=2.0),  # its support holds every point of the contract
)


def _mapped_number(**parameters: Any) -> TransformedUnivariate:
    return TransformedUnivariate(StudentT(**parameters), _CYCLE[0])


def _mapped_vector(**parameters: Any) -> TransformedMultivariate:
    base = GaussianMixture(**parameters)
    k_dim = base.event_shape[0]
    return TransformedMultivariate(base, CoordinateMaps([_CYCLE[k % 3] for k in range(k_dim)]))


# Of numbers and vectors that are mapped, no derivative is promised but that of the density.
MAPPED = [
    DistributionCase(
        "TransformedUnivariate",
        _mapped_number,
        draws.student_t,
        number,
        {**OF_NUMBERS, **plain(number, "entropy()", "median")},
        _one_number,
        dimensions=(1,),
    ),
    DistributionCase(
        "TransformedMultivariate",
        _mapped_vector,
        draws.ensemble("precision_tril"),
        vector,
        {name: query for name, query in OF_TARGETS.items() if name != "covariance_matrix"},
        _one_vector,
        lead=1,
        dimensions=(1, 3),
    ),
]
