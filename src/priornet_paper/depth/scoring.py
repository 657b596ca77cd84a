"""What is measured of one trained model: its scores, its OOD detection, its maps for figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from priornet_paper.depth.evaluation import Predict, evaluate, measure
from priornet_paper.depth.measures import ImageMeasures, agreement, ood_auc, pixel_measures
from priornet_paper.depth.memory import in_smaller_batches
from priornet_paper.depth.protocol import Protocol
from priornet_paper.depth.score import point
from priornet_paper.depth.sets import Sets

__all__ = ["Scoring"]

_BATCH = 16
_PLAIN = ("delta1", "delta2", "delta3", "rel", "rmse", "log10", "rmse_log10", "nll")
_SHOWN = 6  # images of each set whose maps are kept for figures


@dataclass(frozen=True)
class Scoring:
    """What a model is scored with."""

    sets: Sets
    protocol: Protocol
    strange: Sequence[str]
    """Names of sets that it has never seen."""
    device: torch.device
    information_draws: int
    remark: Callable[[str], object]
    """Told, in one line, where a batch does not fit in memory."""

    def result(
        self, predict: Predict, *, has_belief: bool = True, teacher: Predict | None = None
    ) -> dict[str, Any]:
        """All scores of a model.

        Args:
            predict: The model.
            has_belief: Whether it says more than a depth.
            teacher: The ensemble that it learnt from, to compare with.
        """
        options: dict[str, Any] = {
            "device": self.device,
            "information_draws": self.information_draws,
        }

        def own(batch: int) -> Any:
            return evaluate(predict, *self.sets.test, self.protocol, batch=batch, **options)

        scorer = self._in_batches(own)
        result: dict[str, Any] = scorer.result()
        if has_belief:
            inside = scorer.measures.per_image()
            result["ood_auc"] = {}
            for name in self.strange:
                images = self.sets.foreign(name)

                def outside(batch: int, images: Tensor = images) -> ImageMeasures:
                    return measure(predict, images, self.protocol, batch=batch, **options)

                found = self._in_batches(outside)
                result["ood_auc"][name] = _finite(ood_auc(inside, found.per_image()))
        if teacher is not None:
            agreed = agreement(scorer.measures.pixels(), self._of_teacher(teacher).pixels())
            result["agreement"] = {name: _finite(value) for name, value in agreed.items()}
        return result

    def members(self, predicts: Sequence[Predict]) -> dict[str, float | None]:
        """Means over models of the scores of each by itself: less chance than in any one of them.

        Args:
            predicts: Such as the members of an ensemble.
        """
        found = [
            self._in_batches(lambda batch, one=one: self._plain(one, batch)) for one in predicts
        ]
        means = {name: sum(scores[name] for scores in found) / len(found) for name in _PLAIN}
        return _finite(means)

    def _plain(self, predict: Predict, batch: int) -> dict[str, float]:
        scorer = evaluate(predict, *self.sets.test, self.protocol, batch=batch, device=self.device)
        scores = scorer.result()
        return {name: math.nan if scores[name] is None else scores[name] for name in _PLAIN}

    def maps(self, predict: Predict, name: str) -> dict[str, Tensor]:
        """Maps of the first images of every set, for figures.

        Args:
            predict: The model.
            name: What its own set is called.
        """
        found: dict[str, Tensor] = {}
        strange = {other: self.sets.foreign(other) for other in self.strange}
        for called, images in {name: self.sets.test[0], **strange}.items():

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
        names = ("prediction", "total_variance", "epkl")
        return {name: whole[name].float() for name in names}

    def _of_teacher(self, teacher: Predict) -> ImageMeasures:
        """What a student's ensemble says of the test images."""

        @torch.no_grad()
        def whole(batch: int) -> ImageMeasures:
            found = ImageMeasures(self.protocol)
            for some in self.sets.test[0].split(batch):
                belief = teacher(some.to(self.device).float() / 255)
                found.add(belief, point(belief))
            return found

        return self._in_batches(whole)

    def _in_batches(self, work: Callable[[int], Any]) -> Any:
        return in_smaller_batches(work, _BATCH, self.remark)


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    """JSON has no name for what is not finite."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
