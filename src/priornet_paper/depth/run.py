"""All methods and seeds of a data set: jobs in their plan, then one results file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from priornet.depth import DepthError
from priornet.evaluation import check_summaries, provenance_of
from priornet_paper.depth.config import METHODS, STUDENTS, Config, Variant
from priornet_paper.depth.data import Sets, same_digests
from priornet_paper.depth.protocol import PROTOCOLS
from priornet_paper.depth.score import over_seeds
from priornet_paper.depth.tasks import Event, Plan, Task, scores_of, together, with_needs
from priornet_paper.depth.work import Worker
from priornet_paper.runs.gpu_sharing import shared_gpu
from priornet_paper.runs.jobs import Job, Report, Watch, run_jobs
from priornet_paper.runs.store import merge_results, read_finished, write_merged

_GROUPS = ("methods", "variants")


def file_name(dataset: str, preset: str) -> str:
    """Return the name of a results file: that of the preset "fast" is the plain one."""
    return f"{dataset}.json" if preset == "fast" else f"{dataset}.{preset}.json"


def run(
    plan: Plan,
    variants: Sequence[Variant],
    preset: str,
    path: Path,
    *,
    workers: int = 1,
    report: Callable[[Event], object] = lambda _: None,
    again: bool = False,
) -> dict[str, Any] | None:
    """Run the depth experiment and write its results file.

    Finished work is not done again: an interrupted run goes on where it stopped, in the middle of
    a training too. The file keeps other methods, as far as new results would be the same.

    Args:
        plan: Settings, images, folder of finished parts, device.
        variants: Methods to train and score.
        preset: Name of the preset, for the record.
        path: The results file.
        workers: Processes that train side by side on the same device.
        report: Called with every epoch and every message.
        again: Run finished work again.

    Returns:
        The content of the results file; None if the time was up first; an empty dictionary in a
        process that only helped another one.
    """

    def message(text: str) -> None:
        report(Event("", message=text))

    # One of several machines may lack the file; they agree on the finished parts instead.
    if not again and plan.fabric.get("num_nodes", 1) == 1:
        try:
            kept = finished(path, plan, variants)
        except DepthError:  # about the images, not about the file
            raise
        except ValueError as error:
            message(f"{error} It is made again.")
            kept = None
        if kept is not None:
            message(f"{path}: finished already (--again to repeat it).")
            return kept
    results = train_and_score(plan, variants, preset, workers=workers, report=report, again=again)
    if not results:
        return results
    return write_merged(path, results, merged, message)


def train_and_score(
    plan: Plan,
    variants: Sequence[Variant],
    preset: str,
    *,
    workers: int = 1,
    report: Callable[[Event], object] = lambda _: None,
    again: bool = False,
) -> dict[str, Any] | None:
    """Train and score every variant with every seed: see :func:`run`, which also writes a file."""
    worker = Worker(plan, report)
    worker.sets.check(
        any(variant.method == "NWPN" for variant in variants),
        lambda text: report(Event("", message=text)),
        learnt=again,
    )
    if again:
        # Before processes that share batches wait for each other: no other one is at work yet.
        for task in with_needs(scores_of(variants)):
            worker.parts.forget(task)
    wanted = scores_of(variants)
    kept = worker.agreed(lambda: {task.key: worker.parts.finished(task) for task in wanted})
    # The trainings behind a finished score need not be done again, even if their weights are lost.
    tasks = with_needs([task for task in wanted if kept[task.key] is None])
    tasks = together(tasks, _n_groups(plan, workers))
    made = _do_all(worker, tasks, workers)
    if made is None:
        return None
    if plan.fabric and not worker.fabric.is_global_zero:
        return {}
    scores = {key: part for key, part in kept.items() if part is not None}
    scores |= {key: part for (kind, key), part in made.items() if kind == "score"}
    return _results(worker, variants, preset, scores)


def _n_groups(plan: Plan, workers: int) -> int:
    """Return the number of trainings for the students of a seed.

    A single one asks their teachers least often, but uses one processor where several could work;
    a GPU is busy with a few processes already (benchmarks/README.md).
    """
    return -(-workers // len(plan.config.seeds)) if plan.device == "cpu" else 1


Made = dict[tuple[str, str], dict[str, Any]]


def _do_all(worker: Worker, tasks: Sequence[Task], workers: int) -> Made | None:
    """Do all tasks; return their parts by kind and key, or None if the time was up first."""
    plan = worker.plan
    side_by_side = min(workers, len(tasks)) > 1
    parts: Made = {}
    unfinished: list[Task] = []

    def done(job: Job, part: dict[str, Any] | None) -> None:
        task = cast(_Work, job.work).task
        if part is None:
            unfinished.append(task)
        else:
            parts[task.kind, task.key] = part

    def stop() -> bool:
        is_late = plan.is_late if side_by_side else worker.fabric.broadcast(plan.is_late)
        return bool(unfinished) or is_late

    # A student's score waits for the training that the student is part of.
    part_of = {_name(one): _name(task) for task in tasks for one in task.each}
    own = None if side_by_side else worker
    jobs = [
        Job(_name(task), _Work(task, own), tuple(part_of[_name(n)] for n in task.needs))
        for task in tasks
    ]
    start = partial(_start_worker, plan) if side_by_side else None
    watch = Watch(lambda _, event: worker.report(event), done, start, stop)
    with shared_gpu(plan.device, workers if side_by_side else 1):
        run_jobs(jobs, workers, watch)
    return parts if len(parts) == len(tasks) else None


def _name(task: Task) -> str:
    return f"{task.kind} {task.key}"


@dataclass(frozen=True)
class _Work:
    """A task, done in a worker, or in that of the process that it is in."""

    task: Task
    worker: Worker | None = None

    def __call__(self, needed: Mapping[str, Any], report: Report) -> dict[str, Any] | None:
        worker = self.worker or _worker
        assert worker is not None
        if self.worker is None:
            worker.report = report
        return worker.do(self.task)


def _start_worker(plan: Plan) -> None:
    global _worker
    _worker = Worker(plan)


_worker: Worker | None = None


# -- results --------------------------------------------------------------------------------------


def finished(path: Path, plan: Plan, variants: Sequence[Variant]) -> dict[str, Any] | None:
    """Read results of these settings, images and variants; return None if there are none.

    Raises:
        ValueError: The file is there but is no results file.
    """

    def is_wanted(found: dict[str, Any]) -> bool:
        known = found["methods"].keys() | found["variants"].keys()
        check_summaries([found["methods"], found["variants"]])
        same = found.get("protocol") == _protocol(plan.config)
        same &= _are_settings(found["config"], plan.config)
        same &= {variant.name for variant in variants} <= known
        dict(found.get("digests", {}))
        return same

    found = read_finished(path, is_wanted)
    if found is None:  # images come last, for all of them are read
        return None
    wanted = Sets(plan.config, plan.sources).record()["digests"]
    return found if same_digests(found.get("digests", {}), wanted) else None


def _are_settings(content: dict[str, Any], config: Config) -> bool:
    """Check if a file's settings are these; settings of another version are not."""
    try:
        return Config.from_json(content) == config
    except ValueError:
        return False


