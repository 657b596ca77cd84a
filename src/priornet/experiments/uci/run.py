"""One data set from table to results JSON: splits, parts side by side, scores, summary."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from priornet.data.uci import UciTable, canonical_splits, foreign_inputs
from priornet.estimators.fitted import stack_belief
from priornet.experiments.results import provenance, provenance_of, read_results, summary
from priornet.experiments.scores import SCORES
from priornet.experiments.uci import beyond, paper
from priornet.experiments.uci.config import METHODS, Beyond, Config, Paper
from priornet.experiments.uci.folds import Fold, FoldStack, k_folds, make_fold
from priornet.experiments.uci.parts import Parts
from priornet.experiments.uci.scores import score
from priornet.report.spread import MEASURES
from priornet.training.threads import at_most

__all__ = ["file_name", "finished", "run"]

Progress = Callable[[float], object]
"""Told the share of the work that is done."""


def file_name(dataset: str, preset: str, config: Config) -> str:
    """Name of a results file: the paper's preset has the plain one."""
    if isinstance(config, Beyond) and config.splits == "canonical":
        return f"{dataset}.splits.json"
    return f"{dataset}.json" if preset == "paper" else f"{dataset}.{preset}.json"


def finished(
    path: Path, config: Config, methods: Sequence[str], n_rows: int
) -> dict[str, Any] | None:
    """Results on disk that answer the same question, or None.

    Raises:
        ValueError: The file is there but is no results file.
    """
    if not path.exists():
        return None
    try:
        found = read_results(path)
        same = found["config"] == _as_json(config) and found["n_rows"] == n_rows
        whole = all(
            len(found["methods"][m][s]["values"]) > 0
            for m in methods
            if m in found["methods"]
            for s in SCORES
        )
        return found if same and whole and set(methods) <= set(found["methods"]) else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: not a results file ({type(error).__name__}: {error})."
        ) from error


def run(
    table: UciTable,
    preset: str,
    config: Config,
    *,
    methods: Sequence[str] = METHODS,
    folder: Path | None = None,
    device: str = "cpu",
    workers: int = 1,
    progress: Progress = lambda _: None,
) -> dict[str, Any]:
    """Run the UCI experiment on one data set.

    Args:
        table: The data set.
        preset: Name of the preset, for the record.
        config: Settings.
        methods: Which methods.
        folder: Keep finished parts here, and take those that are there; None to keep none.
        device: Where to train.
        workers: Processes, each on one core.
        progress: Told how far the work is.

    Returns:
        The results, ready for JSON.
    """
    started = time.perf_counter()
    numbers = list(range(len(_test_rows(table, config)))) if config.folds is None else config.folds
    step = config.folds_per_stack
    blocks = [tuple(numbers[i : i + step]) for i in range(0, len(numbers), step)]
    parts = None if folder is None else Parts(folder, config, len(table.targets))
    jobs = [_Job(table, config, tuple(methods), block, device, parts) for block in blocks]
    done = _all_parts(jobs, workers, progress)
    # Work counts, also that of an earlier run that was interrupted.
    earlier = sum(p["seconds"] for part in done for p in part.values() if p.get("reused"))
    seconds = time.perf_counter() - started + earlier / workers
    return {
        "dataset": table.name,
        "preset": preset,
        "complete": table.is_complete,
        "n_rows": len(table.targets),
        "n_features": table.inputs.shape[1],
        "config": _as_json(config),
        "methods": {method: _summary([part[method] for part in done]) for method in methods},
        "workers": workers,
        "seconds": round(seconds, 1),
        "device": torch.cuda.get_device_name() if device == "cuda" else device,
        **provenance_of([part for made in done for part in made.values()]),
    }


def _as_json(config: Config) -> dict[str, Any]:
    """The settings as they come back from a file."""
    return json.loads(json.dumps(config.to_json()))


@dataclass(frozen=True)
class _Job:
    """A few folds with every method; what one process does."""

    table: UciTable
    config: Config
    methods: tuple[str, ...]
    folds: tuple[int, ...]
    device: str
    parts: Parts | None

    def n_ticks(self) -> int:
        if isinstance(self.config, Paper):
            return paper.n_epochs(self.config, self.methods)
        return len(self.methods)

    def run(self, tick: Callable[[], object]) -> dict[str, Any]:
        """Parts by method: those on disk, and the others made now."""
        kept = {} if self.parts is None else self._kept(self.parts)
        missing = [method for method in self.methods if method not in kept]
        if missing:
            with at_most(1 if self.device == "cpu" else torch.get_num_threads()):
                kept |= self._made(missing, tick)
        return kept

    def _kept(self, parts: Parts) -> dict[str, Any]:
        found = {method: parts.read(method, self.folds) for method in self.methods}
        return {m: {**part, "reused": True} for m, part in found.items() if part is not None}

    def _made(self, methods: list[str], tick: Callable[[], object]) -> dict[str, Any]:
        tests = _test_rows(self.table, self.config)
        share = self.config.validation_share if isinstance(self.config, Paper) else 0.0
        n_rows = len(self.table.targets)
        folds = [make_fold(i, tests[i], n_rows, share, self.config.seed) for i in self.folds]
        make = _paper_parts if isinstance(self.config, Paper) else _beyond_parts
        made = make(self, folds, methods, tick)
        signed = {method: {**part, **provenance()} for method, part in made.items()}
        if self.parts is None:
            return signed
        return {m: self.parts.write(m, self.folds, part) for m, part in signed.items()}


