"""All methods and seeds of a data set: tasks in their order, side by side if asked, one result."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty
from typing import Any, cast

from priornet.evaluation.results import provenance_of, read_results
from priornet.evaluation.summaries import check_summaries
from priornet_paper.depth.config import STUDENTS, Config
from priornet_paper.depth.digests import same_digests
from priornet_paper.depth.orders import Event, Order, Task
from priornet_paper.depth.others import total_seconds
from priornet_paper.depth.protocol import PROTOCOLS
from priornet_paper.depth.recipe import Recipe
from priornet_paper.depth.score import over_seeds
from priornet_paper.depth.sets import Sets
from priornet_paper.depth.work import Workshop
from priornet_paper.runs.gpu_sharing import shared_gpu
from priornet_paper.runs.side_by_side import Piece, Tick, in_order

__all__ = ["file_name", "finished", "run", "scores_of", "together", "with_needs"]

Report = Callable[[Event], object]


def file_name(dataset: str, preset: str) -> str:
    """Name of a results file: the preset that we report has the plain one."""
    return f"{dataset}.json" if preset == "fast" else f"{dataset}.{preset}.json"


def scores_of(recipes: Sequence[Recipe]) -> list[Task]:
    """What the results consist of; seed by seed, so that an unfinished run has whole seeds."""
    seeds = dict.fromkeys(seed for recipe in recipes for seed in recipe.config.seeds)
    return [Task("score", r, seed) for seed in seeds for r in recipes if seed in r.config.seeds]


def with_needs(scores: Sequence[Task]) -> list[Task]:
    """Everything to do for some scores, each thing once and after what it needs."""
    found: dict[tuple[str, str], Task] = {}
    for score in scores:
        for task in (*(n for need in score.needs for n in (*need.needs, need)), score):
            found.setdefault((task.kind, task.key), task)
    return list(found.values())


def together(tasks: Sequence[Task], n_classes: int = 1) -> list[Task]:
    """Tasks, the trainings of students that can share their teachers made into one.

    Args:
        tasks: Each after what it needs.
        n_classes: Into how many trainings to put the students of one ensemble.
    """
    schools: dict[str, list[Task]] = {}
    for task in tasks:
        if task.kind == "train" and task.recipe.method in STUDENTS:
            school = [task.seed, task.recipe.config.school_of(task.recipe.method)]
            schools.setdefault(json.dumps(school, sort_keys=True), []).append(task)
    classes = [school[i::n_classes] for school in schools.values() for i in range(n_classes)]
    beside = {first: tuple(task.recipe for task in more) for first, *more in filter(None, classes)}
    taught = {task for _, *more in filter(None, classes) for task in more}
    return [task._replace(beside=beside.get(task, ())) for task in tasks if task not in taught]


def finished(path: Path, order: Order, recipes: Sequence[Recipe]) -> dict[str, Any] | None:
    """Results on disk that answer the same question, or None.

    Raises:
        ValueError: The file is there but is no results file.
    """
    if not path.exists():
        return None
    try:
        found = read_results(path)
        known = found["methods"].keys() | found["variants"].keys()
        check_summaries([found["methods"], found["variants"]])
        same = found.get("protocol") == _protocol(order.config)
        same &= _are_settings(found["config"], order.config)
        same &= {recipe.name for recipe in recipes} <= known
        digests = dict(found.get("digests", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}: not a results file ({type(error).__name__}: {error})."
        ) from error
    if not same:  # images are asked last, for all of them are read
        return None
    asked = Sets(order.config, order.sources).record()["digests"]
    return found if same_digests(digests, asked) else None


def _are_settings(content: dict[str, Any], config: Config) -> bool:
    """Whether a file's settings are these; those of another version are others."""
    try:
        return Config.from_json(content) == config
    except ValueError:
        return False


def run(
    order: Order,
    recipes: Sequence[Recipe],
    preset: str,
    *,
    workers: int = 1,
    report: Report = lambda _: None,
    again: bool = False,
) -> dict[str, Any] | None:
    """Train and score every recipe with every seed.

    Args:
        order: Settings, images, folder, device.
        recipes: What to train and score.
        preset: Name of the preset, for the record.
        workers: Processes that train side by side on the same device.
        report: Told of every epoch, and of remarks.
        again: Whether to begin anew what is there already, finished or not.

    Returns:
        The results, ready for JSON; None where the time was up first: then the same call goes on.
        Nothing in the processes that only helped another one.
    """
    workshop = Workshop(order, report)
    workshop.sets.check(
        any(recipe.method == "NWPN" for recipe in recipes),
        lambda text: report(Event("", remark=text)),
        learnt=again,
    )
    if again:
        # Before processes join each other to share batches: none is at work yet.
        for task in with_needs(scores_of(recipes)):
            workshop.pieces.forget(task)
    wanted = scores_of(recipes)
    kept = workshop.agreed(lambda: {task.key: workshop.pieces.finished(task) for task in wanted})
    # What only led to a score that is there need not be made again, even if it is lost.
    tasks = with_needs([task for task in wanted if kept[task.key] is None])
    tasks = together(tasks, _n_classes(order, workers))
    made = (
        _one_by_one(workshop, tasks)
        if workers == 1 or len(tasks) < 2
        else _side_by_side(order, tasks, workers, report)
    )
    if made is None:
        return None
    if order.fabric and not workshop.fabric.is_global_zero:
        return {}
    scores = {key: piece for key, piece in kept.items() if piece is not None}
    scores |= {key: piece for (kind, key), piece in made.items() if kind == "score"}
    return _results(workshop, recipes, preset, scores)