def merged(path: Path, new: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Merge new results into an existing file: see :func:`merge_results`.

    A method is kept if the images, the seeds, and the settings that it depends on are the same.
    Students are kept with the ensemble that taught them, and dropped if it was trained anew.
    """

    def select(old: dict[str, Any]) -> dict[str, dict[str, Any]]:
        check_summaries([old[group] for group in _GROUPS])
        same = old.get("protocol") == new["protocol"]
        same = same and same_digests(old.get("digests", {}), new["digests"])
        return {
            group: {
                name: found
                for name, found in old[group].items()
                if same and name not in new[group] and _stays(name, found, old, new)
            }
            for group in _GROUPS
        }

    def totals(old: dict[str, Any], _: Any, groups: dict[str, Any]) -> dict[str, Any]:
        # No more digests than are known of all methods.
        return {"digests": old["digests"], "seconds": _total_seconds(groups)}

    return merge_results(path, new, select, lambda name: METHODS.index(_method(name)), totals)


def _stays(
    name: str, found: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
) -> bool:
    """Check if an old method's results are what the new settings would give."""
    method = _method(name)
    if method in STUDENTS and not _same_teachers(old["methods"], new["methods"]):
        return False
    changes = found.get("settings", {})  # in which a variant differs from the other methods
    try:
        was, wanted = (Config.from_json(run["config"] | changes) for run in (old, new))
    except ValueError:  # settings of another version
        return False
    return was.seeds == wanted.seeds and was.settings_of(method) == wanted.settings_of(method)


def _same_teachers(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Check if the ensemble is an old one, perhaps with new scores."""
    if "ENSM" not in new:
        return True
    return "ENSM" in old and old["ENSM"]["training"] == new["ENSM"]["training"]


def _method(name: str) -> str:
    """Return the method of a name in results."""
    return name if name in METHODS else name.partition("-")[0]


def _results(
    worker: Worker, variants: Sequence[Variant], preset: str, scores: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    config = worker.plan.config
    groups: dict[str, dict[str, Any]] = {"methods": {}, "variants": {}}
    for variant in variants:
        own = [scores[f"{variant.name}.{seed}"] for seed in variant.config.seeds]
        groups["variants" if variant.is_variant else "methods"][variant.name] = {
            **over_seeds([part["result"] for part in own]),
            "training": [part["training"] for part in own],
            "settings": _changes(variant, config),
            "seconds": round(sum(_seconds(part) for part in own), 1),
            "device": _devices_of(own),
            **provenance_of(own),
        }
    return {
        "dataset": config.dataset,
        "preset": preset,
        "config": config.to_json(),
        "protocol": _protocol(config),
        **worker.sets.sizes(),
        **worker.sets.record(),
        **groups,
        "seconds": _total_seconds(groups),
        "device": _devices_of(list(scores.values())),
        **provenance_of(list(scores.values())),
    }


def _protocol(config: Config) -> dict[str, Any]:
    return PROTOCOLS[config.dataset].record((config.height, config.width))


def _seconds(part: dict[str, Any]) -> float:
    """Add up the seconds of training and scoring."""
    return part["seconds"] + sum(training["seconds"] for training in part["training"])


def _total_seconds(groups: Mapping[str, Any]) -> float:
    """Add up the seconds of all methods; work that two of them share counts once."""
    methods = groups["methods"]
    total = sum(method["seconds"] for group in groups.values() for method in group.values())
    if {"Single", "ENSM"} <= methods.keys():  # Single is the ensemble's first member
        total -= sum(networks[0]["seconds"] for networks in methods["Single"]["training"])
    return round(total, 1)


def _devices_of(parts: Sequence[Mapping[str, Any]]) -> str:
    """Name the devices that parts were made on."""
    return ", ".join(sorted({part["device"] for part in parts}))


def _changes(variant: Variant, config: Any) -> dict[str, Any]:
    """Return the settings in which a variant differs."""
    own, base = variant.config.to_json(), config.to_json()
    return {name: value for name, value in own.items() if value != base[name]}
