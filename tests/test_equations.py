"""docs/equations.md names code and tests that exist and that cite the equation."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Row:
    """One line of the index: equation numbers, dotted names, test files."""

    numbers: tuple[str, ...]
    code: tuple[str, ...]
    tests: tuple[str, ...]


def read_index(text: str) -> list[Row]:
    """Parse the table under the heading "Index"."""
    section = text.split("\n## Index\n")[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in section.split("\n") if line.startswith("|")]
    return [
        Row(
            tuple(re.findall(r"\d+", numbers)),
            tuple(re.findall(r"`([^`]+)`", code)),
            tuple(re.findall(r"`([^`]+)`", tests)),
        )
        for numbers, _, code, tests in lines[2:]
    ]


def resolve(name: str) -> object:
    """Import the longest prefix of a dotted name that is a module; take the rest as attributes."""
    parts = name.split(".")
    found: object = import_module(parts[0])
    for depth, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            import_module(".".join(parts[:depth]))
        found = getattr(found, part)
    return found


def source_of(thing: object) -> str:
    """The text of the file that defines a module, class, function, method or property."""
    while not inspect.ismodule(thing) and (
        wrapped := getattr(thing, "fget", None)
        or getattr(thing, "wrapped", None)
        or getattr(thing, "__wrapped__", None)
    ):
        thing = wrapped
    return Path(inspect.getfile(thing)).read_text()  # pyright: ignore[reportArgumentType] fails loudly


def cites(text: str, numbers: tuple[str, ...]) -> bool:
    """Tell if the text cites one of the equations, as in "Eq. (4)" or "Eqs. (27) and (28)"."""
    return any(re.search(rf"\bEqs?\.[^\n]*\({number}\)", text) for number in numbers)


INDEX = read_index((ROOT / "docs" / "equations.md").read_text())
ROWS = pytest.mark.parametrize("row", INDEX, ids=lambda row: "Eq. " + ",".join(row.numbers))


def test_index_lists_every_equation_once():
    numbers = [number for row in INDEX for number in row.numbers]
    steps = {"23", "24", "30", "31", "38", "39"}
    assert len(numbers) == len(set(numbers))
    assert set(numbers) | steps == {str(n) for n in range(1, 46)}


@ROWS
def test_code_exists_and_cites_the_equation(row):
    assert row.code
    for name in row.code:
        assert cites(source_of(resolve(name)), row.numbers), f"{name} does not cite its equation"


@ROWS
def test_test_file_exists_and_cites_the_equation(row):
    assert row.tests
    for path in row.tests:
        assert cites((ROOT / path).read_text(), row.numbers), f"{path} does not cite its equation"


def test_citations_are_recognised():
    assert cites("Paper: Eq. (11), arXiv:2006.11590v2.", ("11",))
    assert cites("# Eqs. (27) and (28)", ("28",))
    assert not cites("Eq. (11)", ("1",))


def test_missing_names_are_noticed():
    with pytest.raises(ImportError):
        resolve("priornet.no_such_module.name")
    with pytest.raises((AttributeError, ImportError)):
        resolve("priornet._version.no_such_name")
