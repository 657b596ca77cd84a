"""Images a second from file to tensor, against what a GPU consumes.

Each set is packed whole, which tells the size of the file. Some of its images are decoded to
tensors from either form, pictures and depth, with one thread and with two, and in batches with two
threads and with two processes; then batches of 32 are mirrored and recoloured. Small depth networks
on a fast GPU take some 2000 images of 240 x 320 a second, over and over (README.md): a training run
decodes each image once, keeps its bytes on the device and augments there, so that only the last row
counts in every epoch. The other rows say how long the start takes; whether training waits is what
``depth_feed.py`` times.

    python benchmarks/depth_data.py [--data FOLDER] [--device cuda] [--images 200] [--json out.json]

Without the real sets (``../shared/data/depth``, or ``--data``) noise of the same sizes stands in.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Generator

from priornet.depth import Augment, DepthImages, open_depth, pack
from priornet.evaluation.results import provenance, write_results

SHARED = Path(__file__).parents[2] / "shared" / "data" / "depth"
N_IMAGES, REPEATS, BATCH = 200, 5, 32
SIZES = {"nyu_v2": (240, 320), "kitti_road": (192, 640), "lsun_bedroom": (240, 320)}


def stand_in(folder: Path) -> Path:
    """Sets of the sizes of the real ones, of smooth noise."""
    rng = np.random.default_rng(0)
    for name, (height, width) in SIZES.items():
        for what in ("rgb", "depth"):
            (folder / name / what).mkdir(parents=True)
        for number in range(N_IMAGES):
            coarse = Image.fromarray(rng.integers(20, 250, (24, 32, 3), dtype=np.uint8))
            smooth = coarse.resize((width, height), Image.Resampling.BICUBIC)
            smooth.save(folder / name / "rgb" / f"{number:04d}.jpg", quality=88)
            smooth.convert("L").save(folder / name / "depth" / f"{number:04d}.png")
    return folder


def rate(work: Callable[[], object], n_images: int) -> dict[str, float]:
    """Images a second: median and extremes of some repeats after a first one.

    The least processor time of an image, over all threads of this process, hardly depends on what
    else runs.
    """
    work()
    found: list[float] = []
    processor: list[float] = []
    for _ in range(REPEATS):
        start, start_processor = time.perf_counter(), time.process_time()
        work()
        found.append(n_images / (time.perf_counter() - start))
        processor.append((time.process_time() - start_processor) / n_images)
    spread = {"median": statistics.median(found), "least": min(found), "most": max(found)}
    return {**spread, "processor_ms": 1e3 * min(processor)}


def batch_rate(images: DepthImages, workers: int | Executor) -> dict[str, float]:
    """The same for batches, one after the other."""

    def work() -> None:
        for _ in images.batches(BATCH, workers=workers):
            pass

    return rate(work, len(images))


def augment_rate(images: DepthImages, device: torch.device) -> dict[str, float]:
    """The same for batches that lie on the device."""
    pixels, depth = images.tensors()
    pixels, depth = pixels.to(device), None if depth is None else depth.to(device)
    augment = Augment(Generator().manual_seed(0))

    def work() -> None:
        for start in range(0, len(pixels), BATCH):
            rows = slice(start, start + BATCH)
            augment(pixels[rows], None if depth is None else depth[rows])
        if device.type == "cuda":
            torch.cuda.synchronize()

    return rate(work, len(pixels))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=SHARED)
    parser.add_argument("--device", default="cpu", help="where batches are augmented")
    parser.add_argument("--images", type=int, default=N_IMAGES, help="of each set, about")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    sizes: dict[str, dict[str, int]] = {}
    processes = ProcessPoolExecutor(2, get_context("spawn"))  # forked torch threads may hang
    with tempfile.TemporaryDirectory() as scratch, processes:
        is_real = options.data.is_dir()
        data = options.data if is_real else stand_in(Path(scratch))
        print(f"{'real sets' if is_real else 'stand-ins'}; images a second, median (least, most),")
        print("and milliseconds of this process's processor time an image")
        for name in SIZES:
            whole = open_depth(data / name)
            step = max(1, len(whole) // options.images)
            images = whole[::step]
            packed = Path(scratch) / f"{name}.pack"
            pack(whole, packed)
            sizes[name] = {"n_images": len(whole), "bytes": packed.stat().st_size}
            print(f"{name:14} {len(whole)} images packed: {sizes[name]['bytes'] / 1e6:.1f} MB")
            for form, found in (("files", images), ("packed", open_depth(packed)[::step])):
                for threads in (1, 2):
                    speed = rate(lambda f=found, t=threads: f.tensors(workers=t), len(found))
                    rows.append({"set": name, "what": f"{form}, {threads} threads", **speed})
                for what, workers in (("2 threads", 2), ("2 processes", processes)):
                    speed = batch_rate(found, workers)
                    rows.append({"set": name, "what": f"{form}, batches, {what}", **speed})
            device = torch.device(options.device)
            rows.append({"set": name, "what": "augmented", **augment_rate(images, device)})
            for row in rows[-9:]:
                spread = f"({row['least']:.0f}, {row['most']:.0f})"
                what = f"{row['set']:14} {row['what']:28}"
                figures = f"{row['median']:6.0f} {spread:14} {row['processor_ms']:6.2f} ms"
                print(what, figures, flush=True)
    if options.json:
        settings = {"n_images": options.images, "repeats": REPEATS, "batch": BATCH, "real": is_real}
        results = {"benchmark": "depth_data", **settings, "device": options.device}
        write_results(options.json, {**results, "packed": sizes, "rows": rows, **provenance()})


if __name__ == "__main__":
    main()