def _n_classes(order: Order, workers: int) -> int:
    """Into how many trainings to put the students of a seed.

    One asks their teachers least often, but has one processor work where several could; a GPU is
    busy with a few processes already (benchmarks/README.md).
    """
    return -(-workers // len(order.config.seeds)) if order.device == "cpu" else 1


Made = dict[tuple[str, str], dict[str, Any]]


def _one_by_one(workshop: Workshop, tasks: Sequence[Task]) -> Made | None:
    pieces: Made = {}
    for task in tasks:
        if workshop.fabric.broadcast(workshop.order.is_late):
            return None
        if task.kind == "score" and not workshop.fabric.is_global_zero:
            continue
        made = workshop.do(task)
        if made is None:
            return None
        pieces[task.kind, task.key] = made
    return pieces


# -- side by side ---------------------------------------------------------------------------------


def _side_by_side(order: Order, tasks: Sequence[Task], workers: int, report: Report) -> Made | None:
    queue: Any = multiprocessing.get_context("spawn").Queue()  # as the processes are made
    pieces: Made = {}
    unfinished: list[Task] = []

    def done(piece: Piece, made: dict[str, Any] | None) -> None:
        task = cast(_Do, piece.work).task
        if made is None:
            unfinished.append(task)
        else:
            pieces[task.kind, task.key] = made

    # A student's score waits for the training that it is part of.
    part_of = {_name(one): _name(task) for task in tasks for one in task.each}
    with shared_gpu(order.device, workers):
        in_order(
            [
                Piece(_name(task), _Do(task), tuple(part_of[_name(n)] for n in task.needs))
                for task in tasks
            ],
            workers,
            progress=lambda _: _pass_on(queue, report),
            done=done,
            start=partial(_open_workshop, order, queue.put),
            stop=lambda: bool(unfinished) or order.is_late,
        )
    return pieces if len(pieces) == len(tasks) else None


def _name(task: Task) -> str:
    return f"{task.kind} {task.key}"


def _pass_on(queue: Any, report: Report) -> None:
    while True:
        try:
            report(queue.get_nowait())
        except Empty:
            return


@dataclass(frozen=True)
class _Do:
    """A task, done in the workshop of the process that it is in."""

    task: Task

    def __call__(self, needed: Mapping[str, Any], tick: Tick) -> dict[str, Any] | None:
        assert _workshop is not None
        return _workshop.do(self.task)


def _open_workshop(order: Order, report: Report) -> None:
    global _workshop
    _workshop = Workshop(order, report)


_workshop: Workshop | None = None


# -- summary --------------------------------------------------------------------------------------


def _results(
    workshop: Workshop, recipes: Sequence[Recipe], preset: str, scores: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    config = workshop.order.config
    groups: dict[str, dict[str, Any]] = {"methods": {}, "variants": {}}
    for recipe in recipes:
        own = [scores[f"{recipe.name}.{seed}"] for seed in recipe.config.seeds]
        groups["variants" if recipe.is_variant else "methods"][recipe.name] = {
            **over_seeds([piece["result"] for piece in own]),
            "training": [piece["training"] for piece in own],
            "settings": _changes(recipe, config),
            "seconds": round(sum(_seconds(piece) for piece in own), 1),
            "device": _device_of(own),
            **provenance_of(own),
        }
    return {
        "dataset": config.dataset,
        "preset": preset,
        "config": config.to_json(),
        "protocol": _protocol(config),
        **workshop.sets.sizes(),
        **workshop.sets.record(),
        **groups,
        "seconds": total_seconds(groups),
        "device": _device_of(list(scores.values())),
        **provenance_of(list(scores.values())),
    }


def _protocol(config: Config) -> dict[str, Any]:
    return PROTOCOLS[config.dataset].record((config.height, config.width))


def _seconds(piece: dict[str, Any]) -> float:
    """Of training and scoring."""
    return piece["seconds"] + sum(training["seconds"] for training in piece["training"])


def _device_of(pieces: Sequence[Mapping[str, Any]]) -> str:
    """Where pieces ran; all devices, where there are several."""
    return ", ".join(sorted({piece["device"] for piece in pieces}))


def _changes(recipe: Recipe, config: Any) -> dict[str, Any]:
    """In what a variant differs."""
    own, base = recipe.config.to_json(), config.to_json()
    return {name: value for name, value in own.items() if value != base[name]}
