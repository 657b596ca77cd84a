"""The base of every distribution: batches, units of the target, quantiles, gamma draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeAlias, TypeVar

import torch
from torch import Generator, Size, Tensor
from torch.distributions import Distribution

from priornet.checks import (
    broadcast_batch,
    check_finite,
    check_greater,
    check_same_kind,
    common_tensors,
    lifted,
    values_visible,
)

Shape: TypeAlias = Size | Sequence[int]


class GaussianParameters(NamedTuple):
    """A point in the space of Gaussians: mean ``(*batch, K)`` and precision ``(*batch, K, K)``."""

    mean: Tensor
    precision: Tensor


class Decomposition(NamedTuple):
    """The same measure of total, data and knowledge uncertainty."""

    total: Tensor
    data: Tensor
    knowledge: Tensor


class BatchDistribution(Distribution):
    """A distribution whose parameters are tensors ``(*batch, *event)``.

    A subclass names its parameters in ``_event_dims``, with the number of trailing axes that are
    not batch. Those of the first, less ``_n_leading`` axes of components, are the event shape.
    Copies keep the attributes in ``_kept`` too.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    # torch declares a property here and assigns class attributes in its own subclasses.
    support: Any = None  # pyright: ignore[reportIncompatibleVariableOverride]
    _event_dims: ClassVar[dict[str, int]] = {}
    _n_leading: ClassVar[int] = 0
    _kept: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def unchecked(cls, **parameters: Tensor) -> Self:
        """Build it from tensors that fit together, as heads and closed forms make them."""
        new = cls.__new__(cls)
        new._set(**parameters)
        return new

    def _set(self, **parameters: Tensor) -> None:
        """Broadcast parameters to their common batch shape, store them in full precision."""
        parameters = {name: lifted(value) for name, value in parameters.items()}
        shapes = [v.shape[: v.dim() - self._event_dims[name]] for name, v in parameters.items()]
        batch = shapes[0]
        if not all(shape == batch for shape in shapes):  # torch's own rule takes 40 us to see it
            batch = torch.broadcast_shapes(*shapes)
        for (name, value), shape in zip(parameters.items(), shapes, strict=True):
            if shape != batch:
                value = value.expand(batch + value.shape[len(shape) :])
            setattr(self, name, value)
        event = self.first.shape[len(batch) + self._n_leading :]
        Distribution.__init__(self, batch, event, validate_args=False)

    @property
    def dtype(self) -> torch.dtype:
        """Return the floating type of the parameters."""
        return self.first.dtype

    @property
    def device(self) -> torch.device:
        """Return the device of the parameters."""
        return self.first.device

    @property
    def first(self) -> Tensor:
        """Return the first parameter, whose dtype and device are those of all."""
        return getattr(self, next(iter(self._event_dims)))

    def checked_value(self, name: str, value: Tensor, event: Shape) -> Tensor:
        """Check the shape of a value to evaluate at, and lift it from half precision."""
        if not isinstance(value, Tensor):
            raise TypeError(f"`{name}` must be a tensor; got {type(value).__name__}.")
        like, value = self.first, lifted(value)
        check_same_kind(name, value, "the distribution", like)
        split = value.dim() - len(event)
        if split < 0 or tuple(value.shape[split:]) != tuple(event):
            raise ValueError(
                f"`{name}` must end in shape {tuple(event)}; got {tuple(value.shape)}."
            )
        broadcast_batch(**{name: value.shape[:split], "distribution": self.batch_shape})
        return value

    def checked_pair(self, value: tuple[Tensor, Tensor], **events: Shape) -> list[Tensor]:
        """Check a mean with a precision or covariance: their batch shapes must fit together."""
        if not isinstance(value, tuple) or len(value) != 2:
            names = ", ".join(events)
            raise TypeError(f"`value` must be a pair ({names}); got {type(value).__name__}.")
        pair: list[Tensor] = []
        batches = {"distribution": self.batch_shape}
        for (name, event), part in zip(events.items(), value, strict=True):
            pair.append(self.checked_value(name, part, event))
            batches[name] = part.shape[: part.dim() - len(event)]
        broadcast_batch(**batches)
        return pair

    def __repr__(self) -> str:
        batch, event = tuple(self.batch_shape), tuple(self.event_shape)
        return f"{type(self).__name__}(batch_shape={batch}, event_shape={event})"

    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Any:
        """Draw without gradient."""
        with torch.no_grad():
            return self.rsample(sample_shape, generator)  # pyright: ignore[reportCallIssue]

    def expand(self, batch_shape: Shape, _instance: object = None) -> Self:
        """Expand the parameters to ``batch_shape``."""
        batch = Size(batch_shape)
        return self._rebatched(batch, lambda v, dims: v.expand(batch + v.shape[v.dim() - dims :]))

    def without_last_axis(self) -> Self:
        """Drop the last batch axis, which has size 1."""
        return self._rebatched(self.batch_shape[:-1], lambda value, dims: value.squeeze(-1 - dims))

    def _rebatched(self, batch: Size, change: Callable[[Tensor, int], Tensor]) -> Self:
        """Copy the distribution with the batch axes of each parameter changed."""
        new = type(self).__new__(type(self))
        for name, event_dims in self._event_dims.items():
            setattr(new, name, change(getattr(self, name), event_dims))
        for name in self._kept:
            setattr(new, name, getattr(self, name))
        Distribution.__init__(new, batch, self.event_shape, validate_args=False)
        return new


