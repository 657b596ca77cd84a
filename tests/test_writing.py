"""Files are whole or as before; leftovers of killed writers are removed, unfinished work is not."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import stat
import subprocess
import sys
import time

import pytest

from priornet import writing
from priornet.writing import (
    found_folder,
    open_together,
    replace_folder,
    state_of,
    sweep,
    whole_file,
    whole_folder,
    whole_path,
    workplace,
    write_bytes,
)

# Writes over a file again and again, each time in a child that is killed one step later, until a
# child comes through; then another process writes, and lists the folder.
KILLED = """
import os, signal, sys
from pathlib import Path
from priornet import writing

folder = Path(sys.argv[1])
path = folder / "a.txt"

def write_until(last):
    left = [last]
    def count(event, arguments):
        if event in ("open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir"):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)
    writing.write_bytes(path, b"new")
    os._exit(0)

for step in range(1, 100):
    path.write_bytes(b"old")
    child = os.fork()
    if child == 0:
        write_until(step)
    _, status = os.waitpid(child, 0)
    found = path.read_bytes().decode()
    left = len(os.listdir(folder)) - 1
    if os.fork() == 0:
        writing.write_bytes(path, b"next")
        os._exit(0)
    os.wait()
    print(found, left, *os.listdir(folder))
    if os.WIFEXITED(status):
        break
