"""Uncertainty of images, OOD detection by it, and statistics of millions of pixels in bins.

Variances of pixels are averaged as logarithms, as the paper does: a mean of variances would be that
of the few farthest pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from priornet.distributions import Gaussian, GaussianEnsemble
from priornet.metrics import ood_auroc, spearman
from priornet.uncertainty import uncertainty
from priornet_paper.depth.protocol import Protocol

_LOGARITHMIC = ("total_variance", "variance_of_mean")
_EVERY = 8  # rows and columns between the pixels that are kept for correlations


def pixel_measures(belief: Any) -> dict[str, Tensor]:
    """Compute every measure that a belief has in closed form, by its name in results.

    A Gaussian has no knowledge measures. The entropy of an ensemble's mixture and its mutual
    information have no closed form.
    """
    record = uncertainty(belief)
    found = {
        "total_entropy": record.total_entropy,
        "total_variance": record.total_variance.squeeze(-1),
        "expected_entropy": record.data_entropy,
    }
    if not isinstance(belief, Gaussian):
        found |= {
            "mutual_information": record.mutual_information,
            "epkl": record.epkl,
            "variance_of_mean": record.knowledge_variance.squeeze(-1),
        }
    return {name: value for name, value in found.items() if value is not None}


class ImageMeasures:
    """Measures of images over the protocol's fixed region, collected on their device.

    Args:
        protocol: Defines the region.
        information_draws: Draws per member and pixel for the mutual information of ensembles, and
            so for their total entropy. Each pixel's estimate has no bias, and its noise averages
            out over thousands of them; it is given per image only. 0 for neither.
    """

    def __init__(self, protocol: Protocol, *, information_draws: int = 0) -> None:
        self.protocol = protocol
        self._draws = information_draws
        self._generator: torch.Generator | None = None
        self._means: dict[str, list[Tensor]] = {}
        self._pixels: dict[str, list[Tensor]] = {}

    @torch.no_grad()
    def add(self, belief: Any, prediction: Tensor | None = None) -> None:
        """Add a batch.

        Args:
            belief: In metres, batch ``(B, h, w)``.
            prediction: Predicted depth ``(B, h, w)``, to be kept beside the measures of pixels.
        """
        maps = pixel_measures(belief)
        rows, columns = self.protocol.region.slices(*belief.batch_shape[-2:])
        for name, value in maps.items():
            inside = value[:, rows, columns]
            inside = torch.log(inside) if name in _LOGARITHMIC else inside
            self._means.setdefault(name, []).append(inside.mean((-2, -1)))
        if self._draws and isinstance(belief, GaussianEnsemble):
            information = self._information(belief)[:, rows, columns].mean((-2, -1))
            total = self._means["expected_entropy"][-1] + information
            self._means.setdefault("mutual_information", []).append(information)
            self._means.setdefault("total_entropy", []).append(total)
        if prediction is not None:
            maps["prediction"] = prediction
        for name, value in maps.items():
            some = value[:, rows, columns][:, _EVERY // 2 :: _EVERY, _EVERY // 2 :: _EVERY]
            self._pixels.setdefault(name, []).append(some.flatten(1))

    def _information(self, ensemble: GaussianEnsemble) -> Tensor:
        if self._generator is None:
            self._generator = torch.Generator(ensemble.means.device).manual_seed(0)
        return ensemble.mutual_information_mc(self._draws, self._generator)

    def per_image(self) -> dict[str, Tensor]:
        """Return each measure's mean over the region, of the logarithm for variances: ``(N,)``."""
        return {name: torch.cat(parts).cpu() for name, parts in self._means.items()}

    def pixels(self) -> dict[str, Tensor]:
        """Return measures and ``prediction`` on a coarse grid of the region, ``(N, P)`` each.

        The grid is the same for every image and every model: every eighth row and column.
        """
        return {name: torch.cat(parts).cpu() for name, parts in self._pixels.items()}


def ood_auc(inside: Mapping[str, Tensor], outside: Mapping[str, Tensor]) -> dict[str, float]:
    """Score how well each measure, which both sides have, detects OOD images: 0.5 for chance."""
    return {
        name: _unless_failed(ood_auroc, value, outside[name])
        for name, value in inside.items()
        if name in outside
    }


def correlation(a: Tensor, b: Tensor) -> float:
    """Compute Spearman's correlation of all values; ``nan`` if it has none or a model failed."""
    if a.numel() < 2:
        return float("nan")
    return _unless_failed(spearman, a.flatten(), b.flatten())


def agreement(student: Mapping[str, Tensor], teacher: Mapping[str, Tensor]) -> dict[str, Any]:
    """Compute how alike the maps of two models are: Spearman's correlation of their pixels.

    ``mutual_information`` is compared with the teacher's EPKL if the teacher has no mutual
    information in closed form: both are its knowledge uncertainty without a scale.

    Args:
        student: Pixels of :class:`ImageMeasures`.
        teacher: Pixels of the same images.

    Returns:
        By measure, and for ``prediction``: ``within_images``, the mean over images of the
        correlation inside each, and ``over_all``, of all pixels at once. For ``prediction`` also
        ``distance``, the root mean square of the difference, in metres.
    """
    found: dict[str, Any] = {}
    for name, map_of in student.items():
        other = teacher.get("epkl") if name == "mutual_information" else None
        other = teacher.get(name, other)
        if other is None:
            continue
        if other.shape != map_of.shape:
            raise ValueError(
                f"maps of `{name}` are of {tuple(map_of.shape)} and {tuple(other.shape)} images "
                "and pixels: measure both models on the same images at the same resolution."
            )
        within = _unless_failed(lambda a, b: spearman(a, b).nanmean(), map_of, other)
        found[name] = {"within_images": within, "over_all": correlation(map_of, other)}
        if name == "prediction":
            found[name]["distance"] = float((map_of - other).double().square().mean().sqrt())
    return found


def _unless_failed(score: Callable[[Tensor, Tensor], Any], a: Tensor, b: Tensor) -> float:
    """Compute a score; ``nan`` if a model has failed, which is a result and not an error."""
    failed = bool(a.isnan().any()) or bool(b.isnan().any())
    return float("nan") if failed else float(score(a.double(), b.double()))


# -- millions of pixels in bins -------------------------------------------------------------------


QUANTILES = (0.5, 0.9, 0.99, 0.999)
"""Quantiles of the negative log-likelihoods of all pixels."""

_SHOWN = (-4.0, 8.0, 120)  # nats, and bins between, of the histograms that are written


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

    def area(self) -> float:
        """Compute the area between the shares and the diagonal, by the trapezoidal rule."""
        return float(torch.trapezoid((self.shares() - self.edges()).abs(), self.edges()))

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


def rounded(shares: Tensor) -> list[float]:
    """Round shares to seven places: a pixel in ten millions."""
    return [round(share, 7) for share in shares.tolist()]


class Likelihoods:
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
                "shares": rounded(below.diff()),
                "below": float(below[0]),
                "above": float(1 - below[-1]),
            },
            f"{name}_not_numbers": self._bins.n_not_numbers,
        }
