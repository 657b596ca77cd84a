"""Whether an exported depth network says what the network says, pixel by pixel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.depth import SavedDepth
from priornet.distributions.normal import Normal
from priornet.distributions.student_t import StudentT
from priornet.export.errors import ExportError
from priornet.export.exported import GraphFile, Outputs
from priornet.uncertainty import uncertainty

__all__ = ["LEAST_KNOWLEDGE", "DepthGraph", "depth_outputs"]

LEAST_KNOWLEDGE = 1e-6
"""What single precision keeps of members that nearly agree, after a hundred convolutions."""


class DepthGraph:
    """A file of :func:`~priornet.depth.depth_to_onnx`.

    Args:
        path: The file.

    Attributes:
        coverage: Of its intervals.
        size: Height and width of the images that it takes.
    """

    def __init__(self, path: Path) -> None:
        self._file = GraphFile(path)
        shape = self._file.input_shapes.get("images")
        if "network" not in self._file.about or shape is None:
            raise ExportError(f"{path}: it is of a table's model, not of a depth network.")
        self.coverage = float(self._file.about["coverage"])
        self.size = (int(shape[2]), int(shape[3]))

    def score(self, images: NDArray[np.float32]) -> Outputs:
        """Outputs ``(batch, h, w)`` for images ``(batch, 3, H, W)`` in [0, 1]."""
        return self._file.run({"images": images})


def depth_outputs(saved: SavedDepth, images: Tensor, coverage: float) -> dict[str, Any]:
    """What the network says of images ``(batch, 3, H, W)``: the outputs of its graph."""
    belief = saved.belief(images)
    if isinstance(belief, Tensor):
        raise ExportError("the network says no uncertainty.")
    predictive = belief.predictive()
    marginals = predictive.marginals()
    upper = marginals.icdf(torch.full_like(predictive.mean, (1 + coverage) / 2))
    if isinstance(marginals, (Normal, StudentT)):  # symmetric
        lower = 2 * marginals.loc - upper
    else:
        lower = marginals.icdf(torch.full_like(predictive.mean, (1 - coverage) / 2))
    found = {"mean": predictive.mean, "lower": lower, "upper": upper}
    found |= {name: v for name, v in vars(uncertainty(belief)).items() if v is not None}
    whole = images.shape[0], *(-(-side // 2) for side in images.shape[-2:])
    return {name: value.reshape(whole).numpy() for name, value in found.items()}
