"""Packed targets give the same losses as the ensemble they were packed from."""

from __future__ import annotations

import pytest
import torch

from priornet import losses
from priornet.distill import targets_for
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart

N, M = 6, 4


def problem(k_dim: int):
    generator = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def tril(*shape: int) -> torch.Tensor:
        return torch.linalg.cholesky(torch.eye(k_dim) + 0.2 * _outer(randn(*shape, k_dim, k_dim)))

    teacher = GaussianEnsemble.from_precision_tril(randn(M, N, k_dim), tril(M, N))
    nw = NormalWishart.from_excess(randn(N, k_dim), tril(N), randn(N).exp(), randn(N).exp())
    gaussian = Gaussian(randn(N, k_dim), precision_tril=tril(N))
    mixture = GaussianEnsemble.from_precision_tril(randn(M, N, k_dim), tril(M, N))
    return teacher, nw, gaussian, mixture


def _outer(matrix: torch.Tensor) -> torch.Tensor:
    return matrix @ matrix.mT


@pytest.mark.parametrize("k_dim", [1, 2, 3])
def test_losses_from_columns_equal_losses_from_the_ensemble(k_dim):
    teacher, nw, gaussian, mixture = problem(k_dim)
    fitted = NormalWishart.fit(teacher, max_belief=1e5, max_excess=1e5)
    cases = [
        ("endd", True, False, nw, losses.proxy(nw, fitted)),
        ("endd", False, False, nw, losses.endd(nw, teacher)),
        ("endd", False, True, nw, losses.endd(nw, teacher, 3.0, "mean-preserving")),
        ("end", False, False, gaussian, losses.end(gaussian, teacher)),
        ("md-end", False, False, mixture, losses.md_end(mixture, teacher)),
    ]
    for objective, proxy, annealed, prediction, expected in cases:
        targets = targets_for(objective, k_dim, M, proxy=proxy, annealed=annealed)
        columns = targets.pack(teacher)
        assert columns.shape[0] == N
        found = targets.loss(prediction, columns, temperature=3.0 if annealed else 1.0)
        torch.testing.assert_close(found, expected)


def test_a_batch_of_networks_unpacks_along_its_own_axes():
    teacher, nw, _, _ = problem(2)
    targets = targets_for("endd", 2, M, proxy=True, annealed=False)
    columns = targets.pack(teacher)
    stacked = targets.loss(nw.expand((3, N)), columns.expand(3, *columns.shape))
    torch.testing.assert_close(stacked, targets.loss(nw, columns).expand(3, N))
