"""The mixture of Gaussians that an ensemble predicts, and its quantiles."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Generator, Size, Tensor
from torch.distributions import constraints

from priornet.checks import check_parameters, check_shape, values_visible
from priornet.distributions.base import BatchDistribution, MarginalQuantiles, Shape
from priornet.distributions.factors import Factor
from priornet.special import triangular
from priornet.special.elementwise import cache_pieces, normal_cdf

# Steps between looks at which rows are done. Most need five; a row whose probability falls between
# far members may need to halve its bracket down to the last digit.
_ROUNDS = (4, 1, 1, 1, 1, 2, 4, 8, 28)


class _Search(NamedTuple):
    """Rows still looked for: their mixture, and what is known of the quantile."""

    p: Tensor  # (n,), at most 1/2
    means: Tensor  # (M, n)
    rates: Tensor  # 1 / scales, (M, n)
    x: Tensor
    low: Tensor
    high: Tensor
    last: Tensor  # size of the last step


def mixture_quantile(p: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    r"""Solve :math:`\frac1M\sum_m \Phi((x - \mu_m)/\sigma_m) = p` for x; no gradient.

    Halley steps on :math:`\ln F(x) - \ln p`, kept between the extreme quantiles of the members by
    bisection. Rows leave the search when they have converged.

    Args:
        p: Probabilities, shape ``(n,)``.
        means: Member means, shape ``(M, n)``.
        scales: Member standard deviations, shape ``(M, n)``.
    """
    with torch.no_grad():
        pieces = cache_pieces(p.numel(), 2 * len(means), p.device)
        return torch.cat([_quantile(p[s], means[:, s], scales[:, s]) for s in pieces])


def _quantile(p: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    # Upper-tail quantiles are those of the mirrored mixture, where the cdf keeps its digits.
    upper = p > 0.5
    mirror = torch.ones_like(p).masked_fill(upper, -1.0)
    search = _begin(torch.where(upper, 1 - p, p), means * mirror, scales)
    rounds = (*_ROUNDS, 30) if p.dtype == torch.float64 else _ROUNDS
    if not values_visible(p, means, scales):  # which rows are done cannot be seen
        for _ in range(sum(rounds)):
            search, _ = _step(search)
        return search.x * mirror
    x, rows = search.x, torch.arange(p.numel(), device=p.device)
    for count in rounds:
        done = torch.zeros_like(search.p, dtype=torch.bool)
        for _ in range(count):
            search, done = _step(search)
        x = x.index_copy(0, rows, search.x)
        (left,) = torch.nonzero(~done, as_tuple=True)
        if not len(left):
            break
        rows, search = rows[left], _Search(*(part[..., left] for part in search))
    return x * mirror


def _begin(p: Tensor, means: Tensor, scales: Tensor) -> _Search:
    """Begin at the quantile of a normal with these moments, within the members' quantiles."""
    z = torch.special.ndtri(p)
    quantiles = torch.addcmul(means, scales, z)
    low, high = quantiles.amin(0), quantiles.amax(0)
    mean = means.mean(0)
    variance = (scales.square() + (means - mean).square()).mean(0)
    x = torch.clamp(mean + variance.sqrt() * z, low, high)
    return _Search(p, means, scales.reciprocal(), x, low, high, high - low)


def _step(search: _Search) -> tuple[_Search, Tensor]:
    """Take one step; tell which rows had converged before it."""
    p, means, rates, x, low, high, last = search
    z = (x - means) * rates
    # F(x) - p as whole members below x plus tails: between far members only tails differ.
    tail = normal_cdf(-z.abs())
    below = (z > 0).to(z.dtype)
    residual = (below.mean(0) - p) + (tail * (1 - 2 * below)).mean(0)
    parts = torch.exp(-0.5 * z * z) * rates * (1 / math.sqrt(2 * math.pi))
    density, slope = parts.mean(0), -(parts * z * rates).mean(0)
    low, high = torch.where(residual > 0, low, x), torch.where(residual < 0, high, x)
    # g = ln F - ln p, g' = f/F and g''/g' = f'/f - f/F
    level = p + residual
    newton = torch.log1p(residual / p) * level / density
    bend = 1 - 0.5 * newton * (slope / density - density / level)
    step = newton / bend.clamp(0.5, 2.0)  # Newton's, corrected by no more than a factor 2
    eps = torch.finfo(x.dtype).eps
    rounding = 8 * eps * tail.mean(0)  # of the residual; between far members far below eps
    done = (residual.abs() <= rounding) | (step.abs() <= 2 * eps * x.abs())
    new = x - step
    # A step that leaves the bracket, or is not half of the one before, gives way to bisection:
    # without the second rule a spike between two plateaus can send x to and fro.
    good = (new >= low) & (new <= high) & (done | (step.abs() <= 0.5 * last))
    new = torch.where(good, new, torch.where(done, x, 0.5 * (low + high)))
    return _Search(p, means, rates, new, low, high, (new - x).abs()), done


