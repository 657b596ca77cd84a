"""``priornet predict``: a table in, the same table with predictions and their uncertainty out.

Of a depth network: photographs in, maps out.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priornet.cli.inputs import (
    AsJson,
    Coverage,
    Interval,
    IntervalMethod,
    ModelOrWeights,
    Overwrite,
    Quiet,
    check_coverage,
    check_interval,
    is_network,
    load_model,
    load_network,
)
from priornet.cli.outputs import (
    IMAGE_TABLE,
    MAPS,
    PREDICTIONS,
    check_outputs,
    check_standard_output,
    figure_paths,
    make_folder,
)
from priornet.cli.terminal import progress, unseen_rows
from priornet.messages import InputError, blamed_on, counted

if TYPE_CHECKING:
    from priornet.depth import DepthImages

_ENOUGH = 100  # familiar images, for a share of one in a hundred

_Data = Annotated[
    str,
    typer.Argument(
        help='CSV or Parquet file; "-" reads CSV from stdin. A photograph or a folder of '
        "photographs for a depth network."
    ),
]
_Out = Annotated[
    str,
    typer.Option(
        help='CSV or Parquet file to write; "-" writes CSV to stdout. A folder for maps of '
        "photographs."
    ),
]
_Entropies = Annotated[
    bool, typer.Option("--entropies", help="Add the uncertainties as entropies, in nats.")
]
_Familiar = Annotated[
    Path | None,
    typer.Option(help="Images that a depth network knows, to tell out-of-domain ones by."),
]


@dataclass(frozen=True)
class _Request:
    """The arguments of the command."""

    model: Path
    data: str
    out: str
    coverage: float
    interval: Interval
    entropies: bool
    familiar: Path | None
    overwrite: bool
    as_json: bool
    quiet: bool


def predict(
    model: ModelOrWeights,
    data: _Data,
    out: _Out = "-",
    coverage: Coverage = 0.9,
    interval: IntervalMethod = Interval.PREDICTIVE,
    entropies: _Entropies = False,
    familiar: _Familiar = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Add predictions and their uncertainty to every row of a table.

    Added columns, in the units of the target:

    - prediction; lower and upper, the ends of an interval;
    - total, data and knowledge: standard deviations; data is noise in the targets, knowledge is
      what the model has not learnt;
    - in_domain: the share of reference rows at least as uncertain, from 1 (ordinary) to 0;
    - verdict: trust; noisy (familiar, but targets scatter here); unfamiliar (unlike training);
    - unseen: columns in which the row has what training never had (a value missing where there was
      always one, a new label, a number far out of range, too few values); such a row is unfamiliar.

    With several targets the first six end in the target's name. Where the table has a column of
    such a name, all added ones begin with "priornet_". Memory does not grow with the table.

    A depth network (weights that reproduce depth left in OUT/.parts/NAME/weights, or that
    priornet.depth.save_depth wrote) looks at photographs, their middle cut out in the shape that it
    learnt, and writes into the folder --out:

    - maps/NAME.npz: depth, lower, upper, total, data and knowledge of every pixel in metres, at
      half the resolution, and mutual_information and epkl, its knowledge uncertainty in nats;
    - images.csv: the same for each image as a whole; with --familiar also in_domain and verdict, by
      its information beside that of the images given there (if you can, some it has not learnt);
    - first.png and first.svg: the first photographs with their maps.
    """
    request = _Request(
        model, data, out, coverage, interval, entropies, familiar, overwrite, as_json, quiet
    )
    of_photographs = is_network(model)
    summary = _score_photographs(request) if of_photographs else _score_table(request)
    if as_json:
        typer.echo(json.dumps(summary))
    elif not quiet:
        for line in (_photo_sentences if of_photographs else _table_sentences)(summary):
            typer.echo(line, err=out == "-")


def _score_table(request: _Request) -> dict[str, Any]:
    """Check the arguments and add predictions to a table; return the content of ``--json``."""
    model, data, out = request.model, request.data, request.out
    if request.familiar is not None:
        raise InputError("--familiar is for depth networks, which are files of weights.")
    if request.as_json and out == "-":
        raise InputError("--json and --out - both write to standard output; name a file.")
    check_coverage(request.coverage)
    written, quiet = None if out == "-" else Path(out), request.quiet
    check_outputs([(written, PREDICTIONS)], (data, model), overwrite=request.overwrite, quiet=quiet)
    if written is None:
        check_standard_output((data, model))

    from priornet.evaluation import score_file
    from priornet.tables import TableReader, TableWriter

    TableReader(data)  # paths that cannot be used are refused before the model is loaded
    TableWriter(out)
    loaded = load_model(model)
    check_interval(model, loaded, request.interval, request.coverage)
    options: Any = {"coverage": request.coverage, "method": request.interval.value}
    with blamed_on(data), progress(None, "rows", shown=not quiet) as advance:
        summary = score_file(
            loaded, data, out, **options, entropies=request.entropies, progress=advance
        )
    if not quiet:
        n_read, n_written = summary["n_rows_read"], summary["n_rows_written"]
        typer.echo(f"{counted(n_read)} read, {counted(n_written)} written.", err=True)
    return {"model": str(model), "data": data, "out": out} | summary


