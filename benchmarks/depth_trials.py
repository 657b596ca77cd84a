"""Settings of the depth experiment, tried on training images that are held out.

Each trial is a set of changes to the preset "fast"; every one is trained with every seed and scored
on the last quarter of the training images (of KITTI's roads, of each category), which it did not
learn. No test image is looked at, and no out-of-domain image but those that are named: own
photographs, for example, which the experiment will not be judged by. Trials of students share
their ensembles where these have the same settings, and are shown beside them.

    python benchmarks/depth_trials.py --data FOLDER --dataset nyu --device cuda \
        --try "" --try structure=0 --try "structure=30 norm=batch" [--seeds 0,1,2] [--json out]
    python benchmarks/depth_trials.py --data FOLDER --dataset nyu --device cuda --method EnD2 \
        --try "" --try "student_evenness=0.5 strange=0.5" [--foreign other=PHOTOGRAPHS]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from priornet.evaluation.results import provenance, summary, write_results
from priornet_paper.depth import config_for, with_changes
from priornet_paper.depth.config import STUDENTS, Config, Variant
from priornet_paper.depth.data import Sources, find_sources, named_paths
from priornet_paper.depth.tasks import Plan, Task, with_needs
from priornet_paper.depth.work import Worker
from priornet_paper.runs.gpu_sharing import default_workers, shared_gpu
from priornet_paper.runs.jobs import Job, Report, Watch, run_jobs

METRICS = ("delta1", "rel", "rmse", "nll")
KNOWLEDGE = ("mutual_information", "epkl", "variance_of_mean")
Scores = dict[str, float]


@dataclass(frozen=True)
class Do:
    """A training or a scoring, done in the process that it is in."""

    plan: Plan
    task: Task

    def __call__(self, needed: Mapping[str, Any], report: Report) -> Scores:
        made = worker(self.plan).do(self.task)
        assert made is not None
        return scores_of(made) if self.task.kind == "score" else {"seconds": made["seconds"]}


def worker(plan: Plan) -> Worker:
    """Return the worker of a folder, with its images decoded once: only students differ in it."""
    if plan.folder not in _workers:
        _workers.clear()  # the images of one are enough to hold
        _workers[plan.folder] = Worker(plan)
    return _workers[plan.folder]


_workers: dict[Path, Worker] = {}


def scores_of(made: dict[str, Any]) -> Scores:
    """Select the scores to show; for a student also its likeness to the ensemble.

    ``c_auc`` is that of the predictive's own intervals, ``rank_error`` Spearman's correlation of
    the images' total variance with their rmse; ``distance`` is that of the depths of student and
    ensemble, in metres; ``rank_epkl`` is Spearman's correlation of their maps of EPKL inside an
    image; ``auc_NAME`` says how mutual information detects OOD images, and for an ensemble the
    best of its measures of knowledge.
    """
    result = made["result"]
    found = {metric: result[metric] for metric in METRICS if metric in result}
    if "nll" in result:
        found["c_auc"] = result["c_auc"]["predictive_intervals"]
        found["rank_error"] = result["spearman_error"]["total_variance"]["rmse"]
    agreement = result.get("agreement", {})
    if "epkl" in agreement:
        found["distance"] = agreement["prediction"]["distance"]
        found["rank_epkl"] = agreement["epkl"]["within_images"]
    is_ensemble = len(made["training"]) > 1
    for name, aucs in result.get("ood_auc", {}).items():
        known = [aucs[measure] for measure in KNOWLEDGE if aucs.get(measure) is not None]
        if known:
            found[f"auc_{name}"] = max(known) if is_ensemble else known[0]
    return found | {"seconds": sum(training["seconds"] for training in made["training"])}


class Trial(NamedTuple):
    """One set of changes with one seed."""

    changes: str
    plan: Plan
    task: Task
    ensemble: Task | None
    """Its teachers', where it is a student."""

    @property
    def wanted(self) -> list[Task]:
        return [self.task] if self.ensemble is None else [self.ensemble, self.task]

    def name_of(self, task: Task) -> str:
        """Name a job by the folder of its ensemble, and its task."""
        return f"{self.plan.folder.name} {task.kind} {task.key}"


def trials(args: argparse.Namespace, folder: Path) -> list[Trial]:
    """Every set of changes with every seed."""
    found = find_sources(args.data, args.dataset, weights=args.weights)
    sources = Sources(found.own, named_paths(args.foreign), weights=found.weights)
    preset = preset_of(args)
    kinds: dict[str, Path] = {}
    made: list[Trial] = []
    for seed in map(int, args.seeds.split(",")):  # an unfinished run has whole seeds
        for number, changes in enumerate(args.trials or [""]):
            config = with_changes(preset, changes.split(), str(seed))
            own = kinds.setdefault(ensemble_settings(config), folder / str(len(kinds)))
            variant = Variant(f"{args.method}-{number}", args.method, config)
            is_student = args.method in STUDENTS
            ensemble = Task("score", Variant("ENSM", "ENSM", config), seed) if is_student else None
            plan = Plan(config, sources, own, args.device, compile=args.compile)
            made.append(Trial(changes, plan, Task("score", variant, seed), ensemble))
    return made


