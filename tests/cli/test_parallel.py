"""Batches come back in order, few at a time, and errors where they happened."""

import threading
import time

import pyarrow as pa
import pytest
import torch

from priornet.cli.parallel import in_parallel

BATCHES = [pa.record_batch({"a": [number] * (number + 1)}) for number in range(12)]


def test_results_keep_their_order_and_know_the_rows_before():
    def slow_at_first(batch, first_row):
        time.sleep(0.05 if first_row == 0 else 0)
        return batch["a"][0].as_py(), first_row

    found = list(in_parallel(slow_at_first, BATCHES))
    assert found == [(number, number * (number + 1) // 2) for number in range(12)]


def test_few_batches_are_read_ahead():
    read, done = 0, 0

    def batches():
        nonlocal read
        for batch in BATCHES:
            read += 1
            assert read - done <= 6
            yield batch

    for _ in in_parallel(lambda batch, _: batch, batches()):
        done += 1
    assert read == done == 12


def test_error_comes_after_the_results_before_it():
    def fails_at_three(batch, _):
        if batch.num_rows == 4:
            raise ValueError("three")
        return batch.num_rows

    results, before = in_parallel(fails_at_three, BATCHES), threading.active_count()
    assert [next(results) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(ValueError, match="three"):
        next(results)
    assert threading.active_count() == before


def test_each_batch_has_one_thread_of_torch_and_the_process_gets_its_own_back():
    torch.set_num_threads(2)
    try:
        found = set(in_parallel(lambda *_: torch.get_num_threads(), BATCHES))
        assert found == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
