"""Options of the depth experiment, with their help and defaults, and the run that they describe.

Two command lines show them: ``priornet reproduce depth``, and ``python -m priornet_paper.depth``
without Typer. This module needs no more than torch, NumPy, Pillow, safetensors and Fabric.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from priornet.methods import COMPARED
from priornet_paper.depth.config import (
    config_for,
    file_name,
    variants,
    with_changes,
)

if TYPE_CHECKING:
    from priornet_paper.depth.tasks import Event, Plan

# Names in results, by their names on a command line.
_NAMES = {
    **{method.spelling: method.key for method in COMPARED.values()},
    "endd-t1": "EnD2-T1",
    "endd-t10": "EnD2-T10",
    "endd-proxy": "EnD2-proxy",
}
_WEIGHTS = {"rkl-g": "NWPN-g", "nwpn-g": "NWPN-g", "endd-t": "EnD2-T", "end2-t": "EnD2-T"}


class OptionError(ValueError):
    """An experiment that cannot be run as given; the message is one line."""


def _about(help: str, **more: Any) -> dict[str, Any]:
    """Describe an option: ``flag`` if not that of its name, ``least``."""
    return {"help": help, **more}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of the depth experiment, in the order of the help."""

    data: Path = field(
        metadata=_about(
            "The set in any of its forms, or a folder with several sets whose names begin with "
            "nyu, kitti and lsun."
        )
    )
    dataset: Literal["nyu", "kitti"] = field(default="nyu", metadata=_about("Data set to learn."))
    test: Path | None = field(
        default=None, metadata=_about("Its test images, if they are not in --data.")
    )
    ood: tuple[str, ...] = field(
        default=(),
        metadata=_about(
            "Out-of-domain images as NAME=PATH, such as lsun_bedroom=photos/.", flag="--foreign"
        ),
    )
    split: Path | None = field(
        default=None, metadata=_about("Split list of raw KITTI drives, or a folder with lists.")
    )
    missing: Literal["error", "skip"] = field(
        default="error",
        metadata=_about("Images without a depth file: an error, or left out."),
    )
    weights: str = field(
        default="imagenet",
        metadata=_about(
            'ImageNet weights of the encoder: a file; "imagenet" for those of the extra "depth" '
            '(EfficientNet-Lite0); "none".'
        ),
    )
    methods: str = field(
        default="dd,single,ensemble,endd,endd-t10,rkl,der,end,md-end",
        metadata=_about(
            f"Separated by commas: {', '.join(_NAMES)}; or by their names in results: "
            "ENSM is ensemble, EnD2 is endd, NWPN is rkl."
        ),
    )
    ablation: bool = field(
        default=False, metadata=_about("Also rkl with other weights of the out-of-domain images.")
    )
    preset: Literal["fast", "paper", "smoke"] = field(
        default="fast",
        metadata=_about(
            "fast: EfficientNet-Lite0 at 240 x 320. paper: DenseNet-169 at 480 x 640. "
            "smoke: a few steps, too short to learn.",
        ),
    )
    seeds: str = field(
        default="", metadata=_about("Seeds such as 0,1,2; default: those of the preset.")
    )
    settings: tuple[str, ...] = field(
        default=(), metadata=_about("Another setting as NAME=VALUE; may repeat.", flag="--set")
    )
    out: Path = field(default=Path("results/depth"), metadata=_about("Folder for the results."))
    device: str = field(default="cpu", metadata=_about("cpu or cuda."))
    devices: int = field(default=1, metadata=_about("GPUs that share every batch.", least=1))
    nodes: int = field(default=1, metadata=_about("Machines that share every batch.", least=1))
    workers: int = field(
        default=1, metadata=_about("Networks that train side by side on one device.", least=1)
    )
    minutes: float | None = field(
        default=None, metadata=_about("Stop at the end of an epoch after so many minutes.", least=0)
    )
    compile: bool = field(
        default=False,
        metadata=_about("Let torch.compile fuse networks, losses and teachers (GPU)."),
    )
    no_capture: bool = field(default=False, metadata=_about("Train without CUDA graphs (GPU)."))
    again: bool = field(default=False, metadata=_about("Run finished work again."))

    @property
    def path(self) -> Path:
        """Return the path of the results file."""
        return self.out / file_name(self.dataset, self.preset)

    def unfinished(self, reason: str) -> str:
        """Return the message for a run that stopped."""
        same = "the command without --again" if self.again else "the same command"
        return f"{reason} What is finished is kept; {same} goes on."


def prepare(options: Options) -> Callable[[Callable[[Event], object]], dict[str, Any] | None]:
    """Return a function that runs the experiment, as :func:`priornet_paper.depth.run.run`.

    Raises:
        OptionError: It cannot be run, now or later; the message is one line.
    """
    from priornet_paper.depth.machine import check_device
    from priornet_paper.depth.run import run

    with _in_one_line():
        names = _names_in_results(options.methods)
        check_device(options.device, options.devices, options.nodes, options.workers)
        plan = _plan(options)
        wanted = variants(plan.config, names, options.ablation)

    def start(report: Callable[[Event], object]) -> dict[str, Any] | None:
        more: dict[str, Any] = {"workers": options.workers, "again": options.again}
        with _in_one_line():
            return run(plan, wanted, options.preset, options.path, report=report, **more)

    return start


@contextmanager
def _in_one_line() -> Generator[None]:
    """Raise errors about the options, the images and the machine as one line."""
    from priornet_paper.depth.machine import NotEnoughMemory

    try:
        yield
    except (ValueError, NotEnoughMemory, FloatingPointError, ImportError) as error:
        raise OptionError(in_options(" ".join(str(error).split()))) from error


def _plan(options: Options) -> Plan:
    """Find the images, and describe the run for its processes."""
    from priornet_paper.depth.data import find_sources, named_paths
    from priornet_paper.depth.machine import fabric_options
    from priornet_paper.depth.tasks import Plan

    config = config_for(options.dataset, options.preset)
    sources = find_sources(
        options.data,
        options.dataset,
        named_paths(options.ood),
        options.test,
        None if options.weights == "none" else options.weights,
        options.split,
        options.missing,
    )
    return Plan(
        with_changes(config, options.settings, options.seeds),
        sources,
        options.out / ".parts" / options.path.stem,
        options.device,
        fabric_options(options.devices, options.nodes),
        capture=not options.no_capture,
        compile=options.compile,
        until=math.inf if options.minutes is None else time.time() + 60 * options.minutes,
    )


def in_options(message: str) -> str:
    """Replace Python's arguments in an error's message by options of the command line.

    Example:
        >>> in_options('with `missing="skip"` such images are left out')
        'with `--missing skip` such images are left out'
    """
    message = message.replace('`missing="skip"`', "`--missing skip`")
    return message.replace("`split`", "`--split`").replace("`test`", "`--test`")


def _names_in_results(methods: str) -> list[str]:
    """Split a list of methods, and give each its name in results."""
    spellings = list(filter(None, map(str.strip, methods.split(","))))
    if not spellings:
        raise ValueError(f"no method named; choose from: {', '.join(_NAMES)}.")
    return [_name_in_results(spelling) for spelling in spellings]


def _name_in_results(spelling: str) -> str:
    name = spelling.lower()
    names = {**{key.lower(): key for key in _NAMES.values()}, **_NAMES}
    if name in names:
        return names[name]
    for start, key in _WEIGHTS.items():
        if name.startswith(start):
            return f"{key}{name.removeprefix(start)}"
    known = ", ".join(_NAMES)
    raise ValueError(f'unknown method "{spelling}"; choose from: {known}, rkl-g0.05.')
