r"""Monotone maps of the line: units y of a target to a scale t on which it is nearly normal.

Each is :math:`y = h(t) = a + b\,u(t)` with a core u that rises, and :math:`t = g(y)` its inverse.
Between its ends the core has a closed form; from the ends on it goes on linearly with the slope it
has there, so that the wide tail of a Student-T on the scale t stays a tail in y, and does not
explode. All but :class:`QuantileMap` have a continuous slope.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self, get_type_hints

import torch
from torch import Tensor

__all__ = [
    "MAPS",
    "AsinhMap",
    "CoordinateMaps",
    "LogMap",
    "MonotoneMap",
    "QuantileMap",
    "YeoJohnsonMap",
    "map_from_json",
]


@dataclass(frozen=True)
class MonotoneMap(ABC):
    """A map with linear ends.

    Args:
        loc: The value a that is subtracted from y first.
        scale: The unit b > 0 of y.
        low: Lower end on the scale t; below it the map is linear.
        high: Upper end; above it the map is linear.
    """

    loc: float
    scale: float
    low: float
    high: float
    kind: ClassVar[str]
    bends: ClassVar[tuple[float, ...]] = ()
    """Places between the ends at which a derivative of h jumps."""

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf or not math.isfinite(self.loc):
            raise ValueError(
                f"the {self.kind} map needs a finite `loc` and a positive `scale`; got "
                f"{self.loc:g} and {self.scale:g}."
            )
        if not self.low < self.high or not math.isfinite(self.high):
            raise ValueError(
                f"the {self.kind} map needs ends with `low` < `high`; got {self.low:g} and "
                f"{self.high:g}."
            )
        span = self.ends[1] - self.ends[0]
        if not 0 < span * self.scale < math.inf:
            raise ValueError(
                f"the {self.kind} map cannot be inverted between its ends {self.low:g} and "
                f"{self.high:g}: its values there are {self.ends[0]:g} and {self.ends[1]:g}."
            )

    @abstractmethod
    def _core(self, u: Tensor) -> Tensor:
        """Compute t between the ends."""

    @abstractmethod
    def _inverse(self, t: Tensor) -> Tensor:
        """Compute u between the ends."""

    @abstractmethod
    def _log_slope(self, t: Tensor) -> Tensor:
        """Compute ln du/dt between the ends."""

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Return u at both ends."""
        low, high = self._inverse(torch.tensor([self.low, self.high], dtype=torch.float64)).tolist()
        return low, high

    @property
    def edges(self) -> tuple[float, ...]:
        """Return the places on the scale t where a derivative of h jumps, in order."""
        return (self.low, *self.bends, self.high)

    @property
    def is_positive(self) -> bool:
        """Tell if h has only values above ``loc``."""
        return self.low == -math.inf

    def forward(self, y: Tensor) -> Tensor:
        """Compute t = g(y); ``-inf`` where no t gives such a y."""
        u = (y - self.loc) / self.scale
        at = u.clamp(*self.ends)
        t = self._core(at)
        return t + _past(u, at, -self._log_slope(t))

    def inverse(self, t: Tensor) -> Tensor:
        """Compute y = h(t)."""
        at = t.clamp(self.low, self.high)
        u = self._inverse(at) + _past(t, at, self._log_slope(at))
        return self.loc + self.scale * u

    def log_slope(self, t: Tensor) -> Tensor:
        """Compute ln h'(t); ln g'(y) is minus this at t = g(y)."""
        return self._log_slope(t.clamp(self.low, self.high)) + math.log(self.scale)

    def affine(self, shift: float, scale: float) -> Self:
        """Return the map whose values are ``shift + scale * h(t)``."""
        return replace(self, loc=shift + scale * self.loc, scale=scale * self.scale)

    def to_json(self) -> dict[str, Any]:
        """Return the state, ready for JSON, which has no infinity."""
        state = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}
        return {"kind": self.kind, **{k: v for k, v in state.items() if v != -math.inf}}


def _past(value: Tensor, at: Tensor, log_slope: Tensor) -> Tensor:
    """Compute the rise from an end that was passed; 0 within the ends, infinite ones too."""
    return torch.where(value == at, 0.0, (value - at) * torch.exp(log_slope))


