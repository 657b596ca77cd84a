"""The UCI experiment from the names of tables to results files: resumed, merged, kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from priornet.evaluation import check_scores, signature_of
from priornet.methods import STUDENTS
from priornet_paper.runs.gpu_sharing import default_workers
from priornet_paper.runs.progress import Bars, progress_bars
from priornet_paper.runs.scores import SCORES
from priornet_paper.runs.store import Store, merge_results, read_finished, write_merged
from priornet_paper.uci.config import METHODS, Config, config_for, default_methods, own_settings
from priornet_paper.uci.data import UciTable, load_uci
from priornet_paper.uci.jobs import Request, run_tables

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


def file_name(dataset: str, preset: str, config: Config) -> str:
    """Return the name of a results file: that of the paper's preset is the plain one."""
    if config.is_canonical:
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
    """Run the UCI experiment, write a results file for each table, and return their content.

    An interrupted run goes on where it stopped. A results file keeps other methods of the same
    settings, but students only with their ensemble.

    Args:
        experiment: Tables, settings, methods and folder.
        device: ``"cpu"`` or ``"cuda"``.
        workers: Processes side by side; 0 for a number that suits the machine.
        again: Run finished methods again.
        quiet: Show no progress bars, only messages.
    """
    wanted = [experiment.request(load_uci(name)) for name in experiment.datasets]
    with progress_bars(quiet=quiet) as bars:
        found = _on_disk(experiment, wanted, again, bars)

        def done(request: Request, results: dict[str, Any]) -> None:
            name = request.table.name
            found[name] = write_merged(experiment.path(name), results, merged, bars.message)
            Store(request.folder).clear()
            bars.update(name, 1.0)

        run_tables(
            [request for request in wanted if request.table.name not in found],
            device=device,
            workers=workers or default_workers(device),
            progress=lambda request, share: bars.update(request.table.name, share),
            done=done,
        )
    return {name: found[name] for name in experiment.datasets}


def _on_disk(
    experiment: Experiment, wanted: Sequence[Request], again: bool, bars: Bars
) -> dict[str, Any]:
    """Read the results files that are the wanted ones; the other tables get a bar."""
    found: dict[str, Any] = {}
    for request in wanted:
        table, path = request.table, experiment.path(request.table.name)
        kept, n_rows = None, len(table.targets)
        if not table.is_complete:
            bars.message(f"{table.name}: only its first {n_rows} rows are here.")
        try:
            kept = None if again else finished(path, request.config, request.methods, n_rows)
        except ValueError as error:
            bars.message(f"{error} It is made again.")
        if kept is None:
            bars.update(table.name, 0.0)
        else:
            bars.message(f"{path}: finished already (--again to repeat it).")
            found[table.name] = kept
    return found


def finished(
    path: Path, config: Config, methods: Sequence[str], n_rows: int
) -> dict[str, Any] | None:
    """Read results of these settings, methods and rows; return None if there are none.

    Raises:
        ValueError: The file is there but is no results file.
    """
    n_values = None if config.is_canonical else config.n_folds  # the table decides, or the settings
    n_values = n_values if config.folds is None else len(config.folds)

    def is_wanted(found: dict[str, Any]) -> bool:
        is_same = (found["config"], found["n_rows"]) == (config.to_json(), n_rows)
        if not is_same or not set(methods) <= set(found["methods"]):
            return False
        for method in found["methods"].values():
            check_scores(method, SCORES, ("prr", "ood_auc"), n_values)
        return True

    return read_finished(path, is_wanted)


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
