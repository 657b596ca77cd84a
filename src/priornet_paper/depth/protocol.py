"""The protocol by which depth maps are scored: crop, clip, resolution, mirrored images.

It is DenseDepth's, as in its public code, where that applies:

- *Resolution.* The network predicts at half the resolution of the image. Predictions are scaled up
  bilinearly to that of the target for the scores of :mod:`priornet.metrics.depth`. Distributions
  are scored at the network's resolution, against every second target in either direction (nearest
  pixel, as in the paper's code): no model predicts an interpolated distribution. Training differs:
  its targets are means of the measured pixels of 2 x 2 blocks.
- *Clip.* Predictions are clipped to the depths that the set can have, before they are scaled up.
  Distributions are not.
- *Mirrored averaging.* The prediction is the average with that of the mirrored image, mirrored
  back. This holds for the prediction alone, hence for the deltas, rel, rmse and log10. A belief is
  scored for the image as it is: its mixture with the mirrored twin would be another, wider model,
  for which a Normal-Wishart has no closed form.
- *Crop.* NYU: Eigen's, rows 20 to 459 and columns 24 to 615 of 480 x 640, scaled to the image's
  size. KITTI: Garg's, which the author of DenseDepth names for it.
- *Pixels.* Pixels inside the crop with a measured depth below the limit of the set.
- *Averages.* Scores are means over images of each image's score, as in the paper's code and in
  DenseDepth's for TensorFlow 2. Its Keras code takes all pixels as one image, which makes the rmse
  larger: these scores stand beside the others as ``over_pixels``.

OOD detection measures one fixed region of every image, with depth or without: the crop, and in
KITTI the part of it where training images have depth, their lower half. So no frame or sky gives
the set away.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Box(NamedTuple):
    """A part of every image, as shares of its height and width."""

    top: float
    bottom: float
    left: float
    right: float

    def slices(self, height: int, width: int) -> tuple[slice, slice]:
        """Return rows and columns in an image of this size, ends rounded down."""
        rows, columns = ((self.top, self.bottom, height), (self.left, self.right, width))
        # The small addition keeps 230 from becoming 229 by rounding.
        rows, columns = (
            slice(int(start * size + 1e-6), int(stop * size + 1e-6))
            for start, stop, size in (rows, columns)
        )
        return rows, columns


@dataclass(frozen=True)
class Protocol:
    """Protocol of a data set, in metres; the module describes each part."""

    crop: Box
    """Region in which depths are compared."""
    region: Box
    """Region over which uncertainty is averaged to one number for the image."""
    closest: float
    """Lower clip of predictions."""
    farthest: float
    """Upper clip of predictions."""
    limit: float = math.inf
    """Depth from which targets do not count."""

    def counts(self, target: Tensor) -> Tensor:
        """Find the pixels of targets ``(B, H, W)`` to score: in the crop, measured, in range."""
        inside = torch.zeros(target.shape[-2:], dtype=torch.bool, device=target.device)
        inside[self.crop.slices(*target.shape[-2:])] = True
        return inside & (target > 0) & (target < self.limit)

    def finish(
        self, prediction: Tensor, size: tuple[int, int], mirrored: Tensor | None = None
    ) -> Tensor:
        """Compute the depth map to score, ``(B, H, W)``.

        Args:
            prediction: The network's prediction in metres, ``(B, h, w)``.
            size: Height and width of the target.
            mirrored: The prediction for the mirrored images, not yet mirrored back.
        """
        finished = self._scaled(prediction, size)
        if mirrored is None:
            return finished
        return 0.5 * (finished + self._scaled(mirrored, size).flip(-1))

    def _scaled(self, prediction: Tensor, size: tuple[int, int]) -> Tensor:
        clipped = prediction.clamp(self.closest, self.farthest).unsqueeze(1)
        return F.interpolate(clipped, size, mode="bilinear", align_corners=False).squeeze(1)

    def record(self, size: tuple[int, int] | None = None) -> dict[str, Any]:
        """Describe the protocol, and the size of images if it is given, for the results."""
        resolution: dict[str, Any] = {}
        if size is not None:
            predictions = [side // 2 for side in size]
            resolution = {"resolution": {"targets": [*size], "predictions": predictions}}
        limits = {k: v for k, v in asdict(self).items() if isinstance(v, float) and v < math.inf}
        return {
            "crop": self.crop._asdict(),
            "region": self.region._asdict(),
            **resolution,
            **{f"{name}_metres": value for name, value in limits.items()},
            "depth_scores": "predictions clipped, scaled up bilinearly to the target, averaged "
            "with the mirrored image's; mean over images of each image's score",
            "distribution_scores": "at the network's resolution against the nearest target; "
            "not clipped, not mirrored; in metres, with constants",
        }


def nearest(target: Tensor, size: tuple[int, int]) -> Tensor:
    """Resize targets ``(B, H, W)``, each pixel from one pixel: none is averaged away."""
    return F.interpolate(target.unsqueeze(1), size, mode="nearest").squeeze(1)


_EIGEN = Box(20 / 480, 460 / 480, 24 / 640, 616 / 640)
_GARG = Box(0.40810811, 0.99189189, 0.03594771, 0.96405229)

PROTOCOLS = {
    "nyu": Protocol(crop=_EIGEN, region=_EIGEN, closest=0.1, farthest=10.0),
    "kitti": Protocol(
        crop=_GARG, region=_GARG._replace(top=0.5), closest=0.01, farthest=80.0, limit=80.0
    ),
}
"""Protocols by data set, with the clips of DenseDepth (NYU) and of the paper's code (KITTI)."""
