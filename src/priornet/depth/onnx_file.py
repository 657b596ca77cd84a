"""Depth networks as ONNX files, images in, depth and its uncertainty out; and their comparison."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from priornet._version import __version__
from priornet.depth.images.dataset import DepthImages
from priornet.depth.saved import SavedDepth, check_units, depth_outputs
from priornet.export.agreement import Comparison, GraphFile, Outputs, Worst
from priornet.export.interface import ExportError, Interval, check_coverage, named, need, quiet
from priornet.export.onnx.beliefs import add_outputs, measures
from priornet.export.onnx.graph import LEAST_OPSET, Graph, check_opset, set_origin
from priornet.nn import DenseDepth, GaussianMixtureHead
from priornet.tables.learning import Scaling
from priornet.writing import write_bytes

_IMAGES, _FEATURES, _RAW, _BATCH = "images", "features", "raw", "batch"
LEAST_KNOWLEDGE = 1e-6
"""Relative resolution of single precision, after a hundred convolutions, for members that agree."""


class _Body(nn.Module):
    """The network up to the head's raw outputs."""

    def __init__(self, net: DenseDepth) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        return self.net.raw(images)  # (B, H / 2, W / 2, n)


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
        net: With a head of one target that has uncertainty.
        size: Height and width of the images.
        path: File to write; None to return the model only.
        coverage: Coverage of the interval from ``lower`` to ``upper``.
        shift: Depth of the network's output 0.
        scale: Depth of a step of 1 in the network's output.
        opset: Version of the operators.

    Returns:
        The ``onnx.ModelProto``.
    """
    check_opset(opset)
    check_coverage(coverage)
    check_units(size, shift, scale, ExportError)
    origin: dict[str, Any] = {"version": __version__, "network": type(net).__name__}
    origin |= {"coverage": coverage, "interval": "predictive"}
    graph = Graph()
    _add_head(graph, net, size, Interval(coverage), Scaling(np.full(1, shift), np.full(1, scale)))
    whole = _joined(graph.onnx, _traced(net, size, opset), graph.model(opset, origin))
    set_origin(graph.onnx, whole, origin)
    if path is not None:
        write_bytes(Path(path), whole.SerializeToString())
    return whole


def _add_head(
    graph: Graph, net: DenseDepth, size: tuple[int, int], interval: Interval, scaling: Scaling
) -> None:
    """Add the nodes from the head's raw outputs to the outputs of the graph."""
    shape = [_BATCH, *(-(-side // 2) for side in size)]
    raw = graph.input(_RAW, np.float32, [*shape, net.head.n_outputs])
    # Members that nearly agree differ in digits that the logarithms of single precision lose.
    exact = raw.cast(np.float64) if isinstance(net.head, GaussianMixtureHead) else raw
    found = measures(net.head, exact, 4, interval)
    add_outputs(found, scaling, shape, is_vector=True, dtype=np.float32)


def _joined(onnx: Any, body: Any, tail: Any) -> Any:
    """Join the traced network and the nodes of its head to one model."""
    tail.ir_version = body.ir_version
    body = onnx.compose.add_prefix(body, "body/", rename_inputs=False, rename_outputs=False)
    whole = onnx.compose.merge_models(body, tail, io_map=[(_FEATURES, _RAW)])
    whole.producer_name, whole.producer_version = tail.producer_name, tail.producer_version
    return whole


def _traced(net: DenseDepth, size: tuple[int, int], opset: int) -> Any:
    """Export the body by torch, without the paths of its source code."""
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


class DepthGraph:
    """A file of :func:`~priornet.depth.depth_to_onnx`.

    Args:
        path: The file.

    Attributes:
        coverage: Coverage of its intervals.
        size: Height and width of its input images.
    """

    def __init__(self, path: Path) -> None:
        self._file = GraphFile(path)
        shape = self._file.input_shapes.get("images")
        if "network" not in self._file.about or shape is None:
            raise ExportError(f"{path}: it is of a table's model, not of a depth network.")
        self.coverage = float(self._file.about["coverage"])
        self.size = (int(shape[2]), int(shape[3]))

    def score(self, images: NDArray[np.float32]) -> Outputs:
        """Return the outputs ``(batch, h, w)`` for images ``(batch, 3, H, W)`` in [0, 1]."""
        return self._file.run({"images": images})


def verify_depth(network: SavedDepth, exported: str | Path, images: DepthImages) -> dict[str, Any]:
    """Compare a graph with its network at every pixel of some images, on the CPU.

    The network runs in double precision, so that a difference is the graph's own. Images are
    brought to the size of the graph.

    Args:
        network: The network.
        exported: A file that :func:`depth_to_onnx` wrote.
        images: Any images.

    Returns:
        The largest difference of each output with its image and pixel, ready for JSON.
    """
    exact, graph = network.exact(), DepthGraph(Path(exported))
    comparison = Comparison(least_knowledge=LEAST_KNOWLEDGE)
    for picture, _ in images.pairs(size=graph.size, with_depth=False):
        batch = torch.from_numpy(picture).permute(2, 0, 1).unsqueeze(0).float() / 255
        expected = depth_outputs(exact, batch, graph.coverage)
        with named(exported):
            comparison.add(expected, graph.score(batch.contiguous().numpy()))
    width = -(-graph.size[1] // 2)

    def place(_: str, worst: Worst) -> dict[str, Any]:
        return {"image": images.names[worst.row], "pixel": list(divmod(worst.target, width))}

    return {"n_images": comparison.n_rows, **comparison.summary(place)}
