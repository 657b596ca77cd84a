"""Sources of the page: the results folder, read whole or refused by name, and notes by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from priornet.evaluation import check_summaries
from priornet_paper.page.numbers import DEPTH_SETS, Content, Number, Scores, read_scores

OWN = "beyond"
"""The preset with our own configuration of the estimators."""
PRESETS = {"paper": "paper", OWN: OWN, "splits": OWN}
"""The preset of each kind of run; a file's name ends in its kind, but for ``paper``."""
_UCI_SCORES = ("rmse", "nll", "crps", "coverage90", "prr", "ood_auc")
_FIELDS = ("dataset", "preset", "config", "methods", "seconds", "device")
_UCI_FIELDS = (*_FIELDS, "complete", "n_rows")
_DEPTH_FIELDS = (*_FIELDS, "protocol", "n_train", "n_test", "foreign", "variants")


class ResultsError(ValueError):
    """A file that cannot be used; the message names it."""


@dataclass(frozen=True)
class Run:
    """One results file of a UCI table."""

    content: Content
    scores: Scores

    def get(self, method: str, *path: str) -> Number | None:
        """Return a number, on whatever rows it ran."""
        return self.scores.get(self.content["dataset"], method, *path)

    @property
    def is_complete(self) -> bool:
        """Tell if the table was whole."""
        return self.content["complete"]


@dataclass(frozen=True)
class Results:
    """A results folder: runs by kind (``paper``, ``splits`` or :data:`OWN`) and data set."""

    runs: Mapping[tuple[str, str], Run] = field(default_factory=dict[tuple[str, str], Run])
    synthetic: Content | None = None
    depth: Mapping[str, Content] = field(default_factory=dict[str, Content])
    """Files of the depth experiment by data set."""
    earlier: Mapping[str, Mapping[str, Content]] = field(
        default_factory=dict[str, Mapping[str, Content]]
    )
    """Depth files of earlier configurations by data set and name, in the order of their runs."""
    new_seeds: Mapping[str, Content] = field(default_factory=dict[str, Content])
    """The files of ``depth`` once more, with other seeds."""
    draws: Mapping[str, list[Run]] = field(default_factory=dict[str, list[Run]])
    """Runs of preset :data:`OWN` with other folds, by data set."""

    def get(self, kind: str, dataset: str) -> Run | None:
        """Return a run, or None."""
        return self.runs.get((kind, dataset))

    def datasets(self, kind: str) -> list[str]:
        """List the data sets that have a run of this kind, smallest first."""
        found = [(run.content["n_rows"], name) for (k, name), run in self.runs.items() if k == kind]
        return [name for _, name in sorted(found)]

    def scores(self, kind: str) -> Scores:
        """Join the numbers of the complete tables."""
        runs = [run for (k, _), run in self.runs.items() if k == kind and run.is_complete]
        numbers = {path: value for run in runs for path, value in run.scores.numbers.items()}
        return Scores(numbers, self.datasets(kind))


def read_folder(folder: Path) -> Results:
    """Read ``uci/*.json``, ``synthetic.json`` and ``depth/*.json``; the rest is simply absent.

    Runs of preset :data:`OWN` with other folds are in folders of their own, below ``uci/again``;
    depth files of earlier configurations in ``depth/again``, whose ``order.json`` lists them in
    the order of their runs; the present ones with other seeds in ``depth/new-seeds``.
    """
    runs: dict[tuple[str, str], Run] = {}
    for path in sorted(folder.glob("uci/*.json")):
        dataset, *suffix = path.stem.split(".", 1)
        kind = suffix[0] if suffix else "paper"
        if suffix != ["paper"] and kind in PRESETS:
            runs[kind, dataset] = _read_run(path, dataset, kind)
    synthetic = folder / "synthetic.json"
    found = {name: folder / "depth" / f"{name}.json" for name in DEPTH_SETS}
    depth = {name: _read_depth(path, name) for name, path in found.items() if path.exists()}
    return Results(
        runs,
        _read_synthetic(synthetic) if synthetic.exists() else None,
        depth,
        _read_earlier(folder / "depth" / "again"),
        _read_new_seeds(folder / "depth" / "new-seeds", depth),
        _read_draws(folder / "uci" / "again", runs),
    )


def _read_earlier(folder: Path) -> dict[str, dict[str, Any]]:
    """Read files by data set and name, in the order of ``order.json``: no file has its date."""
    path = folder / "order.json"
    found = {file.stem: file for file in sorted(folder.glob("*.json")) if file != path}
    order = _read_json(path) if path.exists() else {}
    named = [str(name) for names in order.values() if isinstance(names, list) for name in names]
    is_whole = all(isinstance(names, list) for names in order.values())
    if not is_whole or sorted(named) != sorted(found) or not set(order) <= set(DEPTH_SETS):
        raise ResultsError(
            f"{path}: must name every file beside it once, under its data set; there are: "
            f"{', '.join(found) or 'none'}."
        )
    return {
        dataset: {name: _read_depth(found[name], dataset) for name in names}
        for dataset, names in order.items()
    }


def _read_new_seeds(folder: Path, first: Mapping[str, Content]) -> dict[str, Content]:
    """Read runs with the same settings and images as the first, with seeds of their own."""
    found: dict[str, Content] = {}
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
            digests = [c.get("digests", {}).get(name) for c in (known, content)]
            if digests[0] != digests[1]:
                raise ResultsError(f"{path}: its {name} images are not those of {dataset}.json.")
    return found


