"""Scores of a depth model, collected batch by batch on its device.

Nothing waits for the device until the results are read, and pixels are not kept: sums are added at
once, and what needs an order (quantiles of the likelihood, calibration) is counted in fine bins.
Only correlations need pixels side by side: one in 64 is kept for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from priornet.checks import lifted
from priornet.distributions import Normal
from priornet.evaluation import summary
from priornet.metrics import DepthErrors, depth_errors
from priornet_paper.depth.measures import ImageMeasures, correlation
from priornet_paper.depth.protocol import Protocol, nearest

QUANTILES = (0.5, 0.9, 0.99, 0.999)
"""Quantiles of the negative log-likelihoods of all pixels."""

_CURVES = ("predictive_quantiles", "predictive_intervals", "normal_intervals")
_LEVELS = 50  # steps of the calibration curves that are written
_SHOWN = (-4.0, 8.0, 120)  # nats, and bins between, of the histograms that are written


class Scorer:
    """Scores of one model on the test images of one set.

    - Depth: :func:`priornet.metrics.depth_metrics` under the protocol, over images and over pixels,
      and without the mirrored images.
    - Likelihood: negative log-likelihood in metres with constants, of the predictive (Student-T for
      a Normal-Wishart, mixture for an ensemble) and of the Gaussian with the same mean and
      variance, by which the paper scores ensembles. The mean is over images, of each image's
      mean; quantiles and histograms are over pixels.
    - Calibration: shares of targets below the predictive's quantiles, inside its central
      intervals, and inside those of the Gaussian with the same moments (the paper's). C-AUC is the
      area between that curve and the diagonal.
    - Uncertainty: Spearman's correlation of each measure with the predicted depth over pixels (on
      a coarse grid), and with the error over images.

    Args:
        protocol: Defines what is compared.
        information_draws: See :class:`~priornet_paper.depth.measures.ImageMeasures`.
    """

    def __init__(self, protocol: Protocol, *, information_draws: int = 0) -> None:
        self.protocol = protocol
        self.measures = ImageMeasures(protocol, information_draws=information_draws)
        self._plain: list[DepthErrors] = []
        self._mirrored: list[DepthErrors] = []
        self._densities = {name: _Likelihoods() for name in ("nll", "nll_moment_matched")}
        self._curves = {name: Histogram(0.0, 1.0, 1000) for name in _CURVES}

    @torch.no_grad()
    def add(self, belief: Any, target: Tensor, *, mirrored: Any = None) -> None:
        """Add a batch.

        Args:
            belief: In metres, batch ``(B, h, w)``, event ``(1,)``; or predicted depths
                ``(B, h, w)`` of a model that predicts nothing else.
            target: Depth in metres, ``(B, H, W)``; 0 is no measurement.
            mirrored: The model's belief about the mirrored images, not mirrored back.
        """
        prediction = point(belief)
        if prediction.dim() != 3 or target.dim() != 3 or len(target) != len(prediction):
            raise ValueError(
                "a batch of predictions (B, h, w) needs one of targets (B, H, W); got "
                f"{tuple(prediction.shape)} and {tuple(target.shape)}."
            )
        target = lifted(target).to(prediction)
        self._plain.append(self._errors(prediction, target))
        if mirrored is not None:
            self._mirrored.append(self._errors(prediction, target, point(mirrored)))
        if isinstance(belief, Tensor):
            return
        coarse = nearest(target, (prediction.shape[-2], prediction.shape[-1]))
        self._add_densities(belief, coarse, self.protocol.counts(coarse))
        self.measures.add(belief, prediction)

    def _errors(
        self, prediction: Tensor, target: Tensor, mirrored: Tensor | None = None
    ) -> DepthErrors:
        size = (target.shape[-2], target.shape[-1])
        depth = self.protocol.finish(prediction, size, mirrored)
        return depth_errors(depth, target, self.protocol.counts(target))

    def _add_densities(self, belief: Any, target: Tensor, counts: Tensor) -> None:
        """Add likelihood and calibration of predictives, pixel by pixel."""
        predictive = belief.predictive().univariate()
        matched = Normal(predictive.mean, predictive.variance.sqrt(), validate_args=False)
        for name, density in (("nll", predictive), ("nll_moment_matched", matched)):
            self._densities[name].add(-density.log_prob(target), counts)
        place = predictive.cdf(target)
        off = (target - matched.loc).abs() / matched.scale
        shares = (place, (2 * place - 1).abs(), torch.erf(math.sqrt(0.5) * off))
        for name, share in zip(_CURVES, shares, strict=True):
            self._curves[name].add(share, counts)

    def per_image(self) -> dict[str, Tensor]:
        """Return scores and measures of each image, ``(N,)`` each, on the CPU."""
        errors = DepthErrors.cat(self._mirrored or self._plain)
        found = {n: v.cpu() for n, v in errors.per_image().items()}
        if self._has_belief:
            found |= {name: density.per_image() for name, density in self._densities.items()}
        return found | self.measures.per_image()

    @property
    def _has_belief(self) -> bool:
        return bool(self._densities["nll"].means)

    def result(self) -> dict[str, Any]:
        """Return everything as plain data for the results; numbers that are not finite are None."""
        if not self._plain:
            raise ValueError("nothing has been scored: give the scorer a batch first.")
        errors = DepthErrors.cat(self._mirrored or self._plain)
        found: dict[str, Any] = {
            "n_images": len(errors.n_pixels),
            "n_images_without_depth": int((errors.n_pixels == 0).sum()),
            "n_pixels": int(errors.n_pixels.sum()),
            **_numbers(errors.over("images")),
            "over_pixels": _numbers(errors.over("pixels")),
        }
        if self._mirrored:
            found["not_mirrored"] = _numbers(DepthErrors.cat(self._plain).over("images"))
        if self._has_belief:
            for name, density in self._densities.items():
                found |= density.result(name)
            found["calibration"] = self._calibration()
            found["c_auc"] = {name: _area(curve) for name, curve in self._curves.items()}
            found |= self._correlations()
        return finite(found)

    def _calibration(self) -> dict[str, list[float]]:
        curves = {name: curve.shares() for name, curve in self._curves.items()}
        levels = torch.linspace(0, 1, _LEVELS + 1, dtype=torch.float64)
        curves = {name: curve[:: (len(curve) - 1) // _LEVELS] for name, curve in curves.items()}
        return {name: _rounded(curve) for name, curve in {"expected": levels, **curves}.items()}

    def _correlations(self) -> dict[str, Any]:
        images, pixels = self.per_image(), self.measures.pixels()
        depth = pixels.pop("prediction")
        seen = ~images["rmse"].isnan()
        errors = {name: images[name][seen] for name in ("rmse", "rel")}
        return {
            "spearman_depth": {name: correlation(v, depth) for name, v in pixels.items()},
            "spearman_error": {
                name: {e: correlation(images[name][seen], v) for e, v in errors.items()}
                for name in self.measures.per_image()
            },
        }


def point(belief: Any) -> Tensor:
    """Return the predicted depth, ``(B, h, w)``: the mean of the predictive, or a plain depth."""
    if isinstance(belief, Tensor):
        return lifted(belief)
    return belief.predictive().mean.squeeze(-1)


def finite(value: Any) -> Any:
    """Replace numbers that are not finite by None: JSON has no name for them."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def over_seeds(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join the results of several seeds: every number with its mean, spread and values.

    Lists that all seeds share, such as levels, stay as they are; others become
    ``{"mean": [...], "values": [[...], ...]}``. Counts of images and pixels that agree stay plain.
    """
    first = results[0]
    if any(result.keys() != first.keys() for result in results):
        raise ValueError("results of different seeds must hold the same scores.")
    return {name: _joined(name, [result[name] for result in results]) for name in first}


def _joined(name: str, values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        return over_seeds(values)
    fixed = isinstance(values[0], list) or name.startswith("n_") or name in ("from", "to")
    if fixed and all(value == values[0] for value in values):
        return values[0]
    if isinstance(values[0], list):
        columns = zip(*values, strict=True)
        return {"mean": [summary(_known(c))["mean"] for c in columns], "values": values}
    return summary(_known(values))


def _known(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]


def _numbers(scores: dict[str, Tensor]) -> dict[str, float]:
    return {name: float(value) for name, value in scores.items()}


def _rounded(shares: Tensor) -> list[float]:
    """Round shares to seven places: a pixel in ten millions."""
    return [round(share, 7) for share in shares.tolist()]


# -- millions of pixels in bins -------------------------------------------------------------------


class Histogram:
    r"""Counts of values in many equal bins, open below and closed above, kept on their device.

    The memory is that of the bins, and the order of adding changes nothing: counts are integers.

    Args:
        low: Lower end of the first bin; smaller values are counted there.
        high: Upper end of the last bin; larger values are counted there.
        n_bins: Number of bins.
        stretched: True for bins that are equal on the scale :math:`\operatorname{arsinh} x`, which
            is linear near 0 and logarithmic far from it, and not on that of x.
    """

    def __init__(self, low: float, high: float, n_bins: int, *, stretched: bool = False) -> None:
        self.stretched = stretched
        self._ends = self._scale(torch.tensor([low, high], dtype=torch.float64)).tolist()
        self._n_bins = n_bins
        self._counts: Tensor | None = None
        self._not_numbers: Tensor | None = None

    def _scale(self, value: Tensor) -> Tensor:
        return torch.asinh(value) if self.stretched else value

    def add(self, value: Tensor, counts: Tensor) -> None:
        """Count values of any shape where ``counts`` is true; nothing waits for the device."""
        if self._counts is None or self._not_numbers is None:
            self._counts = torch.zeros(self._n_bins, dtype=torch.long, device=value.device)
            self._not_numbers = torch.zeros((), dtype=torch.long, device=value.device)
        low, high = self._ends
        place = (self._scale(value) - low) * (self._n_bins / (high - low))
        failed = value.isnan()
        place = torch.where(failed, 0.0, place).ceil().clamp(1, self._n_bins).long() - 1
        self._counts.scatter_add_(0, place.flatten(), (counts & ~failed).long().flatten())
        self._not_numbers += (counts & failed).sum()

    @property
    def n_not_numbers(self) -> int:
        """Count the values that were ``nan`` and so in no bin."""
        return 0 if self._not_numbers is None else int(self._not_numbers)

    def shares(self) -> Tensor:
        """Return the share of values at or below each edge of a bin, ``(n_bins + 1,)``."""
        if self._counts is None or not int(self._counts.sum()):
            raise ValueError("nothing has been counted.")
        below = torch.cat([self._counts.new_zeros(1), self._counts.cumsum(0)]).cpu().double()
        return below / below[-1]

    def edges(self) -> Tensor:
        """Return the edges of the bins, ``(n_bins + 1,)``, in double precision."""
        low, high = self._ends
        edges = torch.linspace(low, high, self._n_bins + 1, dtype=torch.float64)
        return torch.sinh(edges) if self.stretched else edges

    def quantile(self, share: float) -> float:
        """Return the value with this share of all at or below it, right to the width of its bin."""
        below, edges = self.shares(), self.edges()
        upper = int(torch.searchsorted(below, share).clamp(1, self._n_bins))
        inside = (share - below[upper - 1]) / (below[upper] - below[upper - 1])
        return float(torch.lerp(edges[upper - 1], edges[upper], inside.clamp(0, 1)))

    def share_up_to(self, value: Tensor) -> Tensor:
        """Return the share of all values at or below the given ones, right to a bin."""
        low, high = self._ends
        place = (self._scale(value.double()) - low) * (self._n_bins / (high - low))
        place = place.clamp(0, self._n_bins)
        left = place.floor().clamp(max=self._n_bins - 1).long()
        below = self.shares()
        return torch.lerp(below[left], below[left + 1], place - left)


def likelihood_histogram() -> Histogram:
    r"""Make bins for NLLs x from -20 to 1e9 nats, :math:`4\cdot10^{-4}\sqrt{1+x^2}` wide.

    Quantiles are right to 0.0004 nats near 0, to 0.004 nats near 10, to 0.04 % of x far off.
    """
    return Histogram(-20.0, 1e9, 2**16, stretched=True)


def _area(curve: Histogram) -> float:
    """Compute the area between a calibration curve and the diagonal, by the trapezoidal rule."""
    return float(torch.trapezoid((curve.shares() - curve.edges()).abs(), curve.edges()))


class _Likelihoods:
    """Negative log-likelihoods: mean of each image, and all pixels in bins."""

    def __init__(self) -> None:
        self.means: list[Tensor] = []
        self._sums: list[Tensor] = []
        self._bins = likelihood_histogram()

    def add(self, nll: Tensor, counts: Tensor) -> None:
        """Add the pixels of ``(B, h, w)`` that count."""
        total = torch.where(counts, nll, 0.0).sum((-2, -1))
        n_pixels = counts.sum((-2, -1))
        self.means.append(total / n_pixels)  # nan without a pixel
        self._sums.append(torch.stack([total, n_pixels.to(total)]))
        self._bins.add(nll, counts)

    def per_image(self) -> Tensor:
        """Return the mean of each image, ``(N,)``; ``nan`` for one without a valid pixel."""
        return torch.cat(self.means).cpu()

    def result(self, name: str) -> dict[str, Any]:
        """Return means, quantiles and the histogram."""
        total, n_pixels = torch.cat(self._sums, 1).cpu().double()
        seen = n_pixels > 0
        edges = torch.linspace(_SHOWN[0], _SHOWN[1], _SHOWN[2] + 1, dtype=torch.float64)
        below = self._bins.share_up_to(edges)
        return {
            name: float((total[seen] / n_pixels[seen]).mean()),
            f"{name}_over_pixels": float(total.sum() / n_pixels.sum()),
            f"{name}_quantiles": {f"{100 * q:g}": self._bins.quantile(q) for q in QUANTILES},
            f"{name}_histogram": {
                "from": _SHOWN[0],
                "to": _SHOWN[1],
                "shares": _rounded(below.diff()),
                "below": float(below[0]),
                "above": float(1 - below[-1]),
            },
            f"{name}_not_numbers": self._bins.n_not_numbers,
        }
