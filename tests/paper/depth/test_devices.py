"""Devices: what is not there is refused, what cannot be had now is said."""

import pickle

import pytest
import torch

from priornet_paper.depth.devices import GpuNotAvailable, check_device, getting_the_gpu


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
