"""Random beliefs to test with: every K and batch shape, the same numbers for the same seed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from priornet.distributions import (
    Gaussian,
    GaussianEnsemble,
    MultivariateStudentT,
    NormalWishart,
    ProductNormalWishart,
    Wishart,
)

DIMENSIONS = (1, 2, 3, 5)
BATCHES = ((), (4,), (2, 3))


def seeded(seed: int) -> Generator:
    """A generator on the device where a test builds its tensors."""
    return Generator(torch.get_default_device()).manual_seed(seed)


def _here(draw: Callable[..., Tensor], shape: tuple[int, ...], seed: int) -> Tensor:
    """The same numbers on every device: drawn on the CPU, then moved."""
    generator = Generator("cpu").manual_seed(seed)
    drawn = draw(shape, dtype=torch.float64, device="cpu", generator=generator)
    return drawn.to(torch.get_default_device())


def random_uniform(
    low: float, high: float, shape: tuple[int, ...], seed: int = 0, dtype=torch.float64
) -> Tensor:
    """Numbers between two bounds."""
    return (low + (high - low) * _here(torch.rand, shape, seed)).to(dtype)


def random_normal(shape: tuple[int, ...], seed: int = 0, dtype=torch.float64) -> Tensor:
    """Standard Gaussian numbers."""
    return _here(torch.randn, shape, seed).to(dtype)


def random_tril(
    k_dim: int, batch: tuple[int, ...] = (), seed: int = 0, dtype=torch.float64
) -> Tensor:
    """Cholesky factors with diagonals from 1/2 to 3/2 and modest entries below."""
    below = 0.4 * random_normal((*batch, k_dim, k_dim), seed).tril(-1)
    diagonal = random_uniform(0.5, 1.5, (*batch, k_dim), seed + 1)
    return (below + torch.diag_embed(diagonal)).to(dtype)


def random_normal_wishart(
    k_dim: int, batch: tuple[int, ...] = (), seed: int = 0, dtype=torch.float64
) -> NormalWishart:
    """Belief between 1/2 and 4, excess between 1 and 9: every measure is finite."""
    return NormalWishart.from_excess(
        random_normal((*batch, k_dim), seed, dtype),
        random_tril(k_dim, batch, seed + 10, dtype),
        random_uniform(0.5, 4.0, batch, seed + 20, dtype),
        random_uniform(1.0, 9.0, batch, seed + 30, dtype),
    )


def leaves(belief: NormalWishart) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Its parameters as tensors to differentiate: loc, precision_tril, belief, excess."""
    parts = (belief.loc, belief.precision_tril, belief.belief, belief.excess)
    loc, tril, weight, excess = (part.detach().clone().requires_grad_() for part in parts)
    return loc, tril, weight, excess


def normal_wishart_of(loc: Tensor, tril: Tensor, belief: Tensor, excess: Tensor) -> NormalWishart:
    """From ``leaves``; the upper triangle, which gradcheck moves too, is not a parameter."""
    return NormalWishart.from_excess(loc, tril.tril(), belief, excess)


def random_wishart(
    k_dim: int, batch: tuple[int, ...] = (), seed: int = 0, dtype=torch.float64
) -> Wishart:
    """The Wishart of the Normal-Wishart with the same seed."""
    return random_normal_wishart(k_dim, batch, seed, dtype).wishart


def random_student_t(
    k_dim: int, batch: tuple[int, ...] = (), seed: int = 0, dtype=torch.float64
) -> MultivariateStudentT:
    """The predictive of the Normal-Wishart with the same seed."""
    return random_normal_wishart(k_dim, batch, seed, dtype).predictive()


def random_product(
    k_dim: int, batch: tuple[int, ...] = (), seed: int = 0, dtype=torch.float64
) -> ProductNormalWishart:
    """Independent coordinates, each as in ``random_normal_wishart``."""
    return ProductNormalWishart(
        random_normal((*batch, k_dim), seed, dtype),
        random_uniform(0.3, 2.0, (*batch, k_dim), seed + 10, dtype),
        random_uniform(0.5, 4.0, (*batch, k_dim), seed + 20, dtype),
        random_uniform(1.0, 9.0, (*batch, k_dim), seed + 30, dtype),
    )


def random_gaussian(
    k_dim: int, batch: tuple[int, ...] = (), seed: int = 0, dtype=torch.float64
) -> Gaussian:
    """By its precision factor."""
    return Gaussian(
        random_normal((*batch, k_dim), seed, dtype),
        precision_tril=random_tril(k_dim, batch, seed + 10, dtype),
    )


def random_ensemble(
    n_members: int,
    k_dim: int,
    batch: tuple[int, ...] = (),
    diagonal: bool = False,
    seed: int = 0,
    dtype=torch.float64,
) -> GaussianEnsemble:
    """Members that disagree about as much as each of them spreads."""
    shape = (n_members, *batch)
    means = random_normal((*shape, k_dim), seed, dtype)
    if diagonal:
        return GaussianEnsemble(means, random_uniform(0.3, 2.0, (*shape, k_dim), seed + 10, dtype))
    tril = random_tril(k_dim, shape, seed + 10)
    return GaussianEnsemble(means, (tril @ tril.mT).to(dtype))
