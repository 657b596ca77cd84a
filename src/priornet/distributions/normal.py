"""The normal over a number."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Generator, Size, Tensor
from torch.distributions import Normal as TorchNormal
from torch.distributions import constraints

from priornet.checks import broadcast_batch, check_finite, check_greater, common_tensors
from priornet.distributions.base import BatchDistribution, Shape, wants_check
from priornet.special.elementwise import normal_cdf

__all__ = ["Normal"]


# torch's class is a base so that its divergences and `isinstance` hold here too.
class Normal(BatchDistribution, TorchNormal):
    r"""Normal over a number, with quantiles that hold in the tails.

    Where ``torch.distributions.Normal`` would broadcast a value ``(N, 1)`` against ``(N,)`` into
    ``(N, N)``, this one refuses; its draws take a generator.

    Args:
        loc: Mean, shape ``(*batch,)``.
        scale: Standard deviation > 0.
        validate_args: Check parameter values; torch's default when None.

    Example:
        >>> Normal(torch.tensor(1.0), 2.0).icdf(torch.tensor(0.975))
        tensor(4.9199)
    """

    _event_dims: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}
    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        loc, scale = common_tensors(loc=loc, scale=scale)
        broadcast_batch(loc=loc.shape, scale=scale.shape)
        if wants_check(validate_args, loc, scale):
            check_finite("loc", loc)
            check_greater("scale", scale, 0.0)
        self._set((), loc=loc, scale=scale)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density."""
        z = (self.checked_value("value", value, ()) - self.loc) / self.scale
        return -0.5 * z * z - torch.log(self.scale) - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of a smaller value."""
        return normal_cdf((self.checked_value("value", value, ()) - self.loc) / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the quantile at a probability."""
        value = self.checked_value("value", value, ())
        return self.loc + self.scale * torch.special.ndtri(value)

    def rsample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Draw with reparameterised gradients."""
        shape = Size(sample_shape) + self.batch_shape
        noise = torch.randn(shape, dtype=self.dtype, device=self.device, generator=generator)
        return self.loc + self.scale * noise