@dataclass(frozen=True)
class LogMap(MonotoneMap):
    r"""The logarithm, for positive targets: :math:`u = e^t`, linear above the upper end.

    Its values stay above ``loc``, which is 0 for targets in their own units.

    Example:
        >>> LogMap(0.0, 1.0, high=3.0).inverse(torch.tensor([-1.0, 0.0, 4.0]))
        tensor([ 0.3679,  1.0000, 40.1711])
    """

    low: float = -math.inf
    high: float = 0.0
    kind: ClassVar[str] = "log"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low != -math.inf:
            raise ValueError(f"the log map has no lower end; got `low` {self.low:g}.")

    def _core(self, u: Tensor) -> Tensor:
        return torch.log(u)

    def _inverse(self, t: Tensor) -> Tensor:
        return torch.exp(t)

    def _log_slope(self, t: Tensor) -> Tensor:
        return t


@dataclass(frozen=True)
class AsinhMap(MonotoneMap):
    r"""The inverse hyperbolic sine, :math:`u = \sinh t`: linear at the middle, a logarithm outside.

    Example:
        >>> AsinhMap(0.0, 1.0, -5.0, 5.0).forward(torch.tensor([-1.0, 0.0, 10.0]))
        tensor([-0.8814,  0.0000,  2.9982])
    """

    kind: ClassVar[str] = "asinh"

    def _core(self, u: Tensor) -> Tensor:
        # ln(1 + |u| + (sqrt(1 + u^2) - 1)): odd to the last digit, and precise near 0.
        size = u.abs()
        root = torch.hypot(size, torch.ones_like(size))
        return torch.copysign(torch.log1p(size + size * (size / (1 + root))), u)

    def _inverse(self, t: Tensor) -> Tensor:
        return torch.sinh(t)

    def _log_slope(self, t: Tensor) -> Tensor:
        size = t.abs()
        return size + torch.log1p(torch.exp(-2 * size)) - math.log(2)


@dataclass(frozen=True)
class YeoJohnsonMap(MonotoneMap):
    r"""Yeo and Johnson's power: :math:`t = ((1+u)^\lambda - 1)/\lambda` for :math:`u \ge 0`.

    For negative u it is minus the same of -u with :math:`2 - \lambda`; two continuous derivatives.

    Args:
        power: The parameter :math:`\lambda`; 1 changes nothing.
    """

    power: float = 1.0
    kind: ClassVar[str] = "yeo-johnson"
    bends: ClassVar[tuple[float, ...]] = (0.0,)

    def __post_init__(self) -> None:
        if not math.isfinite(self.power):
            raise ValueError(f"`power` must be finite; got {self.power:g}.")
        super().__post_init__()

    def _exponent(self, sign: Tensor) -> Tensor:
        powers = sign.new_tensor(self.power), sign.new_tensor(2 - self.power)
        return torch.where(sign < 0, powers[1], powers[0])

    def _core(self, u: Tensor) -> Tensor:
        power, v = self._exponent(u), torch.log1p(u.abs())
        grown = torch.expm1(power * v) / torch.where(power == 0, 1.0, power)
        return torch.copysign(torch.where(power == 0, v, grown), u)

    def _log_one_plus(self, t: Tensor) -> Tensor:
        """Compute ln(1 + |u|)."""
        power, size = self._exponent(t), t.abs()
        return torch.where(
            power == 0, size, torch.log1p(power * size) / torch.where(power == 0, 1.0, power)
        )

    def _inverse(self, t: Tensor) -> Tensor:
        return torch.copysign(torch.expm1(self._log_one_plus(t)), t)

    def _log_slope(self, t: Tensor) -> Tensor:
        return (1 - self._exponent(t)) * self._log_one_plus(t)


