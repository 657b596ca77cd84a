"""Attack on files by name: inputs and files of others, named as outputs in every spelling."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack._commands import QUICK, Server, must, prepare, server
from attack.trial import Attack, Counts

__all__ = ["ATTACKS"]


@dataclass(frozen=True)
class _Option:
    """A command without the value of its output option, which comes last."""

    arguments: tuple[str, ...]
    inputs: tuple[str, ...]
    """Files that it reads, and that the option must not name."""
    ending: str = ""
    """Of the file that the option names; empty where it names a folder."""
    names: tuple[str, ...] = ()
    """Files that it writes into a folder; none where the option names the file or a model."""
    is_beside: bool = False
    """Whether the file in question is the report beside a model."""
    is_quick: bool = True
    """Whether a run that is not refused is over in a moment."""


_MODEL = ("model/config.json", "model/weights.safetensors")
_FIT = ("fit", "data.csv", "--target", "y", *QUICK)
_DISTILL = ("distill", "--teacher", "model", "--data", "data.csv", "--epochs", "1")
_OPTIONS = (
    _Option((*_FIT, "--out", "fitted", "--report"), ("data.csv",), ".html"),
    _Option((*_FIT, "--out"), ("data.csv",)),
    _Option((*_FIT, "--out"), (), is_beside=True),
    _Option(("predict", "model", "data.csv", "--out"), ("data.csv", *_MODEL), ".csv"),
    _Option(("predict", "model", "data.csv", "--out"), ("data.csv", *_MODEL), ".parquet"),
    _Option(("predict", "model", "-", "--out"), ("data.csv", *_MODEL), ".csv"),
    _Option(("evaluate", "model", "data.csv", "--report"), ("data.csv", *_MODEL), ".html"),
    _Option(
        ("evaluate", "model", "data.csv", "--ood", "more.csv", "--report"),
        ("data.csv", "more.csv", *_MODEL),
        ".html",
    ),
    _Option(("export", "model", "--onnx"), _MODEL, ".onnx"),
    _Option(("export", "model", "--torch-export"), _MODEL, ".pt2", is_quick=False),
    _Option((*_DISTILL, "--out"), ("data.csv", *_MODEL), is_quick=False),
    _Option(
        ("demo", "--preset", "smoke", "--out"),
        (),
        names=("synthetic.json", "diabetes.json", "synthetic.png", "report.html"),
        is_quick=False,
    ),
    _Option(
        ("reproduce", "synthetic", "--preset", "smoke", "--out"),
        (),
        names=("synthetic.json", "synthetic-panels.png", "synthetic-panels.svg"),
        is_quick=False,
    ),
    _Option(
        ("reproduce", "behaviours", "--out"),
        (),
        names=("behaviours.json", "behaviours.png", "behaviours.svg"),
    ),
    _Option(
        ("reproduce", "page", "--results", "empty", "--notes", "notes.json", "--out"),
        ("notes.json",),
        ".md",
    ),
)
_FOREIGN = (
    b"years of work\n",
    b"a,b,y\n1,2,3\n4,5,6\n",
    b"<!doctype html>\n<html><head><title>mine</title></head></html>\n",
    b'{"theme": "dark"}\n',
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR mine",
    b"\x08\x08\x12\x07pytorch\x1a\x052.0.0:",
    b"PK\x05\x06" + bytes(18),
    b"PAR1" + bytes(20) + b"PAR1",
)


def _outputs_over_inputs(seed: int, tries: int, folder: Path) -> Counts:
    """Name inputs and files of others as outputs, in every spelling; and own outputs twice."""
    draw, run = random.Random(seed), server()
    prepared = prepare(folder, run)
    (prepared / "notes.json").write_text("{}")
    (prepared / "empty").mkdir()
    found: Counter[str] = Counter(
        dict.fromkeys(("inputs", "foreign", "own", "refused", "tries"), 0)
    )
    found.update(dict.fromkeys(_ZERO_OF_OUTPUTS, 0))
    place = folder / "place"
    for number in range(tries):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(prepared, place)
        option = _OPTIONS[number % len(_OPTIONS)]  # each in turn, whatever the seed
        kinds = ["foreign"] + ["inputs"] * bool(option.inputs)
        kinds += ["own"] * option.is_quick
        kind = draw.choice(kinds)
        {"inputs": _input, "foreign": _of_others, "own": _own}[kind](
            option, place, draw, run, found
        )
        found[kind] += 1
        found["tries"] += 1
    return dict(found)


def _input(option: _Option, place: Path, draw: random.Random, run: Server, found: Any) -> None:
    target = place / draw.choice(option.inputs)
    if not option.ending:  # a folder is asked for: that of the model, or the file itself
        target = target.parent if target.parent != place else target
    before = _contents(place)
    arguments = [*option.arguments, _spelled(target, place, draw)]
    if option.ending and draw.random() < 0.5:
        arguments.append("--overwrite")
    ended = run.command(arguments, place, stdin=place / "data.csv")
    found["inputs_replaced"] += _n_changed(before, place)
    found["refused"] += ended.code == 2
    found["not_refused"] += ended.code != 2


def _of_others(option: _Option, place: Path, draw: random.Random, run: Server, found: Any) -> None:
    value = place / f"mine{option.ending}"
    if option.ending:
        target = value
    elif option.names:
        target = value / draw.choice(option.names)
    else:  # where a model would go
        target = value / draw.choice(("config.json", "weights.safetensors", "thesis.tex"))
    if option.is_beside:
        target = place / f"{value.name}-report.html"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(draw.choice(_FOREIGN))
    before = _contents(place)
    spelled = value.name if option.is_beside else _spelled(value, place, draw)
    ended = run.command([*option.arguments, spelled], place, stdin=place / "data.csv")
    found["foreign_replaced"] += _n_changed(before, place)
    found["refused"] += ended.code == 2
    found["not_refused"] += ended.code != 2


def _own(option: _Option, place: Path, draw: random.Random, run: Server, found: Any) -> None:
    value = f"mine{option.ending}"
    arguments = [argument for argument in option.arguments if argument != "--quiet"]
    must(run.command([*arguments, value], place, stdin=place / "more.csv"))
    again = run.command([*arguments, value], place, stdin=place / "more.csv")
    found["own_refused"] += again.code != 0
    found["own_replaced_silently"] += "that is there will be replaced" not in again.stderr


def _spelled(path: Path, place: Path, draw: random.Random) -> Path | str:
    """One path in one of many ways, as seen from the place."""
    name = f"{draw.randrange(1 << 40):x}{path.suffix}"
    way = draw.choice(("plain", "absolute", "dots", "up", "link", "links", "hard", "folder"))
    if way == "absolute":
        return path
    if way == "dots":
        return f"./././{path.relative_to(place)}"
    if way == "up":
        return f"../{place.name}/model/../{path.relative_to(place)}"
    if way in ("link", "links"):
        (place / name).symlink_to(path)
        if way == "link":
            return name
        (place / f"l{name}").symlink_to(name)
        return f"l{name}"
    if way == "hard" and path.is_file():
        os.link(path, place / name)
        return name
    if way == "folder":
        (place / f"d{name}").symlink_to(path.parent)
        return f"d{name}/{path.name}"
    return path.relative_to(place)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _contents(place: Path) -> dict[Path, str]:
    return {path: _digest(path) for path in place.rglob("*") if path.is_file()}


def _n_changed(before: dict[Path, str], place: Path) -> int:
    """Count files that were there and are not, or hold something else."""
    after = _contents(place)
    return sum(after.get(path) != digest for path, digest in before.items())


_ZERO_OF_OUTPUTS = (
    *("foreign_replaced", "inputs_replaced", "not_refused", "own_refused"),
    "own_replaced_silently",
)

ATTACKS = (
    Attack(
        "outputs-over-inputs",
        "No command replaces its own input or a file that priornet did not make, however it is "
        "spelled; its own output of before is replaced and named.",
        _outputs_over_inputs,
        300,
        _ZERO_OF_OUTPUTS,
    ),
)
