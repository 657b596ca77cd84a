"""docs/architecture.md tells the truth about the tree."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PICTURE = (ROOT / "docs" / "images" / "architecture.svg").read_text(encoding="utf-8")


def rooms(package: str) -> list[str]:
    """Read the first column of a package's table."""
    text = PAGE.split(f"\n`src/{package}`")[1]
    lines = text[text.index("|---") :].split("\n\n")[0].splitlines()[1:]
    return [re.findall(r"`([^`]+)`", line.split("|")[1])[0] for line in lines]


def units(package: str) -> set[str]:
    """List the packages and public modules right below a package."""
    found = (ROOT / "src" / package).glob("*")
    names = {
        path.stem for path in found if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("package", ["priornet", "priornet_paper"])
def test_every_room_stands_in_the_table_and_no_other(package):
    assert len(rooms(package)) == len(set(rooms(package)))
    assert set(rooms(package)) == units(package)


def test_rooms_stand_in_the_order_of_the_layers():
    source = (ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8")
    layers = re.findall(r'"(\w+)"', source.split("\nLAYERS = (")[1].split("\n)\n")[0])
    order = [room for room in layers if not room.startswith("_")]
    levels = {room: order.index(room) for room in rooms("priornet")}
    assert list(levels) == sorted(levels, key=lambda room: levels[room])


@pytest.mark.parametrize("package", ["priornet", "priornet_paper"])
def test_the_picture_shows_every_room(package):
    shown = re.sub(r"<[^>]+>", " ", PICTURE)
    left_out = {"messages", "writing"}  # small helpers, named in the table only
    assert not {room for room in units(package) - left_out if room not in shown}


def resolved(name: str) -> object:
    """Import the longest module of a dotted name, then take attributes."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def named() -> list[str]:
    """List the dotted names in backticks, with their package where the page leaves it out."""
    units_of_library = units("priornet")
    found = set()
    for text in re.findall(r"`([A-Za-z_][\w.]*)(?:\(\))?`", PAGE):
        first = text.split(".")[0]
        if text.endswith((".py", ".md", ".safetensors")) or "." not in text:
            continue
        if first in ("priornet", "priornet_paper"):
            found.add(text)
        elif first in units_of_library:
            found.add(f"priornet.{text}")
    return sorted(found)


@pytest.mark.parametrize("name", named())
def test_every_name_exists(name):
    if name != "priornet.commands":  # an entry-point group
        resolved(name)


def test_words_of_the_glossary_stand_once():
    section = PAGE.split("\n## Glossary\n")[1]
    words = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)[1:]
    assert 20 <= len(words) <= 30
    assert len(words) == len(set(words))


def test_short_names_of_the_glossary_are_in_the_code():
    section = PAGE.split("\n## Glossary\n")[1]
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    for line in section.splitlines()[4:]:
        for name in re.findall(r"`(\w+)`", line.split("|")[3] if line.count("|") > 3 else ""):
            assert re.search(rf"\b{name}\b", source), name


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:src|tests|docs)/[\w./]+)`", PAGE))))
def test_every_path_exists(path):
    assert (ROOT / path).exists()


def test_the_picture_has_colours_for_a_dark_screen():
    assert "prefers-color-scheme: dark" in PICTURE
