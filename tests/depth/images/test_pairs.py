"""What a worker does with a batch: decode it, and leave it for another process."""

import numpy as np
import pytest

from _depth_files import codes, encoded, opened, photograph
from priornet.depth.images import pairs
from priornet.depth.images.decoding import Picture, depth_file
from priornet.depth.images.encoding import MILLIMETRES

PHOTOGRAPHS = [encoded(photograph(seed=seed)) for seed in range(3)]
DEPTHS = [codes(seed=seed, dtype=np.uint16, high=9_000) for seed in range(3)]


@pytest.fixture
def batch():
    """Three images of 12 x 16."""
    depth = [depth_file(encoded(found, "PNG"), "depth", {16: MILLIMETRES}) for found in DEPTHS]
    return [(Picture(data, "a"), one) for data, one in zip(PHOTOGRAPHS, depth, strict=True)]


def assert_whole(images, depth):
    assert images.flags.c_contiguous
    assert (images == np.stack([opened(data) for data in PHOTOGRAPHS]).transpose(0, 3, 1, 2)).all()
    np.testing.assert_allclose(depth, np.stack(DEPTHS) / 1000, rtol=1e-6)


def test_arrays_are_left_in_a_folder(batch, tmp_path):
    left = pairs.decode_batch(batch, size=None, crop=False, folder=str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 2
    found = []
    for one in left:
        assert isinstance(one, pairs.Left)
        found.append(np.fromfile(one.path, one.dtype).reshape(one.shape))
    assert_whole(*found)


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_without_a_folder_arrays_are_given_back(batch, tmp_path, folder):
    folder = folder and str(tmp_path / folder)
    assert_whole(*pairs.decode_batch(batch, size=None, crop=False, folder=folder))


def test_what_does_not_fit_is_given_back_and_leaves_nothing(batch, tmp_path, monkeypatch):
    def full(path, mode):
        with open(path, mode) as file:
            file.write(b"some of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pairs, "open", full, raising=False)
    assert_whole(*pairs.decode_batch(batch, size=None, crop=False, folder=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []
