"""The results folder: one file per data set and preset, read whole or refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from priornet.evaluation.summaries import check_summaries
from priornet_paper.page.numbers import Key, Number, Scores, read_methods

__all__ = ["Results", "ResultsError", "Run", "read_folder"]

PRESETS = {"": "paper", ".beyond": "beyond", ".splits": "beyond"}
"""What stands between the name of a data set and ``.json``, and the preset it promises."""
_DEPTH_SETS = ("nyu", "kitti")
_DEPTH_TOP = (
    "dataset",
    "preset",
    "config",
    "protocol",
    "n_train",
    "n_test",
    "foreign",
    "methods",
    "variants",
    "seconds",
    "device",
)
_TOP = ("dataset", "preset", "complete", "n_rows", "config", "methods", "seconds", "device")


class ResultsError(ValueError):
    """A results file that cannot be used; the message names it."""


@dataclass(frozen=True)
class Run:
    """One results file."""

    content: Mapping[str, Any]
    numbers: Mapping[Key, Number]

    @property
    def is_complete(self) -> bool:
        """Whether the table was whole."""
        return self.content["complete"]


@dataclass(frozen=True)
class Results:
    """What a folder holds: runs by kind (``paper``, ``beyond``, ``splits``) and data set."""

    runs: Mapping[tuple[str, str], Run] = field(default_factory=dict[tuple[str, str], Run])
    synthetic: Mapping[str, Any] | None = None
    depth: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Files of the depth experiment by data set."""
    recipes: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(
        default_factory=dict[str, Mapping[str, Mapping[str, Any]]]
    )
    """Earlier files of the depth experiment by data set and name, in the order of their runs."""
    new_seeds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """The files of ``depth`` once more, with other seeds."""
    draws: Mapping[str, list[Run]] = field(default_factory=dict[str, list[Run]])
    """``beyond`` with other folds, by data set."""

    def get(self, kind: str, dataset: str) -> Run | None:
        """A run, or None where there is none."""
        return self.runs.get((kind, dataset))

    def datasets(self, kind: str) -> list[str]:
        """Data sets that have a run of this kind, smallest first."""
        found = [(run.content["n_rows"], name) for (k, name), run in self.runs.items() if k == kind]
        return [name for _, name in sorted(found)]

    def scores(self, kind: str) -> Scores:
        """Numbers of the complete tables."""
        whole = [run for (k, _), run in self.runs.items() if k == kind and run.is_complete]
        return Scores(
            {key: value for run in whole for key, value in run.numbers.items()},
            {run.content["dataset"]: run.content["n_rows"] for run in whole},
        )


def read_folder(folder: Path) -> Results:
    """Read ``uci/*.json``, ``synthetic.json`` and ``depth/*.json``; the rest is simply absent.

    Runs of preset ``beyond`` with other folds are in folders of their own, below ``uci/again``;
    earlier recipes of the depth experiment in ``depth/again``, whose ``order.json`` says in what
    order they were run; the present ones with other seeds in ``depth/new-seeds``.
    """
    runs: dict[tuple[str, str], Run] = {}
    for path in sorted(folder.glob("uci/*.json")):
        dataset, _, suffix = path.stem.partition(".")
        suffix = f".{suffix}" if suffix else ""
        if suffix in PRESETS:
            kind = suffix[1:] or "paper"
            runs[kind, dataset] = _read_run(path, dataset, kind, PRESETS[suffix])
    synthetic = folder / "synthetic.json"
    found = {name: folder / "depth" / f"{name}.json" for name in _DEPTH_SETS}
    depth = {name: _read_depth(path, name) for name, path in found.items() if path.exists()}
    return Results(
        runs,
        _read_synthetic(synthetic) if synthetic.exists() else None,
        depth,
        _read_recipes(folder / "depth" / "again"),
        _read_new_seeds(folder / "depth" / "new-seeds", depth),
        _read_draws(folder / "uci" / "again", runs),
    )


def _read_recipes(folder: Path) -> dict[str, dict[str, Any]]:
    """Files by data set and name, in the order that is written beside them: none says when."""
    path = folder / "order.json"
    found = {file.stem: file for file in sorted(folder.glob("*.json")) if file != path}
    order = _read(path) if path.exists() else {}
    named = [str(name) for names in order.values() if isinstance(names, list) for name in names]
    is_whole = all(isinstance(names, list) for names in order.values())
    if not is_whole or sorted(named) != sorted(found) or not set(order) <= set(_DEPTH_SETS):
        raise ResultsError(
            f"{path}: must name every file beside it once, under its data set; there are: "
            f"{', '.join(found) or 'none'}."
        )
    return {
        dataset: {name: _read_depth(found[name], dataset) for name in names}
        for dataset, names in order.items()
    }


