"""Random parameters of every distribution, by the names of its constructor."""

from __future__ import annotations

from collections.abc import Callable

from _beliefs import random_normal, random_tril, random_uniform
from _contract.tensors import MEMBERS, Shape, Tensors, spd


def normal_wishart(k_dim: int, batch: Shape) -> Tensors:
    return {
        "loc": random_normal((*batch, k_dim), 0),
        "scale_tril": random_tril(k_dim, batch, 10),
        "belief": random_uniform(0.5, 4.0, batch, 20),
        "df": k_dim + 1 + random_uniform(1.0, 9.0, batch, 30),
    }


def normal_wishart_excess(k_dim: int, batch: Shape) -> Tensors:
    return {
        "loc": random_normal((*batch, k_dim), 0),
        "precision_tril": random_tril(k_dim, batch, 10),
        "belief": random_uniform(0.5, 4.0, batch, 20),
        "excess": random_uniform(1.0, 9.0, batch, 30),
    }


def product(k_dim: int, batch: Shape) -> Tensors:
    shape = (*batch, k_dim)
    return {
        "loc": random_normal(shape, 0),
        "precision": random_uniform(0.3, 2.0, shape, 10),
        "belief": random_uniform(0.5, 4.0, shape, 20),
        "excess": random_uniform(1.0, 9.0, shape, 30),
    }


def wishart(k_dim: int, batch: Shape) -> Tensors:
    return {
        "scale_tril": random_tril(k_dim, batch, 10),
        "df": k_dim + 1 + random_uniform(1.0, 9.0, batch, 30),
    }


def wishart_excess(k_dim: int, batch: Shape) -> Tensors:
    return {
        "precision_tril": random_tril(k_dim, batch, 10),
        "excess": random_uniform(1.0, 9.0, batch, 30),
    }


def gaussian(factor: str) -> Callable[[int, Shape], Tensors]:
    def draw(k_dim: int, batch: Shape) -> Tensors:
        loc = random_normal((*batch, k_dim), 0)
        if factor == "variance":
            return {"loc": loc, "variance": random_uniform(0.3, 2.0, (*batch, k_dim), 10)}
        return {"loc": loc, factor: random_tril(k_dim, batch, 10)}

    return draw


def student_t(k_dim: int, batch: Shape) -> Tensors:
    return {
        "df": random_uniform(2.5, 9.0, batch, 30),
        "loc": random_normal(batch, 0),
        "scale": random_uniform(0.5, 2.0, batch, 10),
    }


def normal(k_dim: int, batch: Shape) -> Tensors:
    return {"loc": random_normal(batch, 0), "scale": random_uniform(0.5, 2.0, batch, 10)}


def product_student_t(k_dim: int, batch: Shape) -> Tensors:
    shape = (*batch, k_dim)
    return {
        "df": random_uniform(2.5, 9.0, shape, 30),
        "loc": random_normal(shape, 0),
        "scale": random_uniform(0.5, 2.0, shape, 10),
    }


def multivariate_student_t(k_dim: int, batch: Shape) -> Tensors:
    return {
        "df": random_uniform(2.5, 9.0, batch, 30),
        "loc": random_normal((*batch, k_dim), 0),
        "scale_tril": random_tril(k_dim, batch, 10),
    }


def ensemble(factor: str, seed: int = 0) -> Callable[[int, Shape], Tensors]:
    def draw(k_dim: int, batch: Shape) -> Tensors:
        shape = (MEMBERS, *batch)
        means = random_normal((*shape, k_dim), seed)
        if factor == "variances":
            variances = random_uniform(0.3, 2.0, means.shape, seed + 10)
            return {"means": means, "covariances": variances}
        if factor == "covariances":
            return {"means": means, "covariances": spd(k_dim, shape, seed + 10)}
        return {"means": means, "precision_tril": random_tril(k_dim, shape, seed + 10)}

    return draw


def normal_mixture(k_dim: int, batch: Shape) -> Tensors:
    shape = (MEMBERS, *batch)
    return {"means": random_normal(shape, 0), "scales": random_uniform(0.5, 2.0, shape, 10)}
