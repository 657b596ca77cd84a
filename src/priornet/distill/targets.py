"""What a student learns from a teacher's Gaussians, as columns of numbers per input.

The teacher answers once per input of the transfer set; a step then only gathers rows. Each kind of
target packs an ensemble into columns, and gives the loss of a prediction against them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from priornet import losses
from priornet.distill.answers import Answers, pool_covariances
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

__all__ = ["Targets", "pack_answers", "targets_for"]


class Targets(ABC):
    """Packs what a loss needs to know of the teacher, and unpacks it in a batch.

    Args:
        n_targets: Target dimension K.
        n_members: Number of teachers M.
    """

    def __init__(self, n_targets: int, n_members: int) -> None:
        self.n_targets, self.n_members = n_targets, n_members

    @property
    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of what is kept per input."""

    @abstractmethod
    def fields(self, teacher: GaussianEnsemble) -> Mapping[str, Tensor]:
        """What is kept per input, each ``(N, *shape)``."""

    @abstractmethod
    def compare(
        self, prediction: Any, fields: dict[str, Tensor], temperature: Tensor | float
    ) -> Tensor:
        """Loss per element of a prediction."""

    def pack(self, teacher: GaussianEnsemble) -> Tensor:
        """Columns ``(N, C)``."""
        fields = self.fields(teacher)
        return torch.cat([fields[name].reshape(len(fields[name]), -1) for name in self.shapes], -1)

    def loss(self, prediction: Any, columns: Tensor, temperature: Tensor | float = 1.0) -> Tensor:
        """Loss per element, from columns ``(*batch, C)``."""
        return self.compare(prediction, self.unpack(columns), temperature)

    def unpack(self, columns: Tensor) -> dict[str, Tensor]:
        """What :meth:`pack` put into columns ``(*batch, C)``."""
        sizes = [math.prod(shape) for shape in self.shapes.values()]
        parts = zip(self.shapes.items(), columns.split(sizes, -1), strict=True)
        return {
            name: part.unflatten(-1, shape) if shape else part.squeeze(-1)
            for (name, shape), part in parts
        }


class _Proxy(Targets):
    """The Normal-Wishart fitted to the members in closed form."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        k = self.n_targets
        return {"loc": (k,), "precision_tril": (k, k), "belief": (), "excess": ()}

    def fields(self, teacher: GaussianEnsemble) -> Mapping[str, Tensor]:
        nw = NormalWishart.fit(teacher, max_belief=1e5, max_excess=1e5)
        return {name: getattr(nw, name) for name in self.shapes}

    def compare(
        self, prediction: Any, fields: dict[str, Tensor], temperature: Tensor | float
    ) -> Tensor:
        return losses.proxy(prediction, NormalWishart.from_excess(**fields, validate_args=False))


class _Likelihood(Targets):
    """Averages over the members: all that EnD2 at temperature 1 wants to know."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        k = self.n_targets
        return {"anchor": (k,), "shift": (k,), "precision_tril": (k, k), "spread": (), "gap": ()}

    def fields(self, teacher: GaussianEnsemble) -> Mapping[str, Tensor]:
        return precision_averages(teacher)._asdict()

    def compare(
        self, prediction: Any, fields: dict[str, Tensor], temperature: Tensor | float
    ) -> Tensor:
        return losses.endd(prediction, PrecisionAverages(**fields))


class _Moments(Targets):
    """Averages over the members for one Gaussian, EnD."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        k = self.n_targets
        return {
            "anchor": (k,),
            "shift": (k,),
            "precision_tril": (k, k),
            "scatter": (k, k),
            "gap": (),
        }

    def fields(self, teacher: GaussianEnsemble) -> Mapping[str, Tensor]:
        return covariance_averages(teacher)._asdict()

    def compare(
        self, prediction: Any, fields: dict[str, Tensor], temperature: Tensor | float
    ) -> Tensor:
        return losses.end(prediction, CovarianceAverages(**fields))


class _Members(Targets):
    """The members themselves: for EnD2 with an annealed temperature, and for MD-EnD."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        m, k = self.n_members, self.n_targets
        return {"means": (m, k), "precision_tril": (m, k, k)}

    def fields(self, teacher: GaussianEnsemble) -> Mapping[str, Tensor]:
        return {
            "means": teacher.means.movedim(0, 1),
            "precision_tril": teacher.precision_tril.movedim(0, 1),
        }

    def teacher(self, fields: dict[str, Tensor]) -> GaussianEnsemble:
        """The ensemble of a batch."""
        return GaussianEnsemble.from_precision_tril(
            fields["means"].movedim(-2, 0),
            fields["precision_tril"].movedim(-3, 0),
            validate_args=False,
        )


class _Annealed(_Members):
    def __init__(self, n_targets: int, n_members: int, tempering: Tempering) -> None:
        super().__init__(n_targets, n_members)
        self.tempering: Tempering = tempering

    def compare(
        self, prediction: Any, fields: dict[str, Tensor], temperature: Tensor | float
    ) -> Tensor:
        return losses.endd(prediction, self.teacher(fields), temperature, self.tempering)


class _Mixture(_Members):
    def compare(
        self, prediction: Any, fields: dict[str, Tensor], temperature: Tensor | float
    ) -> Tensor:
        return losses.md_end(prediction, self.teacher(fields))


def targets_for(
    objective: Objective,
    n_targets: int,
    n_members: int,
    *,
    proxy: bool,
    annealed: bool,
    tempering: Tempering = "mean-preserving",
) -> Targets:
    """The kind of target for an objective.

    Args:
        objective: EnD2, EnD or MD-EnD.
        n_targets: Target dimension K.
        n_members: Number of teachers M.
        proxy: EnD2 by the Normal-Wishart fitted to the members, not by their likelihood.
        annealed: EnD2 by likelihood with a temperature above 1.
        tempering: What that temperature does to the prediction, see :func:`losses.endd`.
    """
    if objective == "end":
        return _Moments(n_targets, n_members)
    if objective == "md-end":
        return _Mixture(n_targets, n_members)
    if proxy:
        return _Proxy(n_targets, n_members)
    if annealed:
        return _Annealed(n_targets, n_members, tempering)
    return _Likelihood(n_targets, n_members)


def pack_answers(
    make: Callable[[int, int], list[Targets]],
    answers: Iterator[Answers],
    like: Tensor,
    pooled: float = 0.0,
) -> tuple[list[tuple[Targets, Tensor]], Tensor]:
    """Answers as columns for the loss, for each kind of targets; and which inputs have one.

    Args:
        make: ``(number of targets, number of members) -> kinds of targets``.
        answers: Of the teacher, in pieces.
        like: A tensor of the dtype and on the device for the columns.
        pooled: Share of a member's covariance that is taken from all.
    """
    kinds: list[Targets] = []
    pieces: list[list[Tensor]] = []
    kept: list[Tensor] = []
    for answer in answers:
        ensemble = pool_covariances(answer.ensemble, pooled)
        kinds = kinds or make(ensemble.k_dim, ensemble.n_members)
        pieces.append([targets.pack(ensemble).to(like) for targets in kinds])
        kept.append(answer.kept)
    columns = [torch.cat(own) for own in zip(*pieces, strict=True)]
    return list(zip(kinds, columns, strict=True)), torch.cat(kept)
