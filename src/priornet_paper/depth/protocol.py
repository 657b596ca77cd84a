"""What is compared with what when depth maps are scored: crop, clip, resolution, mirrored images.

DenseDepth's protocol, as its public code has it, where it applies:

- *Resolution.* The network answers at half the resolution of the image. Predictions are scaled up
  bilinearly to that of the target for the scores of :mod:`priornet.metrics.depth`. Distributions
  are scored where the network gave them, against every second target in either direction (nearest
  pixel, as in the paper's code): an interpolated distribution is nobody's prediction. Training is
  different: its targets are means of the measured pixels of 2 x 2 blocks.
- *Clip.* Predictions are clipped to the depths that the set can have, before they are scaled up.
  Distributions are not.
- *Mirrored averaging.* The prediction is the average with that of the mirrored image, mirrored
  back. This holds for the prediction alone, hence for the deltas, rel, rmse and log10. A belief is
  scored as the network states it for the image as it is: a mixture of it with its mirrored twin
  would be another, wider model, for which a Normal-Wishart has no closed form.
- *Crop.* NYU: Eigen's, rows 20 to 459 and columns 24 to 615 of 480 x 640, scaled to the size at
  hand. KITTI: Garg's, which the author of DenseDepth names for it.
- *Pixels.* Those inside the crop with a measured depth below the limit of the set.
- *Averages.* Scores are means over images of each image's score, as in the paper's code and in
  DenseDepth's for TensorFlow 2. Its Keras code takes all pixels as one image, which makes the rmse
  larger: those stand beside them as ``over_pixels``.

What tells images apart, out-of-domain detection above all, is measured over one fixed region of
every image, whether it has depth or not: the crop, and in KITTI the part of it where training
images have depth, their lower half. No frame or sky gives the set away.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["PROTOCOLS", "Box", "Protocol", "nearest"]


class Box(NamedTuple):
    """A part of every image, as shares of its height and width."""

    top: float
    bottom: float
    left: float
    right: float

    def slices(self, height: int, width: int) -> tuple[slice, slice]:
        """Rows and columns in an image of this size, ends rounded down."""
        rows, columns = ((self.top, self.bottom, height), (self.left, self.right, width))
        # A hair more, so that 230 does not become 229 for the sake of its last bit.
        rows, columns = (
            slice(int(start * size + 1e-6), int(stop * size + 1e-6))
            for start, stop, size in (rows, columns)
        )
        return rows, columns


@dataclass(frozen=True)
class Protocol:
    """How the depth maps of a data set are scored; see the module for what each part does.

    Attributes:
        crop: Where depths are compared.
        region: Where uncertainty is averaged to one number for the image.
        closest: Predictions are clipped to at least this, in metres.
        farthest: And to at most this.
        limit: Targets from here on do not count, in metres.
    """

    crop: Box
    region: Box
    closest: float
    farthest: float
    limit: float = math.inf

    def counts(self, target: Tensor) -> Tensor:
        """Which pixels of targets ``(B, H, W)`` are scored: inside the crop, measured, in range."""
        inside = torch.zeros(target.shape[-2:], dtype=torch.bool, device=target.device)
        inside[self.crop.slices(*target.shape[-2:])] = True
        return inside & (target > 0) & (target < self.limit)

    def finish(
        self, prediction: Tensor, size: tuple[int, int], mirrored: Tensor | None = None
    ) -> Tensor:
        """The depth map that is scored, ``(B, H, W)``.

        Args:
            prediction: The network's prediction in metres, ``(B, h, w)``.
            size: Height and width of the target.
            mirrored: Its prediction for the mirrored images, not yet mirrored back; none when None.
        """
        finished = self._scaled(prediction, size)
        if mirrored is None:
            return finished
        return 0.5 * (finished + self._scaled(mirrored, size).flip(-1))

    def _scaled(self, prediction: Tensor, size: tuple[int, int]) -> Tensor:
        clipped = prediction.clamp(self.closest, self.farthest).unsqueeze(1)
        return F.interpolate(clipped, size, mode="bilinear", align_corners=False).squeeze(1)

    def record(self, size: tuple[int, int] | None = None) -> dict[str, Any]:
        """The protocol in plain words and numbers, for the results.

        Args:
            size: Height and width of the images and targets, if they are to be recorded.
        """
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
    """Targets ``(B, H, W)`` at another size, each pixel from one pixel: none is averaged away."""
    return F.interpolate(target.unsqueeze(1), size, mode="nearest").squeeze(1)


_EIGEN = Box(20 / 480, 460 / 480, 24 / 640, 616 / 640)
_GARG = Box(0.40810811, 0.99189189, 0.03594771, 0.96405229)

PROTOCOLS = {
    "nyu": Protocol(crop=_EIGEN, region=_EIGEN, closest=0.1, farthest=10.0),
    "kitti": Protocol(
        crop=_GARG, region=_GARG._replace(top=0.5), closest=0.01, farthest=80.0, limit=80.0
    ),
}
"""By data set. The clips are those of DenseDepth (NYU) and of the paper's public code (KITTI)."""
