"""Files are whole or as before; leftovers of killed writers are removed, unfinished work is not."""

from __future__ import annotations

import errno
import os
import resource
import stat
import subprocess
import sys
import time

import pytest

from priornet import writing
from priornet.writing import sweep, whole_file, whole_path, workplace, write_bytes

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
