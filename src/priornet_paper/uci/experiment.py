"""The UCI experiment from tables to results files: jobs side by side, then a summary per table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from priornet.evaluation import MEASURES, check_scores, provenance_of, signature_of, summary
from priornet_paper.runs.gpu_sharing import default_workers, shared_gpu
from priornet_paper.runs.jobs import Job, Watch, run_jobs
from priornet_paper.runs.progress import Bars, progress_bars
from priornet_paper.runs.scores import SCORES
from priornet_paper.runs.store import Store, merge_results, read_finished, write_merged
from priornet_paper.uci.config import (
    METHODS,
    STUDENTS,
    Config,
    config_for,
    default_methods,
    own_settings,
)
from priornet_paper.uci.data import UciTable, load_uci
from priornet_paper.uci.jobs import Block, Made, n_splits

_SAME = ("dataset", "preset", "complete", "n_rows", "n_features", "device", "versions")
_TOGETHER = ("ENSM", *STUDENTS)  # a student is compared with the ensemble that taught it


@dataclass(frozen=True)
class Experiment:
    """Tables, settings and methods to run, and the folder of the results files.

    Example:
        >>> Experiment(["wine"], "beyond").path("wine").name
        'wine.beyond.json'
    """

    datasets: Sequence[str]
    """Names as in :data:`priornet_paper.uci.data.DATASETS`."""
    preset: str = "paper"
    """One of :data:`PRESETS`."""
    methods: Sequence[str] = ()
    """Some of :data:`METHODS`; none for those that the preset is about."""
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings that differ from the preset's, by name."""
    out: Path = Path("results/uci")
    """Folder of the results files; finished parts are kept in ``.parts`` in it."""

    def config(self, dataset: str) -> Config:
        """Return the settings of one table."""
        return replace(config_for(dataset, self.preset), **self.changes)

    def path(self, dataset: str) -> Path:
        """Return the results file of one table."""
        return self.out / file_name(dataset, self.preset, self.config(dataset))

    def request(self, table: UciTable) -> Request:
        """Return the run of one table."""
        config, path = self.config(table.name), self.path(table.name)
        methods = self.methods or default_methods(config)
        return Request(table, self.preset, config, methods, self.out / ".parts" / path.stem)


class Request(NamedTuple):
    """The run of one table."""

    table: UciTable
    preset: str
    """Name of the preset, for the record."""
    config: Config
    methods: Sequence[str] = METHODS
    folder: Path | None = None
    """Folder of finished parts; None to keep none."""


def file_name(dataset: str, preset: str, config: Config) -> str:
    """Return the name of a results file: that of the paper's preset is the plain one."""
    if getattr(config, "splits", "folds") == "canonical":
        return f"{dataset}.splits.json"
    return f"{dataset}.json" if preset == "paper" else f"{dataset}.{preset}.json"