def _read_draws(folder: Path, runs: Mapping[tuple[str, str], Run]) -> dict[str, list[Run]]:
    """Read further draws of the folds, each with the settings of a run that is there."""
    found: dict[str, list[Run]] = {}
    for path in sorted(folder.glob(f"*/*.{OWN}.json")):
        dataset = path.name.partition(".")[0]
        first = runs.get((OWN, dataset))
        if first is None:
            continue
        draw = _read_run(path, dataset, OWN)
        configs = [run.content["config"] for run in (first, *found.get(dataset, []), draw)]
        seeds = [config.get("seed") for config in configs]
        if seeds[-1] in seeds[:-1]:
            raise ResultsError(f"{path}: another run of {dataset} has its seed, {seeds[-1]}.")
        is_same = {**configs[0], "seed": None} == {**configs[-1], "seed": None}
        if not is_same or draw.content["n_rows"] != first.content["n_rows"]:
            raise ResultsError(
                f"{path}: its settings or rows are not those of {dataset}.{OWN}.json."
            )
        found.setdefault(dataset, []).append(draw)
    for draws in found.values():
        draws.sort(key=lambda draw: draw.content["config"]["seed"])
    return found


def _read_synthetic(path: Path) -> dict[str, Any]:
    content = _read_json(path)
    if content.get("preset") != "paper" or "methods" not in content:
        raise ResultsError(f'{path}: not the results of preset "paper"; run it again.')
    return content


def _read_depth(path: Path, dataset: str) -> dict[str, Any]:
    content = _read_checked(path, _DEPTH_FIELDS, {"dataset": dataset, "preset": "fast"})
    for group in ("methods", "variants"):
        _check_numbers(path, content[group])
    for name in ("n_images", "n_test", "holdout"):
        if content["config"].get(name):
            given = content["config"][name]
            raise ResultsError(f"{path}: ran with {name} = {given}; run it with all images.")
    return content


def _read_run(path: Path, dataset: str, kind: str) -> Run:
    content = _read_checked(path, _UCI_FIELDS, {"dataset": dataset, "preset": PRESETS[kind]})
    config = content["config"]
    folds = config.get("folds")
    if folds is not None:
        raise ResultsError(f"{path}: ran only folds {', '.join(map(str, folds))}; run all of them.")
    is_canonical = config.get("splits") == "canonical"
    if kind == "splits" and not is_canonical:
        raise ResultsError(f'{path}: its config does not say splits "canonical".')
    # The number of published splits varies with the data set.
    _check_numbers(path, content["methods"], None if is_canonical else config.get("n_folds"))
    methods = content["methods"]
    if not isinstance(methods, dict) or not all(map(_has_scores, methods.values())):
        raise ResultsError(f"{path}: its methods are not in the form of results.")
    return Run(content, read_scores({dataset: content}, (dataset,)))


def _has_scores(method: Any) -> bool:
    scores = [method.get(name) for name in _UCI_SCORES] if isinstance(method, dict) else [method]
    return all(score is None or isinstance(score, dict) for score in scores)


def _read_checked(
    path: Path, fields: tuple[str, ...], promised: Mapping[str, str]
) -> dict[str, Any]:
    """Read a results file with all its fields, for the data set and preset that its name tells."""
    content = _read_json(path)
    missing = [name for name in fields if name not in content]
    if missing:
        raise ResultsError(f"{path}: not a results file: it has no `{missing[0]}`; run it again.")
    for name, value in promised.items():
        if content[name] != value:
            raise ResultsError(
                f'{path}: its {name} is "{content[name]}", its name promises "{value}".'
            )
    return content


def _check_numbers(path: Path, methods: Any, n_values: int | None = None) -> None:
    try:
        check_summaries(methods, n_values)
    except ValueError as error:
        raise ResultsError(f"{path}: {error}; run it again.") from error


def _read_json(
    path: Path, wanted: str = "not a results file; run it again", end: str = "; run it again"
) -> dict[str, Any]:
    """Read a JSON object; another file is an error with what was wanted and what to do."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ResultsError(f"{path}: cannot be read as JSON{end}.") from error
    if not isinstance(content, dict):
        raise ResultsError(f"{path}: {wanted}.")
    return cast("dict[str, Any]", content)


Text = str | list[str]
"""A paragraph, or several."""


@dataclass
class Notes:
    """Explanations written by hand, by key or by pattern such as ``paper/*/prr/EnD2/epkl``."""

    texts: Mapping[str, Text] = field(default_factory=dict[str, Text])
    used: set[str] = field(default_factory=set[str])

    def about(self, key: str) -> list[str]:
        """Return the paragraphs for a key; the exact key comes before patterns."""
        patterns = [key, *self.texts] if key in self.texts else list(self.texts)
        found = next((pattern for pattern in patterns if fnmatchcase(key, pattern)), None)
        if found is None:
            return []
        self.used.add(found)
        text = self.texts[found]
        return [text] if isinstance(text, str) else list(text)

    @property
    def unused(self) -> list[str]:
        """List the keys that matched nothing so far: their subject is no longer there."""
        return [key for key in self.texts if key not in self.used]


def read_notes(path: Path) -> Notes:
    """Read notes from a JSON object of texts or lists of paragraphs; none if there is no file."""
    if not path.exists():
        return Notes()
    texts = _read_json(path, "must be a JSON object from keys to texts", end="")
    for key, text in texts.items():
        paragraphs = cast("list[Any]", text) if isinstance(text, list) else [text]
        if not paragraphs or not all(isinstance(one, str) and one.strip() for one in paragraphs):
            raise ResultsError(
                f"{path}: `{key}` must be a text or a list of paragraphs, and none of them empty."
            )
    return Notes(texts)