@dataclass(frozen=True)
class QuantileMap(MonotoneMap):
    """Straight lines between knots, such as quantiles against normal scores; C0, not C1.

    Args:
        knots: Knots on the scale t, rising; ``low`` and ``high`` are the first and the last.
        values: Their u, rising.
    """

    knots: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    kind: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        for name, own in (("knots", self.knots), ("values", self.values)):
            rises = all(b > a for a, b in pairwise(own))
            if len(own) < 2 or len(own) != len(self.knots) or not rises:
                raise ValueError(f"`{name}` must be at least two numbers that rise, one per knot.")
        if not all(map(math.isfinite, (*self.knots, *self.values))):
            raise ValueError("`knots` and `values` must be finite.")
        if (self.low, self.high) != (self.knots[0], self.knots[-1]):
            raise ValueError("`low` and `high` must be the first and the last of `knots`.")
        super().__post_init__()

    @property
    def edges(self) -> tuple[float, ...]:
        """Return the knots."""
        return self.knots

    def _piece(self, at: Tensor, edges: Sequence[float]) -> Tensor:
        """Find the number of the piece that a value is in."""
        return torch.bucketize(at.contiguous(), at.new_tensor(edges[1:-1]))

    def _line(self, at: Tensor, edges: Sequence[float], others: Sequence[float]) -> Tensor:
        piece = self._piece(at, edges)
        x, y = at.new_tensor(edges), at.new_tensor(others)
        return y[piece] + (at - x[piece]) * (y.diff() / x.diff())[piece]

    def _core(self, u: Tensor) -> Tensor:
        return self._line(u, self.values, self.knots)

    def _inverse(self, t: Tensor) -> Tensor:
        return self._line(t, self.knots, self.values)

    def _log_slope(self, t: Tensor) -> Tensor:
        slopes = t.new_tensor(self.values).diff() / t.new_tensor(self.knots).diff()
        return torch.log(slopes)[self._piece(t, self.knots)]


class CoordinateMaps:
    """One map per coordinate of a vector: the last axis.

    Args:
        maps: One per coordinate; None leaves a coordinate as it is.
    """

    def __init__(self, maps: Sequence[MonotoneMap]) -> None:
        self.maps = tuple(maps)

    def __len__(self) -> int:
        return len(self.maps)

    def _each(self, method: str, value: Tensor) -> Tensor:
        columns = [getattr(own, method)(value[..., k]) for k, own in enumerate(self.maps)]
        return torch.stack(columns, -1)

    def forward(self, y: Tensor) -> Tensor:
        """Compute t = g(y)."""
        return self._each("forward", y)

    def inverse(self, t: Tensor) -> Tensor:
        """Compute y = h(t)."""
        return self._each("inverse", t)

    def log_slope(self, t: Tensor) -> Tensor:
        """Compute ln h'(t) of each coordinate."""
        return self._each("log_slope", t)


MAPS: dict[str, type[MonotoneMap]] = {
    own.kind: own for own in (LogMap, AsinhMap, YeoJohnsonMap, QuantileMap)
}


def map_from_json(state: Any) -> MonotoneMap:
    """Build a map from its JSON, and check every field.

    Example:
        >>> map_from_json({"kind": "log", "loc": 0.0, "scale": 2.0, "high": 3.0})
        LogMap(loc=0.0, scale=2.0, low=-inf, high=3.0)
    """
    if not isinstance(state, dict) or state.get("kind") not in MAPS:
        raise ValueError(f"a map has a `kind`, one of {', '.join(MAPS)}; got {state!r:.60}.")
    cls = MAPS[state["kind"]]
    hints = {own.name: get_type_hints(cls)[own.name] for own in fields(cls)}
    given: dict[str, Any] = {}
    for name, value in state.items():
        if name == "kind":
            continue
        if name not in hints:
            raise ValueError(f"the {cls.kind} map has no field {name!r}.")
        is_list = isinstance(value, list)
        numbers: list[Any] = value if is_list else [value]
        if (hints[name] is float) == is_list or not all(map(_is_number, numbers)):
            raise ValueError(f"`{name}` of the {cls.kind} map cannot be {value!r:.60}.")
        converted = tuple(float(number) for number in numbers)
        given[name] = converted if is_list else converted[0]
    missing = {"loc", "scale", "high"} - set(given)
    if cls is not LogMap:
        missing |= set(hints) - set(given)
    if missing:
        raise ValueError(f"the {cls.kind} map lacks {', '.join(sorted(missing))}.")
    return cls(**given)


def _is_number(value: object) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) <= 1e308  # compared first: a whole number may be too large for a float
    )
