r"""Mutual information of an ensemble, which has no closed form: by quadrature, or by sampling.

.. math:: \mathcal I = \frac1M \sum_m \int \mathcal N_m(y)\,[\ln \mathcal N_m(y) - \ln p(y)]\, dy

For one target the line is cut where members begin and end, and integrated piece by piece, right to
1e-6 nats: a sample of that cost would disorder the rows, and their order is what scores of
uncertainty go by. For several targets it is sampled, with the same draws every time.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.distributions.ensemble import GaussianEnsemble

__all__ = ["ensemble_information"]

# Where to cut the line, in standard deviations of each member: between cuts the mixture is smooth,
# however much the members' spreads differ.
_CUTS = (-9.0, -6.0, -4.0, -2.5, -1.2, 0.0, 1.2, 2.5, 4.0, 6.0, 9.0)
_NODES = 6  # in each piece
_DRAWS = 512  # per member; the standard error is then about 0.01 nats
_ROWS_AT_ONCE = 200  # what fits the cache is twice as fast


def ensemble_information(ensemble: GaussianEnsemble) -> NDArray[np.float64]:
    """Compute knowledge uncertainty of an ensemble in nats, shape ``(N,)``.

    Args:
        ensemble: Batch shape ``(N,)``.
    """
    measure = _integrated if ensemble.event_shape[0] == 1 else _sampled
    n_rows = ensemble.batch_shape[0]
    pieces = [
        measure(
            GaussianEnsemble.from_precision_tril(
                ensemble.means[:, start : start + _ROWS_AT_ONCE],
                ensemble.precision_tril[:, start : start + _ROWS_AT_ONCE],
                validate_args=False,
            )
        )
        for start in range(0, n_rows, _ROWS_AT_ONCE)
    ]
    return torch.cat(pieces).double().numpy(force=True)


def _integrated(ensemble: GaussianEnsemble) -> Tensor:
    """Integrate the entropy of the mixture, less the mean entropy of its members."""
    mean, precision = ensemble.means[..., 0], ensemble.precision_tril[..., 0, 0]  # (M, N)
    cuts = mean.new_tensor(_CUTS)[:, None, None]
    edges = (mean + cuts / precision).flatten(0, 1).sort(0).values  # (cuts M, N)
    width = edges.diff(dim=0)
    total = torch.zeros_like(mean[0])
    for node, weight in zip(*_rule(), strict=True):
        y = edges[:-1] + node * width
        z = (y.unsqueeze(1) - mean) * precision  # (pieces, M, N)
        log_p = (torch.log(precision) - 0.5 * z * z).logsumexp(1) - _log_constant(len(mean))
        total = total - weight * (width * log_p * torch.exp(log_p)).sum(0)
    return total - ensemble.expected_entropy()


def _log_constant(n_members: int) -> float:
    return math.log(n_members) + 0.5 * math.log(2 * math.pi)


def _rule() -> tuple[list[float], list[float]]:
    """Return Gauss-Legendre nodes and weights on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (0.5 + 0.5 * nodes).tolist(), (0.5 * weights).tolist()


def _sampled(ensemble: GaussianEnsemble) -> Tensor:
    generator = torch.Generator(ensemble.means.device).manual_seed(0)
    return ensemble.mutual_information_mc(_DRAWS, generator)
