"""``python -m priornet_paper.depth``: the experiment where there is no command line tool.

It needs torch, NumPy, Pillow, safetensors and Lightning Fabric, nothing else.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from priornet_paper.depth.config import DATASETS, METHODS
from priornet_paper.depth.presets import PRESETS, config_for, in_options, recipes, with_changes

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment.

    Returns:
        0, also where the time was up first; 2 for what cannot be run; 1 where the machine failed.
    """
    given = _parser().parse_args(arguments)
    from priornet_paper.depth.experiment import file_name, run
    from priornet_paper.depth.machine import NotEnoughMemory, check_device
    from priornet_paper.depth.orders import Order
    from priornet_paper.depth.sharing import fabric_options
    from priornet_paper.depth.sources import find_sources, named_paths

    try:
        check_device(given.device, given.devices, given.nodes, given.workers)
        config = with_changes(config_for(given.dataset, given.preset), given.set, given.seeds)
        path = given.out / file_name(given.dataset, given.preset)
        names = given.methods.split(",")
        wanted = recipes(config, names, given.ablation)
        sources = find_sources(
            given.data,
            given.dataset,
            named_paths(given.foreign),
            given.test,
            None if given.weights == "none" else given.weights,
            given.split,
            given.missing,
        )
        order = Order(
            config,
            sources,
            given.out / ".parts" / path.stem,
            given.device,
            fabric_options(given.devices, given.nodes),
            capture=not given.no_capture,
            compile=given.compile,
            until=time.time() + 60 * given.minutes,
        )
        started = time.monotonic()
        found = run(
            order,
            wanted,
            given.preset,
            path,
            workers=given.workers,
            report=_Log(started).report,
            again=given.again,
        )
    except (ValueError, OSError, ImportError, FloatingPointError, NotEnoughMemory) as error:
        sys.stderr.write(f"Error: {in_options(' '.join(str(error).split()))}\n")
        return 1 if isinstance(error, OSError) else 2
    if found is None:
        _say("the time is up; what is finished is kept, and the same command goes on from there.")
        return 0
    if not found:  # a process that helped another one
        return 0
    for line in _summary(found):
        _say(line)
    _say(f"results: {path}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m priornet_paper.depth", description=__doc__)
    add = parser.add_argument
    add("--dataset", choices=DATASETS, required=True)
    add("--data", type=Path, required=True, help="the set, or a folder with several sets")
    add("--test", type=Path, help="its test images, if they are not there")
    add("--foreign", action="append", default=[], help="another set as NAME=PATH; repeatable")
    add("--split", type=Path, help="split list of raw KITTI drives, or a folder with lists")
    add("--missing", choices=("error", "skip"), default="error", help="pictures without depth file")
    add("--weights", default="imagenet", help='a file, "imagenet" (a package\'s), or "none"')
    add("--out", type=Path, default=Path("results/depth"), help="folder for results")
    add("--methods", default=",".join(METHODS), help="with commas; also EnD2-T10, NWPN-g0.05")
    add("--ablation", action="store_true", help="NWPN with every weight of the ablation")
    add("--seeds", default="", help="such as 0,1,2; default: the preset's")
    add("--preset", choices=tuple(PRESETS), default="fast")
    add("--set", action="append", default=[], help="another setting as NAME=VALUE; repeatable")
    add("--device", default="cpu", help="cpu or cuda")
    add("--devices", type=int, default=1, help="processes that share every batch (DDP)")
    add("--nodes", type=int, default=1, help="machines")
    add("--workers", type=int, default=1, help="trainings side by side on one device")
    add("--minutes", type=float, default=float("inf"), help="stop at an epoch's end after these")
    add("--again", action="store_true", help="begin anew what is there already")
    add("--no-capture", action="store_true", help="no CUDA graphs")
    add("--compile", action="store_true", help="torch.compile (GPU)")
    return parser


_PAUSE = 15.0  # seconds


class _Log:
    """A line per epoch of each network, or per some of them where epochs are short."""

    def __init__(self, started: float) -> None:
        self.started, self.said = started, dict[str, float]()

    def report(self, event: Any) -> None:
        if event.remark:
            _say(event.remark)
            return
        now = time.monotonic()
        if event.epoch == event.n_epochs or now - self.said.get(event.key, -1e9) > _PAUSE:
            self.said[event.key] = now
            _say(
                f"{now - self.started:7.1f} s  {event.key:<18} epoch {event.epoch:>3}"
                f"/{event.n_epochs}  loss {event.loss:.4f}"
            )


def _summary(found: dict[str, Any]) -> list[str]:
    """A line per method: its means over seeds."""
    lines: list[str] = []
    for name, scores in {**found["methods"], **found["variants"]}.items():
        shown = [
            f"{metric} {scores[metric]['mean']:.4f}"
            for metric in ("delta1", "rel", "rmse", "log10", "nll")
            if metric in scores and scores[metric]["mean"] is not None
        ]
        for other, aucs in scores.get("ood_auc", {}).items():
            means = (f"{m} {v['mean']:.3f}" for m, v in aucs.items() if v["mean"] is not None)
            shown.append(f"{other}: {' '.join(means)}")
        lines.append(f"{name:<12} {'  '.join(shown)}")
    return lines


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
