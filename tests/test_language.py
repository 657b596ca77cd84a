"""The language of code and pages: docstrings open plainly, and retired words stay retired.

CONTRIBUTING.md says which words to use. Planted violations show that each rule bites.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(ROOT.glob("src/**/*.py"))
OTHERS = sorted(
    path
    for folder in ("tests", "benchmarks", "examples")
    for path in ROOT.glob(f"{folder}/**/*.py")
    if "node_modules" not in path.parts and path != Path(__file__)
)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benchmarks" / "README.md"])

DOCUMENTED = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module
OPENINGS = frozenset(
    ("what", "whether", "how", "where", "of", "that", "who", "which", "when", "why", "those")
)
RETIRED = re.compile(
    r"(?<![a-z])(foreign|strange|beyond|holes?|remarks?|pupils?|school|lessons?|lending|recipes?"
    r"|usual|elsewhere)(?![a-z])",
    re.IGNORECASE,
)

# Names that people type or that files keep, and the page that lists the words themselves.
ALLOWED = re.compile(
    r"""
    # a preset of `reproduce uci`, in code, commands, help and tables
      ["`'>.]beyond["`'<.] | \bBEYOND\b | \bpreset\ beyond\b | \|\ beyond\b | \(beyond\ only\)
    | \bbeyond: | \bof\ beyond\b
    # settings, keys and names in results files, and an option of `reproduce depth`
    | ["`']strange["`'] | \bstrange(?==|:\ float) | \bdropout\ strange\b | \bconfig\.strange\b
    | nyu-strange-\S+
    | ["']foreign["'] | \bforeign-(?:by|\{|\w+[-.]) | --foreign\b | depth-foreign-[\w{}]+
    | \brecipes/ | ["']unexpected_holes["']
    # "missing value (not hole)"
    | \(not\ [a-z, ]+\)
    """,
    re.VERBOSE,
)


@functools.cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def retired(text: str) -> list[str]:
    """Words that are no longer used, in a text without the allowed names."""
    return [match.group() for match in RETIRED.finditer(ALLOWED.sub(" ", text))]


def riddles(source: str) -> list[str]:
    """Docstrings that open with a word that leaves the reader to guess the rest."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        first = re.match(r"[^A-Za-z]*([A-Za-z]+)", text or "")
        if first and first.group(1).lower() in OPENINGS:
            found.append(f"{getattr(node, 'lineno', 1)}: {(text or '').splitlines()[0]}")
    return found


def spoken(source: str) -> Iterator[tuple[int, str]]:
    """Comments, docstrings and names of functions, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED):
            line = getattr(node, "lineno", 1)
            yield line, ast.get_docstring(node) or ""
            yield line, getattr(node, "name", "")


def all_of(find: Callable[[str], Iterable[str]], paths: list[Path]) -> list[str]:
    """Findings in files, as ``path:line: finding``."""
    return [f"{path.relative_to(ROOT)}:{found}" for path in paths for found in find(read(path))]


def retired_lines(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if words := retired(line):
            yield f"{number}: {', '.join(words)}"


def retired_claims(source: str) -> Iterator[str]:
    for number, text in spoken(source):
        if words := retired(text):
            yield f"{number}: {', '.join(words)}"


def test_docstrings_open_with_a_verb_or_the_thing():
    assert all_of(riddles, [*SOURCES, *OTHERS]) == []


def test_code_and_pages_use_the_common_word():
    assert all_of(retired_lines, [*SOURCES, *PAGES]) == []


def test_claims_and_comments_use_the_common_word():
    assert all_of(retired_claims, OTHERS) == []


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """What it returns."""',
        'class A:\n    """Whether it holds."""',
        '"""Of a table."""',
        'class A:\n    @property\n    def b(self):\n        """How many."""',
    ],
)
def test_planted_openings_are_found(source):
    assert riddles(source)


@pytest.mark.parametrize(
    "text",
    [
        "# a hole in the table",
        "far beyond it",
        "n_holes = 3",
        "the usual value",
        "class Recipe",
    ],
)
def test_planted_words_are_found(text):
    assert retired(text)


@pytest.mark.parametrize(
    "text",
    ['preset == "beyond"', "`reproduce uci --preset beyond`", "--foreign kitti=PATH", "the whole"],
)
def test_names_that_people_type_are_allowed(text):
    assert not retired(text)


def test_planted_claims_are_found():
    source = "# a lesson\ndef test_of_a_pupil():\n    '''A remark.'''\n"
    assert list(retired_claims(source)) == ["1: lesson", "2: remark", "2: pupil"]
