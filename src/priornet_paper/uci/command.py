"""``priornet reproduce uci``: the paper's tables on UCI data, with its settings or with ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from priornet.cli import (
    LARGEST_SEED,
    RESULTS,
    AsJson,
    InputError,
    Overwrite,
    Quiet,
    check_outputs,
    coloured,
    method_table,
    print_lines,
)
from priornet.methods import COMPARED

_NAMES = {one.spelling: one.key for one in COMPARED.values() if one.estimator}
_DATASETS = ("boston", "energy", "concrete", "wine", "power", "protein", "msd")


class Preset(StrEnum):
    """Presets, named here so that the help need not import the experiment."""

    PAPER = "paper"
    BEYOND = "beyond"
    SMOKE = "smoke"


class Splits(StrEnum):
    """Ways to hold out rows."""

    FOLDS = "folds"
    CANONICAL = "canonical"


Datasets = Annotated[
    str, typer.Option(help=f"Data sets, with commas between: {', '.join(_DATASETS)}.")
]
Methods = Annotated[
    str | None,
    typer.Option(
        help=f"Methods, with commas between: {', '.join(_NAMES)}. Default: all; of beyond "
        "those without the last two, and on published splits ensemble,endd."
    ),
]
Presets = Annotated[
    Preset,
    typer.Option(
        help="paper: its networks, with a grid search, and choices of our own where it is "
        "silent. beyond: the estimators and their defaults. smoke: seconds, too short to learn."
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        min=0,
        help="Processes side by side; 0 for as many as there are cores, on a GPU at most ten, "
        "and one where they cannot share it (NVIDIA's MPS is missing).",
    ),
]


Held = Annotated[
    Splits, typer.Option(help="Ten-fold cross-validation, or the published splits (beyond only).")
]
Seed = Annotated[
    int | None, typer.Option(min=0, max=LARGEST_SEED, help="Seed of folds and training.")
]


def uci(
    datasets: Datasets = "boston,energy,concrete,wine,power",
    methods: Methods = None,
    preset: Presets = Preset.PAPER,
    splits: Held = Splits.FOLDS,
    folds: Annotated[str, typer.Option(help="Only these folds, such as 0,1; default: all.")] = "",
    seed: Seed = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results/uci"),
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    workers: Workers = 0,
    again: Annotated[bool, typer.Option("--again", help="Run what is there already.")] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper's UCI tables.

    Tables are looked for in $PRIORNET_DATA and in the user's cache, and
    downloaded otherwise (`priornet datasets`). Each data set gives one JSON
    file with everything that was measured. What is finished is not done
    again: an interrupted run goes on where it stopped. A file keeps other
    methods of the same settings, but students only with their ensemble.
    """
    names = _listed("data set", datasets, _DATASETS)
    named = [] if methods is None else _listed("method", methods, tuple(_NAMES))
    _check_device(device)

    from priornet_paper.uci import Experiment, run

    changes = _changes(preset, splits, folds, seed, device)
    experiment = Experiment(names, preset, [_NAMES[name] for name in named], changes, out)
    paths = [(experiment.path(name), RESULTS) for name in names]
    check_outputs(paths, overwrite=overwrite, quiet=True)
    found = run(experiment, device=device, workers=workers, again=again, quiet=quiet)
    if as_json:
        typer.echo(json.dumps(found))
        return
    for results in found.values():
        _print(results)
    print_lines([f"Results: {out}"])


def _listed(what: str, text: str, known: Sequence[str]) -> list[str]:
    """Split names at commas; each is returned once, and all must be known."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None or not names:
        wrong = f'unknown {what} "{unknown}"' if names else f"no {what} named"
        raise InputError(f"{wrong}; choose from: {', '.join(known)}.")
    return list(dict.fromkeys(names))


def _changes(
    preset: Preset, splits: Splits, folds: str, seed: int | None, device: str
) -> dict[str, Any]:
    """Read the options that replace settings of the preset."""
    from priornet_paper.uci import PRESETS

    config, by_estimators = PRESETS[preset], preset is Preset.BEYOND
    changes: dict[str, Any] = {}
    if device == "cuda" and not by_estimators:
        changes["folds_per_stack"] = config.n_folds  # a step of more networks takes no longer
    if splits is Splits.CANONICAL:
        if not by_estimators:
            raise InputError("--splits canonical needs --preset beyond: the paper has folds.")
        changes["splits"] = "canonical"
    if folds:
        try:
            changes["folds"] = tuple(int(number) for number in folds.split(","))
        except ValueError:
            raise InputError(f'--folds must be numbers such as 0,1; got "{folds}".') from None
        most = 20 if splits is Splits.CANONICAL else config.n_folds
        if not all(0 <= number < most for number in changes["folds"]):
            raise InputError(f"--folds must lie in 0 to {most - 1}; got {folds}.")
    if seed is not None:
        changes["seed"] = seed
    return changes


def _check_device(device: str) -> None:
    import torch

    if device not in ("cpu", "cuda"):
        raise InputError(f'unknown device "{device}"; choose from: cpu, cuda.')
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: torch finds no CUDA device here.")


def _print(results: dict[str, Any]) -> None:
    from rich.console import Console

    mark = "" if results["complete"] else "†"
    table = method_table(
        f"{results['dataset']} ({results['n_rows']} rows{mark}), preset {results['preset']}",
        ("RMSE", "NLL", "CRPS", "90 % holds", "PRR\ntotal", "OOD AUC\nknowledge"),
    )
    for name, method in results["methods"].items():
        first = [_with_error(method[score]) for score in ("rmse", "nll", "crps")]
        rates = method["prr"]["total_variance"], method["ood_auc"]["variance_of_mean"]
        cells = [*first, f"{method['coverage90']['mean']:.0%}", *map(_with_error, rates)]
        table.add_row(coloured(name), *(f"{cell}{mark}" for cell in cells))
    Console().print(table)
    about = f"{results['seconds']:.0f} s; ± is the standard error over folds."
    print_lines([f"{about} †: not run on the full table." if mark else about])


def _with_error(summary: dict[str, Any] | None) -> str:
    if summary is None or summary["mean"] is None:
        return "-"
    error = "" if summary["sem"] is None else f" ± {summary['sem']:.2f}"
    return f"{summary['mean']:.3f}{error}"
