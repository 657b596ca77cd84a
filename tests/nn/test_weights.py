"""Weights from files: what is read, what is refused, and that a refusal changes nothing."""

from __future__ import annotations

import pickle
import zipfile

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from priornet.nn.weights import load_weights, read_weights


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
