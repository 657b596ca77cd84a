"""Processes return the same batches as threads, and leave no files behind."""

import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch

from _depth_files import (
    codes,
    data_files,
    eigen_arrays,
    encoded,
    npy,
    photograph,
    write_frame,
    write_lmdb,
    write_mat,
    write_pairs,
    write_zip,
)
from priornet.depth import DepthError, open_depth, pack
from priornet.depth.images import workers

NAMES = [f"{number:04d}" for number in range(11)]


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, get_context("spawn")) as found:
        yield found


@pytest.fixture
def shared_memory(tmp_path, monkeypatch):
    """Replace shared memory by an empty folder."""
    folder = tmp_path / "shm"
    folder.mkdir()
    monkeypatch.setattr(workers, "_SHARED_MEMORY", str(folder))
    return folder


@pytest.fixture
def images(tmp_path):
    return open_depth(write_pairs(tmp_path / "rooms", NAMES))


def kitti(folder):
    drive = "2011_09_26/2011_09_26_drive_0002_sync"
    for frame in range(3):
        write_frame(folder, drive, frame, seed=frame)
    lines = [f"{drive} {frame} l\n" for frame in range(3)]
    (folder / "train_files.txt").write_text("".join(lines[:1]))
    (folder / "test_files.txt").write_text("".join(lines[1:]))
    return folder


def mat(folder):
    folder.mkdir()
    write_mat(folder / "labelled.mat")
    return folder / "labelled.mat"


def eigen(folder):
    files = {name: npy(array) for name, array in eigen_arrays().items()}
    return write_zip(folder, files)


def packed_from(write):
    """Return a writer of the same set, packed."""

    def packed(folder):
        folder.mkdir()
        pack(open_depth(write(folder / "of")), folder / "set.pack")
        return folder / "set.pack"

    return packed


def pairs(folder):
    return write_pairs(folder / "rooms", NAMES[:3])


def photographs(folder):
    return write_pairs(folder / "beds", NAMES[:3], with_depth=False)


def bedrooms(folder):
    pictures = {name.encode(): encoded(photograph(seed=int(name))) for name in NAMES[:3]}
    return write_lmdb(folder, pictures)


FORMS = {
    "a folder": pairs,
    "photographs": photographs,
    "DenseDepth's data": lambda folder: write_zip(folder, data_files()),
    "DenseDepth's test": eigen,
    "the labelled file": mat,
    "KITTI": kitti,
    "LSUN": bedrooms,
    "codes in a packed file": packed_from(pairs),
    "metres in a packed file": packed_from(mat),
}


def assert_same(found, expected):
    assert [batch.rows for batch in found] == [batch.rows for batch in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.images.dtype == torch.uint8
        assert one.images.is_contiguous()
        assert torch.equal(one.images, other.images)
        assert (one.depth is None) == (other.depth is None)
        if one.depth is not None:
            assert one.depth.dtype == other.depth.dtype
            assert torch.equal(one.depth, other.depth)


@pytest.mark.parametrize("form", FORMS)
def test_processes_decode_every_form_as_threads_do(tmp_path, pool, form):
    images = open_depth(FORMS[form](tmp_path / "set"))
    size = (6, 20)  # KITTI's frames differ
    expected = list(images.batches(2, size=size, workers=1))
    assert len(expected) > 1
    assert_same(list(images.batches(2, size=size, workers=pool)), expected)


def test_workers_need_no_torch(tmp_path, pool):
    """Check that workers start without torch, which costs time and memory."""
    for number, write in enumerate(FORMS.values()):
        list(open_depth(write(tmp_path / f"{number}")).batches(1, size=(6, 20), workers=pool))
    for _ in range(4):
        assert not pool.submit(eval, "'torch' in __import__('sys').modules").result()


def test_images_may_keep_their_size_and_depth_have_half_precision(images, pool):
    expected = list(images.batches(4, dtype=torch.float16, workers=1))
    assert_same(list(images.batches(4, dtype=torch.float16, workers=pool)), expected)


def test_images_may_be_cut_to_shape(images, pool):
    expected = list(images.batches(4, size=(8, 8), crop=True, workers=1))
    assert_same(list(images.batches(4, size=(8, 8), crop=True, workers=pool)), expected)


@pytest.mark.parametrize("ahead", [0, 1, None])
def test_batches_follow_an_order(images, pool, ahead):
    order = torch.randperm(11, generator=torch.Generator().manual_seed(0)).tolist()
    found = list(images.batches(3, order=order, workers=pool, ahead=ahead))
    assert [row for batch in found for row in batch.rows] == order
    whole, _ = images.tensors()
    for batch in found:
        assert (batch.images == whole[batch.rows]).all()


def test_epochs_share_an_executor_that_stays_open(images):
    expected = list(images.batches(4, workers=1))
    with ThreadPoolExecutor(2) as own:
        for _ in range(2):
            assert_same(list(images.batches(4, workers=own)), expected)


def test_without_shared_memory_batches_come_through_a_pipe(images, pool, monkeypatch, tmp_path):
    monkeypatch.setattr(workers, "_SHARED_MEMORY", str(tmp_path / "none"))
    found = list(images.batches(4, workers=pool))
    assert_same(found, list(images.batches(4, workers=1)))
    found[0].images.zero_()  # the caller's own


def test_kept_batches_need_no_files(images, pool, shared_memory):
    descriptors = Path("/proc/self/fd")
    list(images.batches(1, workers=pool))  # the pool's own are there from now on
    n_before = len(list(descriptors.iterdir())) if descriptors.is_dir() else 0
    found = list(images.batches(1, workers=pool))
    assert list(shared_memory.iterdir()) == []
    if descriptors.is_dir():
        assert len(list(descriptors.iterdir())) == n_before
    assert_same(found, list(images.batches(1, workers=1)))
    found[0].images.zero_()  # the caller's own


def test_batches_come_in_shared_memory(images, pool, shared_memory):
    found = images.batches(4, workers=pool, ahead=1)
    next(found)
    (folder,) = shared_memory.iterdir()
    deadline = time.monotonic() + 600
    while len(list(folder.iterdir())) < 2:  # images and depth of the one that waits
        assert time.monotonic() < deadline
        time.sleep(0.01)
    found.close()


def test_shared_memory_holds_only_waiting_batches(images, pool, shared_memory):
    for _ in images.batches(1, workers=pool, ahead=2):
        assert len(list(shared_memory.glob("*/*"))) <= 4  # images and depth of two batches


def damaged_picture(root):
    path = root / "rgb/0006.jpg"
    path.write_bytes(path.read_bytes()[:300])


def depth_of_another_shape(root):
    (root / "depth/0006.png").write_bytes(encoded(codes(24, 32), "PNG"))


def another_size(root):
    (root / "rgb/0006.jpg").write_bytes(encoded(photograph(24, 32)))
    (root / "depth/0006.png").write_bytes(encoded(codes(24, 32), "PNG"))


def missing_picture(root):
    (root / "rgb/0006.jpg").unlink()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (damaged_picture, r"rooms/rgb/0006\.jpg: this cannot be read as a picture"),
        (depth_of_another_shape, r"rooms/depth/0006\.png: depth of 24 x 32 pixels for .* 12 x 16"),
        (another_size, r"rooms/rgb/0006\.jpg: 24 x 32 pixels, where those before it .* 12 x 16"),
        (missing_picture, r"rooms/rgb/0006\.jpg"),
    ],
)
def test_processes_raise_the_same_errors_as_threads(
    images, pool, tmp_path, shared_memory, damage, reason
):
    damage(tmp_path / "rooms")
    with pytest.raises(DepthError, match=reason) as there:
        list(images.batches(4, workers=pool))
    with pytest.raises(DepthError) as here:
        list(images.batches(4, workers=2))
    assert str(there.value) == str(here.value)
    assert_nothing_stays(shared_memory)


