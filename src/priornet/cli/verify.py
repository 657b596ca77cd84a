"""``priornet verify``: whether an exported file says what its model says."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priornet.cli.agreement import agreement_sentence, check_outputs, summarise
from priornet.cli.errors import InputError, blamed_on, called
from priornet.cli.export_depth import compare_depth, depth_sentence, is_network
from priornet.cli.inputs import load_model, model_columns
from priornet.cli.options import AsJson, ModelOrWeights
from priornet.cli.output import counted

if TYPE_CHECKING:
    from priornet.export import Comparison

__all__ = ["verify"]


def verify(
    model: ModelOrWeights,
    exported: Annotated[Path, typer.Argument(help="File that `priornet export` wrote.")],
    data: Annotated[
        str,
        typer.Argument(
            help='CSV or Parquet file; "-" reads CSV from stdin. An image or a folder of images '
            "for a depth network."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Compare an exported file with its model, row by row, on the CPU.

    Ends with exit code 1 if an output differs by more than 1e-4 relative, and says which column and
    row is worst; of a depth network, which image and pixel. Images are brought to its size.
    """
    if is_network(model):
        found = compare_depth(model, exported, data)
        typer.echo(_as_json(found) if as_json else depth_sentence(found))
        if not found["holds"]:
            raise typer.Exit(1)
        return
    fitted = load_model(model)
    comparison = _compare(model, fitted, exported, data)
    targets = fitted.fitted_.targets.names
    summary = _summary(comparison, targets, model, exported, data)
    typer.echo(_as_json(summary) if as_json else _sentence(summary))
    if not comparison.holds:
        raise typer.Exit(1)


def _as_json(summary: dict[str, Any]) -> str:
    """JSON knows no infinite number: null stands for it, and for nan."""

    def plain(place: dict[str, Any]) -> dict[str, Any]:
        return {k: None if _is_odd(v) else v for k, v in place.items()}

    outputs = [plain(place) for place in summary["outputs"]]
    whole = summary | {"worst": plain(summary["worst"]), "outputs": outputs}
    return json.dumps(whole, allow_nan=False)


def _is_odd(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _check_interval(path: Path, model: Any, exported: Path, about: Mapping[str, Any]) -> None:
    """Refuse an export whose kind of interval the model cannot give."""
    coverage = about["coverage"]
    if about["interval"] != "conformal" or model.fitted_.has_conformal(coverage):
        return
    held = counted(len(model.fitted_.calibration_scores))
    raise InputError(
        f"{exported}: it is of another model: its intervals are conformal with coverage "
        f"{coverage:g}, for which {path} held too few rows out ({held}); export that model again."
    )


def _compare(path: Path, model: Any, exported: Path, data: str) -> Comparison:
    from priornet.export import Comparison, open_exported, outputs_of
    from priornet.tables.read import TableReader, check_columns, located, spelled_as

    comparison = Comparison()
    known = model.fitted_.preprocessor.columns_
    with TableReader(data) as reader:
        columns = model_columns(model)
        check_columns(reader.path, columns, reader.names)
        with blamed_on(exported):
            file = open_exported(exported)
        _check_interval(path, model, exported, file.about)
        for batch in reader:
            rows = spelled_as(batch.select(columns), known)
            before = comparison.n_rows
            with blamed_on(called(data), before), located(reader.path, before):
                expected = outputs_of(model, rows, file.about)
            with blamed_on(exported):
                found = file.score(model, rows)
                check_outputs(exported, expected, found)
                comparison.add(expected, found)
    return comparison


def _summary(
    comparison: Comparison, targets: tuple[str, ...], model: Path, exported: Path, data: str
) -> dict[str, Any]:
    def place(name: str, worst: Any) -> dict[str, Any]:
        is_whole_row = name.endswith(("entropy", "information", "epkl", "in_domain", "verdict"))
        return {"target": None if is_whole_row else targets[worst.target], "row": worst.row + 1}

    return {
        "model": str(model),
        "exported": str(exported),
        "data": data,
        "n_rows": comparison.n_rows,
        **summarise(comparison, place),
    }


def _sentence(summary: dict[str, Any]) -> str:
    n_rows, worst = summary["n_rows"], summary["worst"]
    of = "" if worst["target"] is None else f' of "{worst["target"]}"'
    return agreement_sentence(summary, n_rows, counted(n_rows), f"{of}, row {worst['row']}")
