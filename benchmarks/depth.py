"""Training and inference of depth networks on a GPU: DenseDepth-169 at 480 x 640, random weights.

One run prints images per second, and ratios against the paper's public code on the same kind of GPU
(H200, float32, batch 8: 76.7 for a Gaussian model, 26.8 for EnD2 with five live teachers):

1. A training step of a Gaussian model: float32; bfloat16 with channels last; the whole step as a
   CUDA graph; the same compiled.
2. An EnD2 step with live teachers, one after the other or on streams of their own; and with their
   averages kept from an earlier epoch instead. Norms of networks that are only asked are folded.
3. Inference with every measure of uncertainty: the student against the ensemble, and the memory of
   their weights.

    python benchmarks/depth.py [--json out.json] [--budget 340] [--parts training distillation ...]

A variant that fails, or does not end in time, leaves its reason in the row and the others run on;
the JSON is written anew after each. ``--smoke`` runs every part on a CPU, tiny and with the small
encoder; there are no graphs and nothing is compiled for good: it shows that the script runs.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from depth_goals import GOALS, summary
from depth_steps import SEED, How, Make, Run, Size, Steps
from depth_time import OutOfTime, time_limit
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from priornet.evaluation.results import provenance, write_results
from priornet.nn import DenseDepth
from priornet.training.device import on_stream

PUBLIC = {"training": 76.7, "distillation": 26.8}  # images/s of the paper's public code
WAYS_TRIED = 4  # to convolve, where that is tuned: with all of them a step is not ready in minutes
CEILING = 790.0  # TFLOP/s of a large bfloat16 product on the H200
SMOKE = Size(32, 64, "efficientnet_lite0", 32, 2, 2, (3,), 0.05, 2, compiled_batches=(3,))


def counted_tflop(size: Size) -> float:
    """Convolutions of a training step per image, counted by torch without computing."""
    with torch.device("meta"):
        net = DenseDepth(None, size.encoder, n_decoder=size.n_decoder)
        images = torch.empty(2, 3, size.height, size.width)
    with FlopCounterMode(display=False) as counter:
        net.features(images).sum().backward()
    return counter.get_total_flops() / 2 / 1e12


def work_of(what: str, members: int) -> float:
    """Work per image in units of a training step: a forward pass is a third of it."""
    if what.startswith("student, every measure"):
        return 1 / 3
    if what.startswith("ensemble"):
        return members / 3
    return 1 + members / 3 if "live teachers" in what else 1.0


# -- timing ---------------------------------------------------------------------------------------


class Bench:
    """Times one variant after the other and keeps what it finds."""

    def __init__(self, steps: Steps, path: Path | None, deadline: float, settings: dict[str, Any]):
        self.steps, self.size, self.on_gpu = steps, steps.size, steps.on_gpu
        self.path, self.deadline, self.settings = path, deadline, settings
        self.rows: list[dict[str, Any]] = []

    @property
    def left(self) -> float:
        return self.deadline - time.perf_counter()

    def measure(
        self, part: str, what: str, make: Make, how: How, batch: int = 0, limit: float = 40
    ) -> None:
        """Time one variant, or say why not."""
        batch = batch or self.size.batch
        row: dict[str, Any] = {"part": part, "what": what, "how": str(how), "batch": batch}
        self.rows.append(row)
        self._clean()
        torch.backends.cudnn.benchmark = how.tuned
        torch.backends.cudnn.benchmark_limit = WAYS_TRIED
        began = time.perf_counter()
        try:
            if self.left < self.size.seconds:
                raise OutOfTime("no time left")
            with time_limit(min(limit, self.left)):
                row |= self._figures(make, how, batch)
            self._rate(row)
        except (Exception, OutOfTime) as error:
            reason = (str(error).strip().splitlines() or [""])[0]
            row["error"] = f"{type(error).__name__}: {reason}"[:300]
        row["seconds"] = round(time.perf_counter() - began, 1)
        self._show(row)
        self.write()

    def _figures(self, make: Make, how: How, batch: int) -> dict[str, Any]:
        held = torch.cuda.memory_allocated() if self.on_gpu else 0
        began = time.perf_counter()
        # All on one stream: each keeps the memory that was used on it.
        stream = torch.cuda.Stream() if how.graph and self.on_gpu else None
        with on_stream(stream):
            run = make(batch, how)
            first = float(run())  # also compiles
            ready = time.perf_counter() - began
            if stream is not None:
                run = self._graphed(run, stream)
            times = self._timed(run)
        median = statistics.median(times)
        figures = {
            "images_per_second": batch / median,
            "ms": 1e3 * median,
            "spread_ms": 1e3 * statistics.stdev(times),
            "first_value": first if math.isfinite(first) else None,
            "first_call_seconds": round(ready, 1),
        }
        if self.on_gpu:
            # Of the peak, what the networks of this script hold all the time.
            figures["held_gb"] = held / 1e9
            figures["peak_gb"] = torch.cuda.max_memory_allocated() / 1e9
            figures["reserved_gb"] = torch.cuda.max_memory_reserved() / 1e9
        return figures

    def _graphed(self, run: Run, stream: torch.cuda.Stream) -> Run:
        """The same as a CUDA graph, one call for all kernels."""
        for _ in range(2):
            run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            loss = run()

        def replay(_alive: Run = run) -> Tensor:  # the graph works on tensors that the step owns
            graph.replay()
            return loss

        return replay

    def _timed(self, run: Run) -> list[float]:
        """Seconds per call in each of several blocks of calls, launched back to back."""
        once = self._seconds(run, 1)
        calls = max(1, math.ceil(self.size.seconds / self.size.blocks / max(once, 1e-5)))
        return [self._seconds(run, calls) / calls for _ in range(self.size.blocks)]

    def _seconds(self, run: Run, calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            run()
        if self.on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - start

    def _clean(self) -> None:
        self.steps.forget()
        gc.collect()
        if self.on_gpu:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def _rate(self, row: dict[str, Any]) -> None:
        """Ratios to the public code and to what the device can do at best."""
        rate = row["images_per_second"]
        work = work_of(row["what"], self.size.members)
        row["tflop_per_second"] = rate * work * self.settings["tflop_per_image_and_step"]
        row["share_of_ceiling"] = row["tflop_per_second"] / CEILING
        if row["part"] in PUBLIC and self.on_gpu:
            row["times_public_code"] = rate / PUBLIC[row["part"]]

    def _show(self, row: dict[str, Any]) -> None:
        title = f"{row['what']:<32} {row['how']:<46} {row['batch']:>3}"
        if "error" in row:
            print(f"{title}  {row['error']} [{row['seconds']} s]", flush=True)
            return
        ratio = f"{row['times_public_code']:.2f} x" if "times_public_code" in row else ""
        memory = f"{row['peak_gb']:.1f} GB" if "peak_gb" in row else ""
        print(
            f"{title} {row['images_per_second']:>8.1f}/s {ratio:>7} {row['ms']:>8.2f} ms "
            f"{row['share_of_ceiling']:>6.1%} {memory:>8} {row['first_value']!s:>8.8} "
            f"[{row['seconds']} s]",
            flush=True,
        )

    def write(self) -> None:
        if self.path:
            found = {"rows": self.rows, "summary": summary(self)}
            write_results(self.path, self.settings | provenance() | found)

    def best(self, part: str, *words: str, batch: int = 0) -> dict[str, Any]:
        """The quickest of the rows whose description has all the words; empty if there is none."""
        rows = [
            row
            for row in self.rows
            if row["part"] == part
            and "error" not in row
            and (not batch or row["batch"] == batch)
            and all(word in row["what"] for word in words)
        ]
        return max(rows, key=lambda row: row["images_per_second"], default={})


# -- the parts ------------------------------------------------------------------------------------

PLAIN = How(half=False, graph=False)
HALF = How(graph=False)
GRAPH = How()
STREAMS = How(teachers="streams")
COMPILED, COMPILED_STREAMS = replace(GRAPH, compiled=True), replace(STREAMS, compiled=True)
STEP = "Gaussian step"
LIVE = "EnD2, live teachers {}"
KEPT = "EnD2, kept averages"
STUDENT = "student, every measure"
ENSEMBLE = "ensemble {}, every measure"


def training_part(b: Bench) -> None:
    for how in (PLAIN, HALF, GRAPH):
        b.measure("training", STEP, b.steps.training, how)


def distillation_part(b: Bench) -> None:
    for how in (PLAIN, HALF, GRAPH, STREAMS):
        b.measure("distillation", LIVE.format(how.teachers), b.steps.distillation, how)
    b.measure("distillation", KEPT, b.steps.cached, GRAPH)


def inference_part(b: Bench) -> None:
    b.measure("inference", STUDENT, b.steps.student_inference, HALF)
    b.measure("inference", ENSEMBLE.format(HALF.teachers), b.steps.ensemble_inference, HALF)
    asked(b, GRAPH, STREAMS)


def inference_batches_part(b: Bench) -> None:
    """With more images at a time one network fills the device as well as several do."""
    for batch in b.size.batches:
        asked(b, GRAPH, STREAMS, batch)


def asked(b: Bench, how: How, streams: How, batch: int = 0, limit: float = 40) -> None:
    """The student, and the ensemble in turn and on streams."""
    b.measure("inference", STUDENT, b.steps.student_inference, how, batch, limit)
    for way in (how, streams):
        what = ENSEMBLE.format(way.teachers)
        b.measure("inference", what, b.steps.ensemble_inference, way, batch, limit)


def batches_part(b: Bench) -> None:
    for batch in b.size.batches:
        b.measure("training", STEP, b.steps.training, GRAPH, batch)
        b.measure("distillation", LIVE.format("streams"), b.steps.distillation, STREAMS, batch)
    largest = b.size.batches[-1]
    b.measure("distillation", LIVE.format("in turn"), b.steps.distillation, GRAPH, largest)
    b.measure("distillation", KEPT, b.steps.cached, GRAPH, largest)


def compiled_part(b: Bench) -> None:
    """The slow ones to prepare: the first call of a body takes a minute or two."""
    compiled_students(b, b.size.batch)
    compiled_inference_part(b)
    compiled_learners(b, b.size.batch)
    b.measure("training", STEP, b.steps.training, replace(COMPILED, graph=False), limit=240)


def compiled_inference_part(b: Bench) -> None:
    asked(b, COMPILED, COMPILED_STREAMS, limit=90)


def compiled_learners(b: Bench, batch: int) -> None:
    b.measure("training", STEP, b.steps.training, COMPILED, batch, limit=240)
    b.measure("distillation", KEPT, b.steps.cached, COMPILED, batch, limit=120)


def compiled_students(b: Bench, batch: int) -> None:
    """With live teachers; the first row may have to compile both student and teachers."""
    for how, limit in ((COMPILED, 360), (COMPILED_STREAMS, 60)):
        what = LIVE.format(how.teachers)
        b.measure("distillation", what, b.steps.distillation, how, batch, limit=limit)


def compiled_batches_part(b: Bench) -> None:
    """Live teachers at every batch first: to compare these is what the others can wait for."""
    for batch in b.size.compiled_batches:
        compiled_students(b, batch)
    for batch in b.size.compiled_batches:
        compiled_learners(b, batch)


def tuned_part(b: Bench) -> None:
    """To try several algorithms for some hundred convolutions takes its time, too."""
    small, large = b.size.batch, b.size.batches[-1]
    for batch, compiled in ((small, False), (small, True), (large, True)):
        graph, streams = (replace(h, tuned=True, compiled=compiled) for h in (GRAPH, STREAMS))
        b.measure("training", STEP, b.steps.training, graph, batch, limit=90)
        what = LIVE.format("streams")
        b.measure("distillation", what, b.steps.distillation, streams, batch, limit=90)


RUNS = {
    "training": training_part,
    "distillation": distillation_part,
    "inference": inference_part,
    "batches": batches_part,
    "inference-batches": inference_batches_part,
    "compiled": compiled_part,
    "compiled-inference": compiled_inference_part,
    "compiled-batches": compiled_batches_part,
    "tuned": tuned_part,
}
USUAL = [name for name in RUNS if name != "compiled-inference"]  # which "compiled" contains


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="every part, tiny, on the CPU")
    parser.add_argument("--budget", type=float, default=340.0, help="seconds for everything")
    parser.add_argument("--parts", nargs="+", choices=list(RUNS), default=USUAL)
    parser.add_argument("--batches", type=int, nargs="+", help="to try beside 8, compiled too")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    began = time.perf_counter()
    size, device = (SMOKE, "cpu") if args.smoke else (Size(), "cuda")
    if args.batches:
        batches = tuple(args.batches)
        size = replace(size, batches=batches, compiled_batches=batches)
    if device == "cpu":
        torch.set_num_threads(1)
    elif not torch.cuda.is_available():
        parser.error("torch sees no GPU here; try --smoke.")
    settings: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "size": vars(size),
        "seed": SEED,
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,  # in the float32 rows: torch's default
        "public_code_images_per_second": PUBLIC,
        "ceiling_tflop_per_second": CEILING,
        "tflop_per_image_and_step": counted_tflop(size),
    }
    where = f"torch {torch.__version__}, {settings['device']}"
    work = f"{settings['tflop_per_image_and_step']:.4f} TFLOP per image and step"
    print(f"{size.encoder}, {size.height} x {size.width}, {where}; {work}", flush=True)
    bench = Bench(Steps(size, device), args.json, began + args.budget, settings)
    for part in args.parts:
        RUNS[part](bench)
    settings["total_seconds"] = round(time.perf_counter() - began, 1)
    bench.write()
    print()
    for name, value in summary(bench).items():
        shown = "none" if value is None else f"{value:.3f}"
        print(f"{name:<52} {shown:>10}  {GOALS.get(name, '')}")
    print(f"{settings['total_seconds']} s in all")


if __name__ == "__main__":
    main()
