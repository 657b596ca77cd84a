"""Attacks on saved models: races, flipped bits, and folders that no ``save`` wrote.

What a folder should give is known from the models in memory, before they are saved; digests are
forged by ``_models``, which spells them out.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import priornet
from attack._hostile_folders import spoil
from attack.trial import Attack, Counts
from priornet import DeepEnsembleRegressor, PriorNetRegressor

__all__ = ["ATTACKS"]

CONFIG, WEIGHTS = "config.json", "weights.safetensors"
N_ROWS = 40

# Puts models in the place of each other until it is told to stop.
WRITER = """
import itertools, shutil, sys, threading
from pathlib import Path
import priornet

way, place, *sources = sys.argv[1:]
models = [priornet.load(source) for source in sources]
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
print("ready", flush=True)
for i in itertools.cycle(range(len(models))):
    if way == "save":
        models[i].save(place)
    else:
        for name in ("config.json", "weights.safetensors"):
            shutil.copyfile(Path(sources[i]) / name, Path(place) / name)
            stop.wait(0.002)
    if stop.wait(0 if way == "save" else 0.01):
        break
"""


class Known(NamedTuple):
    """Fitted models of one table, and the bytes of what each predicts."""

    models: tuple[Any, ...]
    rows: pd.DataFrame
    answers: tuple[bytes, ...]


@cache
def known(seed: int) -> Known:
    """Fit models of one shape with different scaling, of another shape, and of another kind."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {"size": rng.normal(70, 20, N_ROWS), "town": rng.choice(["Aix", "Bern", "Como"], N_ROWS)}
    )
    y = pd.Series(rows["size"] + rng.normal(size=N_ROWS), name="price")
    models = (
        DeepEnsembleRegressor(2, hidden=(8,), epochs=2, random_state=0).fit(rows, y),
        DeepEnsembleRegressor(2, hidden=(8,), epochs=2, random_state=1).fit(rows, 5e4 + 1e3 * y),
        DeepEnsembleRegressor(3, hidden=(5,), epochs=2, random_state=2).fit(rows, y),
        PriorNetRegressor(hidden=(6,), epochs=2, random_state=3).fit(rows, y),
    )
    return Known(models, rows, tuple(answer(model, rows) for model in models))


def answer(model: Any, rows: pd.DataFrame) -> bytes:
    """The predictions of a model for some rows, to the last bit."""
    return np.stack(model.predict(rows, return_std=True)).tobytes()


