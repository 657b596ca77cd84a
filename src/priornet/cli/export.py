"""``priornet export``: a model as a file that runs without priornet."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from priornet.cli.inputs import (
    AsJson,
    Coverage,
    Interval,
    IntervalMethod,
    ModelOrWeights,
    Overwrite,
    check_interval,
    is_network,
    load_model,
    load_network,
)
from priornet.cli.outputs import ONNX, PROGRAM, check_outputs, still_written
from priornet.messages import InputError

_OnnxFile = Annotated[Path | None, typer.Option(help="ONNX file to write.")]
_TorchFile = Annotated[Path | None, typer.Option(help="torch.export file (.pt2) to write.")]
_Opset = Annotated[int, typer.Option(help="Version of the ONNX operators, 18 or newer.")]
_Size = Annotated[
    str | None,
    typer.Option(
        metavar="HxW",
        help="Size of the images of a depth network, as in 240x320; by default that of training.",
    ),
]
_SENTENCES = {
    "size": "Height and width",
    "inputs": "Inputs",
    "outputs": "Outputs",
    "onnx": "Written",
    "torch_export": "Written",
}


def export(
    model: ModelOrWeights,
    onnx: _OnnxFile = None,
    torch_export: _TorchFile = None,
    coverage: Coverage = 0.9,
    interval: IntervalMethod = Interval.PREDICTIVE,
    opset: _Opset = 18,
    size: _Size = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write a model for onnxruntime or libtorch: raw columns in, uncertainty out.

    The ONNX graph takes every column as it is, shape (rows, 1): numbers in double precision, nan
    where missing (dates as days since 1970), and text, "" where missing; any number of rows. It
    returns mean, lower and upper, the uncertainties of predict_uncertainty, in the units of the
    target, the in-domain score and the verdict. The torch.export program takes the same columns as
    one matrix of numbers; the file contains the position of each label.

    A depth network (weights that reproduce depth left in OUT/.parts/NAME/weights, or that
    priornet.depth.save_depth wrote) takes images, RGB in [0, 1], shape (batch, 3, H, W), and
    returns the same for every pixel at half the resolution.
    """
    if onnx is None and torch_export is None:
        raise InputError("name what to write: --onnx FILE, --torch-export FILE, or both.")
    if onnx is not None and torch_export is not None and onnx.resolve() == torch_export.resolve():
        raise InputError(f"{onnx}: --onnx and --torch-export name the same file; name two.")
    check_outputs([(onnx, ONNX), (torch_export, PROGRAM)], [model], overwrite=overwrite)
    if is_network(model):
        if onnx is None or torch_export is not None:
            raise InputError(f"{model}: a depth network is written with --onnx FILE alone.")
        summary = _write_network(model, onnx, size, coverage, interval, opset)
    elif size is not None:
        raise InputError("--size is for depth networks, which are files of weights.")
    else:
        summary = _write_table_model(model, onnx, torch_export, coverage, interval, opset)
    typer.echo(json.dumps(summary) if as_json else "\n".join(_sentences(summary)))


def _sentences(summary: dict[str, Any]) -> list[str]:
    def listed(value: Any) -> str:
        return value if isinstance(value, str) else ", ".join(map(str, value))

    return [f"{word}: {listed(summary[key])}" for key, word in _SENTENCES.items() if key in summary]


def _write_table_model(
    path: Path,
    onnx: Path | None,
    torch_export: Path | None,
    coverage: float,
    interval: Interval,
    opset: int,
) -> dict[str, Any]:
    model = load_model(path)
    if 0 < coverage < 1:  # else the library refuses it
        check_interval(path, model, interval, coverage)

    from priornet.export import to_onnx

    settings: Any = {"coverage": coverage, "interval": interval.value}
    summary: dict[str, Any] = {"model": str(path), **settings}
    if onnx is not None:
        graph = to_onnx(model, onnx, opset=opset, **settings).graph
        summary |= _names(graph) | {"onnx": str(onnx)}
    if torch_export is not None:
        from priornet.export import to_torch_export

        with still_written(onnx):
            to_torch_export(model, torch_export, **settings)
        summary["torch_export"] = str(torch_export)
    return summary


def _write_network(
    path: Path, onnx: Path, size: str | None, coverage: float, interval: Interval, opset: int
) -> dict[str, Any]:
    wanted = None if size is None else _parsed(size)
    network = load_network(path, interval)

    from priornet.depth import depth_to_onnx

    height_width = network.size if wanted is None else wanted
    units = {"shift": network.shift, "scale": network.scale}
    graph = depth_to_onnx(
        network.net, height_width, onnx, coverage=coverage, opset=opset, **units
    ).graph
    settings = {"coverage": coverage, "interval": "predictive", "size": list(height_width), **units}
    return {"model": str(path), **settings, **_names(graph), "onnx": str(onnx)}


def _names(graph: Any) -> dict[str, Any]:
    return {
        "inputs": [one.name for one in graph.input],
        "outputs": [one.name for one in graph.output],
    }


def _parsed(size: str) -> tuple[int, int]:
    """Parse ``"240x320"`` as height and width."""
    found = re.fullmatch(r"\s*([1-9]\d*)\s*x\s*([1-9]\d*)\s*", size)
    if found is None:
        raise InputError(f'--size must be HEIGHTxWIDTH in pixels, as in 240x320; got "{size}".')
    return int(found[1]), int(found[2])
