"""``priornet reproduce depth``: the paper's tables on depth from single images."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priornet.cli.errors import InputError, one_line
from priornet.cli.kinds import RESULTS
from priornet.cli.options import AsJson, Overwrite, Quiet
from priornet.cli.output import coloured, method_table, print_lines
from priornet.cli.outputs import check_outputs
from priornet.cli.sigterm import Terminated
from priornet.methods import METHODS

if TYPE_CHECKING:
    from priornet_paper.depth.orders import Event

__all__ = ["depth"]

_NAMES = {
    **{method.spelling: method.key for method in METHODS.values()},
    "endd-t1": "EnD2-T1",
    "endd-t10": "EnD2-T10",
    "endd-proxy": "EnD2-proxy",
}
_AS_IN_RESULTS = {name.lower(): name for name in _NAMES.values()}
_SHOWN = ("delta1", "rel", "rmse", "log10", "nll")
_INTERRUPTED = 130  # what a shell says of a command that was
_DEFAULT = "dd,single,ensemble,endd,endd-t10,rkl,der,end,md-end"


class Dataset(StrEnum):
    """Sets with depth."""

    NYU = "nyu"
    KITTI = "kitti"


class Missing(StrEnum):
    """What to do with frames that have no depth."""

    ERROR = "error"
    SKIP = "skip"


class Preset(StrEnum):
    """Presets, named here so that the help need not import the experiment."""

    FAST = "fast"
    PAPER = "paper"
    SMOKE = "smoke"


def depth(
    data: Annotated[
        Path,
        typer.Option(
            help="The set in any of its forms, or a folder with several sets whose names begin "
            "with nyu, kitti and lsun."
        ),
    ],
    dataset: Annotated[Dataset, typer.Option(help="What is learnt.")] = Dataset.NYU,
    test: Annotated[
        Path | None, typer.Option(help="Its test images, if they are not in --data.")
    ] = None,
    foreign: Annotated[
        list[str] | None,
        typer.Option(help="Out-of-domain images as NAME=PATH, such as lsun_bedroom=photos/."),
    ] = None,
    split: Annotated[
        Path | None, typer.Option(help="Split list of raw KITTI drives, or a folder with lists.")
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="Pictures without their depth file: an error, or left out.")
    ] = Missing.ERROR,
    weights: Annotated[
        str,
        typer.Option(
            help='ImageNet weights of the encoder: a file; "imagenet" for those of the extra '
            '"depth" (EfficientNet-Lite0); "none".'
        ),
    ] = "imagenet",
    methods: Annotated[
        str,
        typer.Option(
            help=f"With commas between: {', '.join(_NAMES)}; or as results call them: "
            "ENSM is ensemble, EnD2 is endd, NWPN is rkl."
        ),
    ] = _DEFAULT,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Also rkl with other weights of the OOD images.")
    ] = False,
    preset: Annotated[
        Preset,
        typer.Option(
            help="fast: EfficientNet-Lite0 at 240 x 320. paper: DenseNet-169 at 480 x 640. "
            "smoke: a few steps, too short to learn."
        ),
    ] = Preset.FAST,
    seeds: Annotated[str, typer.Option(help="Such as 0,1,2; default: the preset's.")] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Another setting, as NAME=VALUE.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results/depth"),
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    devices: Annotated[int, typer.Option(min=1, help="GPUs that share every batch.")] = 1,
    nodes: Annotated[int, typer.Option(min=1, help="Machines that share every batch.")] = 1,
    workers: Annotated[
        int, typer.Option(min=1, help="Networks that train side by side on one device.")
    ] = 1,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Stop at the end of an epoch after so many.")
    ] = None,
    compiled: Annotated[
        bool,
        typer.Option(
            "--compile", help="Let torch.compile fuse networks, losses and teachers (GPU)."
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Begin anew what is there already.")
    ] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper's depth tables.

    Trains every method with every seed, scores it on the test images, and
    measures how well its uncertainty tells images of other sets. What is
    finished is not done again: an interrupted run goes on where it stopped,
    in the middle of a training too. Trained weights stay in OUT/.parts.
    """
    import json
    import math
    import time

    names = _methods(methods)

    from priornet_paper.depth import config_for, recipes, with_changes
    from priornet_paper.depth.experiment import file_name, run
    from priornet_paper.depth.machine import NotEnoughMemory, check_device
    from priornet_paper.depth.orders import Order
    from priornet_paper.depth.sharing import fabric_options
    from priornet_paper.depth.sources import find_sources, named_paths

    with _one_line(ValueError):
        check_device(device, devices, nodes, workers)
    path = out / file_name(dataset, preset)
    check_outputs([(path, RESULTS)], (split, test), overwrite=overwrite, quiet=True)
    with _one_line(ValueError, NotEnoughMemory, FloatingPointError, ImportError):
        config = with_changes(config_for(dataset, preset), settings or [], seeds)
        wanted = recipes(config, names, ablation)
        file, others = None if weights == "none" else weights, named_paths(foreign or [])
        sources = find_sources(data, dataset, others, test, file, split, missing.value)
        order = Order(
            config,
            sources,
            out / ".parts" / path.stem,
            device,
            fabric_options(devices, nodes),
            compile=compiled,
            until=math.inf if minutes is None else time.time() + 60 * minutes,
        )
        same = "the command without --again" if again else "the same command"
        try:
            with _bars(quiet) as report:
                results = run(
                    order, wanted, preset, path, workers=workers, report=report, again=again
                )
        except (KeyboardInterrupt, Terminated) as error:
            _remark(f"Interrupted. What is finished is kept; {same} goes on.")
            code = error.status if isinstance(error, Terminated) else _INTERRUPTED
            raise typer.Exit(code) from None
        if results is None:
            _remark(f"The time is up. What is finished is kept; {same} goes on.")
            return
        if not results:  # a process that helped another one
            return
    if as_json:
        typer.echo(json.dumps(results))
    else:
        _print(results, path)


