"""Not enough memory: which batch fits, in one line."""

import pickle

import pytest
import torch

from priornet_paper.depth.memory import (
    NotEnoughMemory,
    fitting_batch,
    in_smaller_batches,
    is_out_of_memory,
)


def room_for(n_images, tried):
    def probe(batch):
        tried.append(batch)
        if batch > n_images:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB.")

    return probe


@pytest.mark.parametrize(("room", "fits", "trials"), [(9, 8, [16, 8]), (16, 16, [16]), (1, 1, 5)])
def test_the_batch_is_halved_until_it_fits(room, fits, trials):
    tried = []
    assert fitting_batch(room_for(room, tried), 32) == fits
    assert tried == trials if isinstance(trials, list) else len(tried) == trials


def test_not_even_one_image():
    assert fitting_batch(room_for(0, []), 4) is None
    assert "not even one image does" in str(NotEnoughMemory("EnD2.0", 4, None, "GPU"))


def test_other_errors_are_not_about_memory():
    def probe(_):
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        fitting_batch(probe, 8)
    assert is_out_of_memory(RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"))


def test_the_message_travels_between_processes():
    error = pickle.loads(pickle.dumps(NotEnoughMemory("Single.0.1", 64, 16, "NVIDIA H200")))
    assert str(error) == (
        "Single.0.1: a batch of 64 images does not fit in the memory of the NVIDIA H200; "
        "a batch of 16 does. What is finished is kept."
    )


def test_work_goes_on_in_smaller_batches():
    tried, remarks = [], []
    probe = room_for(5, tried)
    assert in_smaller_batches(lambda n: (probe(n), n)[1], 16, remarks.append) == 4
    assert tried == [16, 8, 4]
    assert remarks[1] == "8 images at a time do not fit in memory; going on with 4."
    with pytest.raises(torch.OutOfMemoryError):
        in_smaller_batches(room_for(0, []), 4)
