"""Weights in files: published ones and priornet's format, accepted or refused; folded norms."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
import zlib
from copy import deepcopy
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from _asserts import assert_close
from _beliefs import random_normal
from priornet.nn.weights import fold_norm, load_weights, read_tensors, read_weights, write_tensors


def make():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))


def state():
    """A state dict for it that is nowhere like a fresh one."""
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.rand(value.shape, generator=generator) + 1
        if value.is_floating_point()
        else value + 7
        for name, value in make().state_dict().items()
    }


def same(module, expected):
    found = module.state_dict()
    return all(torch.equal(found[name], value) for name, value in expected.items())


@pytest.mark.parametrize("name", ["a.pth", "a.safetensors"])
def test_both_formats_are_read(tmp_path, name):
    (torch.save if name.endswith("pth") else save_file)(state(), tmp_path / name)
    module = make()
    load_weights(module, tmp_path / name)
    assert same(module, state())


def test_a_checkpoint_around_them_is_opened(tmp_path):
    torch.save({"epoch": 3, "state_dict": state()}, tmp_path / "a.pth")
    assert set(read_weights(tmp_path / "a.pth")) == set(state())


def test_half_precision_is_widened(tmp_path):
    half = {name: v.half() if v.is_floating_point() else v for name, v in state().items()}
    save_file(half, tmp_path / "a.safetensors")
    module = make()
    load_weights(module, tmp_path / "a.safetensors")
    assert module.state_dict()["0.weight"].dtype == torch.float32
    assert same(module, {name: v.to(state()[name].dtype) for name, v in half.items()})


def test_counters_may_be_missing_and_names_translated(tmp_path):
    given = {f"old.{n}": v for n, v in state().items() if not n.endswith("tracked")}
    torch.save(given | {"classifier.bias": torch.ones(2)}, tmp_path / "a.pth")
    module = make()
    load_weights(
        module, tmp_path / "a.pth", ignore=("classifier.",), rename=lambda n: n.removeprefix("old.")
    )
    assert same(module, {n: v for n, v in state().items() if not n.endswith("tracked")})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"0.weight": None}, r"1 missing \(0.weight\)"),
        ({"2.bias": torch.ones(1)}, r"1 unknown \(2.bias\)"),
        ({"0.weight": torch.ones(4, 5)}, r"0.weight is \(4, 5\) instead of \(4, 3\)"),
        ({"0.bias": torch.full((4,), torch.inf)}, r"not finite \(0.bias\)"),
    ],
)
def test_wrong_weights_name_the_file_and_leave_the_module_alone(tmp_path, change, message):
    given = {name: value for name, value in (state() | change).items() if value is not None}
    path = tmp_path / "wrong.pth"
    torch.save(given, path)
    module = make()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    with pytest.raises(ValueError, match=message) as caught:
        load_weights(module, path)
    assert str(path) in str(caught.value)
    assert same(module, before)


def test_many_differences_are_counted_not_listed(tmp_path):
    torch.save({f"other.{i}": torch.ones(1) for i in range(50)}, tmp_path / "a.pth")
    with pytest.raises(ValueError, match=r"50 unknown \(other.0, other.1, other.2, ...\)"):
        load_weights(make(), tmp_path / "a.pth")


def write_text(path):
    path.write_text("not weights")


def write_half_a_file(path):
    torch.save(state(), path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def write_other_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "hello")


def write_code(path):
    path.write_bytes(pickle.dumps(print))


@pytest.mark.parametrize("write", [write_text, write_half_a_file, write_other_zip, write_code])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_what_is_no_file_of_weights_is_named(tmp_path, write, suffix):
    path = tmp_path / f"broken{suffix}"
    write(path)
    with pytest.raises(ValueError, match=r"broken\.\w+ is not a file of weights"):
        read_weights(path)


def test_tensors_must_have_names(tmp_path):
    torch.save([torch.ones(2)], tmp_path / "a.pth")
    with pytest.raises(ValueError, match=r"a.pth must hold tensors by name"):
        read_weights(tmp_path / "a.pth")


def test_a_whole_network_is_told_from_its_weights(tmp_path):
    torch.save(torch.nn.Linear(2, 2), tmp_path / "module.pth")
    with pytest.raises(ValueError, match=r"module.pth .* Of a whole network, save its `state_dict"):
        read_weights(tmp_path / "module.pth")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="a folder, not a file of weights"):
        read_weights(tmp_path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.pth"):
        read_weights(tmp_path / "nowhere.pth")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "file.safetensors"


def test_what_was_written_comes_back(path, generator):
    tensors = {"a": torch.randn(3, 4, generator=generator), "n": torch.tensor(5)}
    state = {"losses": [0.1, 1e-300], "name": "grün", "size": [2, 3], "none": None}
    write_tensors(path, tensors, state)
    found = read_tensors(path)
    assert found.state == state
    assert found.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(found.tensors[name], tensor)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_a_file_has_the_permissions_of_any_other(path, mask, mode):
    before = os.umask(mask)
    try:
        write_tensors(path, {"a": torch.zeros(1)}, {})
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_place_without_permissions_is_no_reason_to_lose_a_file(path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.chmod", refused)
    write_tensors(path, {"a": torch.ones(1)}, {})
    assert read_tensors(path).tensors["a"] == 1


def test_damage_is_named(path):
    write_tensors(path, {"a": torch.ones(9)}, {})
    content = bytearray(path.read_bytes())
    content[-2] ^= 4
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"file\.safetensors: damaged \(it has changed"):
        read_tensors(path)


def test_every_changed_bit_is_found(path):
    """The digest covers the numbers, their names and shapes, and the data beside them."""
    write_tensors(path, {"mean": torch.arange(2.0), "wide": torch.zeros(1, 2)}, {"scale": 5.25})
    content = path.read_bytes()
    passed = []
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            read_tensors(path)
        except ValueError:
            continue
        passed.append(bit)
    assert passed == []


def test_a_file_that_sums_up_its_numbers_alone_is_read(path):
    """As files were before their text was summed up too."""
    from safetensors.torch import save_file

    tensors = {"a": torch.ones(2)}
    path.parent.mkdir()
    for crc, is_right in ((zlib.crc32(tensors["a"].numpy().tobytes()), True), (1, False)):
        save_file(tensors, path, {"state": json.dumps({"scale": 2.0, "crc32": crc})})
        if is_right:
            assert read_tensors(path).state == {"scale": 2.0}
            continue
        with pytest.raises(ValueError, match="it has changed"):
            read_tensors(path)


def test_other_files_are_refused(path):
    from safetensors.torch import save_file

    path.parent.mkdir()
    save_file({"a": torch.ones(2)}, path)
    with pytest.raises(ValueError, match="not a file that priornet wrote"):
        read_tensors(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="damaged"):
        read_tensors(path)
    with pytest.raises(FileNotFoundError):
        read_tensors(path.with_name("none"))


@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 3}, {"groups": 4}],
    ids=["plain", "strides over a margin", "groups"],
)
def test_a_folded_pair_does_what_both_did(options):
    conv: Any = nn.Conv2d(4, 8, 3, bias=False, **options).double()
    norm = nn.BatchNorm2d(8, eps=0.03).double()
    with torch.no_grad():
        conv.weight.copy_(random_normal(tuple(conv.weight.shape)))
        for seed, part in enumerate((norm.weight, norm.bias, norm.running_mean), start=1):
            assert part is not None
            part.copy_(random_normal((8,), seed=seed))  # weights of both signs
        assert norm.running_var is not None
        norm.running_var.copy_(random_normal((8,), seed=4).exp())
    pair = nn.Sequential(conv, norm).eval()
    folded = deepcopy(pair)
    fold_norm(folded, "0", "1")
    assert isinstance(folded[1], nn.Identity)
    x = random_normal((2, 4, 9, 7), seed=5)
    assert_close(folded(x), pair(x), rel=1e-12, abs=1e-12)