def test_batches_before_a_damaged_one_arrive(images, pool, tmp_path):
    damaged_picture(tmp_path / "rooms")
    found = images.batches(3, workers=pool)
    assert [next(found).rows for _ in range(2)] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(DepthError, match=r"0006\.jpg"):
        next(found)


def assert_nothing_stays(shared_memory):
    """Check it after the batches in progress have ended."""
    deadline = time.monotonic() + 600
    while list(shared_memory.iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_leaving_early_leaves_nothing_behind(images, pool, shared_memory):
    for _ in range(5):
        found = images.batches(1, workers=pool)
        first = next(found)
        found.close()
        assert (first.images[0].permute(1, 2, 0).numpy() == images.image(0)).all()
    assert pool.submit(abs, -3).result(timeout=600) == 3
    assert_nothing_stays(shared_memory)


def test_few_batches_are_decoded_ahead(images, pool, monkeypatch):
    read = []
    picture = images.picture
    monkeypatch.setattr(images, "picture", lambda row: read.append(row) or picture(row))
    found = images.batches(1, workers=pool)
    next(found)
    assert len(read) == 5  # two wait for each process
    found.close()
    read.clear()
    found = images.batches(2, workers=pool, ahead=1)
    next(found)
    assert len(read) == 4
    found.close()


def test_killed_process_is_reported(images, shared_memory):
    with ProcessPoolExecutor(1, get_context("spawn")) as own:
        found = images.batches(2, workers=own, ahead=1)
        first = next(found)
        os.kill(own.submit(os.getpid).result(), signal.SIGKILL)
        with pytest.raises(DepthError, match=r"was lost \(killed, .*make a new one, with fewer"):
            list(found)
        with pytest.raises(DepthError, match=r"was lost \(killed, .*make a new one, with fewer"):
            next(images.batches(2, workers=own))
    assert_nothing_stays(shared_memory)
    for place, row in enumerate(first.rows):  # what it has made stays
        assert (first.images[place].permute(1, 2, 0).numpy() == images.image(row)).all()


def test_wrong_arguments_are_refused(images, pool):
    with pytest.raises(DepthError, match="`size` must be a height and a width"):
        next(images.batches(2, size=(0, 5), workers=pool))
    with pytest.raises(ValueError, match="`workers` must be at least 1; got 0"):
        next(images.batches(2, workers=0))
    with pytest.raises(TypeError, match=r"number of threads; got 'two'.*takes a .*Executor"):
        next(images.batches(2, workers="two"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"got <.*Pool.*`DepthImages\.batches` also takes"):
        images.tensors(workers=pool)
