"""Options of the depth experiment, with their texts and defaults, and the run they describe.

Two command lines show them: ``priornet reproduce depth``, and ``python -m priornet_paper.depth``
where there is no Typer. Nothing here needs more than torch, NumPy, Pillow, safetensors and Fabric.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from priornet.methods import METHODS
from priornet_paper.depth.config import (
    config_for,
    in_options,
    variants,
    with_changes,
)

if TYPE_CHECKING:
    from priornet_paper.depth.tasks import Event

SPELLINGS = {
    **{method.spelling: method.key for method in METHODS.values()},
    "endd-t1": "EnD2-T1",
    "endd-t10": "EnD2-T10",
    "endd-proxy": "EnD2-proxy",
}
"""Names in results by their names on a command line."""
_WEIGHTS = {"rkl-g": "NWPN-g", "nwpn-g": "NWPN-g", "endd-t": "EnD2-T", "end2-t": "EnD2-T"}


class OptionError(ValueError):
    """An experiment that cannot be run as given; the message is one line."""


def _about(help: str, **more: Any) -> dict[str, Any]:
    """Describe an option: ``flag`` if not that of its name, ``choices``, ``least``."""
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
    dataset: str = field(
        default="nyu", metadata=_about("Data set to learn.", choices=("nyu", "kitti"))
    )
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
    missing: str = field(
        default="error",
        metadata=_about(
            "Images without a depth file: an error, or left out.", choices=("error", "skip")
        ),
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
            f"Separated by commas: {', '.join(SPELLINGS)}; or by their names in results: "
            "ENSM is ensemble, EnD2 is endd, NWPN is rkl."
        ),
    )
    ablation: bool = field(
        default=False, metadata=_about("Also rkl with other weights of the out-of-domain images.")
    )
    preset: str = field(
        default="fast",
        metadata=_about(
            "fast: EfficientNet-Lite0 at 240 x 320. paper: DenseNet-169 at 480 x 640. "
            "smoke: a few steps, too short to learn.",
            choices=("fast", "paper", "smoke"),
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
        from priornet_paper.depth.run import file_name

        return self.out / file_name(self.dataset, self.preset)

    @property
    def names(self) -> list[str]:
        """Return the methods by their names in results, each once."""
        names = list(
            dict.fromkeys(_name_of(n.strip()) for n in self.methods.split(",") if n.strip())
        )
        if not names:
            raise ValueError(f"no method named; choose from: {', '.join(SPELLINGS)}.")
        return names

    def unfinished(self, what: str) -> str:
        """Return the message for a run that stopped."""
        same = "the command without --again" if self.again else "the same command"
        return f"{what} What is finished is kept; {same} goes on."


def run_options(options: Options, report: Callable[[Event], object]) -> dict[str, Any] | None:
    """Run the experiment that the options describe, as :func:`priornet_paper.depth.run.run`.

    Raises:
        OptionError: It cannot be run; the message is one line.
    """
    from priornet_paper.depth.data import find_sources, named_paths
    from priornet_paper.depth.machine import NotEnoughMemory, check_device, fabric_options
    from priornet_paper.depth.run import run
    from priornet_paper.depth.tasks import Plan

    try:
        names = options.names
        check_device(options.device, options.devices, options.nodes, options.workers)
        config = config_for(options.dataset, options.preset)
        config = with_changes(config, options.settings, options.seeds)
        chosen = variants(config, names, options.ablation)
        weights = None if options.weights == "none" else options.weights
        missing: Any = options.missing
        plan = Plan(
            config,
            find_sources(
                options.data,
                options.dataset,
                named_paths(options.ood),
                options.test,
                weights,
                options.split,
                missing,
            ),
            options.out / ".parts" / options.path.stem,
            options.device,
            fabric_options(options.devices, options.nodes),
            capture=not options.no_capture,
            compile=options.compile,
            until=math.inf if options.minutes is None else time.time() + 60 * options.minutes,
        )
        return run(
            plan,
            chosen,
            options.preset,
            options.path,
            workers=options.workers,
            report=report,
            again=options.again,
        )
    except (ValueError, NotEnoughMemory, FloatingPointError, ImportError) as error:
        raise OptionError(in_options(" ".join(str(error).split()))) from error


def _name_of(spelling: str) -> str:
    """Return the name in results of a method, or of a variant with a number."""
    name, in_results = spelling.lower(), {key.lower(): key for key in SPELLINGS.values()}
    found = SPELLINGS.get(name) or in_results.get(name)
    if found is not None:
        return found
    for start, key in _WEIGHTS.items():
        if name.startswith(start):
            return f"{key}{name.removeprefix(start)}"
    known = ", ".join(SPELLINGS)
    raise ValueError(f'unknown method "{spelling}"; choose from: {known}, rkl-g0.05.')