def run(
    experiment: Experiment,
    *,
    device: str = "cpu",
    workers: int = 0,
    again: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Run the UCI experiment and write a results file for each table.

    Finished work is not done again: an interrupted run goes on where it stopped. A results file
    keeps other methods of the same settings, but students only with their ensemble.

    Args:
        experiment: Tables, settings, methods and folder.
        device: ``"cpu"`` or ``"cuda"``.
        workers: Processes side by side; 0 for a number that suits the machine.
        again: Run finished methods again.
        quiet: Show no progress bars; messages are printed to standard error all the same.

    Returns:
        The content of the results files, by table.
    """
    found: dict[str, Any] = {}
    wanted = [experiment.request(load_uci(name)) for name in experiment.datasets]
    with progress_bars(quiet=quiet) as bars:
        requests = list[Request]()
        for request in wanted:
            name = request.table.name
            kept = _on_disk(experiment.path(name), request, again, bars)
            if kept is None:
                requests.append(request)
                bars.update(name, 0.0)
            else:
                found[name] = kept

        def done(request: Request, results: dict[str, Any]) -> None:
            name = request.table.name
            found[name] = write_merged(experiment.path(name), results, merged, bars.message)
            Store(request.folder).clear()
            bars.update(name, 1.0)

        run_tables(
            requests,
            device=device,
            workers=workers or default_workers(device),
            progress=lambda request, share: bars.update(request.table.name, share),
            done=done,
        )
    return {name: found[name] for name in experiment.datasets}


def _on_disk(path: Path, request: Request, again: bool, bars: Bars) -> dict[str, Any] | None:
    """Read a results file that is the wanted one, or return None if it has to be made."""
    table = request.table
    if not table.is_complete:
        bars.message(f"{table.name}: only its first {len(table.targets)} rows are here.")
    if again:
        return None
    try:
        results = finished(path, request.config, request.methods, len(table.targets))
    except ValueError as error:
        bars.message(f"{error} It is made again.")
        return None
    if results is not None:
        bars.message(f"{path}: finished already (--again to repeat it).")
    return results


def finished(
    path: Path, config: Config, methods: Sequence[str], n_rows: int
) -> dict[str, Any] | None:
    """Read results of these settings, methods and rows; return None if there are none.

    Raises:
        ValueError: The file is there but is no results file.
    """

    def is_wanted(found: dict[str, Any]) -> bool:
        if (found["config"], found["n_rows"]) != (_as_json(config), n_rows):
            return False
        if not set(methods) <= set(found["methods"]):
            return False
        for method in found["methods"].values():
            check_scores(method, SCORES, ("prr", "ood_auc"), _n_values(config))
        return True

    return read_finished(path, is_wanted)


def _n_values(config: Config) -> int | None:
    """Count the folds that every score must have; None if the table decides."""
    if config.folds is not None:
        return len(config.folds)
    return None if getattr(config, "splits", "folds") == "canonical" else config.n_folds


def merged(path: Path, new: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Merge new results into an existing file: see :func:`merge_results`.

    Damaged methods are dropped, methods of other settings too, and students and ensembles of
    which others are new.
    """
    retrained = any(name in new["methods"] for name in _TOGETHER)

    def select(old: dict[str, Any]) -> dict[str, dict[str, Any]]:
        kept = {
            name: {**scores, **signature_of(old, scores)}
            for name, scores in old["methods"].items()
            if _is_sound(scores)
            and name not in new["methods"]
            and not (retrained and name in _TOGETHER)
            and own_settings(old["config"], name) == own_settings(new["config"], name)
        }
        is_same = not kept or all(old[name] == new[name] for name in _SAME)
        return {"methods": kept if is_same else {}}

    def totals(old: dict[str, Any], kept: Any, _: Any) -> dict[str, Any]:
        earlier = sum(scores["seconds"] for scores in kept["methods"].values()) / old["workers"]
        return {"seconds": round(new["seconds"] + earlier, 1)}

    return merge_results(path, new, select, METHODS.index, totals)


def _is_sound(scores: Any) -> bool:
    try:
        check_scores(scores, SCORES)
    except ValueError:
        return False
    return True


def run_tables(
    requests: Sequence[Request],
    *,
    device: str = "cpu",
    workers: int = 1,
    progress: Callable[[Request, float], object] = lambda _request, _share: None,
    done: Callable[[Request, dict[str, Any]], object] = lambda _request, _results: None,
) -> list[dict[str, Any]]:
    """Run the UCI experiment on several tables side by side, the largest first.

    Args:
        requests: The tables.
        device: Device of the training.
        workers: Processes, each on one core; on a GPU they share it.
        progress: Called with the share of a table's work that is done.
        done: Called with a table's results as soon as they are there.

    Returns:
        The results in the order of the requests, ready for JSON.

    Raises:
        ChildProcessError: A process was killed.
    """
    # On a GPU the threads of the processes share the cores.
    n_threads = 1 if device == "cpu" else max(1, torch.get_num_threads() // workers)
    runs = [_TableRun(request, device, n_threads) for request in requests]
    run_of = {job.name: run for run in runs for job in run.jobs}
    results: dict[int, dict[str, Any]] = {}

    def close(run: _TableRun) -> None:
        others = [other.request.table.name for other in runs if other is not run and other.jobs]
        beside = others if run.jobs and workers > 1 else []
        results[id(run)] = run.results(workers, beside)
        done(run.request, results[id(run)])

    def step(job: Job, _: None) -> None:
        run = run_of[job.name]
        run.n_done += 1
        progress(run.request, min(1.0, run.n_done / run.n_steps))

    def take(job: Job, made: Made) -> None:
        run = run_of[job.name]
        run.made[job.name] = made
        if len(run.made) == len(run.jobs):
            close(run)

    for run in runs:
        if not run.jobs:
            close(run)
    largest = sorted(runs, key=lambda run: -len(run.request.table.targets))
    jobs = [job for run in largest for job in run.jobs]
    with shared_gpu(device, min(workers, len(jobs))):
        run_jobs(jobs, workers, Watch(event=step, done=take))
    return [results[id(run)] for run in runs]


class _TableRun:
    """One table: its finished parts, its jobs, and their results."""

    def __init__(self, request: Request, device: str, n_threads: int) -> None:
        self.request, self.device = request, device
        table, config = request.table, request.config
        numbers = range(n_splits(table, config)) if config.folds is None else config.folds
        store = Store(request.folder)
        self.kept: list[dict[str, Any]] = []
        self.made: dict[str, Made] = {}
        self.n_steps = self.n_done = 0
        self._blocks: list[list[Job]] = []
        for i in range(0, len(numbers), config.folds_per_stack):
            folds = tuple(numbers[i : i + config.folds_per_stack])
            block = Block(table, config, folds, store, device, n_threads)
            parts = {method: block.read(method) for method in request.methods}
            missing = [method for method, part in parts.items() if part is None]
            self.kept.append({method: part for method, part in parts.items() if part is not None})
            self._blocks.append(block.jobs(missing))
            self.n_steps += block.n_steps(missing)
        self.jobs = [job for block in self._blocks for job in block]

    def results(self, workers: int, beside: Sequence[str]) -> dict[str, Any]:
        """Put the results together, ready for JSON."""
        table, config, methods = self.request.table, self.request.config, self.request.methods
        device = torch.cuda.get_device_name() if self.device == "cuda" else self.device
        done = [
            kept | {m: part for job in block for m, part in self.made[job.name].parts.items()}
            for kept, block in zip(self.kept, self._blocks, strict=True)
        ]
        return {
            "dataset": table.name,
            "preset": self.request.preset,
            "complete": table.is_complete,
            "n_rows": len(table.targets),
            "n_features": table.inputs.shape[1],
            "config": _as_json(config),
            "methods": {
                method: {**_summary([part[method] for part in done]), "device": device}
                for method in methods
            },
            "workers": workers,
            "beside": list(beside),
            "seconds": round(self._seconds(workers), 1),
            "device": device,
            **provenance_of([part for parts in done for part in parts.values()]),
        }

    def _seconds(self, workers: int) -> float:
        """Return the time from the first job to the last, and that of an interrupted run."""
        earlier = sum(part["seconds"] for kept in self.kept for part in kept.values())
        made = self.made.values()
        now = max(m.ended for m in made) - min(m.began for m in made) if made else 0.0
        return now + earlier / workers


def _as_json(config: Config) -> dict[str, Any]:
    """Return the settings as they come back from a file."""
    return json.loads(json.dumps(config.to_json()))


def _summary(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Summarise one method over all folds, with the provenance of its parts."""
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
    return found | provenance_of(parts)
