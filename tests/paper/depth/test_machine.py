"""The machine: devices that are not there, and memory that does not suffice, are one line."""

import pickle

import pytest
import torch
from torch import nn

from priornet_paper.depth.machine import (
    GpuNotAvailable,
    NotEnoughMemory,
    Share,
    SharedDropout,
    check_device,
    fitting_batch,
    getting_the_gpu,
    in_smaller_batches,
    is_out_of_memory,
    shared,
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
    tried, messages = [], []
    probe = room_for(5, tried)
    assert in_smaller_batches(lambda n: (probe(n), n)[1], 16, messages.append) == 4
    assert tried == [16, 8, 4]
    assert messages[1] == "8 images at a time do not fit in memory; going on with 4."
    with pytest.raises(torch.OutOfMemoryError):
        in_smaller_batches(room_for(0, []), 4)


class Fabric:
    device = torch.device("cpu")


def dropped(module, maps, seed=3):
    torch.manual_seed(seed)
    return module(maps)


@pytest.mark.parametrize("n_ood", [0, 6])
def test_parts_of_a_batch_lose_the_maps_that_the_whole_loses(n_ood):
    own, ood = torch.rand(6, 5, 2, 2), torch.rand(n_ood, 5, 2, 2)
    with torch.random.fork_rng(devices=[]):
        whole = dropped(nn.Dropout2d(0.4), torch.cat([own, ood]))
        parts = []
        for rank in range(3):
            mine = Share(rank, 3).of(6)
            part = torch.cat([own[mine], ood[mine]])
            parts.append(dropped(SharedDropout(0.4, Share(rank, 3), 2), part))
    assert (whole == 0).any()
    assert torch.equal(torch.cat([part[:2] for part in parts]), whole[:6])
    assert torch.equal(torch.cat([part[2:] for part in parts]), whole[6:])


def test_nothing_is_left_out_when_asked():
    maps = torch.rand(2, 3, 4, 4)
    assert SharedDropout(0.4, Share(0, 2), 2).eval()(maps) is maps


def test_dropout_is_shared_wherever_it_is():
    net = nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 1), nn.Dropout2d(0.3)), nn.Dropout2d(0.1))
    found = shared(net, Fabric(), Share(1, 2), 4, frozen=True)
    kinds = [part for part in found.modules() if isinstance(part, nn.Dropout2d)]
    assert [(type(part), part.p) for part in kinds] == [(SharedDropout, 0.3), (SharedDropout, 0.1)]


def test_one_process_keeps_its_network():
    net = nn.Sequential(nn.Dropout2d(0.3), nn.BatchNorm2d(3))
    assert shared(net, Fabric(), Share(), 4, frozen=False) is net
    assert type(net[0]) is nn.Dropout2d


def test_batch_statistics_cannot_be_shared_without_gpus():
    with pytest.raises(ValueError, match='use `norm="frozen"`'):
        shared(nn.BatchNorm2d(3), Fabric(), Share(0, 2), 4, frozen=False)
