"""Folders of pairs and of photographs, written with Pillow."""

import numpy as np
import pytest

from _depth_files import codes, depth_of, encoded, opened, photograph, write_pairs, write_split
from priornet.depth import DepthError, open_depth

NAMES = ("0000", "0001", "0002")


def test_eight_bit_depth_has_the_codes_of_nyu(tmp_path):
    images = open_depth(write_pairs(tmp_path / "nyu", NAMES))
    assert images.names == NAMES
    assert images.name == "nyu"
    for row, name in enumerate(NAMES):
        expected = codes(seed=row)
        metres = np.where(expected, (expected + 0.5) * 9.99547 / 255, 0)
        np.testing.assert_allclose(depth_of(images, row), metres, rtol=1e-6)
        data = (tmp_path / "nyu" / "rgb" / f"{name}.jpg").read_bytes()
        assert (images.image(row) == opened(data)).all()


def test_sixteen_bit_depth_is_in_millimetres(tmp_path):
    images = open_depth(write_pairs(tmp_path / "road", NAMES, dtype=np.uint16))
    expected = codes(seed=1, dtype=np.uint16, high=60_000)
    np.testing.assert_allclose(depth_of(images, 1), expected / 1000, rtol=1e-6)


def test_a_list_divides_the_set(tmp_path):
    folder = write_pairs(tmp_path / "nyu", NAMES)
    write_split(folder, {"0000": "test", "0001": "train", "0002": "test"})
    assert open_depth(folder, "train").names == ("0001",)
    assert open_depth(folder, "test").names == ("0000", "0002")
    assert open_depth(folder).parts == ("test", "train", "test")


def test_a_list_of_a_spreadsheet_divides_the_set(tmp_path):
    """It begins with a mark of the encoding, and ends lines in two characters."""
    folder = write_pairs(tmp_path / "nyu", NAMES)
    lines = ["index,split", "0000,test", "0001,train", "0002,test", ""]
    (folder / "split.csv").write_bytes("\ufeff".encode() + "\r\n".join(lines).encode())
    assert open_depth(folder, "train").names == ("0001",)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"0000": "test", "0001": "train"}, r"split\.csv: 0002 is not listed"),
        ({**dict.fromkeys(NAMES, "test"), "0003": "test"}, r"rgb/0003: split.csv lists it"),
        (dict.fromkeys(NAMES, "validation"), r'split\.csv: 0000 belongs to "validation"'),
    ],
)
def test_a_list_that_does_not_fit_is_refused(tmp_path, parts, reason):
    folder = write_pairs(tmp_path / "nyu", NAMES)
    write_split(folder, parts)
    with pytest.raises(DepthError, match=reason):
        open_depth(folder)


def test_a_list_needs_its_columns(tmp_path):
    folder = write_pairs(tmp_path / "nyu", NAMES)
    (folder / "split.csv").write_text("name,split\n0000,test\n")
    with pytest.raises(DepthError, match=r'split\.csv: it has no column "index"'):
        open_depth(folder)


def test_road_images_are_divided_by_their_names(tmp_path):
    names = ("um_000000", "um_000094", "uu_000081")
    folder = write_pairs(tmp_path / "road", names, dtype=np.uint16)
    assert open_depth(folder, "test").names == ("um_000094", "uu_000081")


def test_a_missing_depth_file_is_named_at_once(tmp_path):
    folder = write_pairs(tmp_path / "nyu", NAMES)
    (folder / "depth" / "0001.png").unlink()
    with pytest.raises(
        DepthError, match=r"depth/0001\.png: this depth file is missing; with `miss"
    ):
        open_depth(folder)
    (folder / "depth" / "0001.tiff").touch()
    with pytest.raises(DepthError, match=r"missing \(0001\.tiff is there, but depth is read from"):
        open_depth(folder)