def preset_of(args: argparse.Namespace) -> Config:
    """List what the trials change."""
    return replace(config_for(args.dataset, args.preset), holdout=args.holdout)


def ensemble_settings(config: Config) -> str:
    """Return the settings on which an ensemble depends."""
    return json.dumps(config.settings_of("ENSM"), sort_keys=True)


def jobs_of(wanted: list[Trial]) -> list[Job]:
    """Everything to do, each thing once and after what it needs."""
    found: dict[str, Job] = {}
    for trial in wanted:
        for task in with_needs(trial.wanted):
            needs = tuple(map(trial.name_of, task.needs))
            name = trial.name_of(task)
            found.setdefault(name, Job(name, Do(trial.plan, task), needs))
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--data", type=Path, required=True, help="the set, or a folder with several sets")
    add("--dataset", choices=("nyu", "kitti"), required=True)
    add("--method", default="Single", help="as in results: Single, DER, EnD2 ...")
    add("--weights", default="imagenet", help="a file, or the package's")
    add("--try", dest="trials", action="append", help="changes as NAME=VALUE, spaces between")
    add("--foreign", action="append", default=[], help="images to tell apart, as NAME=PATH")
    add("--seeds", default="0,1,2")
    add("--preset", default="fast")
    add("--holdout", type=float, default=0.25, help="share of the training images held out")
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--compile", action="store_true", help="torch.compile (GPU)")
    add("--workers", type=int, help="trainings side by side")
    add("--json", type=Path, help="write the scores there")
    args = parser.parse_args()
    workers = args.workers or default_workers(args.device)
    made: dict[str, Scores] = {}
    started = time.perf_counter()

    def done(job: Job, scores: Scores) -> None:
        made[job.name] = scores
        shown = "  ".join(f"{name} {value:.4f}" for name, value in scores.items())
        print(f"{time.perf_counter() - started:6.1f} s  {job.name}: {shown}", flush=True)
        if args.json:  # anew after each: a run that is ended before its time has left something
            write(args, results_of(wanted, made), time.perf_counter() - started)

    with tempfile.TemporaryDirectory() as folder, shared_gpu(args.device, workers):
        wanted = trials(args, Path(folder))
        run_jobs(jobs_of(wanted), workers, Watch(done=done))
    show(results_of(wanted, made), args)


Results = dict[str, dict[str, dict[int, Scores]]]


def results_of(wanted: list[Trial], made: Mapping[str, Scores]) -> Results:
    """Scores by changes, method and seed, as far as they are there."""
    results: Results = {}
    for trial in wanted:
        for task in trial.wanted:
            if trial.name_of(task) in made:
                own = results.setdefault(trial.changes, {}).setdefault(task.variant.method, {})
                own[task.seed] = made[trial.name_of(task)]
    return results


def write(args: argparse.Namespace, results: Results, seconds: float) -> None:
    names = ("dataset", "method", "preset", "holdout", "seeds")
    content = {name: getattr(args, name) for name in names}
    content["foreign"] = [Path(text.partition("=")[2]).name for text in args.foreign]
    content |= {"device": args.device, "config": preset_of(args).to_json(), "trials": results}
    write_results(args.json, content | {"seconds": round(seconds, 1)} | provenance())


def show(results: Results, args: argparse.Namespace) -> None:
    first = next(iter(results.values()))[args.method]
    print(f"\n{args.dataset}, {args.method}: means over seeds (difference to the first ± error)")
    for changes, methods in results.items():
        print(f"{changes or 'preset':<36} {row(methods[args.method], first)}")
    if args.method in STUDENTS:
        print("\nthe same, with the difference to its ensemble")
        for changes, methods in results.items():
            print(f"{changes or 'preset':<36} {row(methods[args.method], methods['ENSM'])}")


def row(own: dict[int, Scores], base: dict[int, Scores]) -> str:
    """Means, and differences of the seeds that both have."""
    cells: list[str] = []
    for metric in dict.fromkeys([*METRICS, *next(iter(own.values()))]):
        if metric == "seconds":
            continue
        values = {seed: scores[metric] for seed, scores in own.items() if metric in scores}
        if not values:
            continue
        gaps = [v - base[s][metric] for s, v in values.items() if metric in base.get(s, {})]
        cell = f"{metric} {summary([*values.values()])['mean']:.4f}"
        if gaps:
            found = summary(gaps)
            error = "" if found["sem"] is None else f" ± {found['sem']:.4f}"
            cell += f" ({found['mean']:+.4f}{error})"
        cells.append(cell)
    return "  ".join(cells)


if __name__ == "__main__":
    main()
