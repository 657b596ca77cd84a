"""A positive-definite matrix known by a Cholesky factor: of itself, or of its inverse.

Networks predict precisions, samplers want covariances. Converting one factor to the other costs a
factorisation and digits, so the Gaussian and the Student-T keep whichever they were given and ask
these two classes the same questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

from torch import Tensor

from priornet.special import triangular


class Factor(Protocol):
    """Questions about the matrix S, asked through its factor."""

    @property
    def tril(self) -> Tensor:
        """Return the stored factor."""
        ...

    def whiten(self, v: Tensor) -> Tensor:
        r"""Transform a vector so that its squared length is :math:`v^\top S^{-1} v`."""
        ...

    def colour(self, z: Tensor) -> Tensor:
        """Transform white noise to noise with covariance S."""
        ...

    def logdet(self) -> Tensor:
        r"""Log-determinant :math:`\ln|S|`."""
        ...

    def matrix(self) -> Tensor:
        """Return S itself."""
        ...

    def deviations(self) -> Tensor:
        """Return the square roots of the diagonal of S."""
        ...

    def scaled(self, b: Tensor) -> Self:
        r"""Scale S to :math:`\mathrm{diag}(b)\,S\,\mathrm{diag}(b)`, for b ``(*batch, K)``."""
        ...

    def precision_tril(self) -> Tensor:
        r"""Return the Cholesky factor of :math:`S^{-1}`."""
        ...

    def covariance_tril(self) -> Tensor:
        """Return the Cholesky factor of S."""
        ...


@dataclass(frozen=True)
class CovarianceFactor:
    r"""S by its own factor, :math:`S = T T^\top`."""

    tril: Tensor

    def whiten(self, v: Tensor) -> Tensor:
        r"""Transform a vector so that its squared length is :math:`v^\top S^{-1} v`."""
        return triangular.solve(self.tril, v)

    def colour(self, z: Tensor) -> Tensor:
        """Transform white noise to noise with covariance S."""
        return triangular.matvec(self.tril, z)

    def logdet(self) -> Tensor:
        """Apply :class:`Factor`'s formula."""
        return triangular.logdet(self.tril)

    def matrix(self) -> Tensor:
        """Return S itself."""
        return triangular.outer(self.tril)

    def deviations(self) -> Tensor:
        """Apply :class:`Factor`'s formula."""
        if self.tril.shape[-1] == 1:  # no square that could leave the range
            return self.tril[..., 0]
        return self.matrix().diagonal(dim1=-2, dim2=-1).sqrt()

    def scaled(self, b: Tensor) -> Self:
        """Apply :class:`Factor`'s formula."""
        return type(self)(self.tril * b.unsqueeze(-1))

    def precision_tril(self) -> Tensor:
        """Apply :class:`Factor`'s formula."""
        return triangular.precision_cholesky(self.matrix())

    def covariance_tril(self) -> Tensor:
        """Apply :class:`Factor`'s formula."""
        return self.tril


@dataclass(frozen=True)
class PrecisionFactor:
    r"""S by the factor of its inverse, :math:`S^{-1} = C C^\top`."""

    tril: Tensor

    def whiten(self, v: Tensor) -> Tensor:
        r"""Transform a vector so that its squared length is :math:`v^\top S^{-1} v`."""
        return triangular.transpose_matvec(self.tril, v)

    def colour(self, z: Tensor) -> Tensor:
        """Transform white noise to noise with covariance S."""
        return triangular.transpose_solve(self.tril, z)

    def logdet(self) -> Tensor:
        """Apply :class:`Factor`'s formula."""
        return -triangular.logdet(self.tril)

    def matrix(self) -> Tensor:
        """Return S itself."""
        return triangular.inverse_outer(self.tril)

    def deviations(self) -> Tensor:
        """Apply :class:`Factor`'s formula."""
        if self.tril.shape[-1] == 1:
            return self.tril[..., 0].reciprocal()
        return self.matrix().diagonal(dim1=-2, dim2=-1).sqrt()

    def scaled(self, b: Tensor) -> Self:
        """Apply :class:`Factor`'s formula."""
        return type(self)(self.tril / b.unsqueeze(-1))

    def precision_tril(self) -> Tensor:
        """Apply :class:`Factor`'s formula."""
        return self.tril

    def covariance_tril(self) -> Tensor:
        """Apply :class:`Factor`'s formula."""
        return triangular.cholesky(self.matrix())
