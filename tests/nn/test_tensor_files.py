"""What was written comes back; another kind of file is named."""

import json
import os
import zlib

import pytest
import torch

from priornet.nn.tensor_files import read_tensors, write_tensors


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
    """Of the numbers, of their names and shapes, and of the data that goes with them."""
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
    with pytest.raises(ValueError, match="not one of our files"):
        read_tensors(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="damaged"):
        read_tensors(path)
    with pytest.raises(FileNotFoundError):
        read_tensors(path.with_name("none"))
