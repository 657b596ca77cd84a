"""The labelled NYU set, written with h5py as MATLAB lays it out."""

import h5py
import numpy as np
import pytest

from _depth_files import write_mat
from priornet.depth import DepthError, open_depth
from priornet.depth.images.nyu_split import nyu_parts


def test_images_and_depths_are_turned_back(tmp_path):
    images, depths = write_mat(tmp_path / "nyu_depth_v2_labeled.mat")
    found = open_depth(tmp_path / "nyu_depth_v2_labeled.mat")
    assert len(found) == 3
    for row in range(3):
        assert (found.image(row) == images[..., row]).all()
        assert (found.depth(row) == depths[..., row]).all()
    assert found.image(0).shape == (6, 8, 3)
    assert found.parts is None


def test_the_whole_set_has_the_official_parts(tmp_path):
    write_mat(tmp_path / "a.mat", n=1449, shape=(1, 2))
    train = open_depth(tmp_path / "a.mat", "train")
    assert len(train) == 795
    assert train.names[0] == "0002"
    assert nyu_parts()[int(train.names[-1])] == "train"


def test_one_image_is_read_at_a_time(tmp_path, monkeypatch):
    write_mat(tmp_path / "a.mat")
    asked = []
    read = h5py.Dataset.__getitem__
    monkeypatch.setattr(
        h5py.Dataset, "__getitem__", lambda self, key: asked.append(key) or read(self, key)
    )
    open_depth(tmp_path / "a.mat").image(2)
    assert asked == [2]


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({"depths": None}, r"a\.mat: it has no array `depths`"),
        ({"images": None}, r"a\.mat: it has no array `images`"),
        ({"images": np.zeros((6, 8, 3, 3))}, "`images` must hold bytes"),
        ({"depths": np.zeros((6, 8, 2))}, "`depths` of shape .* does not fit"),
    ],
)
def test_other_contents_are_refused(tmp_path, others, reason):
    write_mat(tmp_path / "a.mat", **others)
    with pytest.raises(DepthError, match=reason):
        open_depth(tmp_path / "a.mat")


def test_an_old_or_broken_file_is_named(tmp_path):
    path = tmp_path / "old.mat"
    path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(1000))
    with pytest.raises(DepthError, match=r"old\.mat: this cannot be read as a MATLAB file of"):
        open_depth(path)


def test_a_file_with_damaged_tables_is_named(tmp_path):
    """Its beginning is whole, so that HDF5 opens it."""
    path = tmp_path / "a.mat"
    write_mat(path)
    damaged = path.read_bytes().replace(b"HEAP", b"HOAX").replace(b"SNOD", b"SNAG")
    path.write_bytes(damaged)
    with pytest.raises(DepthError, match=r"a\.mat: it has no array|a\.mat: this cannot be read"):
        open_depth(path)


def test_a_group_is_no_array(tmp_path):
    write_mat(tmp_path / "a.mat", images=None)
    with h5py.File(tmp_path / "a.mat", "a") as file:
        file.create_group("images")
    with pytest.raises(DepthError, match=r"a\.mat: it has no array `images`"):
        open_depth(tmp_path / "a.mat")


def test_a_depth_map_without_measurements_is_named(tmp_path):
    depths = np.ones((6, 8, 3), np.float32)
    depths[..., 1] = np.nan
    write_mat(tmp_path / "a.mat", depths=depths)
    images = open_depth(tmp_path / "a.mat")
    with pytest.raises(DepthError, match=r"a\.mat: depths \[1\]: no pixel"):
        images.depth(1)