def _table_sentences(summary: dict[str, Any]) -> Generator[str]:
    """Yield the lines that tell what a model found in a table."""
    counts = ", ".join(f"{count} {word}" for word, count in summary["verdicts"].items())
    yield f"{counted(summary['n_rows'])} in {summary['seconds']:.1f} s: {counts}."
    for name, count in summary["unknown_labels"].items():
        yield f'Column "{name}": {counted(count)} with a label that training had not.'
    for name, count in summary["unexpected_holes"].items():
        yield f'Column "{name}": {counted(count)} without a value, where training had none.'
    for name, count in summary["far_numbers"].items():
        yield f'Column "{name}": {counted(count)} with a number far out of the training range.'
    if summary["n_bare"]:
        verb = "lacks" if summary["n_bare"] == 1 else "lack"
        yield f"{counted(summary['n_bare'])} {verb} more values than 99 of 100 training rows did."
    if summary["n_unseen"]:
        name = next(name for name in summary["added_columns"] if name.endswith("unseen"))
        yield f'{unseen_rows(summary["n_unseen"])}; "{name}" names the columns of each.'
    if summary["ignored_columns"]:
        ignored = summary["ignored_columns"]
        listing = ", ".join(f'"{name}"' for name in ignored[:5]) + (", ..." if ignored[5:] else "")
        yield f"Not read by the model, passed on: {listing}."
    if summary["added_columns"][0].startswith("priornet_"):
        yield 'The table has a column of an added name: all added ones begin with "priornet_".'
    if summary["out"] != "-":
        yield f"Written: {summary['out']}"


def _score_photographs(request: _Request) -> dict[str, Any]:
    """Check the arguments and predict photographs; return the content of ``--json``."""
    if request.out == "-":
        raise InputError(f"{request.model}: a depth network writes maps: name a folder as --out.")
    if request.entropies:
        raise InputError("--entropies is for tables; maps have mutual_information in nats anyway.")
    check_coverage(request.coverage)
    if request.data == "-":
        raise InputError("a depth network predicts photographs: name a file or a folder.")
    network = load_network(request.model, request.interval)
    from priornet.depth import open_depth, predict_photographs

    known = None if request.familiar is None else open_depth(request.familiar)
    images, out = open_depth(request.data), Path(request.out)
    _check_files(request, images, out)
    make_folder(out)
    n_images = len(images) + len(known or ())
    with progress(n_images, "images", shown=not request.quiet) as advance:
        summary = predict_photographs(
            network,
            images,
            out,
            familiar=known,
            coverage=request.coverage,
            progress=lambda n: advance(n, n_images),
        )
    return {"model": str(request.model), "data": request.data, "out": str(out)} | summary


def _check_files(request: _Request, images: DepthImages, out: Path) -> None:
    """Refuse files that may not be written; the next call would take them for photographs."""
    from priornet.depth import map_files

    for path in filter(None, (request.data, request.familiar)):
        folder = Path(path).resolve()
        if folder.is_dir() and out.resolve().is_relative_to(folder):
            raise InputError(f"{out}: it lies among the images of {path}; name another.")
    written = [
        (out / "images.csv", IMAGE_TABLE),
        *figure_paths(out, "first"),
        *((path, MAPS) for path in map_files(images, out).values()),
    ]
    inputs = (request.data, request.model, request.familiar)
    check_outputs(written, inputs, overwrite=request.overwrite, quiet=request.quiet)


def _photo_sentences(summary: dict[str, Any]) -> Generator[str]:
    """Yield the lines that tell what a depth network found."""
    n_images = summary["n_images"]
    counts = ", ".join(f"{count} {word}" for word, count in summary["verdicts"].items())
    yield f"{_images(n_images)} in {summary['seconds']:.1f} s{': ' if counts else ''}{counts}."
    n_known = summary["n_familiar"]
    if not summary["has_knowledge"]:
        yield "There are no verdicts: one Gaussian has no knowledge uncertainty."
    elif n_known is None:
        yield "For verdicts, give images like those of training as --familiar."
    elif n_known < _ENOUGH:
        yield (
            f"With {_images(n_known)} to compare with, one in {n_known + 1} of the same kind is "
            f"called unfamiliar; with {_ENOUGH} or more, one in a hundred."
        )
    yield f"Written: {summary['table']}, maps beside it, and {summary['figure']}"


def _images(n: int) -> str:
    return "1 image" if n == 1 else f"{n} images"
