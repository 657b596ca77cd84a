"""A saved network is built again unchanged; a file without its description is refused."""

from __future__ import annotations

import functools
import json
import math
import re

import pytest
import torch
from safetensors.torch import save_file

from priornet.depth import load_depth, save_depth
from priornet.nn import (
    DenseDepth,
    GaussianHead,
    GaussianMixtureHead,
    Head,
    NormalWishartHead,
)
from priornet.nn.weights import _checksum, read_tensors, write_tensors

SIZE = (32, 64)
HEADS = {
    "gaussian": functools.partial(GaussianHead, min_scale=1e-3, max_scale=50.0),
    "normal-wishart": functools.partial(NormalWishartHead, min_excess=1.0, initial_belief=3.0),
    "tied": functools.partial(NormalWishartHead, tied_evidence=True, max_evidence=1e4),
    "mixture": functools.partial(GaussianMixtureHead, n_members=3),
}


def network(name, **options):
    torch.manual_seed(0)
    make = functools.partial(HEADS[name], per_pixel=True, init_gain=5.0) if name else None
    return DenseDepth(make, "efficientnet_lite0", n_decoder=16, **options).eval()


@pytest.fixture
def images(generator):
    return torch.rand(2, 3, *SIZE, generator=generator)


def tensors_of(prediction):
    if isinstance(prediction, torch.Tensor):
        return [prediction]
    names = ("loc", "means", "precision_tril", "belief", "excess")
    return [getattr(prediction, name) for name in names if hasattr(prediction, name)]


@pytest.mark.parametrize("name", [*HEADS, None])
@pytest.mark.parametrize("folded", [False, True])
def test_network_comes_back(name, folded, images, tmp_path):
    net = network(name)
    if folded:
        net.encoder.fold_norms()
    save_depth(net, tmp_path / "net.safetensors", size=SIZE, shift=3.0, scale=2.0)
    found = load_depth(tmp_path / "net.safetensors")
    assert (found.size, found.shift, found.scale) == (SIZE, 3.0, 2.0)
    assert not found.net.training
    with torch.no_grad():
        ours, theirs = tensors_of(net(images)), tensors_of(found.net(images))
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=0)


@pytest.mark.parametrize("folded", [False, True])
def test_dense_network_comes_back(folded, images, tmp_path):
    torch.manual_seed(0)
    net = DenseDepth(None, "densenet169", n_decoder=16).eval()
    if folded:
        net.encoder.fold_norms()
    save_depth(net, tmp_path / "net.safetensors", size=SIZE)
    found = load_depth(tmp_path / "net.safetensors").net
    assert found.encoder.norms_folded == folded
    with torch.no_grad():
        torch.testing.assert_close(found(images), net(images))


def test_members_with_decoders_of_their_own_come_back(images, tmp_path):
    net = network("mixture", early_split=True)
    save_depth(net, tmp_path / "net.safetensors", size=SIZE)
    found = load_depth(tmp_path / "net.safetensors").net
    with torch.no_grad():
        assert torch.equal(found.raw(images), net.raw(images))


def test_belief_is_in_units_of_depth(images, tmp_path):
    net = network("gaussian")
    save_depth(net, tmp_path / "net.safetensors", size=SIZE, shift=3.0, scale=2.0)
    belief = load_depth(tmp_path / "net.safetensors").belief(images)
    with torch.no_grad():
        mean = net(images).loc
    torch.testing.assert_close(belief.loc, 3 + 2 * mean.double())


def test_numbers_far_outside_0_and_1_are_refused(images, tmp_path):
    save_depth(network("gaussian"), tmp_path / "net.safetensors", size=SIZE)
    saved = load_depth(tmp_path / "net.safetensors")
    with pytest.raises(ValueError, match=r"not torch\.uint8; divide bytes by 255"):
        saved.belief((255 * images).to(torch.uint8))
    for other in (255 * images, 4 * (images - 0.5), images * math.nan):
        with pytest.raises(ValueError, match=r"numbers in \[0, 1\]: bytes divided by 255, and not"):
            saved.belief(other)
    saved.belief(1.04 * images - 0.02)  # slightly outside [0, 1], as after rescaling


def test_network_without_a_head_gives_numbers(images, tmp_path):
    net = network(None)
    save_depth(net, tmp_path / "net.safetensors", size=SIZE, scale=2.0)
    with torch.no_grad():
        expected = 2 * net(images).double()
    torch.testing.assert_close(load_depth(tmp_path / "net.safetensors").belief(images), expected)


class OwnHead(Head):
    pass


def test_networks_that_cannot_be_described_are_refused(tmp_path):
    path = tmp_path / "net.safetensors"
    with pytest.raises(TypeError, match=r"only a DenseDepth .* got Linear"):
        save_depth(torch.nn.Linear(1, 1), path, size=SIZE)  # pyright: ignore[reportArgumentType]
    other = DenseDepth(lambda n: OwnHead(n, 2, True, 1.0), "efficientnet_lite0", n_decoder=16)
    with pytest.raises(TypeError, match=r"only heads of priornet.nn .* got OwnHead"):
        save_depth(other, path, size=SIZE)
    net = network("gaussian")
    with pytest.raises(ValueError, match=r"height and a width in pixels; got \(0, 3\)"):
        save_depth(net, path, size=(0, 3))
    with pytest.raises(ValueError, match="`scale` positive; got 0 and -1"):
        save_depth(net, path, size=SIZE, scale=-1.0)
    assert not path.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network": None}, "it does not describe its network"),
        ({"network": {"encoder": "resnet"}}, "it does not describe its network"),
        ({"epoch": 3}, "a checkpoint of a training that is not finished"),
        ({}, "it does not describe its network.* write it with `priornet.depth.save_depth`"),
    ],
)
def test_files_without_a_full_description_are_refused(change, message, tmp_path):
    path = tmp_path / "net.safetensors"
    write_tensors(path, network("gaussian").state_dict(), change)
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}: {message}"):
        load_depth(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("size", [0, 64]),
        ("size", [32.5, 64]),
        ("size", [64.0, True]),
        ("size", ["a", "b"]),
        ("size", 32),
        ("scale", 0.0),
        ("scale", -1.0),
        ("scale", "x"),
        ("shift", 1e999),
        ("shift", None),
        ("network.n_decoder", -16),
        ("network.n_decoder", 1 << 40),
        ("network.n_decoder", "x"),
        ("network.encoder", ["densenet169"]),
        ("network.head", []),
        ("network.head.kind", "x"),
    ],
)
def test_impossible_description_is_refused_before_building(field, value, tmp_path):
    path = tmp_path / "net.safetensors"
    save_depth(network("gaussian"), path, size=SIZE)
    tensors, state = read_tensors(path)
    *way, last = field.split(".")
    part = state
    for key in way:
        part = part[key]
    part[last] = value
    text = json.dumps({**state, "crc32": _checksum(tensors)})  # with infinity, if it must be
    save_file(tensors, path, {"state": text})
    message = "it does not describe its network|its weights do not fit"
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}: ({message})"):
        load_depth(path)


def test_weights_of_another_network_are_refused(tmp_path):
    path = tmp_path / "net.safetensors"
    save_depth(network("gaussian"), path, size=SIZE)
    state = read_tensors(path).state
    write_tensors(path, network("mixture").state_dict(), state)
    with pytest.raises(ValueError, match="do not fit the network that it describes"):
        load_depth(path)