def quietly_loaded(path: Path) -> Any:
    """Load a model; the notice of the first format is not what is attacked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return priornet.load(path)


def race(way: str, seed: int, tries: int, folder: Path) -> Counts:
    """Load a model while another process puts others in its place."""
    found = known(seed)
    sources = [str(folder / f"source-{i}") for i in range(len(found.models))]
    for model, source in zip(found.models, sources, strict=True):
        model.save(source)
    place = folder / "model"
    found.models[0].save(place)
    counts: Counter[str] = Counter(tries=tries, mixed=0, failed=0, changes=0)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, way, str(place), *sources],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    try:
        assert writer.stdout.readline() == b"ready\n"
        before, rng = b"", random.Random(seed)
        for _ in range(tries):
            time.sleep(rng.random() * 1e-3)  # else the two may run in step
            try:
                given = answer(quietly_loaded(place), found.rows)
            except Exception:  # whatever it is: there was a model at every moment
                counts["failed"] += 1
                continue
            counts["mixed"] += given not in found.answers
            counts["changes"] += given != before
            before = given
        assert writer.poll() is None, "the writer ended before the readers"
    finally:
        writer.stdin.close()
        writer.wait(600)
        writer.stdout.close()
    return dict(counts)


def loads_during_replacement(seed: int, tries: int, folder: Path) -> Counts:
    """Load while another process saves other models over the folder."""
    return race("save", seed, tries, folder)


def loads_during_copying(seed: int, tries: int, folder: Path) -> Counts:
    """Load while another process copies the files of other models over those of the folder."""
    return race("copy", seed, tries, folder)


def flips(name: str, seed: int, tries: int, folder: Path) -> Counts:
    """Flip one bit of a file of a model, load it, and flip it back."""
    found, rng = known(seed), random.Random(seed)
    counts: Counter[str] = Counter(tries=tries, passed=0, unclear=0)
    whole: dict[Path, bytes] = {}
    for i, model in enumerate(found.models):
        model.save(folder / f"model-{i}")
        whole[folder / f"model-{i}"] = (folder / f"model-{i}" / name).read_bytes()
        assert answer(quietly_loaded(folder / f"model-{i}"), found.rows) == found.answers[i]
    for _ in range(tries):
        place = rng.choice(list(whole))
        content = bytearray(whole[place])
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        (place / name).write_bytes(content)
        try:
            quietly_loaded(place)
            counts["passed"] += 1
        except Exception as error:
            counts["unclear"] += not is_clear(error, place)
        (place / name).write_bytes(whole[place])
    return dict(counts)


def is_clear(error: Exception, place: Path) -> bool:
    """Tell if an error is of the kind and names the place, in one line that a person can read."""
    text = str(error)
    one_line = "\n" not in text and len(text) <= len(str(place)) * 3 + 600
    return isinstance(error, (ValueError, OSError)) and one_line and place.name in text


def flips_of_weights(seed: int, tries: int, folder: Path) -> Counts:
    """Flip bits of weights."""
    return flips(WEIGHTS, seed, tries, folder)


def flips_of_config(seed: int, tries: int, folder: Path) -> Counts:
    """Flip bits of configurations."""
    return flips(CONFIG, seed, tries, folder)


def hostile_folders(seed: int, tries: int, folder: Path) -> Counts:
    """Load folders that were spoiled in one of many ways, some of them with forged digests."""
    found, rng = known(seed), random.Random(seed)
    counts: Counter[str] = Counter(tries=tries, silent=0, unclear=0, forged=0, loaded_forged=0)
    sources = [folder / f"source-{i}" for i in range(len(found.models))]
    for model, source in zip(found.models, sources, strict=True):
        model.save(source)
    for i in range(tries):
        place = folder / f"model-{i}"
        kept, other = rng.sample(sources, 2)
        shutil.copytree(kept, place)
        is_forged = spoil(place, other, rng)
        counts["forged"] += is_forged
        try:
            loaded = quietly_loaded(place)
        except Exception as error:
            counts["unclear"] += not is_clear(error, place)
        else:
            counts["loaded_forged"] += is_forged
            counts["silent"] += not (is_forged and is_sane(loaded, found.rows))
        remove(place)
    return dict(counts)


def is_sane(model: Any, rows: pd.DataFrame) -> bool:
    """Tell if predictions are numbers, or refused; a forger may write another model that works."""
    try:
        return bool(np.isfinite(model.predict(rows, return_std=True)).all())
    except (ArithmeticError, ValueError):
        return True


def remove(place: Path) -> None:
    """Remove whatever stands at a place."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


ATTACKS = (
    Attack(
        "loads-during-replacement",
        "A model that is loaded while another is saved over it is one of the two.",
        loads_during_replacement,
        10_000,
        ("mixed", "failed"),
    ),
    Attack(
        "loads-during-copying",
        "A model that is loaded while files are copied over it is never a mixture.",
        loads_during_copying,
        2000,
        ("mixed",),
    ),
    Attack(
        "bit-flips-of-weights",
        "A saved model of which one bit of the weights was flipped is refused.",
        flips_of_weights,
        5000,
        ("passed", "unclear"),
    ),
    Attack(
        "bit-flips-of-config",
        "A saved model of which one bit of the configuration was flipped is refused.",
        flips_of_config,
        5000,
        ("passed", "unclear"),
    ),
    Attack(
        "hostile-folders",
        "A folder that is no model is refused in one line; a forged one predicts numbers, or is.",
        hostile_folders,
        5000,
        ("silent", "unclear"),
    ),
)
