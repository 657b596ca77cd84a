"""How the numbers were made: settings, time, versions, commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from priornet.evaluation.summaries import signature_of
from priornet_paper.page.compare import FAILS, HOLDS, NOT_RUN, UNFINISHED, Goal
from priornet_paper.page.markdown import folded, shown, table
from priornet_paper.page.notes import Notes
from priornet_paper.page.numbers import SETS
from priornet_paper.page.results import Results, Run
from priornet_paper.page.section import Section

__all__ = ["making"]

_MOST_MINUTES = 75.0
_KINDS = {
    "paper": "Settings of preset <code>paper</code>",
    "beyond": "Settings of preset <code>beyond</code>",
    "splits": "Settings of preset <code>beyond</code> on the published splits",
    "synthetic": "Settings of the synthetic experiment, preset <code>paper</code>",
    "depth": "Settings of the depth experiment, preset <code>fast</code>",
}


def making(results: Results, notes: Notes) -> Section:
    """Settings of each preset, one line per run, and the time the paper preset took.

    Args:
        results: What was measured.
        notes: What is to be known of the runs has the key ``making``.
    """
    section = Section([], [_time(results)])
    for kind, title in _KINDS.items():
        runs = {name: run for (k, name), run in results.runs.items() if k == kind}
        if kind == "synthetic" and results.synthetic is not None:
            runs = {"synthetic": Run(results.synthetic, {})}
        if kind == "depth":
            runs = {name: Run(content, {}) for name, content in results.depth.items()}
        if runs:
            section.lines += folded(title, table(["setting", "value"], _settings(runs), 2))
    listed = [(kind, name) for kind in _KINDS for name in results.datasets(kind)]
    rows = [_run_line(kind, results.runs[kind, name]) for kind, name in listed]
    rows += [
        _run_line(f"beyond, seed {draw.content['config']['seed']}", draw)
        for draws in results.draws.values()
        for draw in draws
    ]
    if results.synthetic is not None:
        rows.append(_run_line("synthetic", Run(results.synthetic, {})))
    rows += [_run_line("depth", Run(content, {})) for content in results.depth.values()]
    rows += [
        _run_line("depth, new seeds", Run(content, {})) for content in results.new_seeds.values()
    ]
    header = ["preset", "data", "rows or images", "seconds", "device", "versions", "processor"]
    header.append("commit")
    section.lines += ["", *(f"- {text}" for text in notes.about("making"))] if rows else []
    section.lines += table(header, rows, 2) if rows else ["", "Nothing has been run yet.", ""]
    return section


def _time(results: Results) -> Goal:
    runs = [results.get("paper", name) for name in SETS]
    found = [run for run in runs if run is not None and run.is_complete]
    minutes = sum(run.content["seconds"] for run in found) / 60
    devices = ", ".join(sorted({run.content["device"] for run in found}))
    state = UNFINISHED if found else NOT_RUN
    if minutes > _MOST_MINUTES:
        state = FAILS
    elif len(found) == len(runs):
        state = HOLDS if devices == "cpu" else "measured on another device"
    return Goal(
        f"The paper preset on the {len(runs)} sets, grid search included, within "
        f"{_MOST_MINUTES:g} minutes on two CPU cores",
        f"{shown(minutes, 1)} min, {len(found)} of {len(runs)} sets ({devices})" if found else "",
        state,
    )


def _settings(runs: Mapping[str, Run]) -> Iterator[list[str]]:
    """Each setting once; sets that differ from the first are named."""
    flat = {name: dict(_flatten(run.content["config"])) for name, run in runs.items()}
    keys = {key: None for settings in flat.values() for key in settings}
    for key in keys:
        groups: dict[str, list[str]] = {}
        for name, settings in flat.items():
            groups.setdefault(settings.get(key, "none"), []).append(name)
        usual = max(groups, key=lambda text: len(groups[text]))
        others = [f"{text} ({', '.join(n)})" for text, n in groups.items() if text != usual]
        yield [f"`{key}`", "; ".join([usual, *others])]


def _flatten(config: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in config.items():
        if isinstance(value, dict) and not _is_leaf(value):
            yield from _flatten(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", _plain(value)


def _is_leaf(value: Mapping[str, Any]) -> bool:
    """A dictionary that holds no other: one line, as a grid or an estimator's settings."""
    return not any(isinstance(inner, dict) for inner in value.values())


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return " / ".join(_plain(inner) for inner in value)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _run_line(kind: str, run: Run) -> list[str]:
    content = run.content
    versions = ", ".join(f"{name} {v}" for name, v in (content.get("versions") or {}).items())
    n_rows = content.get("n_rows", content.get("n_train"))
    rows = "" if n_rows is None else f"{n_rows:,}"
    if not content.get("complete", True):
        rows = f"first {rows}"
    return [
        kind,
        content["dataset"],
        rows,
        f"{content['seconds']:,.0f}",
        content["device"],
        versions,
        _by_methods(content, _processor),
        _by_methods(content, _commit),
    ]


def _by_methods(content: Mapping[str, Any], text_of: Callable[[Mapping[str, Any]], str]) -> str:
    """What the signature of the run says; where methods differ, each text with its methods."""
    groups: dict[str, list[str]] = {}
    for group in ("methods", "variants"):
        for name, method in content.get(group, {}).items():
            groups.setdefault(text_of(signature_of(content, method)), []).append(name)
    if len(groups) < 2:
        return next(iter(groups), text_of(content))
    return "<br>".join(f"{text}: {', '.join(names)}" for text, names in groups.items())


def _commit(signed: Mapping[str, Any]) -> str:
    commits = (signed.get("commit") or "unknown").split(", ")
    text = ", ".join(name[:7] for name in commits)
    return f"{text}, changed" if signed.get("dirty") else text


def _processor(signed: Mapping[str, Any]) -> str:
    return signed.get("processor") or "unknown"
