"""``priornet reproduce depth`` and ``depth-maps``: the paper's tables on depth, and its maps."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from priornet.cli import (
    RESULTS,
    AsJson,
    InputError,
    Overwrite,
    Quiet,
    Terminated,
    blamed_on,
    check_outputs,
    coloured,
    figure_paths,
    make_folder,
    method_table,
    print_lines,
)
from priornet_paper.depth.config import DATASETS, file_name
from priornet_paper.depth.options import OptionError, Options, prepare
from priornet_paper.runs.progress import Bars, progress_bars

if TYPE_CHECKING:
    from priornet_paper.depth.tasks import Event

_SHOWN = ("delta1", "rel", "rmse", "log10", "nll")
_DEFAULTS = {MISSING: inspect.Parameter.empty, (): None}  # as Typer wants them
_INTERRUPTED = 130  # as shells count an interruption by the user


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a Typer option for each field of :class:`Options`, before its own."""
    hints = get_type_hints(Options)
    own = inspect.signature(command, eval_str=True).parameters
    parameters: list[inspect.Parameter] = []
    for field in fields(Options):
        about, name = field.metadata, field.name
        flag = about.get("flag", f"--{name.replace('_', '-')}")
        hint = list[str] | None if field.default == () else hints[name]
        if get_origin(hint) is Literal:  # which Typer reads from 0.19 on
            hint = StrEnum(name.title(), {choice.upper(): choice for choice in get_args(hint)})
        annotation = Annotated[hint, typer.Option(flag, help=about["help"], min=about.get("least"))]
        default, kind = _DEFAULTS.get(field.default, field.default), inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    parameters += [own[name] for name in own if name != "given"]
    command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    return command


