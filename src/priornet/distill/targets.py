"""Targets of a student: its teacher's Gaussians, packed into columns of numbers per input.

The teacher answers once per input of the transfer set; a training step then only gathers rows.

A Normal-Wishart weighs members by their precision. From few rows a precision is learnt badly: a
member that is sure by chance moves the student's mean and makes it sure, while the ensemble's own
mixture still counts the others. So each member takes a share of its covariance from all members,
as if it had seen more rows. Means and the average covariance stay: the ensemble's data, knowledge
and total variance are unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from priornet import losses
from priornet.distributions import (
    CovarianceAverages,
    GaussianEnsemble,
    NormalWishart,
    PrecisionAverages,
    covariance_averages,
    precision_averages,
)
from priornet.losses.distillation import Tempering
from priornet.methods import Objective
from priornet.special import triangular

# Chosen on parts of 13 tables, 40 to 350 rows each, scored on the rows that were left.
_ROWS_OF_ALL = 12  # as many rows are worth what the other members know
_ENOUGH = 240  # rows of a member that takes nothing from the others
_MOST = 0.5

Fields = dict[str, Tensor]


@dataclass(frozen=True)
class Targets:
    """One kind of target: fields of an ensemble, and the loss of a prediction against them.

    Attributes:
        n_targets: Target dimension K.
        n_members: Number of members M.
        shapes: Name and shape of each field per input.
        record: Computes a record with these fields from an ensemble, each ``(N, *shape)``.
        compare: Computes the loss per element from a prediction, the fields and a temperature.
    """

    n_targets: int
    n_members: int
    shapes: dict[str, tuple[int, ...]]
    record: Callable[[GaussianEnsemble], Any]
    compare: Callable[[Any, Fields, Tensor | float], Tensor]

    def fields(self, teacher: GaussianEnsemble) -> Fields:
        """Compute the fields of an ensemble."""
        record = self.record(teacher)
        return {name: getattr(record, name) for name in self.shapes}

    def pack(self, teacher: GaussianEnsemble) -> Tensor:
        """Pack the fields of an ensemble into columns ``(N, C)``."""
        parts = self.fields(teacher).values()
        return torch.cat([part.reshape(len(part), -1) for part in parts], -1)

    def unpack(self, columns: Tensor) -> Fields:
        """Unpack the fields from columns ``(*batch, C)``."""
        sizes = [math.prod(shape) for shape in self.shapes.values()]
        parts = zip(self.shapes.items(), columns.split(sizes, -1), strict=True)
        return {
            name: part.unflatten(-1, shape) if shape else part.squeeze(-1)
            for (name, shape), part in parts
        }

    def loss(self, prediction: Any, columns: Tensor, temperature: Tensor | float = 1.0) -> Tensor:
        """Compute the loss per element, from columns ``(*batch, C)``."""
        return self.compare(prediction, self.unpack(columns), temperature)


def targets_for(
    objective: Objective,
    n_targets: int,
    n_members: int,
    *,
    proxy: bool,
    annealed: bool,
    tempering: Tempering = "mean-preserving",
) -> Targets:
    """Make the kind of target for an objective.

    Args:
        objective: EnD2, EnD or MD-EnD.
        n_targets: Target dimension K.
        n_members: Number of members M.
        proxy: EnD2 by the Normal-Wishart fitted to the members, not by their likelihood.
        annealed: EnD2 by likelihood with a temperature above 1.
        tempering: Its effect on the prediction, see :func:`losses.endd`.
    """
    m, vector, matrix = n_members, (n_targets,), (n_targets, n_targets)
    make = partial(Targets, n_targets, n_members)
    averages = {"anchor": vector, "shift": vector, "precision_tril": matrix}
    members = {"means": (m, *vector), "precision_tril": (m, *matrix)}
    if objective == "end":
        return make({**averages, "scatter": matrix, "gap": ()}, covariance_averages, _end)
    if objective == "md-end":
        return make(members, _members, _md_end)
    if proxy:
        fit = partial(NormalWishart.fit, max_belief=1e5, max_excess=1e5)
        shapes = {"loc": vector, "precision_tril": matrix, "belief": (), "excess": ()}
        return make(shapes, fit, _proxy)
    if annealed:
        return make(members, _members, partial(_annealed, tempering=tempering))
    return make({**averages, "spread": (), "gap": ()}, precision_averages, _likelihood)


class _Members(NamedTuple):
    """Members of an ensemble, on the second axis."""

    means: Tensor
    precision_tril: Tensor


def _members(teacher: GaussianEnsemble) -> _Members:
    return _Members(teacher.means.movedim(0, 1), teacher.precision_tril.movedim(0, 1))


def _ensemble(fields: Fields) -> GaussianEnsemble:
    means, tril = fields["means"].movedim(-2, 0), fields["precision_tril"].movedim(-3, 0)
    return GaussianEnsemble.from_precision_tril(means, tril, validate_args=False)


def _end(prediction: Any, fields: Fields, _: Tensor | float) -> Tensor:
    return losses.end(prediction, CovarianceAverages(**fields))


def _md_end(prediction: Any, fields: Fields, _: Tensor | float) -> Tensor:
    return losses.md_end(prediction, _ensemble(fields))


def _proxy(prediction: Any, fields: Fields, _: Tensor | float) -> Tensor:
    return losses.proxy(prediction, NormalWishart.from_excess(**fields, validate_args=False))


def _likelihood(prediction: Any, fields: Fields, _: Tensor | float) -> Tensor:
    return losses.endd(prediction, PrecisionAverages(**fields))


def _annealed(
    prediction: Any, fields: Fields, temperature: Tensor | float, tempering: Tempering
) -> Tensor:
    return losses.endd(prediction, _ensemble(fields), temperature, tempering)


def pooled_share(n_rows: int) -> float:
    """Compute the share of a covariance to take from all members that learnt from ``n_rows``."""
    return min(max(_ROWS_OF_ALL / n_rows - _ROWS_OF_ALL / _ENOUGH, 0.0), _MOST)


@torch.no_grad()
def pool_covariances(ensemble: GaussianEnsemble, share: float) -> GaussianEnsemble:
    r"""Give members the covariances :math:`(1 - s)\Sigma_m + s\bar\Sigma`, with share s."""
    if share == 0:
        return ensemble
    tril = ensemble.precision_tril  # C of the precision C C^T
    roots = triangular.inverse(tril)
    # All covariances seen from each member, C_m^T Sigma_j C_m: sums of squares, so that lopsided
    # covariances of several targets keep their digits.
    seen = torch.zeros_like(tril)
    for root in roots:
        relative = root @ tril
        seen += relative.mT @ relative
    own = torch.eye(ensemble.k_dim, dtype=tril.dtype, device=tril.device)
    factor = triangular.precision_cholesky(torch.lerp(own, seen / len(roots), share))
    # Members so different that the numbers overflow, at extreme inputs, stay as they are.
    good = torch.isfinite(seen + factor).all(-1).all(-1).all(0)[..., None, None]
    pooled = torch.where(good, tril @ factor, tril)
    return GaussianEnsemble.from_precision_tril(ensemble.means, pooled, validate_args=False)
