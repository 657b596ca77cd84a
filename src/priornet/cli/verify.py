"""``priornet verify``: compare an exported file with its model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from priornet.cli.inputs import AsJson, ModelOrWeights, is_network, load_model, load_network
from priornet.messages import InputError, blamed_on, counted


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

    Ends with exit code 1 if an output differs by more than 1e-4 relative, and names the worst
    column and row; of a depth network, the worst image and pixel. Images are brought to its size.
    """
    paths = {"model": str(model), "exported": str(exported), "data": data}
    compare = _compare_network if is_network(model) else _compare_table_model
    summary = paths | compare(model, exported, data)
    typer.echo(_as_json(summary) if as_json else _sentence(summary))
    if not summary["holds"]:
        raise typer.Exit(1)


def _compare_table_model(path: Path, exported: Path, data: str) -> dict[str, Any]:
    model = load_model(path)
    from priornet.export import verify_file

    with blamed_on(data):
        return verify_file(model, exported, data)


def _compare_network(path: Path, exported: Path, data: str) -> dict[str, Any]:
    if data == "-":
        raise InputError("a depth network is verified with images: name a file or a folder.")
    network = load_network(path)
    from priornet.depth import open_depth, verify_depth

    return verify_depth(network, exported, open_depth(data))


def _as_json(summary: dict[str, Any]) -> str:
    """Write infinite numbers and nan as null: JSON has none."""
    from priornet.evaluation.numbers import json_number

    def plain(place: dict[str, Any]) -> dict[str, Any]:
        return {k: json_number(v) if isinstance(v, float) else v for k, v in place.items()}

    outputs = [plain(place) for place in summary["outputs"]]
    whole = summary | {"worst": plain(summary["worst"]), "outputs": outputs}
    return json.dumps(whole, allow_nan=False)


def _sentence(summary: dict[str, Any]) -> str:
    worst = summary["worst"]
    if "n_images" in summary:
        n, (row, column) = summary["n_images"], worst["pixel"]
        who = "1 image" if n == 1 else f"{n} images"
        where = f", {worst['image']}, pixel ({row}, {column})"
    else:
        n, who = summary["n_rows"], counted(summary["n_rows"])
        target = "" if worst["target"] is None else f' of "{worst["target"]}"'
        where = f"{target}, row {worst['row']}"
    says = ("agree" if summary["holds"] else "differ") + ("s" if n == 1 else "")
    found, expected = (_shown(worst[name]) for name in ("found", "expected"))
    return (
        f"{who} {says}: the largest relative difference is {worst['error']:.1e} (at most "
        f"{summary['tolerance']:g}), in {worst['column']}{where}: {found} instead of {expected}."
    )


def _shown(value: float | str) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:.9g}"