@_with_options
def depth(
    *,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Reproduce the paper's depth tables.

    Trains every method with every seed, scores it on the test images, and
    measures how well its uncertainty detects images of other sets. Finished
    work is not done again: an interrupted run goes on where it stopped, even
    in the middle of a training. Trained weights stay in OUT/.parts.
    """
    for field in fields(Options):
        value = given[field.name]
        if field.default == ():
            given[field.name] = tuple(value or ())
        elif isinstance(value, StrEnum):  # processes cannot share it
            given[field.name] = value.value
    options = Options(**given)
    inputs = (options.split, options.test)
    check_outputs([(options.path, RESULTS)], inputs, overwrite=overwrite, quiet=True)
    try:
        start = prepare(options)
        with progress_bars(quiet=quiet) as bars:
            results = start(partial(_show, bars))
    except OptionError as error:
        raise InputError(str(error)) from error
    except (KeyboardInterrupt, Terminated) as error:
        typer.echo(options.unfinished("Interrupted."), err=True)
        code = error.status if isinstance(error, Terminated) else _INTERRUPTED
        raise typer.Exit(code) from None
    if results is None:
        typer.echo(options.unfinished("The time is up."), err=True)
    elif results and as_json:
        typer.echo(json.dumps(results))
    elif results:  # not in a process that helped another one
        _print(results, options.path)


def _show(bars: Bars, event: Event) -> None:
    """Show a message, or an epoch."""
    if event.message:
        bars.message(event.message)
    else:
        note = f"epoch {event.epoch}/{event.n_epochs}, loss {event.loss:.4f}"
        bars.update(event.key, event.epoch / event.n_epochs, note)


def _print(results: dict[str, Any], path: Path) -> None:
    from rich.console import Console

    n_seeds = len(results["config"]["seeds"])
    ood = list(results["foreign"])
    table = method_table(
        f"{results['dataset']}: {results['n_train']} training and {results['n_test']} test images, "
        f"preset {results['preset']}, mean of {n_seeds} seed{'s' if n_seeds > 1 else ''}",
        (*_SHOWN, *(f"OOD AUC\n{name}" for name in ood)),
    )
    for name, scores in {**results["methods"], **results["variants"]}.items():
        numbers = (_mean(scores.get(metric)) for metric in _SHOWN)
        table.add_row(coloured(name), *numbers, *(_auc(scores, other) for other in ood))
    Console().print(table)
    lines: list[str] = []
    if ood:
        lines.append("OOD AUC: of the EPKL, and of the total variance where there is none.")
    if results["preset"] == "fast":  # pages and figures are of these
        lines.append("Tables and curves: priornet reproduce page. Maps: reproduce depth-maps.")
    print_lines([*lines, f"{results['seconds']:.0f} s of work. Results: {path}"])


def _auc(scores: dict[str, Any], other: str) -> str:
    found = scores.get("ood_auc", {}).get(other, {})
    return _mean(found.get("epkl", found.get("total_variance")))


def _mean(summary: dict[str, Any] | None) -> str:
    return "-" if summary is None or summary["mean"] is None else f"{summary['mean']:.3f}"


# -- maps -----------------------------------------------------------------------------------------

Data = Annotated[
    Path,
    typer.Option(
        help="The folder with the sets, as for `reproduce depth`: measured depths and "
        "photographs are taken from it."
    ),
]
Ood = Annotated[
    list[str] | None,
    typer.Option(
        "--foreign", help="Another set as NAME=PATH, as for `reproduce depth`; may repeat."
    ),
]
Results = Annotated[Path, typer.Option(help="Folder with nyu.json, kitti.json and .parts.")]


class Preset(StrEnum):
    """Presets of results."""

    FAST = "fast"
    PAPER = "paper"
    SMOKE = "smoke"


OfPreset = Annotated[
    Preset,
    typer.Option(help="Preset of the results; presets other than fast have it in their name."),
]
Images = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the figures without photographs; docs/images by default, for other "
        "presets RESULTS/photographs/PRESET."
    ),
]
Photographs = Annotated[
    Path | None,
    typer.Option(
        help="Folder for figures with photographs; RESULTS/photographs by default, for other "
        "presets RESULTS/photographs/PRESET."
    ),
]


def depth_maps(
    data: Data,
    ood: Ood = None,
    results: Results = Path("results/depth"),
    preset: OfPreset = Preset.FAST,
    images: Images = None,
    photographs: Photographs = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw maps of the ensemble and EnD2 for the first images of each set.

    Reads the maps that `reproduce depth` left in RESULTS/.parts: it needs no
    weights and trains nothing. Figures show prediction, error, total variance
    and EPKL side by side, for images of the models' own set and of others,
    and the measures against predicted depth. A set without maps is left out.
    Photographs have owners: figures that show them have their own folder.
    """
    from priornet_paper.depth.data import named_paths
    from priornet_paper.depth.maps import NoMaps

    names = [file_name(name, preset) for name in DATASETS]
    found = [results / name for name in names if (results / name).exists()]
    if not found:
        raise InputError(f"{results}: no {' or '.join(names)} there; run `reproduce depth`.")
    try:
        others = named_paths(ood or [])
    except ValueError as error:
        raise InputError(str(error)) from error
    folders = _folders(results, preset, images, photographs)
    without: dict[str, str] = {}
    for path in found:
        try:
            with blamed_on(path):
                _draw(path, data, others, folders, overwrite=overwrite)
        except NoMaps as error:
            without[path.name.partition(".")[0]] = str(error)
    if len(without) == len(found):
        raise InputError(" ".join(without.values()))
    for name, reason in without.items():
        typer.echo(f"{name} is left out: {reason}", err=True)


def _folders(
    results: Path, preset: str, images: Path | None, photographs: Path | None
) -> tuple[Path, Path]:
    """Make the folders of the figures without photographs, and of those with them."""
    own = results / "photographs" / ("" if preset == "fast" else preset)  # git ignores it
    folders = images or (Path("docs/images") if preset == "fast" else own), photographs or own
    for folder in folders:
        make_folder(folder)
    return folders


def _draw(
    path: Path,
    data: Path,
    others: Mapping[str, Path],
    folders: tuple[Path, Path],
    *,
    overwrite: bool,
) -> None:
    """Draw all figures of one set's models, without and with photographs."""
    from priornet.report import write_figure
    from priornet_paper.depth.maps import draw_sets, read_maps

    drawn = draw_sets(read_maps(path, data, others))
    pairs = list(zip(folders, drawn, strict=True))
    written = [out for folder, found in pairs for out in figure_paths(folder, *found)]
    check_outputs(written, overwrite=overwrite)
    for folder, found in pairs:
        for name, figure in found.items():
            print_lines([f"Figure: {write_figure(figure, folder, name)['png']}"])
