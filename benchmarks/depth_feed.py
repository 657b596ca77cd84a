"""Waiting time of a depth network's training for its images.

One Gaussian network (EfficientNet-Lite0, batches of 16, the experiment's own loop) is trained on

1. one batch again and again: nothing is read, nothing is augmented;
2. images that lie on the device as bytes and are augmented there, as in the experiment;
3. the same images decoded as it goes (``DepthImages.batches``), from files and from a packed file,
   by one thread and by as many as there are cores, then by processes, half as many as there are
   cores and as many. They stay over epochs; ``start_seconds`` is how long their first batch takes.

Images a second over whole epochs but the first; ``waits`` is the share of the time that (1) does
not need. Weights are random: they do not matter for that.

    python benchmarks/depth_feed.py [--data FOLDER] [--device cuda] [--images 320] [--size 240x320]
        [--epochs 5] [--json out.json]

Without the real set (``../shared/data/depth/nyu_v2``, or ``--data``) noise of its size stands in.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from depth_data import stand_in
from torch import Generator

from priornet.depth import DepthImages, open_depth, pack
from priornet.evaluation.results import provenance, write_results
from priornet.training.device import available_cores
from priornet_paper.depth import config_for
from priornet_paper.depth.batches import TrainingSet, augmentation_for, epoch_seed, half_resolution
from priornet_paper.depth.config import Config, Variant, variants
from priornet_paper.depth.machine import Share, make_fabric
from priornet_paper.depth.methods import Batch, build, objective_for
from priornet_paper.depth.train import Training, train
from priornet_paper.depth.trainee import Trainee

NYU = Path(__file__).parents[2] / "shared" / "data" / "depth" / "nyu_v2"


class SameAgain(TrainingSet):
    """One batch, made once."""

    made: Batch | None = None

    def epoch(self, seed: int, epoch: int, batch: int, share: Share) -> Iterator[Batch]:
        self.made = self.made or next(super().epoch(seed, epoch, batch, share))
        for _ in range(self.n_steps(batch)):
            yield self.made


class DecodedAsItGoes(TrainingSet):
    """Images that are read anew in every epoch."""

    source: DepthImages
    workers: int | Executor
    size: tuple[int, int]

    def epoch(self, seed: int, epoch: int, batch: int, share: Share) -> Iterator[Batch]:
        draws = Generator().manual_seed(epoch_seed(seed, epoch))
        order = torch.randperm(len(self), generator=draws)[: self.n_steps(batch) * batch].tolist()
        found = self.source.batches(batch, order=order, size=self.size, workers=self.workers)
        for images, depth, _ in found:
            assert depth is not None
            metres = half_resolution(depth.to(self.device, non_blocking=True))
            pixels, metres = self.changes(images.to(self.device, non_blocking=True), metres, draws)
            assert metres is not None
            yield Batch(pixels.contiguous(memory_format=torch.channels_last), metres, None)


def rate(variant: Variant, data: TrainingSet, fabric: Any) -> dict[str, float]:
    """Images a second: median and extremes over epochs."""
    config = variant.config
    objective = objective_for(variant, data.scale)
    ends: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        trainee = Trainee(build(objective, None), objective, Path(folder), "")
        training = Training(0, progress=lambda _: ends.append(time.perf_counter()))
        train(fabric, [trainee], data, training)
    n_images = data.n_steps(config.batch) * min(config.batch, len(data))
    found = [n_images / (end - begin) for begin, end in pairwise(ends)]
    return {"median": statistics.median(found), "least": min(found), "most": max(found)}


def feeds(
    images: DepthImages, packed: DepthImages, variant: Variant, device: torch.device
) -> Iterator[tuple[dict[str, Any], TrainingSet]]:
    """Yield the sources to compare, each made when it is needed, with its description."""
    size = (variant.config.height, variant.config.width)
    pixels, depth = images.tensors(size)
    assert depth is not None
    given = (pixels, depth, None, augmentation_for(variant), device)
    yield {"what": "one batch again and again"}, SameAgain(*given)
    yield {"what": "on the device, augmented there"}, TrainingSet(*given)
    n_cores, forms = available_cores(), {"files": images, "a pack": packed}

    def decoded(form: str, workers: int | Executor) -> TrainingSet:
        data = DecodedAsItGoes(*given)
        data.source, data.workers, data.size = forms[form], workers, size
        return data

    for form in forms:
        for n in sorted({1, n_cores}):
            what = f"decoded as it goes from {form}, {n} threads"
            yield {"what": what}, decoded(form, n)
    for n in sorted({max(1, n_cores // 2), n_cores}):
        begin = time.perf_counter()
        with ProcessPoolExecutor(n, get_context("spawn")) as pool:  # forked torch threads may hang
            next(images.batches(variant.config.batch, workers=pool))
            start = time.perf_counter() - begin
            for form in forms:
                what = f"decoded as it goes from {form}, {n} processes"
                yield {"what": what, "start_seconds": start}, decoded(form, pool)


def settings(options: argparse.Namespace) -> Config:
    height, width = map(int, options.size.split("x"))
    preset = config_for("nyu", "fast")
    # Statistics of random weights are nobody's: norms use those of each batch.
    return replace(preset, height=height, width=width, epochs=options.epochs, norm="batch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", type=Path, default=NYU, help="photographs with depth, in any form")
    add("--device", default="cpu")
    add("--images", type=int, default=320, help="of the set, the first")
    add("--size", default="240x320", help="height x width")
    add("--epochs", type=int, default=5, help="of which the first does not count")
    add("--json", type=Path)
    options = parser.parse_args()
    config, rows = settings(options), list[dict[str, Any]]()
    (variant,) = variants(config, ["Single"])
    fabric = make_fabric(options.device)
    fabric.launch()
    with tempfile.TemporaryDirectory() as scratch:
        is_real = options.data.exists()
        data = options.data if is_real else stand_in(Path(scratch)) / "nyu_v2"
        images = open_depth(data)[: options.images]
        pack(images, Path(scratch) / "images.pack")
        packed = open_depth(Path(scratch) / "images.pack")
        print(f"{'real images' if is_real else 'stand-ins'}; images a second, median (least, most)")
        for about, feed in feeds(images, packed, variant, fabric.device):
            row = about | rate(variant, feed, fabric)
            row["waits"] = 1 - row["median"] / (rows[0] if rows else row)["median"]
            rows.append(row)
            spread = f"({row['least']:.0f}, {row['most']:.0f})"
            figures = f"{row['median']:7.0f} {spread:16} waits {row['waits']:.1%}"
            start = f", start {row['start_seconds']:.1f} s" if "start_seconds" in row else ""
            print(f"{row['what']:48} {figures}{start}", flush=True)
    if options.json:
        content = {"benchmark": "depth_feed", "real": is_real, "n_images": len(images)}
        content |= {"config": config.to_json(), "device": options.device, "rows": rows}
        write_results(options.json, content | provenance())


if __name__ == "__main__":
    main()
