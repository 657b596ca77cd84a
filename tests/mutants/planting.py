"""A mutant, how it is planted, and what the tests say of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["CATALOGUE", "Mutant", "Outcome", "Project", "read_catalogue", "tried"]

CATALOGUE = Path(__file__).parent / "catalogue.toml"

_LONGEST = 600  # seconds for the tests of one mutant
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_TESTS_FAILED, _TESTS_PASSED = 1, 0  # exit codes of pytest; others are no answer


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Attributes:
        name: What is wrong, in short.
        file: The file that holds it, from the folder of the packages.
        old: Text that stands there once.
        new: Text that takes its place.
        tests: Files that should find it, from the folder of the tests.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Project:
    """Packages and their tests.

    Attributes:
        source: Folder of the packages, such as ``src``.
        tests: Folder of the tests; pytest starts in the folder around it.
    """

    source: Path
    tests: Path


@dataclass(frozen=True)
class Outcome:
    """The tests' answer to a mutant.

    Attributes:
        verdict: ``"broken patch"`` where the old text does not stand there once, or the tests could
            not run to their end.
        by: The test that failed first, or what is wrong with the patch; empty for a mutant that
            was not found.
        seconds: How long that took.
    """

    verdict: Literal["found", "not found", "broken patch"]
    by: str
    seconds: float


def read_catalogue(path: Path = CATALOGUE) -> dict[str, Mutant]:
    """Read the mutants by their names."""
    found: dict[str, Mutant] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
        mutant = Mutant(**{**entry, "tests": tuple(entry["tests"])})
        if mutant.name in found:
            raise ValueError(f"{path}: two mutants are called {mutant.name!r}; rename one.")
        found[mutant.name] = mutant
    return found


def tried(mutant: Mutant, project: Project) -> Outcome:
    """Plant a mutant in a copy of the packages, and run its tests until the first one fails."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(project.source, copy)  # compiled files too: only one changes
        planted = copy / mutant.file
        text = planted.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            wrong = f"{mutant.file} holds the old text {text.count(mutant.old)} times"
            return Outcome("broken patch", wrong, 0.0)
        planted.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        verdict, by = _verdict(mutant.tests, project, copy)
    return Outcome(verdict, by, round(time.perf_counter() - started, 1))


def _verdict(
    tests: tuple[str, ...], project: Project, source: Path
) -> tuple[Literal["found", "not found", "broken patch"], str]:
    """Run test files against the packages in ``source``, which come before installed ones."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider"]
    command += [str(project.tests / test) for test in tests]
    environment = {**os.environ, "PYTHONPATH": str(source), "COLUMNS": "500"}
    try:
        done = subprocess.run(
            command,
            cwd=project.tests.parent,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_LONGEST,
        )
    except subprocess.TimeoutExpired:
        return "broken patch", f"the tests took more than {_LONGEST} seconds"
    if done.returncode == _TESTS_PASSED:
        return "not found", ""
    failed = _FAILED.search(done.stdout)
    if done.returncode != _TESTS_FAILED or failed is None:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        return "broken patch", f"pytest ended with {done.returncode}: {' '.join(last)}"
    return "found", failed[1]
