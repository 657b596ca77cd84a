"""Threads and processes decode in order, and no further ahead than allowed."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from _depth_files import codes, encoded, opened, photograph
from priornet.depth.images import workers as decoding_workers
from priornet.depth.images.decoding import MILLIMETRES, Picture, depth_file
from priornet.depth.images.workers import decoded, in_order, n_workers


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order(workers):
    def slow(number):
        time.sleep(0.002 * (number % 3))
        return number * 10

    found = list(decoded(range(30), slow, workers=workers, ahead=8))
    assert found == [number * 10 for number in range(30)]


def test_reading_stays_in_one_thread_and_decoding_uses_others():
    here, readers, decoders = threading.get_ident(), set(), set()

    def read():
        for number in range(8):
            readers.add(threading.get_ident())
            yield number

    list(decoded(read(), lambda _: decoders.add(threading.get_ident()), workers=2, ahead=4))
    assert readers == {here}
    assert here not in decoders


@pytest.mark.parametrize("workers", [1, 3])
def test_reading_stays_within_the_limit_of_waiting_results(workers):
    taken = []

    def read():
        for number in range(100):
            taken.append(number)
            yield number

    found = decoded(read(), str, workers=workers, ahead=5)
    assert next(found) == "0"
    assert len(taken) <= 6
    found.close()
    assert len(taken) <= 6


@pytest.mark.parametrize("workers", [1, 3])
def test_error_arrives_at_its_place(workers):
    def decode(number):
        if number == 4:
            raise ValueError("the fifth")
        return number

    found = decoded(range(9), decode, workers=workers, ahead=9)
    assert [next(found) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="the fifth"):
        next(found)


def test_items_are_not_begun_after_the_generator_is_closed():
    begun, late, may_end = [], [], threading.Event()

    def decode(number):
        begun.append(number)
        if number == 1:
            may_end.wait(600)
        return number

    with ThreadPoolExecutor(1) as pool:
        found = in_order(pool, range(9), decode, ahead=5, late=lambda f: late.append(f.result()))
        assert next(found) == 0
        while begun[-1] != 1:  # the others wait
            time.sleep(0.001)
        found.close()
        assert late == []
        may_end.set()
        assert pool.submit(abs, -3).result(timeout=600) == 3  # it is the caller's, and stays open
    assert begun == [0, 1]
    assert late == [1]


def test_at_least_one_thread():
    assert n_workers() >= 1
    assert n_workers(7) == 7
    with pytest.raises(ValueError, match="`workers` must be at least 1; got 0"):
        n_workers(0)
    with pytest.raises(TypeError, match="`workers` must be a number of threads; got '2'"):
        n_workers("2")  # pyright: ignore[reportArgumentType]


PHOTOGRAPHS = [encoded(photograph(seed=seed)) for seed in range(3)]
DEPTHS = [codes(seed=seed, dtype=np.uint16, high=9_000) for seed in range(3)]


@pytest.fixture
def batch():
    """Return three encoded images of 12 x 16."""
    depth = [depth_file(encoded(found, "PNG"), "depth", {16: MILLIMETRES}) for found in DEPTHS]
    return [(Picture(data, "a"), one) for data, one in zip(PHOTOGRAPHS, depth, strict=True)]


def assert_whole(images, depth):
    assert images.flags.c_contiguous
    assert (images == np.stack([opened(data) for data in PHOTOGRAPHS]).transpose(0, 3, 1, 2)).all()
    np.testing.assert_allclose(depth, np.stack(DEPTHS) / 1000, rtol=1e-6)


def test_arrays_are_written_to_the_shared_folder(batch, tmp_path):
    left = decoding_workers.decode_batch(batch, size=None, crop=False, folder=str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 2
    found = []
    for one in left:
        assert isinstance(one, decoding_workers.SharedArray)
        found.append(np.fromfile(one.path, one.dtype).reshape(one.shape))
    assert_whole(*found)


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_arrays_are_returned_without_a_shared_folder(batch, tmp_path, folder):
    folder = folder and str(tmp_path / folder)
    assert_whole(*decoding_workers.decode_batch(batch, size=None, crop=False, folder=folder))


def test_array_that_does_not_fit_is_returned_and_its_file_removed(batch, tmp_path, monkeypatch):
    def full(path, mode):
        with open(path, mode) as file:
            file.write(b"some of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(decoding_workers, "open", full, raising=False)
    assert_whole(*decoding_workers.decode_batch(batch, size=None, crop=False, folder=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []
