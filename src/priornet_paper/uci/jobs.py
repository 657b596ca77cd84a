"""Runs of tables as jobs: methods are trained and scored on a few folds, then put together.

The single network and the ensemble are one job, since they share a search. Prior networks and
evidential networks are jobs of their own; so is each student, which waits for its teachers.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from priornet.evaluation import MEASURES, provenance, provenance_of, summary
from priornet.methods import STUDENTS
from priornet.nn import stack_belief
from priornet.training import at_most
from priornet_paper.runs.gpu_sharing import shared_gpu
from priornet_paper.runs.jobs import Job, Report, Watch, run_jobs
from priornet_paper.runs.scores import SCORES, score
from priornet_paper.runs.store import Store, fingerprint
from priornet_paper.uci import defaults, train
from priornet_paper.uci.config import LIKELIHOOD, METHODS, Config, Defaults, Paper, own_settings
from priornet_paper.uci.data import UciTable, canonical_splits, ood_inputs
from priornet_paper.uci.folds import Fold, FoldStack, k_folds, make_fold


class Request(NamedTuple):
    """The run of one table."""

    table: UciTable
    preset: str
    """Name of the preset, for the record."""
    config: Config
    methods: Sequence[str] = METHODS
    folder: Path | None = None
    """Folder of finished parts; None to keep none."""


def run_tables(
    requests: Sequence[Request],
    *,
    device: str = "cpu",
    workers: int = 1,
    progress: Callable[[Request, float], object] = lambda _request, _share: None,
    done: Callable[[Request, dict[str, Any]], object] = lambda _request, _results: None,
) -> list[dict[str, Any]]:
    """Run several tables side by side, the largest first; return results in the requests' order.

    Args:
        requests: The tables.
        device: Device of the training.
        workers: Processes, each on one core; on a GPU they share it.
        progress: Called with the share of a table's work that is done.
        done: Called with a table's results as soon as they are there.
    """
    runs = [_TableRun(request, device, workers) for request in requests]
    run_of = {job.name: run for run in runs for job in run.jobs}

    def close(run: _TableRun) -> None:
        busy = [other for other in runs if other.jobs] if run.jobs and workers > 1 else []
        run.content = run.results(workers, [o.request.table.name for o in busy if o is not run])
        done(run.request, run.content)

    def take(job: Job, made: Made) -> None:
        run = run_of[job.name]
        run.made[job.name] = made
        if len(run.made) == len(run.jobs):
            close(run)

    for run in runs:
        if not run.jobs:
            close(run)
    runs_by_size = sorted(runs, key=lambda run: -len(run.request.table.targets))
    jobs = [job for run in runs_by_size for job in run.jobs]
    watch = Watch(event=lambda job, _: progress(*run_of[job.name].step()), done=take)
    with shared_gpu(device, min(workers, len(jobs))):
        run_jobs(jobs, workers, watch)
    return [run.content for run in runs]


class _TableRun:
    """One table: its finished parts, its jobs, and their results."""

    def __init__(self, request: Request, device: str, workers: int) -> None:
        self.request, self.device = request, device
        # On a GPU the threads of the processes share the cores.
        n_threads = 1 if device == "cpu" else max(1, torch.get_num_threads() // workers)
        table, config = request.table, request.config
        numbers = range(len(_test_rows(table, config))) if config.folds is None else config.folds
        self.kept: list[dict[str, Any]] = []
        self.made: dict[str, Made] = {}
        self.content: dict[str, Any] = {}
        self.n_steps = self.n_done = 0
        self._blocks: list[list[Job]] = []
        for i in range(0, len(numbers), config.folds_per_stack):
            folds = tuple(numbers[i : i + config.folds_per_stack])
            block = Block(table, config, folds, Store(request.folder), device, n_threads)
            parts = {method: block.read(method) for method in request.methods}
            missing = [method for method, part in parts.items() if part is None]
            self.kept.append({method: part for method, part in parts.items() if part is not None})
            self._blocks.append(block.jobs(missing))
            self.n_steps += block.n_steps(missing)
        self.jobs = [job for block in self._blocks for job in block]

    def step(self) -> tuple[Request, float]:
        """Count an event of a job; return the share of the work that is done."""
        self.n_done += 1
        return self.request, min(1.0, self.n_done / self.n_steps)

    def results(self, workers: int, beside: Sequence[str]) -> dict[str, Any]:
        """Put the results together, ready for JSON."""
        table, config, made = self.request.table, self.request.config, self.made.values()
        device = torch.cuda.get_device_name() if self.device == "cuda" else self.device
        done = [
            kept | {m: part for job in block for m, part in self.made[job.name].parts.items()}
            for kept, block in zip(self.kept, self._blocks, strict=True)
        ]
        # From the first job to the last, and the time of an interrupted run.
        earlier = sum(part["seconds"] for kept in self.kept for part in kept.values())
        now = max(m.ended for m in made) - min(m.began for m in made) if made else 0.0
        return {
            "dataset": table.name,
            "preset": self.request.preset,
            "complete": table.is_complete,
            "n_rows": len(table.targets),
            "n_features": table.inputs.shape[1],
            "config": config.to_json(),
            "methods": {
                method: {**summarise([part[method] for part in done]), "device": device}
                for method in self.request.methods
            },
            "workers": workers,
            "beside": list(beside),
            "seconds": round(now + earlier / workers, 1),
            "device": device,
            **provenance_of([part for parts in done for part in parts.values()]),
        }


def summarise(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Summarise one method over the folds of all its parts, with their provenance."""
    records: list[dict[str, Any]] = [record for part in parts for record in part["records"]]

    def over_folds(kind: str, name: str) -> dict[str, Any] | None:
        values = [record[kind][name] for record in records]
        return None if any(value is None for value in values) else summary(values)

    found: dict[str, Any] = {name: summary([r[name] for r in records]) for name in SCORES}
    for kind in ("prr", "ood_auc"):
        found[kind] = {name: over_folds(kind, name) for name in MEASURES}
    found["rejection"] = {
        name: np.mean([r["rejection"][name] for r in records], 0).round(5).tolist()
        for name in records[0]["rejection"]
    }
    if "chosen" in records[0]:
        found["chosen"] = [record["chosen"] for record in records]
    if "cost" in records[0]:
        found["cost"] = {
            "multiply_adds": records[0]["cost"]["multiply_adds"],
            "latency_ms": round(float(np.median([r["cost"]["latency_ms"] for r in records])), 4),
        }
    found["seconds"] = round(sum(part["seconds"] for part in parts), 1)
    return found | provenance_of(parts)