class NormalMixture(BatchDistribution):
    r"""Mixture of M normals over a number, :math:`\frac1M\sum_m\mathcal N(y\mid\mu_m,\sigma_m^2)`.

    Args:
        means: Component means, shape ``(M, *batch)``.
        scales: Component standard deviations, same shape.

    Example:
        >>> NormalMixture(torch.tensor([-1.0, 1.0]), torch.ones(2)).variance
        tensor(2.)
    """

    # The component axis leads the batch; it is stored last so that batches expand.
    _event_dims: ClassVar[dict[str, int]] = {"_means": 1, "_scales": 1}
    _n_leading = 1
    arg_constraints: ClassVar[dict[str, Any]] = {}
    support = constraints.real
    _means: Tensor
    _scales: Tensor

    def __init__(self, means: Tensor, scales: Tensor, validate_args: bool | None = None) -> None:
        numbers = {"means": means, "scales": scales}
        means, scales = check_parameters(validate_args, numbers=numbers)
        check_shape("scales", scales, means.shape, " Both lead with the components of `means`.")
        self._set(_means=means.movedim(0, -1), _scales=scales.movedim(0, -1))

    @property
    def n_components(self) -> int:
        """Return the number of components M."""
        return self._means.shape[-1]

    @property
    def components(self) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations, each ``(*batch, M)``."""
        return self._means, self._scales

    @property
    def mean(self) -> Tensor:
        """Return the mean."""
        return self._means.mean(-1)

    @property
    def variance(self) -> Tensor:
        """Return the variance: mean of the variances plus variance of the means."""
        centred = self._means - self.mean.unsqueeze(-1)
        return self._scales.square().mean(-1) + centred.square().mean(-1)

    def _standardised(self, value: Tensor) -> Tensor:
        return (value.unsqueeze(-1) - self._means) / self._scales

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density."""
        z = self._standardised(self.checked_value("value", value, ()))
        components = -0.5 * z * z - torch.log(self._scales)
        constant = math.log(self.n_components) + 0.5 * math.log(2 * math.pi)
        return components.logsumexp(-1) - constant

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of a smaller value."""
        z = self._standardised(self.checked_value("value", value, ()))
        return normal_cdf(z).mean(-1)

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the quantile at a probability, by bracketed Newton steps; differentiable."""
        value = self.checked_value("value", value, ())
        root = self._root(value)
        if self._is_constant(value):
            return root
        # Newton steps from the converged root carry implicit derivatives, and no value: one step
        # the first, two steps the second and third.
        inside = (value > 0) & (value < 1)
        at = torch.where(inside, root, self.mean.detach())
        for _ in range(2):
            density = torch.exp(self.log_prob(at)).clamp(min=torch.finfo(at.dtype).tiny)
            step = (self.cdf(at) - value) / density
            at = at - (step - step.detach())
        return torch.where(inside, at, root)

    def _root(self, value: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(value.shape, self.batch_shape)
        means, scales = (
            part.detach().expand((*shape, -1)).movedim(-1, 0).reshape(self.n_components, -1)
            for part in (self._means, self._scales)
        )
        return mixture_quantile(value.detach().expand(shape).flatten(), means, scales).reshape(
            shape
        )

    def _is_constant(self, value: Tensor) -> bool:
        """Check that no derivative can be asked for."""
        parts = (value, self._means, self._scales)
        wanted = torch.is_grad_enabled() and any(part.requires_grad for part in parts)
        return values_visible(*parts) and not wanted

    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Draw without gradient."""
        shape = Size(sample_shape) + self.batch_shape
        with torch.no_grad():
            index = torch.randint(
                self.n_components, (*shape, 1), device=self.device, generator=generator
            )
            mean = self._means.expand((*shape, -1)).gather(-1, index).squeeze(-1)
            scale = self._scales.expand((*shape, -1)).gather(-1, index).squeeze(-1)
            noise = torch.randn(shape, dtype=self.dtype, device=self.device, generator=generator)
            return mean + scale * noise


class GaussianMixture(MarginalQuantiles[NormalMixture]):
    r"""Mixture of M Gaussians over vectors, :math:`\frac1M\sum_m \mathcal N(y\mid\mu_m, \Sigma_m)`.

    Args:
        means: Component means, shape ``(M, *batch, K)``.
        precision_tril: Cholesky factors of the component precisions, ``(M, *batch, K, K)``.

    Example:
        >>> mixture = GaussianMixture(torch.zeros(3, 2), torch.eye(2).expand(3, 2, 2))
        >>> mixture.log_prob(torch.zeros(2))
        tensor(-1.8379)
    """

    _event_dims: ClassVar[dict[str, int]] = {"_means": 2, "_tril": 3}
    _n_leading = 1
    arg_constraints: ClassVar[dict[str, Any]] = {}
    support = constraints.real_vector
    _means: Tensor  # (*batch, M, K)
    _tril: Tensor  # (*batch, M, K, K)

    def __init__(
        self, means: Tensor, precision_tril: Tensor, validate_args: bool | None = None
    ) -> None:
        means, precision_tril = check_parameters(
            validate_args, vectors={"means": means}, trils={"precision_tril": precision_tril}
        )
        check_shape("precision_tril", precision_tril, (*means.shape, means.shape[-1]))
        self._set(_means=means.movedim(0, -2), _tril=precision_tril.movedim(0, -3))

    @property
    def mean(self) -> Tensor:
        """Return the mean."""
        return self._means.mean(-2)

    @property
    def covariance_matrix(self) -> Tensor:
        """Return the covariance: mean of the covariances plus covariance of the means."""
        centred = self._means - self.mean.unsqueeze(-2)
        between = (centred.unsqueeze(-1) * centred.unsqueeze(-2)).mean(-3)
        return triangular.inverse_outer(self._tril).mean(-3) + between

    @property
    def variance(self) -> Tensor:
        """Return the variance of each coordinate."""
        return self.covariance_matrix.diagonal(dim1=-2, dim2=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density."""
        value = self.checked_value("value", value, self.event_shape)
        off = value.unsqueeze(-2) - self._means
        square = triangular.sum_of_squares(triangular.transpose_matvec(self._tril, off))
        components = 0.5 * (triangular.logdet(self._tril) - square)
        constant = 0.5 * self.event_shape[0] * math.log(2 * math.pi)
        return components.logsumexp(-1) - constant - math.log(self._means.shape[-2])

    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Draw without gradient."""
        shape = Size(sample_shape) + self.batch_shape
        n_components, k_dim = self._means.shape[-2:]
        with torch.no_grad():
            index = torch.randint(
                n_components, (*shape, 1, 1), device=self.device, generator=generator
            )
            means = self._means.expand((*shape, -1, -1))
            mean = means.gather(-2, index.expand((*shape, 1, k_dim))).squeeze(-2)
            trils = self._tril.expand((*shape, -1, -1, -1))
            picks = index.unsqueeze(-1).expand((*shape, 1, k_dim, k_dim))
            tril = trils.gather(-3, picks).squeeze(-3)
            noise = torch.randn(
                (*shape, k_dim), dtype=self.dtype, device=self.device, generator=generator
            )
            return mean + triangular.transpose_solve(tril, noise)

    def marginals(self) -> NormalMixture:
        """Return the distribution of each coordinate by itself: batch ``(*batch, K)``."""
        scales = Factor(self._tril, of_precision=True).deviations()
        return NormalMixture.unchecked(_means=self._means.mT, _scales=scales.mT)