def _methods(text: str) -> list[str]:
    """Names in results of methods separated by commas."""
    found: list[str] = []
    for name in (name.strip().lower() for name in text.split(",") if name.strip()):
        weight = name.removeprefix("rkl-g").removeprefix("nwpn-g")
        if name in _NAMES or name in _AS_IN_RESULTS:
            found.append(_NAMES.get(name) or _AS_IN_RESULTS[name])
        elif weight != name:
            found.append(f"NWPN-g{weight}")
        else:
            known = ", ".join(_NAMES)
            raise InputError(f'unknown method "{name}"; choose from: {known}, rkl-g0.05.')
    if not found:
        raise InputError(f"no method named; choose from: {', '.join(_NAMES)}.")
    return list(dict.fromkeys(found))


@contextmanager
def _one_line(*kinds: type[Exception]) -> Generator[None]:
    """Errors of these kinds are about what the user gave, and say so in one line."""
    from priornet_paper.depth.presets import in_options

    try:
        yield
    except kinds as error:
        raise InputError(in_options(one_line(error))) from error


def _remark(message: str) -> None:
    typer.echo(message, err=True)


@contextmanager
def _bars(quiet: bool) -> Generator[Callable[[Event], None]]:
    """A bar for every training that is under way."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(),
        TextColumn("epoch {task.completed:>3.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[loss]:<14}"),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet) as progress:
        bars: dict[str, Any] = {}

        def report(event: Event) -> None:
            if event.remark:
                progress.console.print(event.remark, highlight=False, soft_wrap=True, markup=False)
                return
            if event.key not in bars:
                bars[event.key] = progress.add_task(event.key, total=event.n_epochs, loss="")
            progress.update(bars[event.key], completed=event.epoch, loss=f"loss {event.loss:.4f}")
            if event.epoch == event.n_epochs:
                progress.remove_task(bars.pop(event.key))

        yield report


def _print(results: dict[str, Any], path: Path) -> None:
    from rich.console import Console

    n_seeds = len(results["config"]["seeds"])
    foreign = list(results["foreign"])
    table = method_table(
        f"{results['dataset']}: {results['n_train']} training and {results['n_test']} test images, "
        f"preset {results['preset']}, mean of {n_seeds} seed{'s' if n_seeds > 1 else ''}",
        (*_SHOWN, *(f"OOD AUC\n{name}" for name in foreign)),
    )
    for name, scores in {**results["methods"], **results["variants"]}.items():
        numbers = (_mean(scores.get(metric)) for metric in _SHOWN)
        table.add_row(coloured(name), *numbers, *(_auc(scores, other) for other in foreign))
    Console().print(table)
    lines: list[str] = []
    if foreign:
        lines.append("OOD AUC: of the EPKL, and of the total variance where there is none.")
    if results["preset"] == "fast":  # pages and figures are of these
        lines.append("Tables and curves: priornet reproduce page. Maps: reproduce depth-maps.")
    print_lines([*lines, f"{results['seconds']:.0f} s of work. Results: {path}"])


def _auc(scores: dict[str, Any], other: str) -> str:
    found = scores.get("ood_auc", {}).get(other, {})
    return _mean(found.get("epkl", found.get("total_variance")))


def _mean(summary: dict[str, Any] | None) -> str:
    return "-" if summary is None or summary["mean"] is None else f"{summary['mean']:.3f}"
