"""DenseDepth's archives and the labelled NYU set are read; damaged files are named."""

import csv
import zipfile

import h5py
import numpy as np
import pytest

from _depth_files import (
    SCENES,
    codes,
    data_files,
    depth_of,
    eigen_arrays,
    npy,
    opened,
    photograph,
    write_mat,
    write_zip,
)
from priornet.depth import DepthError, open_depth
from priornet.depth.images.archives import N_IMAGES, ArrayFile, Members, nyu_parts


def test_training_pairs_have_codes_over_ten_metres(tmp_path):
    files = data_files()
    images = open_depth(write_zip(tmp_path / "nyu_data.zip", files), "train")
    assert images.names == ("living_room_0038_out/37", "office_0001_out/2")
    for row, stem in enumerate(SCENES):
        assert (images.image(row) == opened(files[f"{stem}.jpg"])).all()
        expected = codes(seed=row).astype(np.float64) / 255 * 10
        np.testing.assert_allclose(depth_of(images, row), expected, rtol=1e-6)


def test_validation_pairs_are_in_millimetres(tmp_path):
    images = open_depth(write_zip(tmp_path / "nyu_data.zip", data_files()), "test")
    assert images.names == ("nyu2_test/00000_colors",)
    assert (images.image(0) == photograph(seed=5)).all()
    expected = codes(seed=5, dtype=np.uint16, high=9_000) / 1000
    np.testing.assert_allclose(depth_of(images, 0), expected, rtol=1e-6)


def test_all_images_are_both_parts(tmp_path):
    images = open_depth(write_zip(tmp_path / "nyu_data.zip", data_files()))
    assert images.parts == ("train", "train", "test")


def test_unpacked_folder_is_read_as_well(tmp_path):
    with zipfile.ZipFile(write_zip(tmp_path / "nyu_data.zip", data_files())) as file:
        file.extractall(tmp_path / "unpacked")
    packed, unpacked = open_depth(tmp_path / "nyu_data.zip"), open_depth(tmp_path / "unpacked")
    assert packed.names == unpacked.names
    assert (packed.image(1) == unpacked.image(1)).all()
    assert (packed.depth(1) == unpacked.depth(1)).all()


def test_archive_with_one_folder_around_everything_is_read(tmp_path):
    files = {f"nyu/{name}": data for name, data in data_files().items()}
    assert open_depth(write_zip(tmp_path / "a.zip", files)).image(0).shape == (12, 16, 3)


def test_only_requested_files_are_read(tmp_path):
    files = data_files()
    path = write_zip(tmp_path / "nyu_data.zip", files, zipfile.ZIP_STORED)
    other = files[f"{SCENES[1]}.jpg"]
    path.write_bytes(path.read_bytes().replace(other, bytes(len(other))))
    images = open_depth(path)
    assert images.image(0).shape == (12, 16, 3)
    with pytest.raises(DepthError, match=r"nyu_data\.zip: data/nyu2_train/office_0001_out/2\.jpg"):
        images.image(1)


def test_file_that_is_listed_must_be_there(tmp_path):
    files = data_files()
    del files[f"{SCENES[0]}.png"]
    with pytest.raises(DepthError, match=r"living_room_0038_out/37\.png: this file is missing"):
        open_depth(write_zip(tmp_path / "nyu_data.zip", files))


def test_line_must_name_a_pair(tmp_path):
    files = {**data_files(), "data/nyu2_train.csv": b"a.jpg,b.png\nc.jpg\n"}
    with pytest.raises(DepthError, match=r"nyu2_train\.csv: line 2 must name a picture"):
        open_depth(write_zip(tmp_path / "nyu_data.zip", files))


def write_test(path, arrays, compression=zipfile.ZIP_DEFLATED):
    return write_zip(path, {name: npy(array) for name, array in arrays.items()}, compression)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_test_arrays_are_read_in_any_order(tmp_path, compression):
    arrays = eigen_arrays()
    images = open_depth(write_test(tmp_path / "nyu_test.zip", arrays, compression), "test")
    assert len(images) == 5
    assert images.crop == (1, 10, 2, 13)
    for row in (0, 1, 4, 2):
        assert (images.image(row) == arrays["eigen_test_rgb.npy"][row]).all()
        assert (images.depth(row) == arrays["eigen_test_depth.npy"][row]).all()


def test_unpacked_test_arrays_are_read_as_well(tmp_path):
    arrays = eigen_arrays()
    for name, array in arrays.items():
        np.save(tmp_path / name, array)
    images, depth = open_depth(tmp_path).tensors()
    assert (images.numpy() == arrays["eigen_test_rgb.npy"].transpose(0, 3, 1, 2)).all()
    assert depth is not None
    assert (depth.numpy() == arrays["eigen_test_depth.npy"]).all()


def test_test_arrays_are_no_training_set(tmp_path):
    path = write_test(tmp_path / "nyu_test.zip", eigen_arrays())
    with pytest.raises(DepthError, match="nyu_test: it has no train images"):
        open_depth(path, "train")


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        ("rgb", np.zeros((5, 12, 16, 3)), r"rgb\.npy: pictures must be bytes"),
        ("rgb", np.zeros((5, 12, 16), np.uint8), r"rgb\.npy: pictures must be bytes"),
        ("depth", np.ones((5, 12, 15)), r"depth\.npy: depth of shape \(5, 12, 15\) does not fit"),
        ("crop", np.zeros(3), r"crop\.npy: expected four numbers"),
    ],
)
def test_arrays_of_other_shapes_are_refused(tmp_path, name, array, reason):
    arrays = {**eigen_arrays(), f"eigen_test_{name}.npy": array}
    with pytest.raises(DepthError, match=reason):
        open_depth(write_test(tmp_path / "nyu_test.zip", arrays))


