r"""Gaussian processes as teachers: members are functions drawn from the posterior.

A draw at all inputs at once would cost their number cubed. Instead the posterior is drawn at some
anchors, jointly and exactly, and the posterior covariance carries the draw to other inputs:

.. math:: f_m(x) = m(x) + c(x, A)\,c(A, A)^{-1} g_m + \sqrt{r(x)}\,z_m, \qquad g_m \sim
    \mathcal N(0, c(A, A))

with the posterior mean :math:`m` and covariance :math:`c`. The anchors leave :math:`r(x)` of the
variance unexplained, and :math:`z_m` is one number per member. So each member is a function, and
the variance at every input is exactly that of the posterior.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from priornet.distill.teachers.scikit_learn import ScikitLearnTeacher, quiet_about_names, rows_for

FloatArray = NDArray[np.float64]

_AT_ONCE = 1024  # inputs; a chunk of the kernel is this by the training rows


class GaussianProcessTeacher(ScikitLearnTeacher):
    """A fitted ``GaussianProcessRegressor`` of scikit-learn, with any kernel.

    Data uncertainty is the given noise: its ``alpha`` and the white part of its kernel.

    Args:
        model: The fitted process.
        n_members: Number of functions to draw.
        n_anchors: Inputs at which they are drawn exactly, around training inputs.
        min_variance: Lower bound of the noise, as a share of the variance of the targets.
        seed: Of the draws.
    """

    kind = "fine"

    def __init__(
        self,
        model: Any,
        *,
        n_members: int = 50,
        n_anchors: int = 200,
        min_variance: float = 1e-6,
        seed: int = 0,
    ) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model, ("X_train_", "alpha_"))
        for name, value, least in (("n_members", n_members, 2), ("n_anchors", n_anchors, 1)):
            if value < least:
                raise ValueError(f"`{name}` must be at least {least}; got {value}.")
        self.model = model
        self.min_variance = min_variance
        rng = np.random.default_rng(seed)
        self._scale = np.atleast_1d(np.asarray(model._y_train_std, np.float64))  # of each target
        self._anchors = self._choose(n_anchors, rng)
        self._carried = self._solve(self._anchors)  # of the posterior covariance with the anchors
        covariance = self._posterior(self._anchors)
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        kept = values > 1e-10 * values[-1]
        # Coordinates in which the values at the anchors are independent, of unit variance.
        self._basis = vectors[:, kept] / np.sqrt(values[kept])
        shape = (n_members, len(self._scale))
        self._draws = rng.standard_normal((*shape, int(kept.sum())))
        self._rest = rng.standard_normal(shape)

    def gaussians(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Compute the drawn functions, and the noise."""
        rows = np.asarray(rows_for(self.model, X), np.float64)
        pieces = [self._answer(rows[i : i + _AT_ONCE]) for i in range(0, len(rows), _AT_ONCE)]
        means, variances = zip(*pieces, strict=True)
        return np.concatenate(means, 1), np.concatenate(variances, 1)

    def _answer(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        model = self.model
        with quiet_about_names():
            mean, std = model.predict(rows, return_std=True)
        n_rows, scale = len(rows), self._scale
        mean, std = mean.reshape(n_rows, -1), std.reshape(n_rows, -1)
        total = (std[:, 0] / scale[0]) ** 2  # in units of the kernel, white noise included
        white = np.maximum(model.kernel_.diag(rows) - self._smooth_diagonal(rows), 0)
        explained = self._posterior(rows) @ self._basis  # (N, anchors kept)
        rest = np.sqrt(np.maximum(total - white - (explained**2).sum(1), 0))
        off = np.einsum("na,mka->mnk", explained, self._draws)
        off += rest[:, None] * self._rest[:, None]
        noise = white + np.mean(model.alpha) + self.min_variance  # the kernel's targets have var 1
        variance = noise[:, None] * scale**2
        return mean + scale * off, np.broadcast_to(variance, off.shape)

    def _smooth_diagonal(self, rows: FloatArray) -> FloatArray:
        """Compute the prior variance without white noise, which a kernel of two sets leaves out."""
        small = 64
        pieces = [
            np.diagonal(self.model.kernel_(part, part.copy()))
            for part in (rows[i : i + small] for i in range(0, len(rows), small))
        ]
        return np.concatenate(pieces)

    def _posterior(self, rows: FloatArray) -> FloatArray:
        """Compute the posterior covariance of the function at rows with that at the anchors."""
        kernel, train = self.model.kernel_, self.model.X_train_
        return kernel(rows, self._anchors) - kernel(rows, train) @ self._carried

    def _solve(self, anchors: FloatArray) -> FloatArray:
        """Solve for the training covariance's inverse times the covariance with the anchors."""
        between = self.model.kernel_(self.model.X_train_, anchors)
        factor = torch.from_numpy(np.ascontiguousarray(self.model.L_))
        return torch.cholesky_solve(torch.from_numpy(between), factor).numpy()

    def _choose(self, n_anchors: int, rng: np.random.Generator) -> FloatArray:
        """Choose inputs near training inputs and far from them, where the posterior is wide."""
        train = np.asarray(self.model.X_train_, np.float64)
        at = rng.integers(len(train), size=n_anchors)
        wide = np.where(np.arange(n_anchors) % 2, 1.0, 0.1)[:, None] * train.std(0)
        return train[at] + wide * rng.standard_normal((n_anchors, train.shape[1]))
