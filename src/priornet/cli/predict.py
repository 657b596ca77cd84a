"""``priornet predict``: a table in, the same table with predictions and their uncertainty out.

Of a depth network: photographs in, maps out.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any

import typer

from priornet.cli.errors import InputError, blamed_on
from priornet.cli.inputs import check_interval, is_network, load_model
from priornet.cli.kinds import PREDICTIONS
from priornet.cli.options import (
    AsJson,
    Interval,
    IntervalMethod,
    ModelOrWeights,
    Overwrite,
    Quiet,
)
from priornet.cli.output import progress, unseen_rows
from priornet.cli.outputs import check_outputs, check_standard_output
from priornet.cli.predict_depth import PhotoRequest, photo_sentences, score_photographs
from priornet.messages import counted

__all__ = ["predict"]


def predict(
    model: ModelOrWeights,
    data: Annotated[
        str,
        typer.Argument(
            help='CSV or Parquet file; "-" reads CSV from stdin. A photograph or a folder of '
            "photographs for a depth network."
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            help='CSV or Parquet file to write; "-" writes CSV to stdout. A folder for maps of '
            "photographs."
        ),
    ] = "-",
    coverage: Annotated[float, typer.Option(help="Coverage of the intervals.")] = 0.9,
    interval: IntervalMethod = Interval.PREDICTIVE,
    entropies: Annotated[
        bool, typer.Option("--entropies", help="Add the uncertainties as entropies, in nats.")
    ] = False,
    familiar: Annotated[
        Path | None,
        typer.Option(help="Images that a depth network knows, to tell out-of-domain ones by."),
    ] = None,
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
    if is_network(model):
        _predict_photographs(
            PhotoRequest(model, data, Path(out), familiar, coverage, overwrite),
            interval,
            entropies,
            as_json,
            quiet,
        )
        return
    if familiar is not None:
        raise InputError("--familiar is for depth networks, which are files of weights.")
    if as_json and out == "-":
        raise InputError("--json and --out - both write to standard output; name a file.")
    if not 0 < coverage < 1:
        raise InputError(f"--coverage must lie between 0 and 1; got {coverage:g}.")
    written = None if out == "-" else Path(out)
    check_outputs([(written, PREDICTIONS)], (data, model), overwrite=overwrite, quiet=quiet)
    if written is None:
        check_standard_output((data, model))
    paths: dict[str, Any] = {"model": str(model), "data": data, "out": out}
    summary = paths | _score_table(model, data, out, interval, coverage, entropies, not quiet)
    if not quiet:
        n_read, n_written = summary["n_rows_read"], summary["n_rows_written"]
        typer.echo(f"{counted(n_read)} read, {counted(n_written)} written.", err=True)
    if as_json:
        typer.echo(json.dumps(summary))
    elif not quiet:
        for line in _sentences(summary):
            typer.echo(line, err=out == "-")


def _predict_photographs(
    request: PhotoRequest, interval: Interval, entropies: bool, as_json: bool, quiet: bool
) -> None:
    """Predict photographs; refuse options that only tables have."""
    if str(request.out) == "-":
        raise InputError(f"{request.model}: a depth network writes maps: name a folder as --out.")
    if entropies:
        raise InputError("--entropies is for tables; maps have mutual_information in nats anyway.")
    summary = score_photographs(request, interval, quiet=quiet)
    if as_json:
        typer.echo(json.dumps(summary))
    elif not quiet:
        for line in photo_sentences(summary):
            typer.echo(line)


def _score_table(
    model: Path,
    data: str,
    out: str,
    interval: Interval,
    coverage: float,
    entropies: bool,
    shown: bool,
) -> dict[str, Any]:
    from priornet.evaluation import score_file
    from priornet.tables import TableReader, TableWriter

    TableReader(data)  # paths that cannot be used are refused before the model is loaded
    TableWriter(out)
    loaded = load_model(model)
    check_interval(model, loaded, interval, coverage)
    options: Any = {"coverage": coverage, "method": interval.value, "entropies": entropies}
    with blamed_on(data), progress(None, "rows", shown=shown) as advance:
        return score_file(loaded, data, out, **options, progress=advance)


def _sentences(summary: dict[str, Any]) -> Generator[str]:
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
