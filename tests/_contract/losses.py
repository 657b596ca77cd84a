"""Every loss as a function of tensors: what it predicts from, and what makes its target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from _beliefs import DIMENSIONS, random_normal
from _contract import draws
from _contract.tensors import Shape, Tensors
from priornet import losses
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart, ProductNormalWishart


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
_TEACHER_SEED = 950  # others than those of the predictions


def _targets(k_dim: int, batch: Shape) -> Tensors:
    return {"y": random_normal((*batch, k_dim), 900)}


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
    return LossCase(
        name, call, draw, draws.ensemble(teacher, _TEACHER_SEED), target_lead=1, has_y=False
    )


_PRECISION = draws.gaussian("precision_tril")

LOSSES = [
    LossCase("gaussian_nll", _from_targets(Gaussian, losses.gaussian_nll), _PRECISION, _targets),
    LossCase(
        "gaussian_nll(StudentT)",
        _from_targets(lambda **p: _NW(**p).predictive(), losses.gaussian_nll),
        draws.normal_wishart_excess,
        _targets,
    ),
    LossCase(
        "beta_nll", _from_targets(Gaussian, losses.beta_nll), draws.gaussian("variance"), _targets
    ),
    *(
        LossCase(
            f"{loss.__name__}({'product' if product else 'full'})",
            _prior_network(loss, product),
            draws.product if product else draws.normal_wishart_excess,
            _targets,
        )
        for loss in (losses.reverse_kl, losses.forward_kl)
        for product in (False, True)
    ),
    LossCase(
        "reverse_kl(beta=0)", _out_of_domain, draws.normal_wishart_excess, _targets, has_y=False
    ),
    LossCase(
        "evidential",
        _from_targets(_NW, losses.evidential, coefficient=0.1),
        draws.normal_wishart_excess,
        _targets,
    ),
    _teacher_case("endd", _NW, draws.normal_wishart_excess, losses.endd),
    *(
        _teacher_case(
            f"endd({tempering})",
            _NW,
            draws.normal_wishart_excess,
            losses.endd,
            temperature=5.0,
            tempering=tempering,
        )
        for tempering in ("paper", "mean-preserving", "exact")
    ),
    _teacher_case(
        "endd(product)",
        ProductNormalWishart,
        draws.product,
        losses.endd,
        "variances",
        temperature=5.0,
    ),
    _teacher_case("proxy", _NW, draws.normal_wishart_excess, losses.proxy),
    _teacher_case("proxy(product)", ProductNormalWishart, draws.product, losses.proxy, "variances"),
    _teacher_case("end", Gaussian, _PRECISION, losses.end),
    LossCase(
        "md_end",
        _from_teacher(GaussianEnsemble.from_precision_tril, losses.md_end),
        draws.ensemble("precision_tril"),
        draws.ensemble("covariances", _TEACHER_SEED),
        lead=1,
        target_lead=1,
        has_y=False,
    ),
]
