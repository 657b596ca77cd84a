"""Packing a set is lossless by default."""

import json
import os
import zipfile

import h5py
import numpy as np
import pytest

from _depth_files import depth_of, encoded, npy, photograph, write_pairs, write_split, write_zip
from priornet.depth import DepthError, open_depth, pack

NAMES = ["0000", "0001", "0002", "0003"]
PARTS = dict(zip(NAMES, ["train", "test", "train", "test"], strict=True))


@pytest.fixture
def folder(tmp_path):
    found = write_pairs(tmp_path / "rooms", NAMES)
    write_split(found, PARTS)
    return found


def assert_same(first, second):
    assert first.names == second.names
    assert first.parts == second.parts
    assert (first.name, first.has_depth, first.crop) == (second.name, second.has_depth, second.crop)
    for row in range(len(first)):
        assert (first.image(row) == second.image(row)).all()
        if first.has_depth:
            assert first.depth(row).tobytes() == second.depth(row).tobytes()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_pairs_come_back_bit_by_bit(tmp_path, dtype):
    images = open_depth(write_pairs(tmp_path / "rooms", NAMES, dtype=dtype))
    pack(images, tmp_path / "rooms.pack")
    found = open_depth(tmp_path / "rooms.pack")
    assert_same(images, found)
    for row in range(4):
        assert found.picture(row).data == images.picture(row).data


def test_division_comes_back(folder, tmp_path):
    pack(open_depth(folder), tmp_path / "rooms.pack")
    assert open_depth(tmp_path / "rooms.pack", "test").names == ("0001", "0003")
    assert open_depth(tmp_path / "rooms.pack", "train").names == ("0000", "0002")
    assert (
        open_depth(tmp_path / "rooms.pack", "test").image(1) == open_depth(folder).image(3)
    ).all()


def test_pictures_without_depth_come_back(tmp_path):
    images = open_depth(write_pairs(tmp_path / "beds", NAMES, with_depth=False))
    pack(images, tmp_path / "beds.pack")
    assert_same(images, open_depth(tmp_path / "beds.pack"))


def test_arrays_and_metres_come_back(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "eigen_test_rgb.npy": rng.integers(0, 256, (3, 9, 7, 3), dtype=np.uint8),
        "eigen_test_depth.npy": rng.uniform(0, 9, (3, 9, 7)).astype(np.float32),
        "eigen_test_crop.npy": np.array([1, 7, 0, 5]),
    }
    write_zip(tmp_path / "nyu_test.zip", {name: npy(array) for name, array in arrays.items()})
    images = open_depth(tmp_path / "nyu_test.zip")
    pack(images, tmp_path / "test.pack")
    found = open_depth(tmp_path / "test.pack")
    assert_same(images, found)
    assert (found.depth(2) == arrays["eigen_test_depth.npy"][2]).all()


def test_maps_of_several_encodings_come_back(folder, tmp_path):
    other = encoded(np.full((12, 16), 4321, np.uint16), "PNG")
    (folder / "depth" / "0002.png").write_bytes(other)
    images = open_depth(folder)
    pack(images, tmp_path / "rooms.pack")
    found = open_depth(tmp_path / "rooms.pack")
    assert_same(images, found)
    assert depth_of(found, 2)[0, 0] == np.float32(4.321)


def test_packed_set_can_be_packed_again(folder, tmp_path):
    pack(open_depth(folder), tmp_path / "first.pack")
    pack(open_depth(tmp_path / "first.pack"), tmp_path / "second.pack")
    assert_same(open_depth(folder), open_depth(tmp_path / "second.pack"))


def test_file_is_a_plain_zip_and_no_larger_than_its_parts(tmp_path):
    images = open_depth(write_pairs(tmp_path / "rooms", NAMES, shape=(60, 80)))
    pack(images, tmp_path / "rooms.pack")
    with zipfile.ZipFile(tmp_path / "rooms.pack") as file:
        assert file.testzip() is None
        assert json.loads(file.read("set.json"))["names"] == NAMES
    rgb = sum(path.stat().st_size for path in (tmp_path / "rooms/rgb").iterdir())
    png = sum(path.stat().st_size for path in (tmp_path / "rooms/depth").iterdir())
    assert (tmp_path / "rooms.pack").stat().st_size < rgb + png


def test_packing_with_a_size_and_a_step_rescales_and_rounds(tmp_path):
    depths = np.random.default_rng(1).uniform(0.7, 9.9, (24, 32, 2)).astype(np.float32)
    depths[0, 0] = 0
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["images"] = np.stack([photograph(24, 32, seed) for seed in range(2)], -1).T
        file["depths"] = depths.T
    images = open_depth(tmp_path / "a.mat")
    pack(images, tmp_path / "a.pack", size=(12, 16), step=0.001)
    found = open_depth(tmp_path / "a.pack")
    pixels, depth = images.tensors((12, 16))
    assert (found.tensors()[0] == pixels).all()
    rounded = found.tensors()[1]
    assert rounded is not None
    assert depth is not None
    np.testing.assert_allclose(rounded, depth, atol=5.01e-4)
    assert ((rounded > 0) == (depth > 0)).all()