# -- a few folds ----------------------------------------------------------------------------------


class Made(NamedTuple):
    """The result of a job."""

    parts: dict[str, Any]
    """By method: its records of every fold, and its provenance."""
    teachers: train.Teachers | None
    began: float
    ended: float


@dataclass(frozen=True)
class Block:
    """A few folds of one table, and where to work."""

    table: UciTable
    config: Config
    folds: tuple[int, ...]
    store: Store
    device: str = "cpu"
    n_threads: int = 1

    def name_of(self, method: str) -> str:
        """Return the file name of a method's part."""
        return f"{method}.{'-'.join(map(str, self.folds))}.json"

    def fingerprint(self, method: str) -> str:
        """Return the fingerprint of everything that a method's numbers depend on."""
        own = own_settings(self.config.to_json(), method) | {"folds": None}
        return fingerprint([own, len(self.table.targets)])

    def read(self, method: str) -> dict[str, Any] | None:
        """Read a finished part, or return None if it has to be made."""
        name = self.name_of(method)
        return self.store.read(name, lambda: self.fingerprint(method), self._is_whole)

    def write(self, method: str, part: dict[str, Any]) -> dict[str, Any]:
        """Keep a finished part."""
        return self.store.write(self.name_of(method), self.fingerprint(method), part)

    def _is_whole(self, part: Mapping[str, Any]) -> bool:
        records = part.get("records")
        if not isinstance(records, list) or len(records) != len(self.folds):
            return False
        return all(
            isinstance(record, dict)
            and record.get("fold") == fold
            and all(isinstance(record.get(name), float) for name in SCORES)
            for record, fold in zip(records, self.folds, strict=True)
        )

    def n_steps(self, methods: Sequence[str]) -> int:
        """Count the events that the jobs of some methods report."""
        if isinstance(self.config, Paper):
            return train.n_epochs(self.config, methods)
        return len(methods) * len(self.folds)

    def jobs(self, methods: Sequence[str]) -> list[Job]:
        """List the jobs of some methods, each after those that it needs."""
        where = f"{self.table.name}, folds {', '.join(map(str, self.folds))}"
        if not methods:
            return []
        if not isinstance(self.config, Paper):
            return [Job(f"{where}: {', '.join(methods)}", _Work(self, tuple(methods)))]
        gaussian = [m for m in methods if m in LIKELIHOOD]
        students = [m for m in methods if m in STUDENTS]
        first = f"{where}: {', '.join(gaussian) or 'teachers'}"
        found: list[Job] = []
        if gaussian or students:
            found.append(Job(first, _Work(self, (*gaussian, *students), are_gaussian=True)))
        for method in methods:
            if method not in gaussian:
                needs = (first,) if method in students else ()
                found.append(Job(f"{where}: {method}", _Work(self, (method,)), needs))
        return found

    def splits(self) -> list[Fold]:
        """Return the rows of every fold."""
        tests = _test_rows(self.table, self.config)
        share = self.config.validation_share if isinstance(self.config, Paper) else 0.0
        n_rows = len(self.table.targets)
        return [make_fold(i, tests[i], n_rows, share, self.config.seed) for i in self.folds]