def test_pictures_without_their_depth_may_be_left_out(tmp_path):
    folder = write_pairs(tmp_path / "nyu", NAMES)
    write_split(folder, {name: "test" if name == NAMES[-1] else "train" for name in NAMES})
    whole = open_depth(folder, "train")
    gone, *rest = whole.names
    (folder / "depth" / f"{gone}.png").unlink()
    images = open_depth(folder, "train", missing="skip")
    assert images.names == tuple(rest)
    assert (images.depth(0) == whole.depth(1)).all()
    assert open_depth(folder, "test", missing="skip").names == NAMES[-1:]
    for file in (folder / "depth").iterdir():
        file.unlink()
    with pytest.raises(DepthError, match="depth: no picture has its depth here"):
        open_depth(folder, missing="skip")


def test_a_set_may_have_no_depth(tmp_path):
    images = open_depth(write_pairs(tmp_path / "lsun", NAMES, with_depth=False))
    assert not images.has_depth
    assert images.depth(0) is None
    assert images.stored_depth(0) is None
    assert len(open_depth(tmp_path / "lsun", "test")) == 3


def test_two_pictures_of_one_name_are_refused(tmp_path):
    folder = write_pairs(tmp_path / "nyu", NAMES)
    (folder / "rgb" / "0001.png").write_bytes(encoded(photograph(), "PNG"))
    with pytest.raises(DepthError, match=r"rgb/0001\.png: .*0001\.jpg has the same name"):
        open_depth(folder)


def test_a_folder_without_pictures_is_named(tmp_path):
    (tmp_path / "nyu" / "rgb").mkdir(parents=True)
    with pytest.raises(DepthError, match=r"nyu/rgb: this folder holds no pictures"):
        open_depth(tmp_path / "nyu")
    with pytest.raises(DepthError, match="this folder holds no pictures"):
        open_depth(tmp_path, kind="images")


def test_a_file_that_vanishes_is_named(tmp_path):
    folder = write_pairs(tmp_path / "nyu", NAMES)
    images = open_depth(folder)
    (folder / "rgb" / "0002.jpg").unlink()
    (folder / "depth" / "0002.png").unlink()
    with pytest.raises(DepthError, match=r"0002\.jpg: this cannot be read as a file"):
        images.image(2)
    with pytest.raises(DepthError, match=r"0002\.png: this cannot be read as a file"):
        images.depth(2)


def test_plain_folders_are_read_to_the_bottom(tmp_path):
    for name in ("b.JPG", "a/deep/1.webp", "a/2.png"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        form = {".jpg": "JPEG", ".webp": "WEBP", ".png": "PNG"}[path.suffix.lower()]
        path.write_bytes(encoded(photograph(), form))
    (tmp_path / "photos" / "notes.txt").write_text("nothing")
    (tmp_path / "photos" / "._b.jpg").write_bytes(b"what some systems leave behind")
    images = open_depth(tmp_path / "photos")
    assert images.names == ("a/2.png", "a/deep/1.webp", "b.JPG")
    assert (images.image(0) == photograph()).all()
    assert not images.has_depth


@pytest.mark.parametrize(
    ("name", "n_images", "shape", "low", "high"),
    [
        ("nyu_v2", 1449, (240, 320), 0.71, 9.996),
        ("kitti_road", 289, (192, 640), 4.65, 65.535),
        ("lsun_bedroom", 300, (240, 320), None, None),
    ],
)
def test_the_real_sets_are_read(real_depth, name, n_images, shape, low, high):
    images = open_depth(real_depth / name)
    assert len(images) == n_images
    assert images.image(7).shape == (*shape, 3)
    depth = images.depth(7)
    if low is None:
        assert depth is None
    else:
        assert depth is not None
        assert depth.shape == shape
        assert low <= depth[depth > 0].min() <= depth.max() <= high


def test_the_real_nyu_set_has_the_official_parts(real_depth):
    sizes = [len(open_depth(real_depth / "nyu_v2", part)) for part in ("train", "test")]
    assert sizes == [795, 654]
