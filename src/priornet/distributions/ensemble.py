"""A finite ensemble of Gaussians, answering the same questions as a Normal-Wishart."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Size, Tensor
from torch.distributions import Distribution

from priornet.checks import (
    check_finite,
    check_parameters,
    check_shape,
    check_values,
    checked_target,
    common_tensors,
    wants_check,
)
from priornet.distributions.base import (
    Decomposition,
    GaussianParameters,
    Shape,
    affine_map,
)
from priornet.distributions.factors import Factor
from priornet.distributions.gaussian import Gaussian
from priornet.distributions.mixture import GaussianMixture
from priornet.special import triangular

# Where to cut the line, in standard deviations of each member: between cuts the mixture is smooth,
# however much the members' spreads differ.
_CUTS = (-9.0, -6.0, -4.0, -2.5, -1.2, 0.0, 1.2, 2.5, 4.0, 6.0, 9.0)
_NODES = 6  # in each piece
_DRAWS = 512  # per member; the standard error is then about 0.01 nats
_ROWS_AT_ONCE = 200  # what fits the cache is twice as fast


class GaussianEnsemble(Distribution):
    """M Gaussians per input, seen as M draws from an unknown belief over Gaussians.

    The empirical distribution of Eq. (14), arXiv:2006.11590v2: an ensemble of networks, Monte-Carlo
    dropout or any other committee. Its measures of uncertainty are those of :class:`NormalWishart`;
    the ones without a closed form say so and name the sampled one.

    Args:
        means: Member means, shape ``(M, *batch, K)``.
        covariances: Member covariances ``(M, *batch, K, K)``, or variances ``(M, *batch, K)`` of
            independent coordinates.

    Example:
        >>> ensemble = GaussianEnsemble(torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1))
        >>> ensemble.knowledge_covariance()
        tensor([[1.]])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    has_rsample = False
    means: Tensor
    is_diagonal: bool
    _covariances: Tensor | None  # one of the two is given, the other computed when asked for
    _tril: Tensor | None

    def __init__(
        self, means: Tensor, covariances: Tensor, validate_args: bool | None = None
    ) -> None:
        means, covariances = common_tensors(means=means, covariances=covariances)
        shape = _member_shape(means)
        full = (*shape, shape[-1])
        if tuple(covariances.shape) not in (tuple(shape), full):
            raise ValueError(
                f"`covariances` must have shape {full} (full) or {tuple(shape)} (variances) to go "
                f"with `means` {tuple(shape)}; got {tuple(covariances.shape)}."
            )
        diagonal = covariances.dim() == means.dim()
        if wants_check(validate_args, means, covariances):
            check_finite("means", means)
            check_finite("covariances", covariances)
            variances = covariances if diagonal else covariances.diagonal(dim1=-2, dim2=-1)
            check_values("covariances", variances, variances > 0, "positive (the variances)")
            if not diagonal:
                _check_symmetric(covariances)
        if diagonal:
            one = means.shape[-1] == 1
            covariances = covariances.unsqueeze(-1) if one else torch.diag_embed(covariances)
        self._init(means, covariances, None, diagonal or means.shape[-1] == 1)
        if not self.is_diagonal and wants_check(validate_args, means, covariances):
            good = torch.isfinite(self.precision_tril).all(-1).all(-1)
            check_values("covariances", covariances, good, "positive definite")

    @classmethod
    def from_precision_tril(
        cls, means: Tensor, precision_tril: Tensor, validate_args: bool | None = None
    ) -> Self:
        """Build it from Cholesky factors of the member precisions, ``(M, *batch, K, K)``."""
        means, tril = check_parameters(
            validate_args, vectors={"means": means}, trils={"precision_tril": precision_tril}
        )
        check_shape("precision_tril", tril, (*_member_shape(means), means.shape[-1]))
        return cls._made(means, None, tril, means.shape[-1] == 1)

    @classmethod
    def _made(
        cls, means: Tensor, covariances: Tensor | None, tril: Tensor | None, diagonal: bool
    ) -> Self:
        new = cls.__new__(cls)
        new._init(means, covariances, tril, diagonal)
        return new

    def _init(
        self, means: Tensor, covariances: Tensor | None, tril: Tensor | None, diagonal: bool
    ) -> None:
        self.means, self._covariances, self._tril = means, covariances, tril
        self.is_diagonal = diagonal
        Distribution.__init__(self, means.shape[1:-1], means.shape[-1:], validate_args=False)

    def expand(self, batch_shape: Shape, _instance: object = None) -> Self:
        """Expand the batch to ``batch_shape``."""
        lead = (self.n_members, *batch_shape)
        k_dim = self.k_dim

        def stretch(value: Tensor, event: tuple[int, ...]) -> Tensor:
            missing = len(lead) + len(event) - value.dim()
            shape = (value.shape[0], *(1,) * missing, *value.shape[1:])
            return value.reshape(shape).expand(lead + event)

        return self._made(
            stretch(self.means, (k_dim,)),
            None if self._covariances is None else stretch(self._covariances, (k_dim, k_dim)),
            None if self._tril is None else stretch(self._tril, (k_dim, k_dim)),
            self.is_diagonal,
        )

    def __repr__(self) -> str:
        shapes = f"batch_shape={tuple(self.batch_shape)}, event_shape={tuple(self.event_shape)}"
        return f"GaussianEnsemble(n_members={self.n_members}, {shapes})"

    @property
    def n_members(self) -> int:
        """Return the number of members M."""
        return self.means.shape[0]

    @property
    def k_dim(self) -> int:
        """Return the target dimension K."""
        return self.means.shape[-1]

    @property
    def covariances(self) -> Tensor:
        """Return the member covariances, ``(M, *batch, K, K)``."""
        if self._covariances is not None:
            return self._covariances
        covariances = triangular.inverse_outer(self.precision_tril)
        self._covariances = covariances if _may_keep() else None
        return covariances

    @property
    def precision_tril(self) -> Tensor:
        """Return the Cholesky factors of the member precisions, ``(M, *batch, K, K)``."""
        if self._tril is not None:
            return self._tril
        tril = triangular.precision_cholesky(self.covariances)
        self._tril = tril if _may_keep() else None
        return tril

    @property
    def has_precision_tril(self) -> bool:
        """Check for precision factors that are known already."""
        return self._tril is not None

    @property
    def members(self) -> Gaussian:
        """Return the members as one Gaussian with batch ``(M, *batch)``."""
        return Gaussian.from_factor(self.means, Factor(self.precision_tril, of_precision=True))

    def coordinates(self) -> GaussianEnsemble:
        """Return the coordinates as one-dimensional ensembles with batch ``(*batch, K)``."""
        if not self.is_diagonal:
            raise ValueError(
                "the members have full covariances: coordinates are not independent; "
                "pass variances, or use a full-covariance student."
            )
        variances = self.covariances.diagonal(dim1=-2, dim2=-1)
        return GaussianEnsemble(self.means.unsqueeze(-1), variances.unsqueeze(-1), False)

    @property
    def mean(self) -> GaussianParameters:
        """Return the average mean and average precision of the members."""
        precision = triangular.outer(self.precision_tril).mean(0)
        return GaussianParameters(self.means.mean(0), precision)

    def sample(
        self, sample_shape: Shape = (), generator: Generator | None = None
    ) -> GaussianParameters:
        """Draw members at random, independently per batch element."""
        shape = (*sample_shape, *self.batch_shape)
        index = torch.randint(self.n_members, shape, device=self.means.device, generator=generator)
        with torch.no_grad():
            mean = _pick(self.means, index, 1)
            return GaussianParameters(mean, triangular.outer(_pick(self.precision_tril, index, 2)))

    # -- the target y -----------------------------------------------------------------------------

    def predictive(self) -> GaussianMixture:
        """Return the mixture of the members."""
        return GaussianMixture.unchecked(
            _means=self.means.movedim(0, -2), _tril=self.precision_tril.movedim(0, -3)
        )

    def affine(self, shift: Tensor | float, scale: Tensor | float) -> Self:
        """Return the belief about ``shift + scale * y`` per coordinate: the target in other units.

        Args:
            shift: Shape ``(K,)`` or ``(*batch, K)``; a number stands for every coordinate.
            scale: Positive, likewise.
        """
        shift, scale, batch = affine_map(shift, scale, self.means, self.batch_shape)
        given = self if batch == self.batch_shape else self.expand(batch)
        squares = scale.unsqueeze(-1) * scale.unsqueeze(-2)
        return self._made(
            shift + scale * given.means,
            None if given._covariances is None else given._covariances * squares,
            None if given._tril is None else given._tril / scale.unsqueeze(-1),
            self.is_diagonal,
        )

    def expected_log_prob(self, y: Tensor) -> Tensor:
        """Average log-likelihood of a target under the members."""
        y = checked_target(self, y, self.means)
        return self.members.log_prob(y.unsqueeze(0).expand_as(self.means)).mean(0)

    # -- measures of uncertainty ------------------------------------------------------------------

    def expected_entropy(self) -> Tensor:
        """Compute data uncertainty: the average entropy of the members."""
        return self.members.entropy().mean(0)

    def expected_pairwise_kl(self) -> Tensor:
        r"""Compute knowledge uncertainty: average KL over all ordered pairs of members, Eq. (6).

        In :math:`\frac1{M^2}\sum_{ij} KL(i\|j)` the log-determinants cancel, and averages are left:

        .. math:: \tfrac12\left[\mathrm{tr}(\bar\Lambda\bar\Sigma) - K
            + \mathrm{tr}(\bar\Lambda V[\mu])
            + \tfrac1M\sum_j (\mu_j-\bar\mu)^\top\Lambda_j(\mu_j-\bar\mu)\right]
        """
        precisions = triangular.outer(self.precision_tril)
        mean_precision = precisions.mean(0)
        # tr(mean Lambda mean Sigma) - K, as a covariance of deviations: small where they agree.
        deviations = (precisions - mean_precision) * (self.covariances - self.data_covariance())
        centred = self._centred()
        own = triangular.sum_of_squares(triangular.transpose_matvec(self.precision_tril, centred))
        cross = (mean_precision * self.knowledge_covariance()).sum((-2, -1))
        return 0.5 * (own.mean(0) + cross - deviations.sum((-2, -1)).mean(0))

    def mutual_information(self) -> NoReturn:
        """Raise: a mixture of Gaussians has no closed form of it."""
        raise NotImplementedError(
            "a mixture of Gaussians has no closed-form mutual information; use its upper bound "
            "`expected_pairwise_kl()`, or `mutual_information_mc(n, generator)`."
        )

    def predictive_entropy(self) -> NoReturn:
        """Raise: a mixture of Gaussians has no closed form of it."""
        raise NotImplementedError(
            "a mixture of Gaussians has no closed-form entropy; use `predictive_entropy_mc(n, "
            "generator)`, or the variances `total_covariance()`."
        )

    def mutual_information_mc(self, n: int, generator: Generator | None = None) -> Tensor:
        r"""Estimate the mutual information from ``n`` draws of each member.

        Averages :math:`\ln \mathcal N_m(y) - \ln p(y)` over draws :math:`y \sim \mathcal N_m`:
        unbiased, and exactly zero where the members agree.
        """
        if n < 1:
            raise ValueError(f"`n` must be at least 1; got {n}.")
        members = self.members
        mixture = self.predictive()
        total = torch.zeros_like(self.means[0, ..., 0])
        for _ in range(n):  # one draw per member at a time: memory does not grow with n
            y = members.rsample(generator=generator)  # (M, *batch, K)
            total = total + (members.log_prob(y) - mixture.log_prob(y)).mean(0)
        return total / n

    def predictive_entropy_mc(self, n: int, generator: Generator | None = None) -> Tensor:
        """Estimate total uncertainty: exact data uncertainty plus sampled mutual information."""
        return self.expected_entropy() + self.mutual_information_mc(n, generator)

    def data_covariance(self) -> Tensor:
        """Compute the average covariance of the members."""
        return self.covariances.mean(0)

    def knowledge_covariance(self) -> Tensor:
        r"""Compute the covariance of means :math:`\frac1M\sum(\mu-\bar\mu)(\mu-\bar\mu)^\top`.

        For :math:`M \le K` it is singular: its log-determinant is ``-inf``, use the trace.
        """
        centred = self._centred()
        return (centred.unsqueeze(-1) * centred.unsqueeze(-2)).mean(0)

    def _centred(self) -> Tensor:
        """Centre the member means; differences first, so that large ones keep their digits."""
        offsets = self.means - self.means[0]
        return offsets - offsets.mean(0)

    def total_covariance(self) -> Tensor:
        """Compute the covariance of the mixture: data plus knowledge, Eq. (7)."""
        return self.data_covariance() + self.knowledge_covariance()

    def covariance_logdet(self) -> Decomposition:
        """Compute log-determinants of the total, data and knowledge covariances."""
        data, knowledge = self.data_covariance(), self.knowledge_covariance()
        if self.n_members <= self.k_dim:
            between = torch.full_like(self.means[0, ..., 0], -torch.inf)
        else:
            tril = triangular.cholesky(knowledge)
            proper = (tril.diagonal(dim1=-2, dim2=-1) > 0).all(-1)  # false where singular, nan too
            eye = torch.eye(self.k_dim, dtype=tril.dtype, device=tril.device)
            tril = torch.where(proper[..., None, None], tril, eye)
            between = torch.where(proper, triangular.logdet(tril), -torch.inf)
        return Decomposition(
            total=triangular.logdet(triangular.cholesky(data + knowledge)),
            data=triangular.logdet(triangular.cholesky(data)),
            knowledge=between,
        )

    def covariance_trace(self) -> Decomposition:
        """Compute traces of the total, data and knowledge covariances: summed variances."""
        data = self.data_covariance().diagonal(dim1=-2, dim2=-1).sum(-1)
        centred = self._centred()
        knowledge = centred.square().sum(-1).mean(0)
        return Decomposition(total=data + knowledge, data=data, knowledge=knowledge)

    def moment_matched(self) -> Gaussian:
        """Return the Gaussian with the mixture's moments: the optimum of EnD, Eq. (12)."""
        tril = triangular.precision_cholesky(self.total_covariance())
        return Gaussian.from_factor(self.means.mean(0), Factor(tril, of_precision=True))

    def moment_matched_log_prob(self, y: Tensor) -> Tensor:
        """Log-likelihood of a target under :meth:`moment_matched`, without rounding its mean."""
        y = checked_target(self, y, self.means)
        tril = triangular.precision_cholesky(self.total_covariance())
        off = (y - self.means).mean(0)
        centred = Gaussian.from_factor(torch.zeros_like(off), Factor(tril, of_precision=True))
        return centred.log_prob(off)


