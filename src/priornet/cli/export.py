"""``priornet export``: a model as a file that needs nothing of ours."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from priornet.cli.errors import InputError, blamed_on, one_line
from priornet.cli.inputs import load_model
from priornet.cli.options import AsJson, Interval, IntervalMethod, ModelPath
from priornet.cli.output import check_writable

__all__ = ["export"]

_SENTENCES = {
    "inputs": "Inputs",
    "outputs": "Outputs",
    "onnx": "Written",
    "torch_export": "Written",
}


def export(
    model: ModelPath,
    onnx: Annotated[Path | None, typer.Option(help="ONNX file to write.")] = None,
    torch_export: Annotated[
        Path | None, typer.Option(help="torch.export file (.pt2) to write.")
    ] = None,
    coverage: Annotated[float, typer.Option(help="Coverage of the intervals.")] = 0.9,
    interval: IntervalMethod = Interval.PREDICTIVE,
    opset: Annotated[int, typer.Option(help="Version of the ONNX operators, 18 or newer.")] = 18,
    as_json: AsJson = False,
) -> None:
    """Write a model for onnxruntime or libtorch: raw columns in, uncertainty out.

    The ONNX graph takes every column as it is, shape (rows, 1): numbers in double precision with
    nan for holes (dates as days since 1970), text with "" for holes; any number of rows. It gives
    mean, lower and upper, and the uncertainties of predict_uncertainty, in the units of the target.
    The torch.export program takes the columns after preprocessing, as one matrix.
    """
    if onnx is None and torch_export is None:
        raise InputError("name what to write: --onnx FILE, --torch-export FILE, or both.")
    if onnx is not None and torch_export is not None and onnx.resolve() == torch_export.resolve():
        raise InputError(f"{onnx}: --onnx and --torch-export name the same file; name two.")
    for path in (onnx, torch_export):
        if path is not None:
            check_writable(path)
    summary = _write(model, onnx, torch_export, opset, coverage, interval)
    if as_json:
        typer.echo(json.dumps(summary))
        return
    for key, word in _SENTENCES.items():
        if key in summary:
            value = summary[key]
            typer.echo(f"{word}: {value if isinstance(value, str) else ', '.join(value)}")


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
            to_torch_export(fitted, torch_export, **settings)
            summary["torch_export"] = str(torch_export)
    return summary
