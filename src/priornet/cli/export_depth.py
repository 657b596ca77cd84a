"""``priornet export`` and ``priornet verify`` for depth networks: a file of weights, and images."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from priornet.cli.agreement import agreement_sentence, check_outputs, summarise
from priornet.cli.errors import InputError, blamed_on, called, one_line
from priornet.cli.options import Interval

if TYPE_CHECKING:
    from priornet.depth import SavedDepth

__all__ = [
    "compare_depth",
    "depth_sentence",
    "is_network",
    "load_network",
    "parse_size",
    "refuse_conformal",
    "write_depth",
]

_WRITERS = "`priornet reproduce depth` and `priornet.depth.save_depth` write them."


def is_network(path: Path) -> bool:
    """Whether a path is meant for a file of weights, and not for a model's folder."""
    return path.is_file() or (path.suffix == ".safetensors" and not path.exists())


def load_network(path: Path) -> SavedDepth:
    """A depth network from its file."""
    if not path.exists():
        raise InputError(f"{path}: no such file; {_WRITERS}")
    with path.open("rb"):  # whether it may be read is not a matter of what is in it
        pass
    from priornet.depth import load_depth
    from priornet.nn.tensor_files import TensorFileError

    try:
        return load_depth(path)
    except TensorFileError as error:
        raise InputError(
            f"{path}: it is a file, but no file of weights of a depth network, or damaged; "
            f"{_WRITERS} A model of tables is a folder."
        ) from error
    except ValueError as error:
        raise InputError(one_line(error)) from error


def parse_size(text: str | None) -> tuple[int, int] | None:
    """``"240x320"`` as height and width."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*([1-9]\d*)\s*x\s*([1-9]\d*)\s*", text)
    if found is None:
        raise InputError(f'--size must be HEIGHTxWIDTH in pixels, as in 240x320; got "{text}".')
    return int(found[1]), int(found[2])


def refuse_conformal(path: Path, interval: Interval) -> None:
    """A network has learnt from images, and none of them was held out with it."""
    if interval is not Interval.PREDICTIVE:
        raise InputError(
            f"{path}: a depth network has no held-out rows for --interval {interval.value}."
        )


def write_depth(
    model: Path, onnx: Path, *, size: tuple[int, int] | None, coverage: float, opset: int
) -> dict[str, Any]:
    """Write the graph of a network.

    Returns:
        What ``--json`` prints.
    """
    from priornet.depth import depth_to_onnx
    from priornet.export import ExportError

    saved = load_network(model)
    size = saved.size if size is None else size
    units = {"shift": saved.shift, "scale": saved.scale}
    try:
        graph = depth_to_onnx(saved.net, size, onnx, coverage=coverage, opset=opset, **units).graph
    except ExportError as error:
        raise InputError(one_line(error)) from error
    return {
        "model": str(model),
        "coverage": coverage,
        "interval": "predictive",
        "size": list(size),
        **units,
        "inputs": [one.name for one in graph.input],
        "outputs": [one.name for one in graph.output],
        "onnx": str(onnx),
    }


def compare_depth(model: Path, exported: Path, data: str) -> dict[str, Any]:
    """Compare a graph with its network, image by image.

    Returns:
        What ``--json`` prints.
    """
    import torch

    from priornet.depth import DepthGraph, depth_outputs, open_depth
    from priornet.depth.onnx_file import LEAST_KNOWLEDGE
    from priornet.export import Comparison

    if data == "-":
        raise InputError("a depth network is verified with images: name a file or a folder.")
    # In double precision: a difference is then the graph's own, and not that of two roundings.
    saved = load_network(model).exact()
    with blamed_on(exported):
        graph = DepthGraph(exported)
    comparison = Comparison(least_knowledge=LEAST_KNOWLEDGE)
    with blamed_on(called(data)):
        images = open_depth(data)
        pictures = images.pairs(size=graph.size, with_depth=False)
        for picture, _ in pictures:
            batch = torch.from_numpy(picture).permute(2, 0, 1).unsqueeze(0).float() / 255
            with blamed_on(model):
                expected = depth_outputs(saved, batch, graph.coverage)
            with blamed_on(exported):
                found = graph.score(batch.contiguous().numpy())
                check_outputs(exported, expected, found)
                comparison.add(expected, found)
    width = -(-graph.size[1] // 2)

    def place(_: str, worst: Any) -> dict[str, Any]:
        return {"image": images.names[worst.row], "pixel": list(divmod(worst.target, width))}

    return {
        "model": str(model),
        "exported": str(exported),
        "data": data,
        "n_images": comparison.n_rows,
        **summarise(comparison, place),
    }


def depth_sentence(summary: dict[str, Any]) -> str:
    """What the command says."""
    n_images, worst = summary["n_images"], summary["worst"]
    row, column = worst["pixel"]
    who = "1 image" if n_images == 1 else f"{n_images} images"
    where = f", {worst['image']}, pixel ({row}, {column})"
    return agreement_sentence(summary, n_images, who, where)
