"""A trained model on all images of all sets: its scores, OOD detection, and maps for figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from priornet_paper.depth.machine import in_smaller_batches
from priornet_paper.depth.measures import ImageMeasures, agreement, ood_auc, pixel_measures
from priornet_paper.depth.protocol import Protocol
from priornet_paper.depth.scores import Scorer, finite, point
from priornet_paper.depth.sets import Sets

Predict = Callable[[Tensor], Any]
"""Images ``(B, 3, H, W)`` in [0, 1] to a belief in metres, or to depths, ``(B, h, w)``."""

_BATCH = 16
_PLAIN = ("delta1", "delta2", "delta3", "rel", "rmse", "log10", "rmse_log10", "nll")
_SHOWN = 6  # images of each set whose maps are kept for figures


@torch.no_grad()
def evaluate(
    predict: Predict,
    images: Tensor,
    depth: Tensor,
    protocol: Protocol,
    *,
    batch: int = _BATCH,
    device: torch.device | str | None = None,
    mirrored: bool = True,
    information_draws: int = 0,
) -> Scorer:
    """Score a model on the test images of its own set.

    Args:
        predict: The model.
        images: As bytes, ``(N, 3, H, W)``.
        depth: In metres, ``(N, H, W)``; 0 is no measurement.
        protocol: Defines what is compared.
        batch: Images at a time.
        device: Device of the model; that of the images when None.
        mirrored: True averages predictions with those of the mirrored images.
        information_draws: For ensembles; see :class:`ImageMeasures`.
    """
    if len(depth) != len(images):
        raise ValueError(f"{len(images)} images need as many depth maps; got {len(depth)}.")
    scorer = Scorer(protocol, information_draws=information_draws)
    for rows, some in _batches(images, batch, device):
        twin = predict(some.flip(-1)) if mirrored else None
        scorer.add(predict(some), depth[rows].to(some.device), mirrored=twin)
    return scorer


@torch.no_grad()
def measure(
    predict: Predict,
    images: Tensor,
    protocol: Protocol,
    *,
    batch: int = _BATCH,
    device: torch.device | str | None = None,
    information_draws: int = 0,
    has_prediction: bool = False,
) -> ImageMeasures:
    """Measure a model's uncertainty about images of any set, over the same region as its own.

    Args:
        predict: The model; it must predict a belief.
        images: As bytes, prepared to the size of the model's own images, ``(N, 3, H, W)``.
        protocol: That of the model's own set.
        batch: Images at a time.
        device: Device of the model; that of the images when None.
        information_draws: For ensembles; see :class:`ImageMeasures`.
        has_prediction: True keeps the predicted depth beside the measures of pixels.
    """
    found = ImageMeasures(protocol, information_draws=information_draws)
    for _, some in _batches(images, batch, device):
        belief = predict(some)
        found.add(belief, point(belief) if has_prediction else None)
    return found


def _batches(
    images: Tensor, batch: int, device: torch.device | str | None
) -> Iterator[tuple[slice, Tensor]]:
    """Yield images in [0, 1] on the device, with their places."""
    if images.dim() != 4 or images.dtype != torch.uint8:
        raise ValueError(
            "`images` must be bytes of shape (N, 3, H, W); got "
            f"{images.dtype} {tuple(images.shape)}."
        )
    for start in range(0, len(images), batch):
        rows = slice(start, min(start + batch, len(images)))
        yield rows, images[rows].to(device or images.device).float() / 255


@dataclass(frozen=True)
class Scoring:
    """Images, protocol and device with which models are scored."""

    sets: Sets
    protocol: Protocol
    ood: Sequence[str]
    """Names of the out-of-domain sets."""
    device: torch.device
    information_draws: int
    tell: Callable[[str], object]
    """Called with one line if a batch does not fit in memory."""

    def result(
        self, predict: Predict, *, has_belief: bool = True, teacher: Predict | None = None
    ) -> dict[str, Any]:
        """Compute all scores of a model.

        Args:
            predict: The model.
            has_belief: False for a model that predicts a depth and nothing else.
            teacher: The ensemble that it learnt from, for a comparison.
        """
        scorer: Scorer = self._in_batches(
            lambda batch: evaluate(
                predict,
                *self.sets.test,
                self.protocol,
                batch=batch,
                device=self.device,
                information_draws=self.information_draws,
            )
        )
        result: dict[str, Any] = scorer.result()
        if has_belief:
            inside = scorer.measures.per_image()
            result["ood_auc"] = {
                name: finite(ood_auc(inside, self._measured(predict, images).per_image()))
                for name, images in self._ood_images()
            }
        if teacher is not None:
            maps = self._measured(teacher, self.sets.test[0], 0, has_prediction=True).pixels()
            result["agreement"] = finite(agreement(scorer.measures.pixels(), maps))
        return result

    def members(self, predicts: Sequence[Predict]) -> dict[str, float | None]:
        """Average the scores of several models: less a matter of chance than those of one.

        Args:
            predicts: Such as the members of an ensemble.
        """
        found = [self._in_batches(lambda n, one=one: self._plain(one, n)) for one in predicts]
        means = {name: sum(scores[name] for scores in found) / len(found) for name in _PLAIN}
        return finite(means)

    def _plain(self, predict: Predict, batch: int) -> dict[str, float]:
        scorer = evaluate(predict, *self.sets.test, self.protocol, batch=batch, device=self.device)
        scores = scorer.result()
        return {name: math.nan if scores[name] is None else scores[name] for name in _PLAIN}

    def maps(self, predict: Predict, name: str) -> dict[str, Tensor]:
        """Predict maps of the first images of every set, for figures.

        Args:
            predict: The model.
            name: Name of its own set.
        """
        found: dict[str, Tensor] = {}
        for called, images in [(name, self.sets.test[0]), *self._ood_images()]:

            def shown(batch: int, images: Tensor = images[:_SHOWN]) -> dict[str, Tensor]:
                parts = [self._shown(predict, some) for some in images.split(batch)]
                return {what: torch.cat([part[what] for part in parts]) for what in parts[0]}

            for what, values in self._in_batches(shown).items():
                found[f"{called}/{what}"] = values
        return found

    @torch.no_grad()
    def _shown(self, predict: Predict, images: Tensor) -> dict[str, Tensor]:
        belief = predict(images.to(self.device).float() / 255)
        whole = {"prediction": point(belief), **pixel_measures(belief)}
        return {name: whole[name].float() for name in ("prediction", "total_variance", "epkl")}

    def _ood_images(self) -> Iterator[tuple[str, Tensor]]:
        return ((name, self.sets.foreign(name)) for name in self.ood)

    def _measured(
        self,
        predict: Predict,
        images: Tensor,
        information_draws: int | None = None,
        *,
        has_prediction: bool = False,
    ) -> ImageMeasures:
        draws = self.information_draws if information_draws is None else information_draws
        return self._in_batches(
            lambda batch: measure(
                predict,
                images,
                self.protocol,
                batch=batch,
                device=self.device,
                information_draws=draws,
                has_prediction=has_prediction,
            )
        )

    def _in_batches(self, work: Callable[[int], Any]) -> Any:
        return in_smaller_batches(work, _BATCH, self.tell)
