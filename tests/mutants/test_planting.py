"""The catalogue fits the code; a planted mutant is found, not found, or a broken patch."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants.planting import Mutant, Project, read_catalogue, tried

ROOT = Path(__file__).parents[2]
EVERY_MUTANT = pytest.mark.parametrize("mutant", read_catalogue().values(), ids=lambda m: m.name)


@EVERY_MUTANT
def test_the_old_text_of_every_mutant_stands_once_in_its_file(mutant):
    text = (ROOT / "src" / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old
    assert mutant.tests
    for test in mutant.tests:
        assert (ROOT / "tests" / test).is_file()


def test_names_stand_once(tmp_path):
    entry = '[[mutant]]\nname = "a"\nfile = "f"\nold = "x"\nnew = "y"\ntests = ["t"]\n'
    path = tmp_path / "catalogue.toml"
    path.write_text(2 * entry)
    with pytest.raises(ValueError, match="two mutants are called 'a'"):
        read_catalogue(path)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A package that adds one, and its test."""
    package, tests = tmp_path / "src" / "adding", tmp_path / "tests"
    package.mkdir(parents=True)
    tests.mkdir()
    (package / "__init__.py").write_text("def successor(x):\n    return x + 1\n")
    (tests / "test_adding.py").write_text(
        "from adding import successor\n\n\ndef test_successor():\n    assert successor(1) == 2\n"
    )
    return Project(package.parent, tests)


def planted(project: Project, old: str, new: str) -> tuple[str, str]:
    """Verdict, and what it rests on."""
    outcome = tried(Mutant("some", "adding/__init__.py", old, new, ("test_adding.py",)), project)
    return outcome.verdict, outcome.by


def test_a_mistake_is_found_and_the_test_is_named(project):
    assert planted(project, "x + 1", "x - 1") == ("found", "tests/test_adding.py::test_successor")
    assert (project.source / "adding" / "__init__.py").read_text().endswith("x + 1\n")


def test_an_equivalent_change_is_not_found(project):
    assert planted(project, "x + 1", "1 + x") == ("not found", "")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("x + 2", "x - 1", "adding/__init__.py holds the old text 0 times"),
        ("x", "y", "adding/__init__.py holds the old text 2 times"),
        ("return x + 1", "return (", "pytest ended with 2"),
    ],
)
def test_a_patch_that_does_not_fit_or_does_not_import_is_broken(project, old, new, why):
    verdict, by = planted(project, old, new)
    assert verdict == "broken patch"
    assert by.startswith(why)
