"""The machine: devices that are not there, and memory that does not suffice, are one line."""

import pickle

import pytest
import torch

from priornet_paper.depth.machine import (
    GpuNotAvailable,
    NotEnoughMemory,
    check_device,
    fitting_batch,
    getting_the_gpu,
    in_smaller_batches,
    is_out_of_memory,
)


def test_a_processor_is_always_there():
    check_device("cpu", 3)


@pytest.mark.parametrize(
    ("device", "n_devices", "n_there", "message"),
    [
        ("gpu", 1, 1, 'unknown device "gpu"; choose from: cpu, cuda'),
        ("cuda", 1, 0, "--device cuda: torch finds no CUDA device here"),
        ("cuda", 3, 2, "--devices 3: torch finds only 2 CUDA devices here"),
    ],
)
def test_what_is_not_there_is_refused(monkeypatch, device, n_devices, n_there, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: n_there > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n_there)
    with pytest.raises(ValueError, match=message):
        check_device(device, n_devices)


@pytest.mark.parametrize(("n_devices", "nodes"), [(2, 1), (1, 2)])
def test_a_device_is_shared_in_one_way(n_devices, nodes):
    check_device("cpu", n_devices, nodes)
    with pytest.raises(ValueError, match=r"--workers trains side by side, .* not both"):
        check_device("cpu", n_devices, nodes, workers=2)


def test_errors_of_cuda_say_that_the_gpu_is_not_available():
    message = r"not available now \(CUDA error: out of memory\): other programs hold it"
    with pytest.raises(GpuNotAvailable, match=message) as caught, getting_the_gpu():
        raise torch.AcceleratorError("CUDA error: out of memory\nFor debugging, consider ...")
    copy = pickle.loads(pickle.dumps(caught.value))  # from a worker process
    assert str(copy) == str(caught.value)
    assert "\n" not in str(copy)


def test_other_errors_stay_what_they_are():
    with pytest.raises(RuntimeError, match="address already in use"), getting_the_gpu():
        raise RuntimeError("address already in use")


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
