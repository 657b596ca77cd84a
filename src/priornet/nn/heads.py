"""Heads: features in, distributions out.

Every head is a linear map (per row, or per pixel as a 1x1 convolution) and one function that splits
its outputs into parameters; each bound of a parameter is a named argument. The linear map starts at
zero (``init_gain``), so the first prediction is the prior of standardised targets: mean 0,
precision 1, and the initial evidence.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from priornet.checks import is_fusing, lifted
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart, ProductNormalWishart
from priornet.distributions.factors import Factor
from priornet.losses._closed_form import Leaf

Covariance = Literal["full", "diagonal"]

_FEW_OUTPUTS = 8  # for more outputs a GPU's matrix units are faster


class BoundedExp:
    r"""Smooth map of the real line onto ``(low, high)``, an exponential in between.

    .. math:: \ln f(z) = \ln low + \ln(high/low)\;\sigma\!\left(\frac{4 (z -
    z_0)}{\ln(high/low)}\right)

    with :math:`z_0` such that :math:`f(0)` is ``initial``. Halfway (in logs) between the bounds
    one unit of z is one e-fold; towards a bound the slope fades, so a network that runs away
    saturates instead of overflowing, and for an ensemble of equal members the best value is
    ``high``, not infinity.

    Args:
        low: Lower bound, positive.
        high: Upper bound.
        initial: Value at z = 0, strictly between the bounds.
    """

    def __init__(self, low: float, high: float, initial: float) -> None:
        if not 0 < low < initial < high < math.inf:
            raise ValueError(
                f"bounds must satisfy 0 < low < initial < high; got low = {low:g}, initial = "
                f"{initial:g}, high = {high:g}."
            )
        self.low, self.high, self.initial = low, high, initial
        log_range = math.log(high / low)
        share = math.log(initial / low) / log_range
        shift = math.log(share / (1 - share))  # logit: f(0) = initial
        self.constants = (4 / log_range, shift, log_range, math.log(low))
        """Slope and shift of the logit, range and lower end of the logarithm."""

    def log(self, z: Tensor) -> Tensor:
        """Compute the logarithm of the value."""
        slope, shift, log_range, log_low = self.constants
        return log_low + log_range * torch.sigmoid(z * slope + shift)

    def __call__(self, z: Tensor) -> Tensor:
        """Compute the value."""
        return torch.exp(self.log(z))


class BoundedExps:
    """Several such maps, a column each, in one pass: of small batches every operation costs time.

    Args:
        maps: One per column.
    """

    def __init__(self, *maps: BoundedExp) -> None:
        self.maps = maps
        self._cache: dict[tuple[torch.dtype, torch.device], tuple[Tensor, ...]] = {}

    def __call__(self, z: Tensor) -> Tensor:
        """Compute the values of columns, ``(*batch, n)`` both."""
        if torch.compiler.is_compiling():  # a compiler fuses by itself, and must not see the cache
            columns = zip(self.maps, z.unbind(-1), strict=True)
            return torch.stack([one(column) for one, column in columns], -1)
        slope, shift, log_range, log_low = self._constants(z)
        share = torch.sigmoid(torch.addcmul(shift, z, slope))
        return torch.exp(torch.addcmul(log_low, share, log_range))

    def apply_(self, z: Tensor) -> Tensor:
        """Write the values of columns over them, without a graph, and return the derivatives."""
        slope, shift, log_range, log_low = self._constants(z)
        share = torch.addcmul(shift, z, slope).sigmoid_()
        values = torch.exp(torch.addcmul(log_low, share, log_range), out=z)
        # The sigmoid's derivative times the value; slope times range is 4.
        return torch.ops.aten.sigmoid_backward(values, share).mul_(4)

    def _constants(self, z: Tensor) -> tuple[Tensor, ...]:
        key = (z.dtype, z.device)
        if key not in self._cache:
            rows = [one.constants for one in self.maps]
            self._cache[key] = tuple(z.new_tensor(row) for row in zip(*rows, strict=True))
        return self._cache[key]


def with_first_weights(layer: nn.Linear | nn.Conv2d, gain: float) -> nn.Module:
    """Scale the first weights of a layer, and set its bias to zero."""
    with torch.no_grad():
        layer.weight.mul_(gain)
        assert layer.bias is not None
        layer.bias.zero_()
    return layer


def _joins_sums(projection: nn.Module) -> bool:
    """Check if :func:`_projected_by_sums` is quicker: few outputs, and a compiler at work."""
    return (
        is_fusing()
        and isinstance(projection, nn.Conv2d)
        and projection.kernel_size == (1, 1)
        and projection.groups == 1
        and projection.out_channels <= _FEW_OUTPUTS
    )


def _projected_by_sums(projection: Any, features: Tensor) -> Tensor:
    """Compute a 1x1 convolution, outputs last, as weighted sums over the channels of a pixel.

    A convolution reads its input from memory, and widens half precision to float32. A compiler
    computes these sums together with the features, or reads the features as they are.
    """
    x, bias = features.movedim(-3, -1), projection.bias
    outputs = torch.stack([(x * row).sum(-1) for row in projection.weight.flatten(1)], -1)
    return outputs if bias is None else outputs + bias


def _check_count(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1; got {value}.")


def _inverse_scale(min_scale: float, max_scale: float) -> BoundedExp:
    """Make the map for the inverse scale: 1, the scale of standardised targets, at output 0."""
    if not 0 < min_scale < 1 < max_scale < math.inf:
        raise ValueError(
            "`min_scale` must lie between 0 and 1 and `max_scale` above 1 (targets are "
            f"standardised); got {min_scale:g} and {max_scale:g}."
        )
    return BoundedExp(1 / max_scale, 1 / min_scale, 1.0)


def _evidence_map(name: str, low: float, high: float, initial: float) -> BoundedExp:
    if not 0 < low < initial < high < math.inf:
        raise ValueError(
            f"`initial_{name}` must lie strictly between `min_{name}` = {low:g} > 0 and "
            f"`max_evidence` = {high:g}; got {initial:g}."
        )
    return BoundedExp(low, high, initial)


def _n_gaussian(n_targets: int, covariance: str) -> int:
    """Count the outputs for the parameters of a Gaussian."""
    _check_count("n_targets", n_targets)
    if covariance not in ("full", "diagonal"):
        raise ValueError(f'unknown covariance "{covariance}"; choose one of: full, diagonal.')
    return n_targets + (n_targets * (n_targets + 1) // 2 if covariance == "full" else n_targets)


def split_gaussian(
    raw: Tensor, k_dim: int, covariance: Covariance, inverse_scale: BoundedExp
) -> tuple[Tensor, Tensor]:
    r"""Split outputs ``(*batch, n)`` into a mean and the Cholesky factor of a precision.

    The factor is :math:`C = \mathrm{diag}(s)\,U` with inverse scales s and U unit lower
    triangular: its free entries are pure numbers, whatever the units of the target.
    """
    loc, scales, lower = raw.split([k_dim, k_dim, raw.shape[-1] - 2 * k_dim], -1)
    s = inverse_scale(scales)
    if k_dim == 1:
        return loc, s.unsqueeze(-1)
    if covariance == "diagonal":
        return loc, torch.diag_embed(s)
    zero = torch.zeros_like(s[..., 0])
    planes: list[Tensor] = []
    free = iter(lower.unbind(-1))
    for i in range(k_dim):
        row = s[..., i]
        planes += [row * next(free) for _ in range(i)] + [row] + [zero] * (k_dim - 1 - i)
    stacked = torch.stack(planes)  # (K*K, *batch): each entry stays contiguous
    return loc, stacked.unflatten(0, (k_dim, k_dim)).movedim((0, 1), (-2, -1))


class Head(nn.Module):
    """A projection whose outputs come last, per row or per pixel, in at least float32."""

    # Maps of all parameters but the mean, for heads with one output per parameter.
    _columns: BoundedExps | None = None

    def __init__(self, in_features: int, n_outputs: int, per_pixel: bool, init_gain: float) -> None:
        super().__init__()
        self.per_pixel = per_pixel
        self.in_features, self.n_outputs, self.init_gain = in_features, n_outputs, init_gain
        sizes = in_features, n_outputs
        layer = nn.Conv2d(*sizes, 1) if per_pixel else nn.Linear(*sizes)
        self.projection: nn.Module = with_first_weights(layer, init_gain)

    def raw(self, features: Tensor) -> Tensor:
        """Compute unconstrained outputs ``(*batch, n)``."""
        if _joins_sums(self.projection):
            return lifted(_projected_by_sums(self.projection, features))
        out = self.projection(features)
        return lifted(out.movedim(-3, -1) if self.per_pixel else out)

    def distribution(self, raw: Tensor) -> Any:
        """Turn unconstrained outputs ``(*batch, n)`` into a distribution."""
        raise NotImplementedError

    def _from_columns(self, loc: Tensor, columns: Tensor) -> Any:
        """Make the distribution from a mean ``(*batch, 1)`` and the other parameters."""
        raise NotImplementedError

    def leaf(self, raw: Tensor) -> Leaf:
        """Make the distribution of a training step, and overwrite the outputs, without a graph."""
        if self._columns is None:
            outputs = raw.detach().requires_grad_()
            return Leaf(self.distribution(outputs), outputs)
        slope = self._columns.apply_(raw[..., 1:])
        parameters = raw.detach().requires_grad_()
        prediction = self._from_columns(parameters[..., :1], parameters[..., 1:])
        return Leaf(prediction, parameters, slope)

    def forward(self, features: Tensor) -> Any:
        """Predict a distribution per element from features."""
        return self.distribution(self.raw(features))


@dataclass(eq=False, repr=False)
class GaussianHead(Head):
    """Features to a :class:`~priornet.distributions.Gaussian`.

    Example:
        >>> GaussianHead(8, 2)(torch.randn(5, 8)).variance.shape
        torch.Size([5, 2])
    """

    in_features: int
    """Width of the features (channels, per pixel)."""
    n_targets: int = 1
    """Target dimension K."""
    _: KW_ONLY
    covariance: Covariance = "full"
    """Full, or independent coordinates."""
    per_pixel: bool = False
    """Features are images ``(B, C, H, W)``; the batch shape becomes ``(B, H, W)``."""
    min_scale: float = 1e-4
    """Smallest standard deviation of a coordinate given the later ones."""
    max_scale: float = 1e4
    """Largest such standard deviation."""
    init_gain: float = 0.0
    """Scale of the initial weights; 0 starts at the prior exactly."""

    def __post_init__(self) -> None:
        n_outputs = _n_gaussian(self.n_targets, self.covariance)
        super().__init__(self.in_features, n_outputs, self.per_pixel, self.init_gain)
        self._inverse_scale = _inverse_scale(self.min_scale, self.max_scale)
        if self.n_targets == 1:
            self._columns = BoundedExps(self._inverse_scale)

    def _from_columns(self, loc: Tensor, columns: Tensor) -> Gaussian:
        return Gaussian.from_factor(loc, Factor(columns.unsqueeze(-1), of_precision=True))

    def distribution(self, raw: Tensor) -> Gaussian:
        """Make a Gaussian per element from unconstrained outputs ``(*batch, n)``."""
        if self._columns is not None:
            loc, rest = raw.split(1, -1)
            return self._from_columns(loc, self._columns(rest))
        loc, tril = split_gaussian(raw, self.n_targets, self.covariance, self._inverse_scale)
        return Gaussian.from_factor(loc, Factor(tril, of_precision=True))


@dataclass(eq=False, repr=False)
class NormalWishartHead(Head):
    r"""Features to a Normal-Wishart, Eq. (3), or to a product of them for diagonal targets.

    Before training it predicts ``semi_informative_prior(y, initial_belief, initial_excess)`` of
    standardised targets. Belief and excess are bounded exponentials (:class:`BoundedExp`): never
    zero, never infinite. Options without a description: see :class:`GaussianHead`.

    Note:
        The prior of Eq. (10) has belief 0.01, but starting there is slow: reverse KL with
        :math:`\hat\beta = 100` has a slope of :math:`\hat\beta K/(2\kappa) = 5000` in the
        log-belief, which Adam remembers for a thousand steps; towards small excess the slope of
        EnD2 fades instead. From 10 both train well.

    Example:
        >>> head = NormalWishartHead(8, 2)
        >>> head(torch.randn(5, 8)).mutual_information().shape
        torch.Size([5])
    """

    in_features: int
    n_targets: int = 1
    _: KW_ONLY
    covariance: Covariance = "full"
    """Full, or a product of K one-dimensional Normal-Wisharts."""
    tied_evidence: bool = False
    """One output for both: excess = belief (the paper's public code ties them)."""
    per_pixel: bool = False
    min_scale: float = 1e-4
    """Smallest value of the root of an inverse expected precision."""
    max_scale: float = 1e4
    """Largest such value."""
    min_belief: float = 1e-4
    """Lower bound of the belief."""
    min_excess: float = 1e-4
    """Lower bound of the excess. A student of an ensemble does well with 1: members that differ
    widely want less than 0, where variances do not exist."""
    max_evidence: float = 1e6
    """Upper bound of belief and excess."""
    initial_belief: float = 10.0
    """Belief before training."""
    initial_excess: float = 10.0
    """Excess before training."""
    init_gain: float = 0.0

    def __post_init__(self) -> None:
        self._n_gaussian = _n_gaussian(self.n_targets, self.covariance)
        if self.tied_evidence and self.initial_belief != self.initial_excess:
            raise ValueError(
                "`tied_evidence` uses one number for both; `initial_belief` and `initial_excess` "
                f"must agree, got {self.initial_belief:g} and {self.initial_excess:g}."
            )
        n_per_kind = self.n_targets if self.covariance == "diagonal" else 1
        n_outputs = self._n_gaussian + n_per_kind * (1 if self.tied_evidence else 2)
        super().__init__(self.in_features, n_outputs, self.per_pixel, self.init_gain)
        self._inverse_scale = _inverse_scale(self.min_scale, self.max_scale)
        most = self.max_evidence
        self._belief = _evidence_map("belief", self.min_belief, most, self.initial_belief)
        self._excess = _evidence_map("excess", self.min_excess, most, self.initial_excess)
        if self.n_targets == 1 and self.covariance == "full" and not self.tied_evidence:
            self._columns = BoundedExps(self._inverse_scale, self._belief, self._excess)

    def _from_columns(self, loc: Tensor, columns: Tensor) -> NormalWishart:
        root, belief, excess = columns.unbind(-1)
        tril = root[..., None, None]
        return NormalWishart.unchecked(loc=loc, precision_tril=tril, belief=belief, excess=excess)

    def distribution(self, raw: Tensor) -> NormalWishart | ProductNormalWishart:
        """Make a Normal-Wishart per element from unconstrained outputs ``(*batch, n)``."""
        if self._columns is not None:
            loc, rest = raw.split([1, 3], -1)
            return self._from_columns(loc, self._columns(rest))
        gaussian, evidence = raw[..., : self._n_gaussian], raw[..., self._n_gaussian :]
        if self.tied_evidence:
            belief = excess = self._belief(evidence)
        else:
            z_belief, z_excess = evidence.chunk(2, -1)
            belief, excess = self._belief(z_belief), self._excess(z_excess)
        if self.covariance == "diagonal":
            loc, scales = gaussian.split(self.n_targets, -1)
            precision = torch.exp(2 * self._inverse_scale.log(scales))
            return ProductNormalWishart.unchecked(
                loc=loc, precision=precision, belief=belief, excess=excess
            )
        loc, tril = split_gaussian(gaussian, self.n_targets, "full", self._inverse_scale)
        belief, excess = belief.squeeze(-1), excess.squeeze(-1)
        return NormalWishart.unchecked(loc=loc, precision_tril=tril, belief=belief, excess=excess)


@dataclass(eq=False, repr=False)
class GaussianMixtureHead(Head):
    """Features to M Gaussians, one per member of an ensemble to distil (MD-EnD).

    Options without a description: see :class:`GaussianHead`.

    Example:
        >>> GaussianMixtureHead(8, 1, n_members=5)(torch.randn(3, 8)).n_members
        5
    """

    in_features: int
    n_targets: int = 1
    _: KW_ONLY
    n_members: int
    """Number of Gaussians M."""
    covariance: Covariance = "full"
    per_pixel: bool = False
    min_scale: float = 1e-4
    max_scale: float = 1e4
    init_gain: float = 0.0

    def __post_init__(self) -> None:
        n_outputs = self.n_members * _n_gaussian(self.n_targets, self.covariance)
        _check_count("n_members", self.n_members)
        super().__init__(self.in_features, n_outputs, self.per_pixel, self.init_gain)
        self._inverse_scale = _inverse_scale(self.min_scale, self.max_scale)

    def distribution(self, raw: Tensor) -> GaussianEnsemble:
        """Make M Gaussians per element from unconstrained outputs ``(*batch, n)``."""
        members = raw.unflatten(-1, (self.n_members, -1)).movedim(-2, 0)
        loc, tril = split_gaussian(members, self.n_targets, self.covariance, self._inverse_scale)
        return GaussianEnsemble.from_precision_tril(loc, tril, validate_args=False)
