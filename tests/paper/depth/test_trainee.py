"""Checkpoints: what was written comes back, damage is named, the one before it serves."""

import os
from typing import Any

import pytest
import torch

from priornet.nn.weights import read_tensors, write_tensors
from priornet_paper.depth.trainee import Checkpoints


@pytest.fixture
def tensors(generator):
    return {
        "network/weight": torch.randn(4, 3, 2, 2, generator=generator),
        "network/n": torch.tensor(5),
        "optimizer/0/step": torch.tensor(3.0),
        "network/none": torch.empty(0),
    }


@pytest.fixture
def messages():
    return []


@pytest.fixture
def files(tmp_path, messages):
    found = Checkpoints(tmp_path, "own", messages.append)
    yield found
    found.close()


def newest(files) -> Any:
    return next(files.whole(), None)


def save(files, tensors, *epochs):
    for epoch in epochs:
        files.save(epoch, tensors, {"losses": [0.5] * epoch})
    files.wait()


def test_what_was_written_comes_back(files, tensors):
    save(files, tensors, 1)
    found = newest(files)
    assert found.state == {"losses": [0.5], "epoch": 1, "fingerprint": "own"}
    assert found.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(found.tensors[name], tensor)


def test_later_changes_do_not_reach_the_file(files, tensors):
    before = tensors["network/weight"].clone()
    files.save(1, tensors, {})
    tensors["network/weight"].zero_()  # training goes on while the file is written
    assert torch.equal(files_latest(files).tensors["network/weight"], before)


def files_latest(files):
    files.wait()
    return newest(files)


def test_the_newest_two_are_kept(files, tensors, tmp_path):
    save(files, tensors, 1, 2, 3, 10)
    assert sorted(os.listdir(tmp_path)) == ["epoch-0003.safetensors", "epoch-0010.safetensors"]
    assert newest(files).state["epoch"] == 10


def truncate(path):
    path.write_bytes(path.read_bytes()[:-5])


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1  # a number: the format has no checksum of its own
    path.write_bytes(data)


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, empty])
def test_a_damaged_file_is_named_and_the_one_before_it_serves(
    files, tensors, tmp_path, messages, damage
):
    save(files, tensors, 1, 2)
    damage(tmp_path / "epoch-0002.safetensors")
    assert newest(files).state["epoch"] == 1
    assert len(messages) == 1
    assert messages[0].startswith(f"{tmp_path / 'epoch-0002.safetensors'}: damaged (")
    damage(tmp_path / "epoch-0001.safetensors")
    assert newest(files) is None


def test_a_file_of_another_kind_is_passed_over(files, tensors, tmp_path, messages):
    from safetensors.torch import save_file

    save(files, tensors, 1)
    save_file({"weight": torch.ones(2)}, tmp_path / "epoch-0002.safetensors")
    assert newest(files).state["epoch"] == 1
    assert "epoch-0002.safetensors: not a file that priornet wrote" in messages[0]


def test_checkpoints_of_other_settings_are_not_used(files, tensors, tmp_path, messages):
    save(files, tensors, 1)
    others = Checkpoints(tmp_path, "other", messages.append)
    assert newest(others) is None
    assert "of other settings or other data" in messages[0]
    others.close()


def test_checkpoints_of_other_settings_do_not_push_this_one_out(files, tensors, tmp_path, messages):
    save(files, tensors, 19, 20)
    others = Checkpoints(tmp_path, "other", messages.append)
    assert newest(others) is None
    for epoch in (1, 2, 3):
        save(others, tensors, epoch)
        found = newest(others)
        assert found is not None
        assert found.state["epoch"] == epoch
    assert not others.path(1).exists()
    others.close()


def test_a_file_that_was_not_finished_is_not_seen(files, tensors, tmp_path):
    save(files, tensors, 1)
    (tmp_path / ".epoch-0002.safetensors.123").write_bytes(b"half a file")
    assert newest(files).state["epoch"] == 1


def test_a_failed_write_is_raised_and_leaves_nothing(tmp_path, tensors):
    (tmp_path / "file").write_text("no folder")
    files = Checkpoints(tmp_path / "file", "own", lambda _: None)
    files.save(1, tensors, {})
    with pytest.raises(OSError, match="file"):
        files.close()


def test_what_the_system_refuses_is_its_error(tmp_path, tensors):
    """A limit on the size of files, in place of a disk that is full."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match=r"a.safetensors: it cannot be written \(.*too large"):
            write_tensors(tmp_path / "a.safetensors", tensors, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == []


def test_nothing_is_executed_on_reading(tmp_path):
    path = tmp_path / "weights.safetensors"
    torch.save({"weight": torch.ones(2)}, path)  # a pickle under a false name
    with pytest.raises(ValueError, match=r"weights.safetensors: damaged"):
        read_tensors(path)


def test_memory_order_does_not_matter(tmp_path, tensors):
    weight = tensors["network/weight"].to(memory_format=torch.channels_last)
    write_tensors(tmp_path / "a.safetensors", {"weight": weight}, {"n": 1})
    found = read_tensors(tmp_path / "a.safetensors")
    assert torch.equal(found.tensors["weight"], weight)
    assert found.state == {"n": 1}
