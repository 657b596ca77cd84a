"""DenseDepth's archives, written with zipfile, NumPy and Pillow."""

import zipfile

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
    write_zip,
)
from priornet.depth import DepthError, open_depth


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


def test_the_unpacked_folder_is_read_as_well(tmp_path):
    with zipfile.ZipFile(write_zip(tmp_path / "nyu_data.zip", data_files())) as file:
        file.extractall(tmp_path / "unpacked")
    packed, unpacked = open_depth(tmp_path / "nyu_data.zip"), open_depth(tmp_path / "unpacked")
    assert packed.names == unpacked.names
    assert (packed.image(1) == unpacked.image(1)).all()
    assert (packed.depth(1) == unpacked.depth(1)).all()


def test_a_folder_around_everything_is_no_matter(tmp_path):
    files = {f"nyu/{name}": data for name, data in data_files().items()}
    assert open_depth(write_zip(tmp_path / "a.zip", files)).image(0).shape == (12, 16, 3)


def test_only_files_that_are_asked_for_are_read(tmp_path):
    files = data_files()
    path = write_zip(tmp_path / "nyu_data.zip", files, zipfile.ZIP_STORED)
    other = files[f"{SCENES[1]}.jpg"]
    path.write_bytes(path.read_bytes().replace(other, bytes(len(other))))
    images = open_depth(path)
    assert images.image(0).shape == (12, 16, 3)
    with pytest.raises(DepthError, match=r"nyu_data\.zip: data/nyu2_train/office_0001_out/2\.jpg"):
        images.image(1)


def test_a_file_that_is_listed_must_be_there(tmp_path):
    files = data_files()
    del files[f"{SCENES[0]}.png"]
    with pytest.raises(DepthError, match=r"living_room_0038_out/37\.png: this file is missing"):
        open_depth(write_zip(tmp_path / "nyu_data.zip", files))


def test_a_line_must_name_a_pair(tmp_path):
    files = {**data_files(), "data/nyu2_train.csv": b"a.jpg,b.png\nc.jpg\n"}
    with pytest.raises(DepthError, match=r"nyu2_train\.csv: line 2 must name a picture"):
        open_depth(write_zip(tmp_path / "nyu_data.zip", files))


def write_test(path, arrays, compression=zipfile.ZIP_DEFLATED):
    return write_zip(path, {name: npy(array) for name, array in arrays.items()}, compression)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_test_arrays_are_read_in_any_order(tmp_path, compression):
    arrays = eigen_arrays()
    images = open_depth(write_test(tmp_path / "nyu_test.zip", arrays, compression), "test")
    assert len(images) == 5
    assert images.crop == (1, 10, 2, 13)
    for row in (0, 1, 4, 2):
        assert (images.image(row) == arrays["eigen_test_rgb.npy"][row]).all()
        assert (images.depth(row) == arrays["eigen_test_depth.npy"][row]).all()


def test_the_unpacked_test_arrays_are_read_as_well(tmp_path):
    arrays = eigen_arrays()
    for name, array in arrays.items():
        np.save(tmp_path / name, array)
    images, depth = open_depth(tmp_path).tensors()
    assert (images.numpy() == arrays["eigen_test_rgb.npy"].transpose(0, 3, 1, 2)).all()
    assert depth is not None
    assert (depth.numpy() == arrays["eigen_test_depth.npy"]).all()


def test_the_test_arrays_are_no_training_set(tmp_path):
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


def test_a_missing_array_is_named(tmp_path):
    arrays = eigen_arrays()
    del arrays["eigen_test_depth.npy"]
    with pytest.raises(DepthError, match=r"eigen_test_depth\.npy: this file is missing"):
        open_depth(write_test(tmp_path / "nyu_test.zip", arrays))
