"""Networks with a prediction per pixel as ONNX: images in, depth and its uncertainty out."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from priornet._version import __version__
from priornet.depth.model import SavedDepth
from priornet.distributions.normal import Normal
from priornet.distributions.student_t import StudentT
from priornet.export.errors import ExportError, need
from priornet.export.exported import GraphFile, Outputs
from priornet.export.onnx.beliefs import Interval, measures
from priornet.export.onnx.graph import Graph
from priornet.export.onnx.model import (
    LEAST_OPSET,
    check_opset,
    describe,
    give_out,
    make_model,
)
from priornet.export.onnx.series import check_coverage
from priornet.export.quiet import quiet
from priornet.nn import DenseDepth, GaussianMixtureHead
from priornet.tables.target_columns import Scaling
from priornet.uncertainty import uncertainty
from priornet.writing import write_bytes

__all__ = ["LEAST_KNOWLEDGE", "DepthGraph", "depth_outputs", "depth_to_onnx"]

_IMAGES, _FEATURES, _RAW, _BATCH = "images", "features", "raw", "batch"


class _Body(nn.Module):
    """The network up to the head's raw outputs."""

    def __init__(self, net: DenseDepth) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        """Raw outputs ``(B, H / 2, W / 2, n)``."""
        return self.net.raw(images)


def depth_to_onnx(
    net: DenseDepth,
    size: tuple[int, int],
    path: str | os.PathLike[str] | None = None,
    *,
    coverage: float = 0.9,
    shift: float = 0.0,
    scale: float = 1.0,
    opset: int = LEAST_OPSET,
) -> Any:
    """Write a depth network as an ONNX model, for any number of images of one size.

    The input ``images`` is RGB in [0, 1], ``(batch, 3, H, W)``, single precision. Outputs are those
    of :func:`~priornet.export.to_onnx` per pixel, ``(batch, H / 2, W / 2)``.

    Args:
        net: With a head of one target that says its uncertainty.
        size: Height and width of the images.
        path: File to write; None to return the model only.
        coverage: Of the interval from ``lower`` to ``upper``.
        shift: Depth that the network's 0 stands for.
        scale: Depth that a step of 1 stands for.
        opset: Version of the operators.

    Returns:
        The ``onnx.ModelProto``.
    """
    check_opset(opset)
    check_coverage(coverage)
    _check_units(size, shift, scale)
    height, width = (-(-side // 2) for side in size)
    graph = Graph()
    raw = graph.input(_RAW, np.float32, [_BATCH, height, width, net.head.n_outputs])
    # Members that nearly agree differ in digits that the logarithms of single precision lose.
    exact = raw.cast(np.float64) if isinstance(net.head, GaussianMixtureHead) else raw
    found = measures(graph, net.head, exact, 4, Interval(coverage))
    scaling = Scaling(np.full(1, shift), np.full(1, scale))
    shape = [_BATCH, height, width]
    give_out(graph, found, scaling, shape, is_vector=True, dtype=np.float32)
    about = {
        "version": __version__,
        "network": type(net).__name__,
        "coverage": coverage,
        "interval": "predictive",
    }
    tail = make_model(graph, opset, about)
    body = _traced(net, size, opset)
    tail.ir_version = body.ir_version
    compose = graph.onnx.compose
    body = compose.add_prefix(body, "body/", rename_inputs=False, rename_outputs=False)
    whole = compose.merge_models(body, tail, io_map=[(_FEATURES, _RAW)])
    whole.producer_name, whole.producer_version = tail.producer_name, tail.producer_version
    describe(graph.onnx, whole, about)
    if path is not None:
        write_bytes(Path(path), whole.SerializeToString())
    return whole


def _check_units(size: tuple[int, ...], shift: float, scale: float) -> None:
    if len(size) != 2 or not all(side >= 1 and side == int(side) for side in size):
        raise ExportError(f"`size` must be a height and a width in pixels; got {size}.")
    if not (math.isfinite(shift) and 0 < scale < math.inf):
        raise ExportError(
            f"`shift` must be finite and `scale` positive; got {shift:g} and {scale:g}."
        )


def _traced(net: DenseDepth, size: tuple[int, int], opset: int) -> Any:
    """The body as torch exports it, without notes about where its code lies."""
    need("onnxscript", "export a depth network")
    was_training = net.training
    weight = next(net.parameters())
    example = weight.new_zeros(2, 3, *size)
    body = _Body(net).eval()
    try:
        with torch.no_grad(), quiet("torch.onnx"):
            program: Any = torch.onnx.export(
                body,
                (example,),
                dynamo=True,
                opset_version=opset,
                dynamic_shapes={_IMAGES: {0: torch.export.Dim(_BATCH)}},
                input_names=[_IMAGES],
                output_names=[_FEATURES],
                verbose=False,
            )
    finally:
        net.train(was_training)
    model = program.model_proto
    graph = model.graph
    for part in (*graph.node, *graph.input, *graph.output, *graph.value_info, graph):
        del part.metadata_props[:]
    return model


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
