"""A process that is killed at any step of a save leaves a whole model to be found."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys

import pytest

from priornet.estimators.files import folder_swap
from priornet.estimators.files.folder_swap import (
    found_folder,
    open_together,
    replace_folder,
    state_of,
    whole_folder,
)
from priornet.writing import workplace

# Saves over a model again and again, each time in a child that is killed one step later, until a
# child comes through; then the model is read, and put back as it was. One way, then the other.
KILLED = """
import json, os, signal, sys, warnings
from pathlib import Path
import numpy as np
import priornet
from priornet import GaussianRegressor, writing
from priornet.estimators.files import folder_swap

STEPS = ("open", "os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree")
X = np.random.default_rng(0).normal(size=(30, 2))
old, new = (
    GaussianRegressor(hidden=(4,), epochs=1, random_state=n).fit(X, X[:, 0]) for n in (1, 2)
)
answers = {old.predict(X).tobytes(): "old", new.predict(X).tobytes(): "new"}

def save_until(path, last):
    left = [last]
    def count(event, arguments):
        if event in STEPS and str(path.parent) in str(arguments):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)
    new.save(path)
    os._exit(0)

def save_and_kill(path):
    for step in range(1, 100):
        old.save(path)
        assert [entry.name for entry in path.parent.iterdir()] == ["model"], "not tidy"
        child = os.fork()
        if child == 0:
            save_until(path, step)
        _, status = os.waitpid(child, 0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = answers[priornet.load(path).predict(X).tobytes()]
        yield f"{found} {'in place' if path.is_dir() else 'aside'} {len(caught)}"
        writing._swept.clear()  # as in the next process, whose save tidies up
        if os.WIFEXITED(status):
            break

found = {}
for way in ("exchange", "two steps"):
    if way == "two steps":
        folder_swap._renameat2 = lambda: None
    folder = Path(sys.argv[1]) / way
    folder.mkdir()
    found[way] = list(save_and_kill(folder / "model"))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Kill saves at every step, and collect what a reader finds after each."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path_factory.mktemp("killed"))],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("way", ["exchange", "two steps"])
def test_a_kill_at_any_step_leaves_a_model(way, killed):
    if way == "exchange" and folder_swap._renameat2() is None:
        pytest.skip("this system cannot exchange folders")
    found = killed[way]
    assert len(found) >= 8  # so many steps has a save
    assert found[0] == "old in place 0"
    assert found[-1] == "new in place 0"
    aside = [line for line in found if "aside" in line]
    if way == "exchange":
        assert not aside
    else:
        assert set(aside) == {"old aside 1"}  # and it says so


@pytest.fixture
def pair(tmp_path):
    """Make a new folder beside an old one."""
    path = tmp_path / "model"
    path.mkdir()
    (path / "old").touch()
    with workplace(path) as place:
        fresh = place / "model"
        fresh.mkdir()
        (fresh / "new").touch()
        yield fresh, path


def names(folder):
    """List the names that other programs see."""
    own = (path.name for path in folder.iterdir())
    return sorted(name for name in own if not re.match(r"\.priornet-[0-9a-f]{8}-", name))


@pytest.mark.parametrize("is_able", [True, False])
def test_the_new_one_takes_the_place_and_nothing_is_left(pair, is_able, monkeypatch):
    fresh, path = pair
    if not is_able:
        monkeypatch.setattr(folder_swap, "_renameat2", lambda: None)
    replace_folder(fresh, path)
    assert names(path) == ["new"]
    assert names(path.parent) == ["model"]


def test_a_file_system_that_cannot_exchange_takes_two_steps(pair, monkeypatch):
    def refuse(*_):
        folder_swap.ctypes.set_errno(errno.EINVAL)
        return -1

    monkeypatch.setattr(folder_swap, "_renameat2", lambda: refuse)
    fresh, path = pair
    replace_folder(fresh, path)
    assert names(path) == ["new"]


def test_another_error_is_told(pair, monkeypatch):
    def refuse(*_):
        folder_swap.ctypes.set_errno(errno.ENOSPC)
        return -1

    monkeypatch.setattr(folder_swap, "_renameat2", lambda: refuse)
    with pytest.raises(OSError, match="No space left") as caught:
        replace_folder(*pair)
    assert caught.value.filename == str(pair[1])
    assert names(pair[1]) == ["old"]


def test_a_failed_second_step_puts_the_old_one_back(pair, monkeypatch):
    fresh, path = pair
    rename = type(path).rename

    def fail_to_move_in(self, target):
        if self == fresh and not path.exists():  # the old one is aside
            raise OSError("disk full")
        return rename(self, target)

    monkeypatch.setattr(folder_swap, "_renameat2", lambda: None)
    monkeypatch.setattr(type(path), "rename", fail_to_move_in)
    with pytest.raises(OSError, match="disk full"):
        replace_folder(fresh, path)
    assert names(path) == ["old"]


def test_what_an_interrupted_replacement_left_is_found_and_removed_later(pair):
    fresh, path = pair
    aside = path.with_name(".priornet-old-model")
    path.rename(aside)
    assert found_folder(path) == aside
    replace_folder(fresh, path)
    assert found_folder(path) == path
    assert names(path.parent) == ["model"]


@pytest.mark.parametrize("is_able", [True, False])
def test_a_folder_that_somebody_called_old_stays(pair, is_able, monkeypatch):
    if not is_able:
        monkeypatch.setattr(folder_swap, "_renameat2", lambda: None)
    fresh, path = pair
    theirs = path.with_name(".model.old")
    theirs.mkdir()
    (theirs / "thesis").touch()
    replace_folder(fresh, path)
    assert names(path.parent) == [".model.old", "model"]
    assert names(theirs) == ["thesis"]


def test_what_an_earlier_version_set_aside_is_found_and_stays(pair):
    fresh, path = pair
    aside = path.with_name(".model.old")
    path.rename(aside)
    assert found_folder(path) == aside
    replace_folder(fresh, path)
    assert found_folder(path) == path
    assert names(aside) == ["old"]


def test_a_new_folder_gets_the_permissions_of_the_old_one(tmp_path):
    path = tmp_path / "model"
    path.mkdir(0o750)
    (path / "a").touch(0o640)
    with whole_folder(path) as fresh:
        (fresh / "a").write_text("new")
        (fresh / "b").touch()
    assert path.stat().st_mode & 0o777 == 0o750
    assert (path / "a").stat().st_mode & 0o777 == 0o640
    assert names(path) == ["a", "b"]


def test_an_error_on_the_way_leaves_the_old_folder_and_names_it(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    with pytest.raises(OSError, match="No space left") as caught, whole_folder(path) as fresh:
        raise OSError(errno.ENOSPC, "No space left on device", str(fresh / "weights"))
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == [path]
    assert names(path) == []


def test_nothing_is_found_where_nothing_is(tmp_path):
    assert found_folder(tmp_path / "model") == tmp_path / "model"


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="opens files by path only")
def test_files_are_of_one_folder_though_it_is_replaced_between_them(tmp_path):
    path, other = tmp_path / "model", tmp_path / "other"
    for folder in (path, other):
        folder.mkdir()
        for name in ("first", "second"):
            (folder / name).write_text(folder.name)

    def replace_it_meanwhile():
        yield "first"
        path.rename(tmp_path / "old")
        other.rename(path)
        yield "second"

    with open_together(path, replace_it_meanwhile()) as files:
        assert [file.read() for file in files] == [b"model", b"model"]


def test_a_file_that_cannot_be_opened_is_named_by_its_path(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for name, kind in (("missing", FileNotFoundError), ("loop", OSError)):
        with pytest.raises(kind) as caught, open_together(tmp_path, [name]):
            pass
        assert caught.value.filename == str(tmp_path / name)


def test_a_folder_that_changed_has_another_state(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    states = [state_of(path, ["one"])]
    (path / "one").write_text("1")
    states.append(state_of(path, ["one"]))
    path.rename(tmp_path / "old")
    states.append(state_of(path, ["one"]))
    path.mkdir()
    (path / "one").write_text("1")
    states.append(state_of(path, ["one"]))
    assert len(set(states)) == 4
    assert state_of(path, ["one"]) == states[-1]
