"""Scores of a depth model, collected batch by batch on its device.

Nothing waits for the device until the results are read, and pixels are not kept: sums are added at
once, and what needs an order (quantiles of the likelihood, calibration) is counted in fine bins.
Only correlations need pixels side by side: one in 64 is kept for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from priornet.checks import lifted
from priornet.distributions import Normal
from priornet.evaluation import summary
from priornet.metrics import DepthErrors, depth_errors
from priornet_paper.depth.data import Sets
from priornet_paper.depth.machine import in_smaller_batches
from priornet_paper.depth.measures import (
    Histogram,
    ImageMeasures,
    Likelihoods,
    agreement,
    correlation,
    ood_auc,
    pixel_measures,
    rounded,
)
from priornet_paper.depth.protocol import Protocol, nearest

_Found = TypeVar("_Found")

_CURVES = ("predictive_quantiles", "predictive_intervals", "normal_intervals")
_LEVELS = 50  # steps of the calibration curves that are written


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
        self._densities = {name: Likelihoods() for name in ("nll", "nll_moment_matched")}
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
            levels = torch.linspace(0, 1, _LEVELS + 1, dtype=torch.float64)
            curves = {name: curve.shares() for name, curve in self._curves.items()}
            shown = {name: curve[:: (len(curve) - 1) // _LEVELS] for name, curve in curves.items()}
            found["calibration"] = {n: rounded(c) for n, c in {"expected": levels, **shown}.items()}
            found["c_auc"] = {name: curve.area() for name, curve in self._curves.items()}
            found |= self._correlations()
        return finite(found)

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


def _numbers(scores: dict[str, Tensor]) -> dict[str, float]:
    return {name: float(value) for name, value in scores.items()}


# -- a model on all images ------------------------------------------------------------------------

Predict = Callable[[Tensor], Any]
"""Images ``(B, 3, H, W)`` in [0, 1] to a belief in metres, or to depths, ``(B, h, w)``."""

_BATCH = 16
_PLAIN = ("delta1", "delta2", "delta3", "rel", "rmse", "log10", "rmse_log10", "nll")
_N_MAPS = 6  # images of each set whose maps are kept for figures
_MAPS = ("prediction", "total_variance", "epkl")


@dataclass(frozen=True)
class Scoring:
    """Images, protocol and device with which models are scored."""

    sets: Sets
    protocol: Protocol
    ood: Sequence[str]
    """Names of the out-of-domain sets."""
    device: torch.device
    information_draws: int
    message: Callable[[str], object]
    """Called with one line if a batch does not fit in memory."""

    def result(
        self, predict: Predict, *, has_belief: bool = True, teacher: Predict | None = None
    ) -> dict[str, Any]:
        """Compute all scores of a model, compared with its teacher if there is one.

        A model without a belief predicts a depth and nothing else.
        """
        scorer = self.scored(predict)
        result = scorer.result()
        if has_belief:
            inside, result["ood_auc"] = scorer.measures.per_image(), {}
            for name in self.ood:
                found = self.measured(predict, self.sets.ood(name), self.information_draws)
                result["ood_auc"][name] = finite(ood_auc(inside, found.per_image()))
        if teacher is not None:
            maps = self.measured(teacher, self.sets.test[0]).pixels()
            result["agreement"] = finite(agreement(scorer.measures.pixels(), maps))
        return result

    def members(self, predicts: Sequence[Predict]) -> dict[str, float | None]:
        """Average the scores of an ensemble's members: less a matter of chance than one's."""
        found = [replace(self, information_draws=0).scored(one).result() for one in predicts]
        numbers = {
            name: [math.nan if one[name] is None else one[name] for one in found] for name in _PLAIN
        }
        return finite({name: sum(values) / len(found) for name, values in numbers.items()})

    def maps(self, predict: Predict, own: str) -> dict[str, Tensor]:
        """Predict maps of the first images of all sets, for figures; ``own`` names the test set."""
        sets = {own: self.sets.test[0], **{name: self.sets.ood(name) for name in self.ood}}
        found: dict[str, Tensor] = {}
        for name, images in sets.items():
            maps = self._in_batches(partial(self._maps, predict, images[:_N_MAPS]))
            found |= {f"{name}/{kind}": values for kind, values in maps.items()}
        return found

    def scored(self, predict: Predict) -> Scorer:
        """Score a model on the test images, each also mirrored."""
        images, depth = self.sets.test

        def work(batch: int) -> Scorer:
            scorer = Scorer(self.protocol, information_draws=self.information_draws)
            for some, rows in zip(self._batches(images, batch), depth.split(batch), strict=True):
                twin = predict(some.flip(-1))
                scorer.add(predict(some), rows.to(some.device), mirrored=twin)
            return scorer

        return self._in_batches(work)

    def measured(self, predict: Predict, images: Tensor, draws: int = 0) -> ImageMeasures:
        """Measure a model's uncertainty about images of any set, over the region of its own set."""

        def work(batch: int) -> ImageMeasures:
            found = ImageMeasures(self.protocol, information_draws=draws)
            for some in self._batches(images, batch):
                belief = predict(some)
                found.add(belief, point(belief))
            return found

        return self._in_batches(work)

    def _maps(self, predict: Predict, images: Tensor, batch: int) -> dict[str, Tensor]:
        parts: list[dict[str, Tensor]] = []
        for some in self._batches(images, batch):
            belief = predict(some)
            parts.append({"prediction": point(belief), **pixel_measures(belief)})
        return {name: torch.cat([part[name] for part in parts]).float() for name in _MAPS}

    def _batches(self, images: Tensor, batch: int) -> Iterator[Tensor]:
        """Yield images in [0, 1] on the device."""
        return (some.to(self.device).float() / 255 for some in images.split(batch))

    @torch.no_grad()
    def _in_batches(self, work: Callable[[int], _Found]) -> _Found:
        return in_smaller_batches(work, _BATCH, self.message)


# -- several seeds --------------------------------------------------------------------------------


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
