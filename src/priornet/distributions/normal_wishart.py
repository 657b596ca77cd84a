"""Normal-Wishart distribution over Gaussians: what a regression prior network predicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from torch import Generator, Size, Tensor
from torch.distributions import constraints

from priornet.checks import (
    broadcast_batch,
    check_finite,
    check_parameters,
    common_tensors,
    values_visible,
)
from priornet.distributions.averages import precision_averages
from priornet.distributions.base import (
    BatchDistribution,
    Decomposition,
    GaussianParameters,
    Shape,
    affine_map,
)
from priornet.distributions.factors import Factor
from priornet.distributions.student_t import MultivariateStudentT, undefined_covariance
from priornet.distributions.wishart import Wishart
from priornet.special import triangular
from priornet.special.gamma import digamma_gap, entropy_gap, excess_of_gap, stirling_gap

if TYPE_CHECKING:
    from priornet.distributions.ensemble import GaussianEnsemble


class NormalWishart(BatchDistribution):
    r"""Conjugate prior over the mean and precision matrix of a Gaussian.

    .. math:: p(\mu, \Lambda) = \mathcal{N}(\mu \mid m, (\kappa\Lambda)^{-1})\,
        \mathcal{W}(\Lambda \mid L, \nu)

    Paper: Eq. (2), arXiv:2006.11590v2. Inside it carries the expected precision :math:`P = \nu L`
    and the excess :math:`d = \nu - K - 1`, in which all below is sound in float32.

    Args:
        loc: Prior mean :math:`m`, shape ``(*batch, K)``.
        scale_tril: Cholesky factor of the Wishart scale :math:`L`, shape ``(*batch, K, K)``.
        belief: Pseudo-count :math:`\kappa > 0` behind the mean, shape ``(*batch,)``.
        df: Degrees of freedom :math:`\nu > K - 1`, shape ``(*batch,)``.

    Example:
        >>> prior = NormalWishart(torch.zeros(2), torch.eye(2), belief=1.0, df=4.0)
        >>> prior.predictive().df
        tensor(3.)
    """

    _event_dims: ClassVar[dict[str, int]] = {
        "loc": 1,
        "precision_tril": 2,
        "belief": 0,
        "excess": 0,
    }
    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "precision_tril": constraints.lower_cholesky,
        "belief": constraints.positive,
        "excess": constraints.greater_than(-2),
    }
    has_rsample = True
    loc: Tensor
    precision_tril: Tensor
    belief: Tensor
    excess: Tensor

    def __init__(
        self,
        loc: Tensor,
        scale_tril: Tensor,
        belief: Tensor | float,
        df: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        loc, scale_tril, belief, df = check_parameters(
            validate_args,
            vectors={"loc": loc},
            trils={"scale_tril": scale_tril},
            numbers={"belief": belief, "df": df},
            of_wishart=True,
        )
        tril = scale_tril * df.sqrt()[..., None, None]
        self._set(loc=loc, precision_tril=tril, belief=belief, excess=df - (loc.shape[-1] + 1))

    @classmethod
    def from_excess(
        cls,
        loc: Tensor,
        precision_tril: Tensor,
        belief: Tensor | float,
        excess: Tensor | float,
        validate_args: bool | None = None,
    ) -> Self:
        r"""Build it from the expected precision and the excess, which keep their digits.

        Args:
            loc: Prior mean :math:`m`, shape ``(*batch, K)``.
            precision_tril: Cholesky factor of :math:`P = \nu L = E[\Lambda]`.
            belief: Pseudo-count :math:`\kappa > 0`.
            excess: :math:`d = \nu - K - 1 > -2`; the variances are finite for d > 0.
            validate_args: Check parameter values; torch's default when None.
        """
        loc, tril, belief, excess = check_parameters(
            validate_args,
            vectors={"loc": loc},
            trils={"precision_tril": precision_tril},
            numbers={"belief": belief, "excess": excess},
        )
        return cls.unchecked(loc=loc, precision_tril=tril, belief=belief, excess=excess)

    @classmethod
    def fit(
        cls, ensemble: GaussianEnsemble, max_belief: float = 1e8, max_excess: float = 1e8
    ) -> NormalWishart:
        r"""Fit the Normal-Wishart that makes an ensemble's members most likely, in closed form.

        .. math::
            m = \left(\sum\Lambda\right)^{-1}\sum\Lambda\mu \qquad P = \bar\Lambda \qquad
            K/\kappa = \tfrac1M\sum(\mu-m)^\top\Lambda(\mu-m) \\
            \psi_K(\nu/2) - K\ln(\nu/2) = \tfrac1M\sum\ln|\Lambda| - \ln|\bar\Lambda|

        This is the optimum of the EnD2 loss, Eq. (15), arXiv:2006.11590v2, at each input by itself.

        Note:
            Few members make the fit too sure: for K = 1 its belief and df are on average about M /
            (M - 3) times the true ones, 2.5 times for five members.

        Args:
            ensemble: M Gaussians per input.
            max_belief: Largest belief, for members that coincide: their likelihood is unbounded.
            max_excess: Largest excess, likewise.
        """
        for name, bound in (("max_belief", max_belief), ("max_excess", max_excess)):
            if not bound > 0:
                raise ValueError(f"`{name}` must exceed 0; got {bound:g}.")
        averages = precision_averages(ensemble, exact_gap=True)
        belief = (ensemble.k_dim / averages.spread).clamp(max=max_belief)
        excess = excess_of_gap(averages.gap, ensemble.k_dim, max_excess)
        tril = averages.precision_tril
        return cls.unchecked(loc=averages.loc, precision_tril=tril, belief=belief, excess=excess)

    # -- parameters -------------------------------------------------------------------------------

    @property
    def k_dim(self) -> int:
        """Return the target dimension K."""
        return self.event_shape[0]

    @property
    def df(self) -> Tensor:
        r"""Return the degrees of freedom :math:`\nu`."""
        return self.excess + (self.k_dim + 1)

    @property
    def scale_tril(self) -> Tensor:
        """Return the Cholesky factor of the Wishart scale L."""
        return self.precision_tril * self.df.rsqrt()[..., None, None]

    @property
    def wishart(self) -> Wishart:
        """Return the marginal over the precision."""
        return Wishart.unchecked(precision_tril=self.precision_tril, excess=self.excess)

    @property
    def mean(self) -> GaussianParameters:
        r"""Return the expected mean and precision, :math:`(m, \nu L)`."""
        return GaussianParameters(self.loc, triangular.outer(self.precision_tril))

    @property
    def mode(self) -> GaussianParameters:
        r"""Return the joint mode :math:`(m, (\nu - K) L)`; ``nan`` where :math:`\nu \le K`."""
        shrink = torch.where(self.excess > -1, self.excess + 1, torch.nan) / self.df
        return GaussianParameters(self.loc, self.mean.precision * shrink[..., None, None])

    # -- the density ------------------------------------------------------------------------------

    def log_prob(self, value: tuple[Tensor, Tensor]) -> Tensor:
        r"""Log-density at ``(mean, precision)``, Eqs. (2) and (19).

        Args:
            value: A pair: mean ``(*sample, *batch, K)`` and precision ``(*sample, *batch, K, K)``.
        """
        event = self.event_shape
        mean, precision = self.checked_pair(value, mean=event, precision=event * 2)
        return self._log_prob_tril(mean, triangular.cholesky(precision))

    def log_prob_covariance(self, value: tuple[Tensor, Tensor]) -> Tensor:
        """Log-density over ``(mean, covariance)``: the Normal-inverse-Wishart."""
        event = self.event_shape
        mean, covariance = self.checked_pair(value, mean=event, covariance=event * 2)
        tril = triangular.precision_cholesky(covariance)
        return self._log_prob_tril(mean, tril) + (self.k_dim + 1) * triangular.logdet(tril)

    def _log_prob_tril(self, mean: Tensor, tril: Tensor) -> Tensor:
        off = triangular.sum_of_squares(triangular.transpose_matvec(tril, mean - self.loc))
        normal = self.k_dim * torch.log(self.belief / (2 * math.pi)) + triangular.logdet(tril)
        return 0.5 * (normal - self.belief * off) + self.wishart.log_prob_tril(tril)

    def entropy(self) -> Tensor:
        """Compute the differential entropy of the joint over mean and precision."""
        wishart = self.wishart
        constant = self.k_dim * (math.log(2 * math.pi) + 1)
        normal = constant - self.k_dim * torch.log(self.belief) - wishart.expected_logdet()
        return wishart.entropy() + 0.5 * normal

    def rsample(
        self, sample_shape: Shape = (), generator: Generator | None = None
    ) -> GaussianParameters:
        """Draw with reparameterised gradients of Gaussians, differentiable in every parameter."""
        tril = self.wishart.rsample_tril(sample_shape, generator)
        shape = Size(sample_shape) + self.batch_shape + self.event_shape
        noise = torch.randn(shape, dtype=self.dtype, device=self.device, generator=generator)
        offset = triangular.transpose_solve(tril, noise) * self.belief.rsqrt().unsqueeze(-1)
        return GaussianParameters(self.loc + offset, triangular.outer(tril))

    # -- the target y -----------------------------------------------------------------------------

    def predictive(self) -> MultivariateStudentT:
        r"""Return the posterior predictive of y: a Student-T, Eq. (4).

        Degrees of freedom :math:`\nu - K + 1`, location m, scale matrix
        :math:`\frac{\kappa+1}{\kappa(\nu-K+1)} L^{-1}`. Its excess over 2 is this excess.
        """
        # S^-1 = P / ((1 + 1/kappa) (nu / df)), with nu / df = 1 + (K - 1) / df.
        widening = (1 + self.belief.reciprocal()) * (1 + (self.k_dim - 1) / (self.excess + 2))
        tril = self.precision_tril * widening.rsqrt()[..., None, None]
        return MultivariateStudentT.from_excess(
            self.excess, self.loc, Factor(tril, of_precision=True)
        )

    def expected_log_prob(self, y: Tensor) -> Tensor:
        r"""Compute the expected log-likelihood of a target, minus Eq. (25).

        .. math:: E[\ln p(y \mid \mu, \Lambda)] = -\tfrac12\left[(y-m)^\top P (y-m) + K/\kappa
            + K\ln 2\pi - E\ln|\Lambda|\right]
        """
        k_dim = self.k_dim
        y = self.checked_value("y", y, self.event_shape)
        off = triangular.sum_of_squares(
            triangular.transpose_matvec(self.precision_tril, y - self.loc)
        )
        spread = k_dim * (self.belief.reciprocal() + math.log(2 * math.pi))
        logdet = triangular.logdet(self.precision_tril) + digamma_gap(self.excess, k_dim)
        return -0.5 * (off + (spread - logdet))

    def posterior(self, y: Tensor, beta: Tensor | float = 1.0) -> NormalWishart:
        r"""Update the belief with ``y`` seen ``beta`` times: tempered conjugate update, Eq. (9).

        The update :math:`\hat L^{-1} = L^{-1} + \frac{\kappa\beta}{\kappa+\beta}(y-m)(y-m)^\top` is
        done on the factor, :math:`\hat L = C_L (I + a w w^\top)^{-1} C_L^\top`, without a new
        factorisation.
        """
        y = self.checked_value("y", y, self.event_shape)
        beta = self._checked_beta(beta, y)
        belief, excess = self.belief + beta, self.excess + beta
        step = y - self.loc
        loc = self.loc + (beta / belief).unsqueeze(-1) * step
        w = triangular.transpose_matvec(self.precision_tril, step)
        a = self.belief * (beta / belief) / self.df
        update = triangular.rank_one_inverse(a, w)
        factor = triangular.product(*torch.broadcast_tensors(self.precision_tril, update))
        growth = (1 + beta / self.df).sqrt()  # P is nu L, and nu grows by beta
        tril = factor * growth[..., None, None]
        return NormalWishart.unchecked(loc=loc, precision_tril=tril, belief=belief, excess=excess)

    def _checked_beta(self, beta: Tensor | float, y: Tensor) -> Tensor:
        """Check ``beta`` against the target and the belief."""
        _, beta = common_tensors(y=y, beta=beta)
        broadcast_batch(y=y.shape[:-1], beta=beta.shape, belief=self.batch_shape)
        if values_visible(beta):
            check_finite("beta", beta)
            if bool((beta < 0).any()):
                raise ValueError(
                    f"`beta` must not be negative; smallest value given is {beta.min().item():g}."
                )
        return beta

    def affine(self, shift: Tensor | float, scale: Tensor | float) -> NormalWishart:
        """Return the belief about ``shift + scale * y`` per coordinate: the target in other units.

        Args:
            shift: Shape ``(K,)`` or ``(*batch, K)``; a number stands for every coordinate.
            scale: Positive, likewise.
        """
        shift, scale, _ = affine_map(shift, scale, self.loc, self.batch_shape)
        loc, tril = shift + scale * self.loc, self.precision_tril / scale.unsqueeze(-1)
        return NormalWishart.unchecked(
            loc=loc, precision_tril=tril, belief=self.belief, excess=self.excess
        )

    def log_evidence(self, y: Tensor, beta: Tensor | float = 1.0) -> Tensor:
        r"""Log-normaliser of the tempered posterior.

        .. math:: Z = \ln\int p(y \mid \mu, \Lambda)^\beta\, p(\mu, \Lambda)\, d\mu\, d\Lambda

        With it :math:`KL[q \| \text{posterior}] = \beta E_q[-\ln p(y)] + KL[q \| p] + Z`, Eq. (11).
        """
        y = self.checked_value("y", y, self.event_shape)
        beta = self._checked_beta(beta, y)
        k_dim = self.k_dim
        off = triangular.sum_of_squares(
            triangular.transpose_matvec(self.precision_tril, y - self.loc)
        )
        seen = torch.log1p(self.belief * (beta / (self.belief + beta)) / self.df * off)
        # Two log-normalisers subtracted term by term: each is far larger than the difference.
        likelihood = triangular.logdet(self.precision_tril) - k_dim * math.log(2 * math.pi)
        counts = (self.df + beta) * torch.log1p(beta / self.df) - beta
        normal = beta * likelihood - k_dim * torch.log1p(beta / self.belief)
        wishart = k_dim * counts - (self.df + beta) * seen
        gaps = stirling_gap(self.excess, k_dim) - stirling_gap(self.excess + beta, k_dim)
        return 0.5 * (normal + wishart) + gaps

    # -- measures of uncertainty ------------------------------------------------------------------

    def expected_entropy(self) -> Tensor:
        r"""Compute data uncertainty: the expected entropy of the Gaussians, Eq. (35)."""
        constant = self.k_dim * (math.log(2 * math.pi) + 1)
        return 0.5 * (constant - self.wishart.expected_logdet())

    def mutual_information(self) -> Tensor:
        """Compute knowledge uncertainty: information of y and its Gaussian, Eqs. (5) and (36)."""
        from_mean = 0.5 * self.k_dim * torch.log1p(self.belief.reciprocal())
        return from_mean + entropy_gap(self.excess, self.k_dim)

    def predictive_entropy(self) -> Tensor:
        """Compute total uncertainty: the predictive's entropy, Eq. (33); data plus knowledge."""
        return self.expected_entropy() + self.mutual_information()

    def expected_pairwise_kl(self) -> Tensor:
        r"""Compute knowledge uncertainty: expected KL between two draws, Eqs. (6) and (40).

        .. math:: \tfrac K2\left[\tfrac{K+1}d + \left(2 + \tfrac{K+1}d\right)\tfrac1\kappa\right]

        ``inf`` where :math:`\nu \le K + 1`; never below the mutual information.
        """
        ratio = (self.k_dim + 1) * self._inverse_excess()
        return 0.5 * self.k_dim * (ratio + (2 + ratio) / self.belief)

    def _inverse_excess(self) -> Tensor:
        """Compute 1/d, and inf where the variances do not exist, without a stray gradient."""
        proper = self.excess > 0
        return torch.where(proper, torch.where(proper, self.excess, 1.0).reciprocal(), torch.inf)

    def data_covariance(self) -> Tensor:
        r"""Compute the expected covariance :math:`E[\Lambda^{-1}] = L^{-1}/d`, Eq. (42).

        Where :math:`\nu \le K + 1` the variances are ``inf`` and the covariances ``nan``.
        """
        return self._covariance(torch.ones_like(self.belief))

    def knowledge_covariance(self) -> Tensor:
        r"""Compute the covariance of the mean :math:`V[\mu] = L^{-1}/(\kappa d)`, Eq. (43)."""
        return self._covariance(self.belief.reciprocal())

    def total_covariance(self) -> Tensor:
        r"""Compute the covariance :math:`V[y] = (1 + 1/\kappa) L^{-1}/d`, Eqs. (7) and (44)."""
        return self._covariance(1 + self.belief.reciprocal())

    def _covariance(self, factor: Tensor) -> Tensor:
        scale = factor * self._mean_to_inverse()
        infinite = torch.isinf(scale)[..., None, None]
        scale = torch.where(infinite, 1.0, scale[..., None, None])
        covariance = triangular.inverse_outer(self.precision_tril) * scale
        return torch.where(infinite, undefined_covariance(covariance), covariance)

    def _mean_to_inverse(self) -> Tensor:
        r"""Compute the factor nu / d of :math:`E[\Lambda^{-1}] = (\nu/d)\,P^{-1}`."""
        return 1 + (self.k_dim + 1) * self._inverse_excess()

    def covariance_logdet(self) -> Decomposition:
        """Compute log-determinants of the total, data and knowledge covariances."""
        scale = torch.log(self._mean_to_inverse())
        data = self.k_dim * scale - triangular.logdet(self.precision_tril)
        return Decomposition(
            total=data + self.k_dim * torch.log1p(self.belief.reciprocal()),
            data=data,
            knowledge=data - self.k_dim * torch.log(self.belief),
        )

    def covariance_trace(self) -> Decomposition:
        """Compute traces of the total, data and knowledge covariances: summed variances."""
        data = self._mean_to_inverse() * triangular.inverse_trace(self.precision_tril)
        inverse_belief = self.belief.reciprocal()
        return Decomposition(
            total=data * (1 + inverse_belief), data=data, knowledge=data * inverse_belief
        )