def _may_keep() -> bool:
    """Check that a result may serve later calls: not if it was computed without its gradient."""
    if not torch.is_grad_enabled():
        return False
    return torch.compiler.is_compiling() or not torch.is_inference_mode_enabled()


def _check_symmetric(covariances: Tensor) -> None:
    difference = (covariances - covariances.mT).abs()
    scale = covariances.diagonal(dim1=-2, dim2=-1).amax(-1)[..., None, None]
    if bool((difference > 1e-3 * scale).any()):
        raise ValueError(
            "`covariances` must be symmetric; the largest difference between a matrix and its "
            f"transpose is {difference.max().item():g}."
        )


def _member_shape(means: Tensor) -> Size:
    if means.dim() < 2 or means.shape[0] < 1 or means.shape[-1] < 1:
        raise ValueError(
            "`means` must have shape (M, *batch, K) with at least one member; got "
            f"{tuple(means.shape)}."
        )
    return means.shape


def _pick(members: Tensor, index: Tensor, event_dims: int) -> Tensor:
    """Gather ``members`` (M, *batch, *event) at ``index`` (*sample, *batch)."""
    event = members.shape[members.dim() - event_dims :]
    lead = members.movedim(0, members.dim() - 1 - event_dims)  # (*batch, M, *event)
    stretched = lead.expand((*index.shape, members.shape[0], *event))
    where = index.reshape((*index.shape, *(1,) * (event_dims + 1)))
    where = where.expand((*index.shape, 1, *event))
    return stretched.gather(index.dim(), where).squeeze(index.dim())


