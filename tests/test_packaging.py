"""The files that describe the package agree with each other."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import priornet

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIREMENTS = [
    Requirement(text)
    for group in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for text in group
]
EXTRAS = set(PROJECT["optional-dependencies"])
PINS = {
    canonicalize_name(line.split("==")[0]): line.split("==")[1]
    for line in (ROOT / "constraints.txt").read_text().split("\n")
    if line and not line.startswith("#")
}


@pytest.mark.parametrize(
    "requirement", [r for r in REQUIREMENTS if r.name != "priornet"], ids=lambda r: r.name
)
def test_tested_version_is_pinned_and_satisfies_the_lower_bound(requirement):
    assert [s.operator for s in requirement.specifier] == [">="]
    assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)])


def test_citation_names_the_current_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {priornet.__version__}\n" in citation


def test_changelog_has_the_current_version_on_top():
    sections = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    state = r"(unreleased|\d{4}-\d\d-\d\d)"
    assert re.fullmatch(rf"\[{re.escape(priornet.__version__)}\] - {state}", sections[0])


TEXTS = [
    *ROOT.glob("*.md"),
    *(path for name in ("docs", "benchmarks") for path in (ROOT / name).rglob("*.md")),
    *(path for name in ("src", "examples") for path in (ROOT / name).rglob("*.py")),
]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_extras_are_installed_from_a_checkout(path):
    """The package is on no index: by its name pip finds nothing, or something else."""
    text = path.read_text("utf-8")
    assert not re.search(r"pip install\s+[\"'`]*priornet", text)
    named = set(re.findall(r"pip install '\.\[([a-z,]+)\]'", text))
    assert {extra for names in named for extra in names.split(",")} <= EXTRAS