def test_quality_makes_pictures_smaller_and_leaves_depth_alone(tmp_path):
    images = open_depth(write_pairs(tmp_path / "rooms", NAMES, shape=(120, 160)))
    pack(images, tmp_path / "exact.pack")
    pack(images, tmp_path / "small.pack", quality=60)
    sizes = [(tmp_path / f"{name}.pack").stat().st_size for name in ("exact", "small")]
    assert sizes[1] < sizes[0]
    found = open_depth(tmp_path / "small.pack")
    assert (found.depth(1) == images.depth(1)).all()
    difference = found.image(1).astype(int) - images.image(1)
    assert 0 < np.abs(difference).mean() < 4


def test_depth_that_does_not_fit_a_step_is_named(folder, tmp_path):
    with pytest.raises(DepthError, match=r"0000\.png: \d.* m in steps of 1e-05 m does not fit"):
        pack(open_depth(folder), tmp_path / "rooms.pack", step=1e-5)


@pytest.mark.parametrize(
    ("options", "reason"), [({"quality": 101}, "`quality`"), ({"step": 0.0}, "`step`")]
)
def test_wrong_options_are_refused(folder, tmp_path, options, reason):
    with pytest.raises(ValueError, match=reason):
        pack(open_depth(folder), tmp_path / "rooms.pack", **options)


def test_damaged_picture_stops_packing_and_leaves_no_file(folder, tmp_path):
    path = folder / "rgb" / "0002.jpg"
    path.write_bytes(path.read_bytes()[:200])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "rooms.pack").write_bytes(b"the old one")
    with pytest.raises(DepthError, match=r"rgb/0002\.jpg"):
        pack(open_depth(folder), tmp_path / "out" / "rooms.pack")
    assert os.listdir(tmp_path / "out") == ["rooms.pack"]
    assert (tmp_path / "out" / "rooms.pack").read_bytes() == b"the old one"


def test_depth_of_another_shape_stops_it(folder, tmp_path):
    (folder / "rgb/0002.jpg").write_bytes(encoded(photograph(24, 32)))
    with pytest.raises(DepthError, match=r"0002\.png: depth of 12 x 16 .* picture of 24 x 32"):
        pack(open_depth(folder), tmp_path / "rooms.pack", size=(6, 8))
    assert not (tmp_path / "rooms.pack").exists()


def test_folder_that_is_not_there_is_named(folder, tmp_path):
    with pytest.raises(DepthError, match="none: this cannot be read as a folder to write to"):
        pack(open_depth(folder), tmp_path / "none" / "rooms.pack")


def rewritten(path, **changes):
    """Write a copy with another index."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    index = {**json.loads(members["set.json"]), **changes}
    return write_zip(path, {**members, "set.json": json.dumps(index)})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": "other"}, "this is not the index of a packed set"),
        ({"version": 2}, "version 2 of the form is not known"),
        ({"names": None}, "cannot be read as the index of a packed set"),
        ({"names": [*NAMES, "0004"]}, r"picture/000004: this file is missing"),
    ],
)
def test_another_index_is_refused(folder, tmp_path, changes, reason):
    pack(open_depth(folder), tmp_path / "rooms.pack")
    with pytest.raises(DepthError, match=rf"rooms\.pack: .*{reason}"):
        open_depth(rewritten(tmp_path / "rooms.pack", **changes))


def test_truncated_file_is_named(folder, tmp_path):
    path = tmp_path / "rooms.pack"
    pack(open_depth(folder), path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DepthError, match=r"rooms\.pack: this cannot be read as a zip"):
        open_depth(path)


def test_real_nyu_set_fits_45_megabytes_and_comes_back(real_depth, tmp_path):
    images = open_depth(real_depth / "nyu_v2")[::48]
    pack(images, tmp_path / "nyu.pack")
    size = (tmp_path / "nyu.pack").stat().st_size
    originals = sum(path.stat().st_size for path in (real_depth / "nyu_v2").glob("*/*.*"))
    some = sum(
        (real_depth / "nyu_v2" / kind).stat().st_size
        for name in images.names
        for kind in (f"rgb/{name}.jpg", f"depth/{name}.png")
    )
    assert size / some * originals < 45e6  # as a share of what the whole set takes in files
    assert_same(images, open_depth(tmp_path / "nyu.pack"))