def _test_rows(table: UciTable, config: Config) -> list[Any]:
    if isinstance(config, Beyond) and config.splits == "canonical":
        return canonical_splits(table.name)
    return k_folds(len(table.targets), config.n_folds, config.seed)


def _foreign(table: UciTable, fold: Fold) -> Any:
    return foreign_inputs(table.name, len(fold.test), table.inputs.shape[1])


def _paper_parts(
    job: _Job, folds: list[Fold], methods: list[str], tick: Callable[[], object]
) -> dict[str, Any]:
    assert isinstance(job.config, Paper)
    table = job.table
    stack = FoldStack.of(table.inputs, table.targets, folds, job.device)
    outcomes = paper.solve(stack, job.config, methods, tick)
    strange = [torch.as_tensor(_foreign(table, fold), dtype=torch.float32) for fold in folds]
    parts: dict[str, Any] = {}
    for method, outcome in outcomes.items():
        records: list[dict[str, Any]] = []
        for place, fold in enumerate(folds):
            networks = outcome.networks[place]
            test = stack.inputs[stack.rows(place, fold.test)]
            unit = (stack.shift[place], stack.scale[place])
            scores = score(
                stack_belief(networks, test).affine(*unit),
                table.targets[fold.test],
                stack_belief(networks, strange[place]).affine(*unit),
            )
            records.append({"fold": fold.number, **scores, "chosen": outcome.chosen[place]})
        parts[method] = {"records": records, "seconds": outcome.seconds}
    return parts


def _beyond_parts(
    job: _Job, folds: list[Fold], methods: list[str], tick: Callable[[], object]
) -> dict[str, Any]:
    assert isinstance(job.config, Beyond)
    table, config = job.table, job.config
    parts: dict[str, Any] = {method: {"records": [], "seconds": 0.0} for method in methods}
    for fold in folds:
        fits = beyond.solve(table.inputs, table.targets, fold, config, methods, job.device, tick)
        spread = table.inputs[fold.train].std(0)
        centre = table.inputs[fold.train].mean(0)
        # Back to the table's units: the estimators standardise by themselves.
        foreign = centre + _foreign(table, fold) * spread
        for method, fitted in fits.items():
            belief = fitted.model.predict_belief
            scores = score(
                belief(table.inputs[fold.test]), table.targets[fold.test], belief(foreign)
            )
            cost = {
                "multiply_adds": beyond.multiply_adds(fitted.model),
                "latency_ms": round(beyond.latency(fitted.model), 4),
            }
            parts[method]["records"].append({"fold": fold.number, **scores, "cost": cost})
            parts[method]["seconds"] += fitted.seconds
    return parts


# -- side by side ---------------------------------------------------------------------------------


def _all_parts(jobs: list[_Job], workers: int, progress: Progress) -> list[dict[str, Any]]:
    total = sum(job.n_ticks() for job in jobs)
    if workers == 1 or len(jobs) == 1:
        count = 0

        def tick() -> None:
            nonlocal count
            count += 1
            progress(count / total)

        return [job.run(tick) for job in jobs]
    context = multiprocessing.get_context("spawn")  # forked torch threads may hang
    counter = context.Value("i", 0)
    with ProcessPoolExecutor(workers, context, _start_worker, (counter,)) as pool:
        futures = [pool.submit(_run_in_worker, job) for job in jobs]
        pending: set[Future[dict[str, Any]]] = set(futures)
        while pending:
            _, pending = wait(pending, timeout=0.5)
            progress(counter.value / total)
            failed = next((f for f in futures if f.done() and f.exception()), None)
            if failed is not None:
                pool.shutdown(cancel_futures=True)
                failed.result()
        return [future.result() for future in futures]


def _start_worker(counter: Any) -> None:
    global _counter
    _counter = counter


def _run_in_worker(job: _Job) -> dict[str, Any]:
    def tick() -> None:
        with _counter.get_lock():
            _counter.value += 1

    return job.run(tick)


_counter: Any = None


# -- summary --------------------------------------------------------------------------------------


def _summary(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One method over all folds."""
    records: list[dict[str, Any]] = [record for part in parts for record in part["records"]]

    def over_folds(kind: str, name: str) -> dict[str, Any] | None:
        values = [record[kind][name] for record in records]
        return None if any(value is None for value in values) else summary(values)

    found: dict[str, Any] = {name: summary([r[name] for r in records]) for name in SCORES}
    for kind in ("prr", "ood_auc"):
        found[kind] = {name: over_folds(kind, name) for name in MEASURES}
    curves = records[0]["rejection"]
    found["rejection"] = {
        name: np.mean([r["rejection"][name] for r in records], 0).round(5).tolist()
        for name in curves
    }
    if "chosen" in records[0]:
        found["chosen"] = [record["chosen"] for record in records]
    if "cost" in records[0]:
        found["cost"] = {
            "multiply_adds": records[0]["cost"]["multiply_adds"],
            "latency_ms": round(float(np.median([r["cost"]["latency_ms"] for r in records])), 4),
        }
    found["seconds"] = round(sum(part["seconds"] for part in parts), 1)
    return found
