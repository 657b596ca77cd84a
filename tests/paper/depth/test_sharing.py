"""Processes that share a batch leave out what one process leaves out of the whole of it."""

import pytest
import torch
from torch import nn

from priornet_paper.depth.sharing import Share, SharedDropout, shared


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