def test_missing_array_is_named(tmp_path):
    arrays = eigen_arrays()
    del arrays["eigen_test_depth.npy"]
    with pytest.raises(DepthError, match=r"eigen_test_depth\.npy: this file is missing"):
        open_depth(write_test(tmp_path / "nyu_test.zip", arrays))


def test_images_and_depths_are_turned_back(tmp_path):
    images, depths = write_mat(tmp_path / "nyu_depth_v2_labeled.mat")
    found = open_depth(tmp_path / "nyu_depth_v2_labeled.mat")
    assert len(found) == 3
    for row in range(3):
        assert (found.image(row) == images[..., row]).all()
        assert (found.depth(row) == depths[..., row]).all()
    assert found.image(0).shape == (6, 8, 3)
    assert found.parts is None


def test_whole_set_has_the_official_parts(tmp_path):
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
        ({"images": np.zeros((6, 8, 3, 3))}, r"a\.mat: images: pictures must be bytes"),
        ({"depths": np.zeros((6, 8, 2))}, r"a\.mat: depths: depth of shape .* does not fit"),
    ],
)
def test_other_contents_are_refused(tmp_path, others, reason):
    write_mat(tmp_path / "a.mat", **others)
    with pytest.raises(DepthError, match=reason):
        open_depth(tmp_path / "a.mat")


def test_old_or_broken_file_is_named(tmp_path):
    path = tmp_path / "old.mat"
    path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(1000))
    with pytest.raises(DepthError, match=r"old\.mat: this cannot be read as a MATLAB file of"):
        open_depth(path)


def test_file_with_damaged_tables_is_named(tmp_path):
    """Damage it behind its beginning, so that HDF5 opens it."""
    path = tmp_path / "a.mat"
    write_mat(path)
    damaged = path.read_bytes().replace(b"HEAP", b"HOAX").replace(b"SNOD", b"SNAG")
    path.write_bytes(damaged)
    with pytest.raises(DepthError, match=r"a\.mat: it has no array|a\.mat: this cannot be read"):
        open_depth(path)


def test_group_is_no_array(tmp_path):
    write_mat(tmp_path / "a.mat", images=None)
    with h5py.File(tmp_path / "a.mat", "a") as file:
        file.create_group("images")
    with pytest.raises(DepthError, match=r"a\.mat: it has no array `images`"):
        open_depth(tmp_path / "a.mat")


def test_depth_map_without_measurements_is_named(tmp_path):
    depths = np.ones((6, 8, 3), np.float32)
    depths[..., 1] = np.nan
    write_mat(tmp_path / "a.mat", depths=depths)
    images = open_depth(tmp_path / "a.mat")
    with pytest.raises(DepthError, match=r"a\.mat: depths \[1\]: no pixel"):
        images.depth(1)


def test_there_are_as_many_of_each_as_published():
    parts = nyu_parts()
    assert len(parts) == N_IMAGES == 1449
    assert (parts.count("train"), parts.count("test")) == (795, 654)


def test_first_test_images_are_those_of_the_release():
    # splits.mat counts from 1: testNdxs begins with 1, 2, 9, 14, 15, 16, 17, 18, 21, 28.
    test = [number + 1 for number, part in enumerate(nyu_parts()) if part == "test"]
    assert test[:10] == [1, 2, 9, 14, 15, 16, 17, 18, 21, 28]


def test_real_set_agrees(real_depth):
    with (real_depth / "nyu_v2" / "split.csv").open() as file:
        assert [row["split"] for row in csv.DictReader(file)] == nyu_parts()


ROWS = np.random.default_rng(0).normal(size=(9, 4, 5)).astype(np.float32)


def array_file(folder, data, name="x.npy"):
    return ArrayFile(Members(write_zip(folder / "a.zip", {name: data})), name)


@pytest.mark.parametrize("rows", [ROWS, np.uint8(ROWS * 9), ROWS.astype(">f8"), ROWS[:, 0, 0]])
def test_rows_are_those_of_the_array(tmp_path, rows):
    found = array_file(tmp_path, npy(rows))
    assert found.shape == rows.shape
    for index in (0, 1, 5, 8, 2, 0):  # back and forth
        assert (found.read(index) == rows[index]).all()


def test_folder_serves_as_well(tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    assert (ArrayFile(Members(tmp_path), "x.npy").read(3) == ROWS[3]).all()


def test_later_versions_of_the_header_are_read(tmp_path):
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, ROWS, version=(2, 0))
    assert (ArrayFile(Members(tmp_path), "x.npy").read(3) == ROWS[3]).all()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"nonsense", "cannot be read as a NumPy array"),
        (npy(np.asfortranarray(ROWS)), "order of Fortran"),
        (npy(np.float32(1)), "does not hold rows"),
    ],
)
def test_other_files_are_named(tmp_path, data, reason):
    with pytest.raises(DepthError, match=rf"x\.npy: .*{reason}"):
        array_file(tmp_path, data)


def test_file_that_ends_early_is_named(tmp_path):
    found = array_file(tmp_path, npy(ROWS)[:-50])
    assert (found.read(7) == ROWS[7]).all()
    with pytest.raises(DepthError, match=r"x\.npy: the file ends before row 8"):
        found.read(8)