def _test_rows(table: UciTable, config: Config) -> list[Any]:
    if config.is_canonical:
        return canonical_splits(table.name)
    return k_folds(len(table.targets), config.n_folds, config.seed)


@dataclass(frozen=True)
class _Work:
    block: Block
    methods: tuple[str, ...]
    are_gaussian: bool = False
    """The single network, the ensemble, and teachers for the students among the methods."""

    def __call__(self, needed: Mapping[str, Made], report: Report) -> Made:
        began = time.time()
        teachers = next((made.teachers for made in needed.values()), None)

        def tick() -> None:
            report(None)

        with at_most(self.block.n_threads):
            if isinstance(self.block.config, Paper):
                parts, teachers = self._by_protocol(self.block.config, teachers, tick)
            else:
                parts = self._by_estimators(self.block.config, tick)
        signed = {m: self.block.write(m, {**part, **provenance()}) for m, part in parts.items()}
        return Made(signed, teachers, began, time.time())

    def _by_protocol(
        self, config: Paper, teachers: train.Teachers | None, tick: Callable[[], object]
    ) -> tuple[dict[str, Any], train.Teachers | None]:
        """Train as the paper does; return the parts, and the teachers that students need."""
        table, folds = self.block.table, self.block.splits()
        stack = FoldStack.of(table.inputs, table.targets, folds, self.block.device)
        trained = None
        if self.are_gaussian:
            outcomes, trained = train.solve_gaussians(stack, config, self.methods, tick)
        else:
            outcomes = train.solve(stack, config, self.methods, tick, teachers)
        parts: dict[str, Any] = {
            method: {"records": [], "seconds": outcome.seconds}
            for method, outcome in outcomes.items()
        }
        ood = _ood_inputs_of(table)
        for place, fold in enumerate(folds):
            test = stack.inputs[stack.rows(place, fold.test)]
            outside = torch.as_tensor(ood(len(fold.test)), dtype=torch.float32)
            unit = (stack.shift[place], stack.scale[place])
            for method, outcome in outcomes.items():
                inside, out = (
                    stack_belief(outcome.networks[place], x).affine(*unit) for x in (test, outside)
                )
                scores = score(inside, table.targets[fold.test], out)
                record = {"fold": fold.number, **scores, "chosen": outcome.chosen[place]}
                parts[method]["records"].append(record)
        return parts, trained

    def _by_estimators(self, config: Defaults, tick: Callable[[], object]) -> dict[str, Any]:
        """Fit the estimators with their own defaults; return the parts."""
        table, ood = self.block.table, _ood_inputs_of(self.block.table)
        parts: dict[str, Any] = {m: {"records": [], "seconds": 0.0} for m in self.methods}
        for fold in self.block.splits():
            fits = defaults.fit_methods(
                table.inputs, table.targets, fold, config, self.methods, self.block.device, tick
            )
            # Back to the table's units: the estimators standardise by themselves.
            X = table.inputs[fold.train]
            outside = X.mean(0) + ood(len(fold.test)) * X.std(0)
            waits = defaults.latencies({method: fitted.model for method, fitted in fits.items()})
            for method, fitted in fits.items():
                belief = fitted.model.predict_belief
                scores = score(
                    belief(table.inputs[fold.test]), table.targets[fold.test], belief(outside)
                )
                cost = {
                    "multiply_adds": defaults.multiply_adds(fitted.model),
                    "latency_ms": round(waits[method], 4),
                }
                parts[method]["records"].append({"fold": fold.number, **scores, "cost": cost})
                parts[method]["seconds"] += fitted.seconds
        return parts


def _ood_inputs_of(table: UciTable) -> Callable[[int], NDArray[Any]]:
    """Return a function that gives so many out-of-domain inputs; folds of one size share them."""
    return functools.cache(lambda n: ood_inputs(table.name, n, table.inputs.shape[1]))
