"""Shared options and arguments, checks of what commands read, and models from their folders."""

from __future__ import annotations

import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from priornet.messages import InputError, blamed_on, one_line
from priornet.methods import TABULAR, TargetTransform

if TYPE_CHECKING:
    from priornet.depth import SavedDepth


LARGEST_SEED = 2**32 - 1
"""NumPy's generators take no larger one."""


class Method(StrEnum):
    """Methods for tables, by their names on the command line."""

    _ignore_ = "method"
    for method in TABULAR:
        vars()[method.key] = method.spelling


class Transform(StrEnum):
    """Scales on which targets are learnt."""

    _ignore_ = "one"
    for one in get_args(TargetTransform):
        vars()[one] = one


class Interval(StrEnum):
    """Sources of intervals."""

    PREDICTIVE = "predictive"
    CONFORMAL = "conformal"


AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON, not as a table.")]
Coverage = Annotated[float, typer.Option(help="Coverage of the intervals.")]
Epochs = Annotated[
    int | None, typer.Option(min=1, help="Passes over the rows; by default as many as pay.")
]
Holdout = Annotated[
    float, typer.Option(min=0, max=0.9, help="Share of rows kept for the evaluation; 0: none.")
]
Ignore = Annotated[
    list[str] | None, typer.Option(help="Column to leave out, such as an id; may repeat.")
]
IntervalMethod = Annotated[
    Interval,
    typer.Option(
        "--interval",
        help="Intervals from the model's own quantiles, or widened to what held-out rows needed.",
    ),
]
ModelOrWeights = Annotated[
    Path, typer.Argument(help="Folder that `priornet fit` wrote, or weights of a depth network.")
]
ModelPath = Annotated[Path, typer.Argument(help="Folder that `priornet fit` wrote.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace files, too, that priornet did not make.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show results and warnings only.")]
Seed = Annotated[
    int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the split and of the training.")
]


def check_coverage(coverage: float) -> None:
    """Refuse what is no probability."""
    if not 0 < coverage < 1:
        raise InputError(f"--coverage must lie between 0 and 1; got {coverage:g}.")


def check_stdin(*paths: str | None) -> None:
    """Refuse to read standard input twice: the second time nothing is left."""
    if paths.count("-") > 1:
        raise InputError("standard input is named twice; name a file in one of its places.")


def load_model(path: Path) -> Any:
    """Load a model from its folder; its warnings go to standard error."""
    from priornet.writing import found_folder

    if not found_folder(path).is_dir():
        found = "it is a file, not a model folder" if path.exists() else "no such folder"
        raise InputError(f"{path}: {found}; `priornet fit --out` writes one.")
    from priornet.estimators import load

    with blamed_on(path), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = load(path)
    for warning in heard:
        typer.echo(f"Warning: {one_line(str(warning.message))}", err=True)
    return model


def check_interval(path: Path, model: Any, interval: Interval, coverage: float) -> None:
    """Refuse a coverage between 0 and 1 that a model's held-out rows are too few for."""
    if interval is not Interval.CONFORMAL:
        return
    from priornet.estimators import DistilledRegressor
    from priornet.estimators.held_out import conformal_quantile

    try:
        conformal_quantile(model.fitted_.calibration_scores, coverage)
    except ValueError as error:
        reason = one_line(error).partition(": ")[0]
        way = "fit again with more rows, or with a larger --calibration"
        if isinstance(model, DistilledRegressor):  # of `fit`, or of `distill`
            way += "; a student of `priornet distill`: with --target and more rows"
        raise InputError(f"{path}: {reason}; {way}.") from error


def is_network(path: Path) -> bool:
    """Tell if a path is meant for a file of weights, not for a model's folder."""
    return path.is_file() or (path.suffix == ".safetensors" and not path.exists())


def load_network(path: Path, interval: Interval = Interval.PREDICTIVE) -> SavedDepth:
    """Load a depth network from its file."""
    if interval is not Interval.PREDICTIVE:
        raise InputError(
            f"{path}: a depth network has no held-out rows for --interval {interval.value}."
        )
    writers = "`priornet reproduce depth` and `priornet.depth.save_depth` write them."
    if not path.exists():
        raise InputError(f"{path}: no such file; {writers}")
    with path.open("rb"):  # a file that may not be read is not damaged
        pass
    from priornet.depth import load_depth
    from priornet.nn.weights import TensorFileError

    try:
        return load_depth(path)
    except TensorFileError as error:
        raise InputError(
            f"{path}: it is a file, but no file of weights of a depth network, or damaged; "
            f"{writers} A model of tables is a folder."
        ) from error
    except ValueError as error:
        raise InputError(one_line(error)) from error
