"""Data sets from table to results JSON: their jobs side by side, then a summary of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from priornet.evaluation.results import provenance_of, read_results, summary
from priornet.evaluation.spread import MEASURES
from priornet.evaluation.summaries import check_scores
from priornet_paper.runs.gpu_sharing import shared_gpu
from priornet_paper.runs.scores import SCORES
from priornet_paper.runs.side_by_side import Piece, in_order
from priornet_paper.uci.config import METHODS, Beyond, Config
from priornet_paper.uci.data import UciTable
from priornet_paper.uci.jobs import Block, Made, n_splits
from priornet_paper.uci.parts import Parts

__all__ = ["Request", "file_name", "finished", "run", "run_all"]


class Request(NamedTuple):
    """One data set to run."""

    table: UciTable
    preset: str
    """Name of the preset, for the record."""
    config: Config
    methods: Sequence[str] = METHODS
    folder: Path | None = None
    """Keep finished parts here, and take those that are there; None to keep none."""


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
        asked = (_as_json(config), n_rows)
        has_all = set(methods) <= set(found["methods"])
        if (found["config"], found["n_rows"]) != asked or not has_all:
            return None
        for method in found["methods"].values():
            check_scores(method, SCORES, ("prr", "ood_auc"), _n_values(config))
        return found
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: not a results file ({type(error).__name__}: {error})."
        ) from error


def _n_values(config: Config) -> int | None:
    """Folds that every score must have; None where the table decides."""
    if config.folds is not None:
        return len(config.folds)
    return None if getattr(config, "splits", "folds") == "canonical" else config.n_folds


def run(
    table: UciTable,
    preset: str,
    config: Config,
    *,
    methods: Sequence[str] = METHODS,
    folder: Path | None = None,
    device: str = "cpu",
    workers: int = 1,
    progress: Callable[[float], object] = lambda _: None,
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
        progress: Told the share of the work that is done.

    Returns:
        The results, ready for JSON.
    """
    request = Request(table, preset, config, methods, folder)
    return run_all(
        [request], device=device, workers=workers, progress=lambda _, share: progress(share)
    )[0]


def run_all(
    requests: Sequence[Request],
    *,
    device: str = "cpu",
    workers: int = 1,
    progress: Callable[[Request, float], object] = lambda _request, _share: None,
    done: Callable[[Request, dict[str, Any]], object] = lambda _request, _results: None,
) -> list[dict[str, Any]]:
    """Run the UCI experiment on several data sets, the largest first.

    What does not wait for something else runs side by side, whichever data set it is of.

    Args:
        requests: The data sets.
        device: Where to train.
        workers: Processes, each on one core; on a GPU they share it.
        progress: Told the share of a data set's work that is done.
        done: Given a data set's results as soon as they are there.

    Returns:
        The results in the order of the requests, ready for JSON.

    Raises:
        ChildProcessError: A process was killed.
    """
    # Pieces that a GPU gets from several processes are large: their threads share the cores.
    n_threads = 1 if device == "cpu" else max(1, torch.get_num_threads() // workers)
    runs = [_Run(request, device, n_threads, group) for group, request in enumerate(requests)]
    results: list[dict[str, Any]] = [{} for _ in runs]

    def close(run: _Run) -> None:
        others = [other.request.table.name for other in runs if other is not run and other.pieces]
        beside = others if run.pieces and workers > 1 else []
        results[run.group] = run.results(workers, beside)
        done(run.request, results[run.group])

    def look(counts: Sequence[int]) -> None:
        for run in runs:
            if run.n_ticks:
                progress(run.request, min(1.0, counts[run.group] / run.n_ticks))

    def take(piece: Piece, made: Made) -> None:
        run = runs[piece.group]
        run.made[piece.name] = made
        if len(run.made) == len(run.pieces):
            close(run)

    for run in runs:
        if not run.pieces:
            close(run)
    largest = sorted(runs, key=lambda run: -len(run.request.table.targets))
    pieces = [piece for run in largest for piece in run.pieces]
    with shared_gpu(device, min(workers, len(pieces))):
        in_order(pieces, workers, progress=look, done=take)
    return results


class _Run:
    """One data set: what is on disk, what is to do, and what became of it."""

    def __init__(self, request: Request, device: str, n_threads: int, group: int) -> None:
        self.request, self.device, self.group = request, device, group
        table, config = request.table, request.config
        numbers = range(n_splits(table, config)) if config.folds is None else config.folds
        step = config.folds_per_stack
        parts = None
        if request.folder is not None:
            parts = Parts(request.folder, config, len(table.targets))
        self.kept: list[dict[str, Any]] = []
        self.pieces: list[Piece] = []
        self.made: dict[str, Made] = {}
        self.n_ticks = 0
        self._blocks: list[list[Piece]] = []
        for i in range(0, len(numbers), step):
            folds = tuple(numbers[i : i + step])
            block = Block(table, config, folds, parts, device, n_threads)
            kept = block.kept(request.methods)
            missing = [method for method in request.methods if method not in kept]
            self.kept.append(kept)
            self._blocks.append(block.pieces(missing, group))
            self.n_ticks += block.n_ticks(missing)
        self.pieces = [piece for block in self._blocks for piece in block]

    def results(self, workers: int, beside: Sequence[str]) -> dict[str, Any]:
        """Ready for JSON."""
        table, config, methods = self.request.table, self.request.config, self.request.methods
        device = torch.cuda.get_device_name() if self.device == "cuda" else self.device
        done = [
            kept | {m: part for p in block for m, part in self.made[p.name].parts.items()}
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
        """From the first job to the end of the last; work of an interrupted run counts as well."""
        earlier = sum(part["seconds"] for kept in self.kept for part in kept.values())
        made = self.made.values()
        now = max(m.ended for m in made) - min(m.began for m in made) if made else 0.0
        return now + earlier / workers


def _as_json(config: Config) -> dict[str, Any]:
    """The settings as they come back from a file."""
    return json.loads(json.dumps(config.to_json()))


# -- summary --------------------------------------------------------------------------------------


def _summary(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One method over all folds, signed by the versions and commits that ran it."""
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