def ensemble_information(ensemble: GaussianEnsemble) -> NDArray[np.float64]:
    r"""Compute the mutual information of an ensemble in nats, which has no closed form, ``(N,)``.

    .. math:: \frac1M \sum_m \int \mathcal N_m(y)\,[\ln \mathcal N_m(y) - \ln p(y)]\, dy

    One target is integrated piece by piece between cuts where members begin and end, right to 1e-6
    nats; several are sampled, with the same draws every time.

    Args:
        ensemble: Batch shape ``(N,)``.
    """
    measure = _integrated if ensemble.event_shape[0] == 1 else _sampled
    means, tril = ensemble.means, ensemble.precision_tril
    pieces = [
        measure(GaussianEnsemble.from_precision_tril(*rows, validate_args=False))
        for rows in zip(means.split(_ROWS_AT_ONCE, 1), tril.split(_ROWS_AT_ONCE, 1), strict=True)
    ]
    return torch.cat(pieces).double().numpy(force=True)


def _integrated(ensemble: GaussianEnsemble) -> Tensor:
    """Integrate the entropy of the mixture, less the mean entropy of its members."""
    mean, precision = ensemble.means[..., 0], ensemble.precision_tril[..., 0, 0]  # (M, N)
    cuts = mean.new_tensor(_CUTS)[:, None, None]
    edges = (mean + cuts / precision).flatten(0, 1).sort(0).values  # (cuts M, N)
    width = edges.diff(dim=0)
    log_constant = math.log(len(mean)) + 0.5 * math.log(2 * math.pi)
    total = torch.zeros_like(mean[0])
    for node, weight in zip(*np.polynomial.legendre.leggauss(_NODES), strict=True):
        y = edges[:-1] + (0.5 + 0.5 * float(node)) * width
        z = (y.unsqueeze(1) - mean) * precision  # (pieces, M, N)
        log_p = (torch.log(precision) - 0.5 * z * z).logsumexp(1) - log_constant
        total = total - 0.5 * float(weight) * (width * log_p * torch.exp(log_p)).sum(0)
    return total - ensemble.expected_entropy()


def _sampled(ensemble: GaussianEnsemble) -> Tensor:
    generator = torch.Generator(ensemble.means.device).manual_seed(0)
    return ensemble.mutual_information_mc(_DRAWS, generator)
