"""The scale on which networks learn a target: fitted maps, and the choice between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.distributions import Normal, TransformedUnivariate
from priornet.nn.architecture import Network
from priornet.special.maps import CoordinateMaps, MonotoneMap
from priornet.tables.learning import FloatArray, Scaling, clip_targets, target_scaling
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.raw import take_rows
from priornet.tables.target_maps import fit_map, map_targets
from priornet.training import Rows
from priornet.training.objectives import likelihood
from priornet.training.stack_training import (
    Plan,
    StackRows,
    TrainingSettings,
    network_seeds,
    train_stack,
)

_LEAST, _MOST = 100, 4000  # rows for a choice
_PARTS = 4  # one of which is held out
_FOLDS, _FEW = 3, 1500  # parts that are held out in turn, of fewer rows than these
_MOST_ERROR = 1.05  # root mean squared error, to that without a map
_SLIGHT = 0.01  # nats for which no map is worth its while
_WIDTHS, _BATCH, _STEPS = (32, 32), 64, 1200

Maps = tuple[MonotoneMap, ...] | None


def fit_maps(kind: str, y: FloatArray, weight: FloatArray | None, names: Sequence[str]) -> Maps:
    """Fit one map to each column of the training targets ``(N, K)``; None for targets as they are.

    Constant targets are left to the check of their scaling.
    """
    if kind == "none" or (np.ptp(y, axis=0) == 0).any():
        return None
    return tuple(fit_map(kind, y[:, k], weight, name) for k, name in enumerate(names))


def choose_transform(
    preprocessor: TablePreprocessor,
    table: Any,
    y: FloatArray,
    weight: FloatArray | None,
    names: Sequence[str],
    rng: np.random.RandomState,
) -> str:
    """Choose a transform by the likelihood of held-out targets in their own units.

    One small Gaussian network a candidate, trained side by side on the same rows from the same
    first weights; below 1500 rows three times, on other rows. The first candidate within one
    standard error and 0.01 nats of the best is chosen, in the order of
    :data:`priornet.methods.TargetTransform`, if its mean is at most 5 % worse than without a map.
    Tables of fewer than 100 rows keep ``"none"``.

    Args:
        preprocessor: Fitted.
        table: Training rows.
        y: Their targets, shape ``(N, K)``.
        weight: Their weights.
        names: Names of the targets.
        rng: Draws rows and seeds.
    """
    if len(y) < _LEAST:
        return "none"
    rows = rng.permutation(len(y))[:_MOST]
    y, weight = y[rows], np.ones(len(rows)) if weight is None else weight[rows]
    inputs = preprocessor.within(preprocessor.transform(take_rows(table, rows)))
    kinds, seeds = _candidates(y), network_seeds(rng, 1)
    n_folds = _FOLDS if len(y) < _FEW else 1
    held = [np.arange(len(y)) % _PARTS == fold for fold in range(n_folds)]
    if any((np.ptp(y[~own], axis=0) == 0).any() for own in held):
        return "none"  # a rare value, which some network would not see
    parts = [_held_out(inputs, y, weight, own, (kinds, names), seeds) for own in held]
    found = _HeldOut(*(torch.cat(part, 1) for part in zip(*parts, strict=True)))
    share = torch.from_numpy(np.concatenate([weight[own] for own in held]))
    return kinds[_simplest(found, share / share.sum())]


class _HeldOut(NamedTuple):
    """Log-likelihood and squared error of held-out rows, each ``(C, rows)``."""

    log_prob: Tensor
    square: Tensor


def _simplest(found: _HeldOut, share: Tensor) -> int:
    """Find the first candidate that is nearly as likely as the best, given each row's share.

    The mean under a map with a wide tail may be far worse than that of a network without; such a
    candidate is left out.
    """
    errors = (found.square @ share).sqrt()
    allowed = errors <= _MOST_ERROR * errors[0]
    allowed[0] = True
    scores = (found.log_prob @ share).nan_to_num(-torch.inf).where(allowed, -torch.inf)
    gaps = found.log_prob[scores.argmax()] - found.log_prob
    noise = (gaps.var(1, correction=0) * share.square().sum()).sqrt()
    good = allowed & (gaps @ share <= noise + _SLIGHT)
    return int(good.int().argmax())


def _candidates(y: FloatArray) -> list[str]:
    return ["none", *(["log"] if (y > 0).all() else []), "asinh", "yeo-johnson", "quantile"]


class _Units:
    """Maps and scaling of a candidate, from the rows that it learns from."""

    def __init__(self, kind: str, y: FloatArray, weight: FloatArray, names: Sequence[str]) -> None:
        self.maps = fit_maps(kind, y, weight, names)
        self.names = names
        mapped = clip_targets(self._mapped(y), np.arange(len(y)))
        self.scaling: Scaling = target_scaling(mapped, weight, tuple(names))

    def _mapped(self, y: FloatArray) -> FloatArray:
        return y if self.maps is None else map_targets(y, self.maps, self.names)

    def standardised(self, y: FloatArray) -> FloatArray:
        """Return the targets as a network learns them."""
        return (self._mapped(y) - self.scaling.shift) / self.scaling.scale

    def mean(self, loc: Tensor, scale: Tensor) -> Tensor:
        """Return the mean in units of the target of standardised normals, ``(N, K)``."""
        shift, unit = map(torch.from_numpy, self.scaling)
        loc, scale = shift + unit * loc, unit * scale
        if self.maps is None:
            return loc
        return TransformedUnivariate(Normal(loc, scale), CoordinateMaps(self.maps)).mean

    def log_slope(self, y: FloatArray) -> Tensor:
        """Compute ln |dz/dy| of each row."""
        slope = torch.full((len(y),), -float(np.log(self.scaling.scale).sum()), dtype=torch.float64)
        if self.maps is None:
            return slope
        return slope - CoordinateMaps(self.maps).log_slope(torch.tensor(self._mapped(y))).sum(-1)


def _held_out(
    inputs: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    held: NDArray[np.bool_],
    candidates: tuple[Sequence[str], Sequence[str]],
    seeds: list[int],
) -> _HeldOut:
    """Train one network for each kind of map, on rows that are not held, and score those held."""
    kinds, names = candidates
    units = [_Units(kind, y[~held], weight[~held], names) for kind in kinds]
    n, count = len(y), len(units)
    x = torch.tensor(inputs, dtype=torch.float32)
    z = torch.tensor(np.stack([own.standardised(y) for own in units]), dtype=torch.float32)
    # Each candidate has a copy of the rows, with its own targets.
    mass = torch.tensor(weight / weight.mean(), dtype=torch.float32).repeat(count)
    data = Rows(x.repeat(count, 1), z.flatten(0, 1), mass)
    place = torch.from_numpy(np.flatnonzero(held))
    others = torch.from_numpy(np.flatnonzero(~held))
    own, train = ([part + c * n for c in range(count)] for part in (place, others))
    size = min(_BATCH, len(others))
    epochs = min(max(round(_STEPS * size / len(others)), 20), 100)
    stack = Network(x.shape[1], _WIDTHS, y.shape[1], "gaussian").build(seeds * count, x)
    settings = TrainingSettings(1e-2, 1e-3, Plan(epochs, size, 10))
    train_stack(stack, StackRows(data, train, own), likelihood, seeds * count, settings)
    with torch.no_grad():
        found = stack(x[place].expand(count, -1, -1))
        log_prob = found.log_prob(z[:, place]).double()
        means, scales = found.loc.double(), found.variance.double().sqrt()
    known, spread = torch.tensor(y[held]), torch.tensor(y.std(0))
    squares = [
        ((own.mean(mean, scale) - known) / spread).square().mean(-1)
        for own, mean, scale in zip(units, means, scales, strict=True)
    ]
    slopes = torch.stack([own.log_slope(y[held]) for own in units])
    return _HeldOut(log_prob + slopes, torch.stack(squares))
