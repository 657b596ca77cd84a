"""``priornet export``: a model as a file that needs nothing of ours."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from priornet.cli.errors import InputError, blamed_on, one_line
from priornet.cli.export_depth import is_network, parse_size, refuse_conformal, write_depth
from priornet.cli.inputs import check_interval, load_model
from priornet.cli.kinds import ONNX, PROGRAM
from priornet.cli.options import AsJson, Interval, IntervalMethod, ModelOrWeights, Overwrite
from priornet.cli.outputs import check_outputs, still_written

__all__ = ["export"]

_SENTENCES = {
    "size": "Height and width",
    "inputs": "Inputs",
    "outputs": "Outputs",
    "onnx": "Written",
    "torch_export": "Written",
}


def export(
    model: ModelOrWeights,
    onnx: Annotated[Path | None, typer.Option(help="ONNX file to write.")] = None,
    torch_export: Annotated[
        Path | None, typer.Option(help="torch.export file (.pt2) to write.")
    ] = None,
    coverage: Annotated[float, typer.Option(help="Coverage of the intervals.")] = 0.9,
    interval: IntervalMethod = Interval.PREDICTIVE,
    opset: Annotated[int, typer.Option(help="Version of the ONNX operators, 18 or newer.")] = 18,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="HxW",
            help="Images that a depth network takes, as in 240x320; by default as it learnt.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write a model for onnxruntime or libtorch: raw columns in, uncertainty out.

    The ONNX graph takes every column as it is, shape (rows, 1): numbers in double precision with
    nan for holes (dates as days since 1970), text with "" for holes; any number of rows. It gives
    mean, lower and upper, the uncertainties of predict_uncertainty, in the units of the target,
    the in-domain score and the verdict.
    The torch.export program takes the columns after preprocessing, as one matrix.

    A depth network (weights that reproduce depth left in OUT/.parts/NAME/weights, or that
    priornet.depth.save_depth wrote) takes images, RGB in [0, 1], shape (batch, 3, H, W), and gives
    the same for every pixel at half the resolution.
    """
    if onnx is None and torch_export is None:
        raise InputError("name what to write: --onnx FILE, --torch-export FILE, or both.")
    if onnx is not None and torch_export is not None and onnx.resolve() == torch_export.resolve():
        raise InputError(f"{onnx}: --onnx and --torch-export name the same file; name two.")
    check_outputs([(onnx, ONNX), (torch_export, PROGRAM)], [model], overwrite=overwrite)
    wanted = parse_size(size)
    if is_network(model):
        summary = _write_network(model, onnx, torch_export, wanted, opset, coverage, interval)
    elif wanted is not None:
        raise InputError("--size is for depth networks, which are files of weights.")
    else:
        summary = _write(model, onnx, torch_export, opset, coverage, interval)
    if as_json:
        typer.echo(json.dumps(summary))
        return
    for key, word in _SENTENCES.items():
        if key in summary:
            value = summary[key]
            listing = value if isinstance(value, str) else ", ".join(str(one) for one in value)
            typer.echo(f"{word}: {listing}")


def _write_network(
    model: Path,
    onnx: Path | None,
    torch_export: Path | None,
    size: tuple[int, int] | None,
    opset: int,
    coverage: float,
    interval: Interval,
) -> dict[str, Any]:
    """Write a depth network, without what only tables have."""
    if onnx is None or torch_export is not None:
        raise InputError(f"{model}: a depth network is written with --onnx FILE alone.")
    refuse_conformal(model, interval)
    return write_depth(model, onnx, size=size, coverage=coverage, opset=opset)


@contextmanager
def _refusing(error: type[ValueError]) -> Generator[None]:
    """Errors about the settings are not about the model's folder."""
    try:
        yield
    except error as refusal:
        raise InputError(one_line(refusal)) from refusal


def _write(
    model: Path,
    onnx: Path | None,
    torch_export: Path | None,
    opset: int,
    coverage: float,
    interval: Interval,
) -> dict[str, Any]:
    """Write the files.

    Returns:
        What ``--json`` prints.
    """
    fitted = load_model(model)
    if 0 < coverage < 1:  # else the library says so
        check_interval(model, fitted, interval, coverage)

    from priornet.export import ExportError, to_onnx, to_torch_export

    settings: Any = {"coverage": coverage, "interval": interval.value}
    summary: dict[str, Any] = {"model": str(model), **settings}
    with blamed_on(model), _refusing(ExportError):
        if onnx is not None:
            graph = to_onnx(fitted, onnx, opset=opset, **settings).graph
            summary["inputs"] = [one.name for one in graph.input]
            summary["outputs"] = [one.name for one in graph.output]
            summary["onnx"] = str(onnx)
        if torch_export is not None:
            with still_written(onnx):
                to_torch_export(fitted, torch_export, **settings)
            summary["torch_export"] = str(torch_export)
    return summary
