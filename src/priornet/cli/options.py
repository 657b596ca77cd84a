"""Options and arguments that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from priornet.methods import TABULAR

__all__ = [
    "LARGEST_SEED",
    "AsJson",
    "Interval",
    "IntervalMethod",
    "Method",
    "ModelOrWeights",
    "ModelPath",
    "Overwrite",
    "Quiet",
]


LARGEST_SEED = 2**32 - 1
"""NumPy's generators take no larger one."""


class Method(StrEnum):
    """Methods for tables, by their names on the command line."""

    _ignore_ = "method"
    for method in TABULAR:
        vars()[method.key] = method.spelling


class Interval(StrEnum):
    """Where intervals come from."""

    PREDICTIVE = "predictive"
    CONFORMAL = "conformal"


AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON, not as a table.")]
ModelOrWeights = Annotated[
    Path, typer.Argument(help="Folder that `priornet fit` wrote, or weights of a depth network.")
]
ModelPath = Annotated[Path, typer.Argument(help="Folder that `priornet fit` wrote.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace files, too, that priornet did not make.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show results and warnings only.")]
IntervalMethod = Annotated[
    Interval,
    typer.Option(
        "--interval",
        help="Intervals from the model's own quantiles, or widened to what held-out rows needed.",
    ),
]
