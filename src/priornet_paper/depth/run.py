"""All methods and seeds of a data set: tasks in their order, then one results file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

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

    An interrupted run resumes where it stopped, also in the middle of a training. The file keeps
    other methods, as far as new results would be the same.

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

    kept = None if again else _read_kept(path, plan, variants, message)
    if kept is not None:
        message(f"{path}: finished already (--again to repeat it).")
        return kept
    results = train_and_score(plan, variants, preset, workers=workers, report=report, again=again)
    return write_merged(path, results, merged, message) if results else results


def _read_kept(
    path: Path, plan: Plan, variants: Sequence[Variant], message: Callable[[str], object]
) -> dict[str, Any] | None:
    """Read finished results; several machines agree on the parts instead, for one may lack it."""
    if plan.fabric.get("num_nodes", 1) > 1:
        return None
    try:
        return finished(path, plan, variants)
    except DepthError:  # about the images, not about the file
        raise
    except ValueError as error:
        message(f"{error} It is made again.")
        return None


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
        any(variant.method == "NWPN" for variant in variants), worker.message, trained=again
    )
    wanted = scores_of(variants)
    if again:
        # Before processes that share batches wait for each other: no other one is at work yet.
        for task in with_needs(wanted):
            worker.parts.forget(task)
    kept = worker.agreed(lambda: {task.key: worker.parts.finished(task) for task in wanted})
    scores = {key: part for key, part in kept.items() if part is not None}
    # The trainings behind a finished score need not be done again, even if their weights are lost.
    tasks = with_needs([task for task in wanted if task.key not in scores])
    made = _do_all(worker, together(tasks, _n_groups(plan, workers)), workers)
    if made is None:
        return None
    if plan.fabric and not worker.fabric.is_global_zero:
        return {}
    return _results(worker, variants, preset, scores | made)


def _n_groups(plan: Plan, workers: int) -> int:
    """Return the number of trainings for the students of a seed.

    A single one asks their teachers least often, but uses one processor where several could work;
    a GPU is busy with a few processes already (benchmarks/README.md).
    """
    return -(-workers // len(plan.config.seeds)) if plan.device == "cpu" else 1


# -- tasks in processes ---------------------------------------------------------------------------

Part = dict[str, Any]


def _do_all(worker: Worker, tasks: Sequence[Task], workers: int) -> dict[str, Part] | None:
    """Do all tasks; return the scores by key, or None if the time was up first."""
    plan, report = worker.plan, worker.report
    side_by_side = min(workers, len(tasks)) > 1
    by_name = {_name(task): task for task in tasks}
    parts: dict[str, Part | None] = {}

    def done(job: Job, part: Part | None) -> None:
        parts[job.name] = part

    def stop() -> bool:
        is_late = plan.is_late if side_by_side else worker.fabric.broadcast(plan.is_late)
        return is_late or None in parts.values()

    # A student's score waits for the training that the student is part of.
    part_of = {_name(one): name for name, task in by_name.items() for one in task.each}
    own = None if side_by_side else worker
    jobs = [
        Job(name, partial(_do, own, task), tuple(part_of[_name(n)] for n in task.needs))
        for name, task in by_name.items()
    ]
    start = partial(_start_worker, plan) if side_by_side else None
    with shared_gpu(plan.device, workers if side_by_side else 1):
        run_jobs(jobs, workers, Watch(lambda _, event: report(event), done, start, stop))
    made = {name: part for name, part in parts.items() if part is not None}
    if len(made) < len(jobs):
        return None
    return {by_name[n].key: part for n, part in made.items() if by_name[n].kind == "score"}


def _name(task: Task) -> str:
    return f"{task.kind} {task.key}"


_worker: Worker | None = None
"""The worker of a process that was started for jobs."""


def _start_worker(plan: Plan) -> None:
    global _worker
    _worker = Worker(plan)


def _do(own: Worker | None, task: Task, needed: Mapping[str, Any], report: Report) -> Part | None:
    """Do a task with a worker of this process; its parts lie on disk, not in ``needed``."""
    worker = own or _worker
    assert worker is not None
    worker.report = report
    return worker.do(task)


# -- results --------------------------------------------------------------------------------------


def finished(path: Path, plan: Plan, variants: Sequence[Variant]) -> dict[str, Any] | None:
    """Read results of these settings, images and variants; return None if there are none."""

    def is_wanted(found: dict[str, Any]) -> bool:
        check_summaries([found[group] for group in _GROUPS])
        known = found["methods"].keys() | found["variants"].keys()
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
    method, ensemble = _method(name), new["methods"].get("ENSM")
    if method in STUDENTS and ensemble is not None:
        known = old["methods"].get("ENSM")  # perhaps with other scores
        if known is None or known["training"] != ensemble["training"]:
            return False
    changes = found.get("settings", {})  # in which a variant differs from the other methods
    try:
        was, wanted = (Config.from_json(one["config"] | changes) for one in (old, new))
    except ValueError:  # settings of another version
        return False
    return was.seeds == wanted.seeds and was.settings_of(method) == wanted.settings_of(method)


def _method(name: str) -> str:
    """Return the method of a name in results."""
    return name if name in METHODS else name.partition("-")[0]


def _results(
    worker: Worker, variants: Sequence[Variant], preset: str, scores: Mapping[str, Part]
) -> dict[str, Any]:
    config = worker.plan.config
    base = config.to_json()
    groups: dict[str, dict[str, Any]] = {group: {} for group in _GROUPS}
    for variant in variants:
        own = [scores[f"{variant.name}.{seed}"] for seed in variant.config.seeds]
        training = [part["training"] for part in own]
        seconds = sum(part["seconds"] for part in own)
        seconds += sum(network["seconds"] for networks in training for network in networks)
        settings = variant.config.to_json()
        groups["methods" if variant.is_default else "variants"][variant.name] = {
            **over_seeds([part["result"] for part in own]),
            "training": training,
            "settings": {name: value for name, value in settings.items() if value != base[name]},
            "seconds": round(seconds, 1),
            **_signature(own),
        }
    return {
        "dataset": config.dataset,
        "preset": preset,
        "config": base,
        "protocol": _protocol(config),
        **worker.sets.sizes(),
        **worker.sets.record(),
        **groups,
        "seconds": _total_seconds(groups),
        **_signature(list(scores.values())),
    }


def _protocol(config: Config) -> dict[str, Any]:
    return PROTOCOLS[config.dataset].record((config.height, config.width))


def _total_seconds(groups: Mapping[str, Any]) -> float:
    """Add up the seconds of all methods; work that two of them share counts once."""
    methods = groups["methods"]
    total = sum(method["seconds"] for group in groups.values() for method in group.values())
    if {"Single", "ENSM"} <= methods.keys():  # Single is the ensemble's first member
        total -= sum(networks[0]["seconds"] for networks in methods["Single"]["training"])
    return round(total, 1)


def _signature(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the devices that parts were made on, and their commits and versions."""
    devices = ", ".join(sorted({part["device"] for part in parts}))
    return {"device": devices, **provenance_of(parts)}
