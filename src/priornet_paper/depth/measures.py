"""Uncertainty of images: maps of every measure, one number for an image, OOD detection by it.

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
    """Score how well each measure of images detects OOD images, 0.5 for chance.

    Args:
        inside: Measures of in-domain images, from :meth:`ImageMeasures.per_image`.
        outside: Measures of OOD images; those that only one side has are left out.
    """
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
        student: From :meth:`ImageMeasures.pixels`, of the same images as the teacher's.
        teacher: Likewise.

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
