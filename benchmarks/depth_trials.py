"""Settings of the depth experiment, tried on training images that are held out.

Each trial is a set of changes to the preset "fast"; every one is trained with every seed and scored
on the last quarter of the training images (of KITTI's roads, of each category), which it did not
learn. No test image and no foreign image is looked at.

    python benchmarks/depth_trials.py --data FOLDER --dataset nyu --device cuda \
        --try "" --try structure=30 --try "structure=100 norm=batch" [--seeds 0,1,2] [--json out]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from priornet.experiments.depth import config_for, recipes, with_changes
from priornet.experiments.depth.orders import Order
from priornet.experiments.depth.run import scores_of, with_needs
from priornet.experiments.depth.sets import Sources, find_sources
from priornet.experiments.depth.work import Workshop
from priornet.experiments.gpu_sharing import shared_gpu, usual_workers
from priornet.experiments.results import provenance, write_results
from priornet.experiments.side_by_side import Piece, Tick, in_order

METRICS = ("delta1", "rel", "rmse", "nll")


@dataclass(frozen=True)
class Trial:
    """One method with one seed, trained and scored in the process that it is in."""

    order: Order
    method: str

    def __call__(self, needed: Mapping[str, Any], tick: Tick) -> dict[str, float]:
        torch.set_num_threads(1)
        workshop = Workshop(self.order)
        tasks = with_needs(scores_of(recipes(self.order.config, [self.method])))
        made = [workshop.do(task) for task in tasks]
        assert made[-1] is not None
        found = made[-1]["result"]
        seconds = sum(training["seconds"] for training in made[-1]["training"])
        return {m: found[m] for m in METRICS if m in found} | {"seconds": seconds}


def orders(args: argparse.Namespace, folder: Path) -> dict[tuple[str, int], Order]:
    """An order for each trial and seed."""
    found = find_sources(args.data, args.dataset, weights=args.weights)
    sources = Sources(found.own, weights=found.weights)  # foreign images have no say
    preset = config_for(args.dataset, args.preset)
    made: dict[tuple[str, int], Order] = {}
    for number, changes in enumerate(args.trials or [""]):
        for seed in args.seeds.split(","):
            settings = [f"holdout={args.holdout}", *changes.split()]
            config = with_changes(preset, settings, seed)
            own = folder / f"{number}-{seed}"
            made[changes, int(seed)] = Order(config, sources, own, args.device)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--data", type=Path, required=True, help="the set, or a folder with several sets")
    add("--dataset", choices=("nyu", "kitti"), required=True)
    add("--method", default="Single")
    add("--weights", default="imagenet", help="a file, or the package's")
    add("--try", dest="trials", action="append", help="changes as NAME=VALUE, spaces between")
    add("--seeds", default="0,1,2")
    add("--preset", default="fast")
    add("--holdout", type=float, default=0.25, help="share of the training images held out")
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--workers", type=int, help="trainings side by side")
    add("--json", type=Path, help="write the scores there")
    args = parser.parse_args()
    workers = args.workers or usual_workers(args.device, len(os.sched_getaffinity(0)))
    results: dict[str, dict[int, dict[str, float]]] = {}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, shared_gpu(args.device, workers):
        wanted = orders(args, Path(folder))
        names = {f"{changes or 'preset'}, {seed}": (changes, seed) for changes, seed in wanted}
        pieces = [Piece(n, Trial(wanted[key], args.method)) for n, key in names.items()]

        def done(piece: Piece, scores: dict[str, float]) -> None:
            changes, seed = names[piece.name]
            results.setdefault(changes, {})[seed] = scores
            shown = "  ".join(f"{name} {value:.4f}" for name, value in scores.items())
            print(f"{time.perf_counter() - started:6.1f} s  {piece.name}: {shown}", flush=True)

        in_order(pieces, workers, done=done)
    trials = list(dict.fromkeys(changes for changes, _ in wanted))
    print(f"\n{args.dataset}, {args.method}: means over seeds (difference to the first ± error)")
    for changes in trials:
        print(f"{changes or 'preset':<32} {row(results[changes], results[trials[0]])}")
    if args.json:
        content = {name: getattr(args, name) for name in ("dataset", "method", "preset", "holdout")}
        content |= {"device": args.device, "trials": results}
        content["seconds"] = round(time.perf_counter() - started, 1)
        write_results(args.json, content | provenance())


def row(own: dict[int, dict[str, float]], base: dict[int, dict[str, float]]) -> str:
    """Means, and differences of the seeds that both have."""
    cells: list[str] = []
    for metric in METRICS:
        values = {seed: scores[metric] for seed, scores in own.items() if metric in scores}
        if not values:
            continue
        gaps = [v - base[s][metric] for s, v in values.items() if metric in base.get(s, {})]
        cell = f"{metric} {statistics.mean(values.values()):.4f}"
        if len(gaps) > 1:
            error = statistics.stdev(gaps) / len(gaps) ** 0.5
            cell += f" ({statistics.mean(gaps):+.4f} ± {error:.4f})"
        cells.append(cell)
    return "  ".join(cells)


if __name__ == "__main__":
    main()