Marginal = TypeVar("Marginal", bound=BatchDistribution)


class MarginalQuantiles(BatchDistribution, Generic[Marginal]):
    """A distribution over vectors whose coordinates have quantiles: exposes them for K = 1."""

    def marginals(self) -> Marginal:
        """Return the distribution of each coordinate by itself: batch ``(*batch, K)``."""
        raise NotImplementedError

    def univariate(self) -> Marginal:
        """Return the distribution over numbers for K = 1: batch ``(*batch,)``, event ``()``."""
        if self.event_shape[0] != 1:
            raise ValueError(
                f"a target of K = {self.event_shape[0]} coordinates is not one number; use "
                "`marginals()` for the distribution of each coordinate by itself."
            )
        return self.marginals().without_last_axis()

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of a smaller value, K = 1; shape ``(*batch,)``."""
        self._one_dimensional("cdf")
        return self.marginals().cdf(self.checked_value("value", value, (1,))).squeeze(-1)

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the quantile ``(*batch, 1)`` at probabilities ``(*batch,)``, K = 1."""
        self._one_dimensional("icdf")
        return self.marginals().icdf(self.checked_value("value", value, ()).unsqueeze(-1))

    def _one_dimensional(self, what: str) -> None:
        if self.event_shape[0] != 1:
            raise NotImplementedError(
                f"`{what}` of a vector is not defined for K = {self.event_shape[0]}; "
                f"use `marginals().{what}` for each coordinate."
            )


def affine_map(
    shift: Tensor | float, scale: Tensor | float, loc: Tensor, batch: Size
) -> tuple[Tensor, Tensor, Size]:
    """Check a shift and a positive scale per coordinate against what they are to move.

    Args:
        shift: Shape ``(K,)`` or ``(*batch, K)``; a number stands for every coordinate.
        scale: Positive, likewise.
        loc: A location of the distribution: its last axis, dtype and device count.
        batch: Batch shape of the distribution.

    Returns:
        Shift, scale, and the batch shape of the result.
    """
    _, shift, scale = common_tensors(**{"the distribution": loc, "shift": shift, "scale": scale})
    k_dim = loc.shape[-1]
    parts = {
        name: value.expand(k_dim) if value.dim() == 0 else value
        for name, value in (("shift", shift), ("scale", scale))
    }
    for name, value in parts.items():
        if value.shape[-1] != k_dim:
            raise ValueError(
                f"`{name}` must have shape ({k_dim},) or (*batch, {k_dim}), one value per "
                f"coordinate of the target; got {tuple(value.shape)}."
            )
    shapes = {name: value.shape[:-1] for name, value in parts.items()}
    common = broadcast_batch(**shapes, distribution=batch)
    shift, scale = parts.values()
    if values_visible(shift, scale):
        check_finite("shift", shift)
        check_greater("scale", scale, 0.0)
    return shift, scale, common


def standard_gamma(shape: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw from Gamma(shape, 1) by implicit reparameterisation, differentiable in the shape.

    Like torch, a draw that underflows becomes the smallest positive number: zero would make a
    precision singular.
    """
    # Private, but the only gamma sampler that takes a generator.
    sampler = torch._standard_gamma  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
    draw: Tensor = sampler(shape.contiguous(), generator)
    return draw.clamp(min=torch.finfo(shape.dtype).tiny)
