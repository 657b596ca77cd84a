"""Many threads decode, the order stays, and nobody runs far ahead."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from priornet.depth.images.ahead import decoded, in_order, n_workers


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order(workers):
    def slow(number):
        time.sleep(0.002 * (number % 3))
        return number * 10

    found = list(decoded(range(30), slow, workers=workers, ahead=8))
    assert found == [number * 10 for number in range(30)]


def test_reading_stays_in_one_thread_and_decoding_leaves_it():
    here, readers, decoders = threading.get_ident(), set(), set()

    def read():
        for number in range(8):
            readers.add(threading.get_ident())
            yield number

    list(decoded(read(), lambda _: decoders.add(threading.get_ident()), workers=2, ahead=4))
    assert readers == {here}
    assert here not in decoders


@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_is_read_than_may_wait(workers):
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
def test_an_error_arrives_at_its_place(workers):
    def decode(number):
        if number == 4:
            raise ValueError("the fifth")
        return number

    found = decoded(range(9), decode, workers=workers, ahead=9)
    assert [next(found) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="the fifth"):
        next(found)


def test_what_nobody_asks_for_is_not_begun():
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
