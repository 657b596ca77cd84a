"""A positive-definite matrix known by a Cholesky factor: of itself, or of its inverse.

Networks predict precisions, samplers want covariances. Converting one factor to the other costs a
factorisation and digits, so distributions keep whichever they were given.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from priornet.special import triangular


@dataclass(frozen=True)
class Factor:
    r"""A matrix :math:`S = T T^\top`, or :math:`S = (T T^\top)^{-1}` if T is of the precision."""

    tril: Tensor
    """T, shape ``(*batch, K, K)``."""
    of_precision: bool

    def whiten(self, v: Tensor) -> Tensor:
        r"""Transform a vector so that its squared length is :math:`v^\top S^{-1} v`."""
        transform = triangular.transpose_matvec if self.of_precision else triangular.solve
        return transform(self.tril, v)

    def colour(self, z: Tensor) -> Tensor:
        """Transform white noise to noise with covariance S."""
        transform = triangular.transpose_solve if self.of_precision else triangular.matvec
        return transform(self.tril, z)

    def logdet(self) -> Tensor:
        r"""Compute the log-determinant :math:`\ln|S|`."""
        logdet = triangular.logdet(self.tril)
        return -logdet if self.of_precision else logdet

    def matrix(self) -> Tensor:
        """Return S itself."""
        return (triangular.inverse_outer if self.of_precision else triangular.outer)(self.tril)

    def deviations(self) -> Tensor:
        """Return the square roots of the diagonal of S."""
        if self.tril.shape[-1] == 1:  # no square that could leave the range
            deviation = self.tril[..., 0]
            return deviation.reciprocal() if self.of_precision else deviation
        return self.matrix().diagonal(dim1=-2, dim2=-1).sqrt()

    def scaled(self, b: Tensor) -> Factor:
        r"""Scale S to :math:`\mathrm{diag}(b)\,S\,\mathrm{diag}(b)`, for b ``(*batch, K)``."""
        b = b.unsqueeze(-1)
        return Factor(self.tril / b if self.of_precision else self.tril * b, self.of_precision)

    def precision_tril(self) -> Tensor:
        r"""Return the Cholesky factor of :math:`S^{-1}`."""
        return self.tril if self.of_precision else triangular.precision_cholesky(self.matrix())

    def covariance_tril(self) -> Tensor:
        """Return the Cholesky factor of S."""
        return triangular.cholesky(self.matrix()) if self.of_precision else self.tril