"""


def leftover(folder, machine=None, number=0):
    """Make the folder that a killed process leaves."""
    place = folder / f".priornet-{machine or writing._machine()}-{number:016x}"
    place.mkdir()
    (place / writing._LOCK).touch()
    (place / "big.csv").write_text("half a tab")
    return place


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    """Forget which folders were swept."""
    monkeypatch.setattr(writing, "_swept", set())


def test_content_is_visible_at_the_end_and_not_before(tmp_path):
    path = tmp_path / "a.txt"
    with whole_file(path) as file:
        file.write(b"new")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_content_is_on_the_disk_before_its_name_and_the_name_before_the_end(tmp_path, monkeypatch):
    steps, replace = [], os.replace

    def synced(handle):
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        assert steps[-1] == "folder" or os.fstat(handle).st_size == 3

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda *paths: steps.append("name") or replace(*paths))
    write_bytes(tmp_path / "a", b"new")
    with whole_path(tmp_path / "b") as fresh:
        fresh.write_bytes(b"new")
    assert steps == ["file", "name", "folder"] * 2


def test_a_disk_that_fails_to_sync_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_bytes(tmp_path / "a", b"old")

    def fail(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output") as caught:
        write_bytes(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"


def test_an_error_leaves_the_old_file(tmp_path):
    path = write_bytes(tmp_path / "new" / "a.txt", b"old")

    def interrupted():
        with whole_file(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", ["x" * 255, ".priornet-lock2", "lock", "ä b.csv"])
def test_any_name_is_accepted(tmp_path, name):
    assert write_bytes(tmp_path / name, b"1").read_bytes() == b"1"


def test_permissions_are_kept(tmp_path):
    for path in (tmp_path / "a", tmp_path / "b"):
        path.touch()
        path.chmod(0o640)
    write_bytes(tmp_path / "a", b"new")
    with whole_path(tmp_path / "b") as fresh:
        fresh.write_bytes(b"new")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}


def test_a_new_file_has_default_permissions(tmp_path):
    (tmp_path / "default").touch()
    write_bytes(tmp_path / "a", b"new")
    with whole_path(tmp_path / "b") as fresh:
        fresh.unlink()
        os.close(os.open(fresh, os.O_CREAT | os.O_WRONLY, 0o600))  # a library's own, and private
    assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_leads_to_the_new_file(tmp_path, is_there):
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    target.parent.mkdir()
    if is_there:
        target.write_bytes(b"old")
    link.symlink_to("far/target")
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "link", "target"]


def test_a_folder_and_a_pipe_are_no_places_for_a_file(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("folder", "Is a directory"), ("pipe", "a device or a pipe")):
        with pytest.raises(OSError, match=reason) as caught:
            write_bytes(tmp_path / name, b"")
        assert caught.value.filename == str(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "pipe"}


def test_a_missing_folder_is_named_as_the_target(tmp_path):
    path = tmp_path / "none" / "a.txt"
    with pytest.raises(FileNotFoundError) as caught, whole_file(path):
        pytest.fail("it was opened")
    assert caught.value.filename == str(path)


def test_a_full_disk_names_the_target(tmp_path):
    """Limit the size of files, in place of a full disk."""
    path = write_bytes(tmp_path / "a.txt", b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match="too large") as caught:
            write_bytes(path, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_about_another_file_keep_its_name(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, whole_file(tmp_path / "a.txt"):
        (tmp_path / "source").read_text()
    assert caught.value.filename == str(tmp_path / "source")


def test_a_kill_at_any_step_leaves_a_whole_file_and_the_next_write_tidies_up(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = [line.split(" ", 2) for line in done.stdout.splitlines()]
    contents = [content for content, _, _ in found]
    assert contents == sorted(contents, reverse=True)  # the old ones, then the new ones
    assert set(contents) == {"old", "new"}
    assert any(left == "1" for _, left, _ in found), "no kill left anything to tidy up"
    assert {after for _, _, after in found} == {"a.txt"}


def test_leftovers_are_removed_and_folders_in_use_stay(tmp_path):
    empty = tmp_path / f".priornet-{writing._machine()}-{1:016x}"
    empty.mkdir()  # killed before it had a lock
    leftover(tmp_path)
    with workplace(tmp_path / "a") as used:
        writing._swept.clear()
        sweep(tmp_path)
        assert list(tmp_path.iterdir()) == [used]
    assert list(tmp_path.iterdir()) == []


def test_folders_with_other_names_stay(tmp_path):
    own = leftover(tmp_path)
    for name in (".priornet-notes", f"{own.name}0", own.name[1:]):
        (tmp_path / name).mkdir()
    (tmp_path / own.name.replace("0000", "1111")).touch()  # a file
    (tmp_path / own.name.replace("0000", "2222")).symlink_to(tmp_path / ".priornet-notes")
    with_files = tmp_path / own.name.replace("0000", "3333")
    with_files.mkdir()
    (with_files / "thesis.tex").touch()  # without a lock: not as we leave it
    before = set(tmp_path.iterdir())
    sweep(tmp_path)
    assert before - set(tmp_path.iterdir()) == {own}


@pytest.mark.parametrize("way", ["another machine", "no locks"])
def test_folders_that_may_be_in_use_stay_for_a_day(tmp_path, monkeypatch, way):
    if way == "no locks":
        monkeypatch.setattr(writing, "_is_held_by_another", lambda _: None)
    machine = "0123abcd" if way == "another machine" else None
    young, old = (leftover(tmp_path, machine, number) for number in (1, 2))
    past = time.time() - 2 * writing._YOUNG
    for path in (*old.iterdir(), old):
        os.utime(path, (past, past))
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == [young]


def test_a_place_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    """Let another process come between any two steps."""
    held, swept = writing._is_held_by_another, []

    def late(lock):
        if not swept:
            swept.extend(tmp_path.iterdir())
            for place in swept:
                (place / writing._LOCK).unlink()
                place.rmdir()
        return held(lock)

    monkeypatch.setattr(writing, "_is_held_by_another", late)
    write_bytes(tmp_path / "a", b"new")
    assert len(swept) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_is_listed_once_in_the_life_of_a_process(tmp_path, monkeypatch):
    write_bytes(tmp_path / "a", b"")
    monkeypatch.setattr(writing, "_sweep_one", lambda *_, **__: pytest.fail("it was swept again"))
    leftover(tmp_path)
    write_bytes(tmp_path / "b", b"")


# Saves over a model again and again, each time in a child that is killed one step later, until a
# child comes through; then the model is read, and put back as it was. One way, then the other.
KILLED_SAVES = """
import json, os, signal, sys, warnings
from pathlib import Path
import numpy as np
import priornet
from priornet import GaussianRegressor, writing

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
        writing._renameat2 = lambda: None
    folder = Path(sys.argv[1]) / way
    folder.mkdir()
    found[way] = list(save_and_kill(folder / "model"))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def killed_saves(tmp_path_factory):
    """Kill saves at every step, and collect what a reader finds after each."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_SAVES, str(tmp_path_factory.mktemp("killed"))],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("way", ["exchange", "two steps"])
def test_a_kill_at_any_step_leaves_a_model(way, killed_saves):
    if way == "exchange" and writing._renameat2() is None:
        pytest.skip("this system cannot exchange folders")
    found = killed_saves[way]
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
        monkeypatch.setattr(writing, "_renameat2", lambda: None)
    replace_folder(fresh, path)
    assert names(path) == ["new"]
    assert names(path.parent) == ["model"]


def test_a_file_system_that_cannot_exchange_takes_two_steps(pair, monkeypatch):
    def refuse(*_):
        writing.ctypes.set_errno(errno.EINVAL)
        return -1

    monkeypatch.setattr(writing, "_renameat2", lambda: refuse)
    fresh, path = pair
    replace_folder(fresh, path)
    assert names(path) == ["new"]


def test_another_error_is_told(pair, monkeypatch):
    def refuse(*_):
        writing.ctypes.set_errno(errno.ENOSPC)
        return -1

    monkeypatch.setattr(writing, "_renameat2", lambda: refuse)
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

    monkeypatch.setattr(writing, "_renameat2", lambda: None)
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
        monkeypatch.setattr(writing, "_renameat2", lambda: None)
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