def _read_new_seeds(folder: Path, first: Mapping[str, Any]) -> dict[str, Any]:
    """Runs with settings that are there, on the same images, with seeds of their own."""
    found: dict[str, Any] = {}
    for dataset, known in first.items():
        path = folder / f"{dataset}.json"
        if not path.exists():
            continue
        content = found[dataset] = _read_depth(path, dataset)
        was, now = known["config"], content["config"]
        if {**was, "seeds": None} != {**now, "seeds": None}:
            raise ResultsError(f"{path}: its settings are not those of {dataset}.json.")
        if set(was["seeds"]) & set(now["seeds"]):
            raise ResultsError(f"{path}: it shares seeds with {dataset}.json.")
        for name in ("train", "test", *known["foreign"]):
            if _digest(content, name) != _digest(known, name):
                raise ResultsError(f"{path}: its {name} images are not those of {dataset}.json.")
    return found


def _digest(content: Mapping[str, Any], name: str) -> str | None:
    return content.get("digests", {}).get(name)


def _read_draws(folder: Path, runs: Mapping[tuple[str, str], Run]) -> dict[str, list[Run]]:
    """Further draws of runs that are there, each with folds of its own and the same settings."""
    found: dict[str, list[Run]] = {}
    for path in sorted(folder.glob("*/*.beyond.json")):
        dataset = path.name.partition(".")[0]
        first = runs.get(("beyond", dataset))
        if first is None:
            continue
        draw = _read_run(path, dataset, "beyond", "beyond")
        configs = [run.content["config"] for run in (first, *found.get(dataset, []), draw)]
        seeds = [config.get("seed") for config in configs]
        if seeds[-1] in seeds[:-1]:
            raise ResultsError(f"{path}: another run of {dataset} has its seed, {seeds[-1]}.")
        is_same = {**configs[0], "seed": None} == {**configs[-1], "seed": None}
        if not is_same or draw.content["n_rows"] != first.content["n_rows"]:
            raise ResultsError(
                f"{path}: its settings or rows are not those of {dataset}.beyond.json."
            )
        found.setdefault(dataset, []).append(draw)
    for draws in found.values():
        draws.sort(key=lambda draw: draw.content["config"]["seed"])
    return found


def _read_synthetic(path: Path) -> dict[str, Any]:
    content = _read(path)
    if content.get("preset") != "paper" or "methods" not in content:
        raise ResultsError(f'{path}: not the results of preset "paper"; run it again.')
    return content


def _read_depth(path: Path, dataset: str) -> dict[str, Any]:
    content = _read(path)
    missing = [name for name in _DEPTH_TOP if name not in content]
    if missing:
        raise ResultsError(f"{path}: not a results file: it has no `{missing[0]}`; run it again.")
    _check_promise(path, content, {"dataset": dataset, "preset": "fast"})
    for group in ("methods", "variants"):
        _check_numbers(path, content[group])
    for name in ("n_images", "n_test", "holdout"):
        if content["config"].get(name):
            given = content["config"][name]
            raise ResultsError(f"{path}: ran with {name} = {given}; run it with all images.")
    return content


def _read_run(path: Path, dataset: str, kind: str, preset: str) -> Run:
    content = _read(path)
    missing = [name for name in _TOP if name not in content]
    if missing:
        raise ResultsError(f"{path}: not a results file: it has no `{missing[0]}`; run it again.")
    _check_promise(path, content, {"dataset": dataset, "preset": preset})
    folds = content["config"].get("folds")
    if folds is not None:
        raise ResultsError(f"{path}: ran only folds {', '.join(map(str, folds))}; run all of them.")
    if kind == "splits" and content["config"].get("splits") != "canonical":
        raise ResultsError(f'{path}: its config does not say splits "canonical".')
    _check_numbers(path, content["methods"], _n_folds(content["config"]))
    try:
        return Run(content, read_methods(dataset, content["methods"]))
    except (AttributeError, KeyError, TypeError) as error:
        raise ResultsError(f"{path}: its methods are not in the form of results.") from error


def _n_folds(config: Mapping[str, Any]) -> int | None:
    """Values that every score must have; None for published splits, whose number varies."""
    return None if config.get("splits") == "canonical" else config.get("n_folds")


def _check_numbers(path: Path, methods: Any, n_values: int | None = None) -> None:
    try:
        check_summaries(methods, n_values)
    except ValueError as error:
        raise ResultsError(f"{path}: {error}; run it again.") from error


def _check_promise(path: Path, content: Mapping[str, Any], promised: Mapping[str, str]) -> None:
    for name, value in promised.items():
        if content[name] != value:
            raise ResultsError(
                f'{path}: its {name} is "{content[name]}", its name promises "{value}".'
            )


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ResultsError(f"{path}: cannot be read as JSON; run it again.") from error
    if not isinstance(content, dict):
        raise ResultsError(f"{path}: not a results file; run it again.")
    return content
