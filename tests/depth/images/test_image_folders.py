"""Folders of pairs and of photographs are read; zips and folders give the same files."""

import numpy as np
import pytest

from _depth_files import (
    codes,
    depth_of,
    encoded,
    opened,
    photograph,
    write_pairs,
    write_split,
    write_zip,
)
from priornet.depth import KITTI_ROAD_TEST, DepthError, open_depth
from priornet.depth.images.archives import Members
from priornet.depth.images.image_folders import (
    is_kitti_road,
    kitti_road_parts,
    last_of_each_category,
)

FILES = {"data/list.csv": b"a,b\n", "data/x/1.jpg": b"picture"}


@pytest.fixture(params=["zip", "folder"])
def members(request, tmp_path):
    if request.param == "zip":
        return Members(write_zip(tmp_path / "a.zip", FILES))
    for name, data in FILES.items():
        (tmp_path / "a" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "a" / name).write_bytes(data)
    return Members(tmp_path / "a")


def test_files_are_read_by_name(members):
    assert members.read("data/x/1.jpg") == b"picture"
    with members.open("data/x/1.jpg") as file:
        file.seek(3)
        assert file.read() == b"ture"
    assert "data/list.csv" in members
    assert "data/other.csv" not in members


def test_missing_file_is_named(members):
    members.check(FILES)
    for act in (lambda: members.check(["data/x/2.jpg"]), lambda: members.read("data/x/2.jpg")):
        with pytest.raises(DepthError, match=r"data/x/2\.jpg"):
            act()


def test_archive_may_have_a_folder_of_its_own(tmp_path):
    inside = write_zip(tmp_path / "b.zip", {f"top/{name}": data for name, data in FILES.items()})
    assert Members(inside).home_of("data/list.csv") == "top/"
    assert Members(inside).home_of("nothing.csv") is None


def test_home_is_empty_where_the_name_is_whole(members):
    assert members.home_of("data/list.csv") == ""
    assert members.home_of("list.csv") in (None, "data/")


def test_file_that_is_no_zip_is_named(tmp_path):
    path = tmp_path / "nyu_data.zip"
    path.write_bytes(b"<html>not found</html>")
    with pytest.raises(DepthError, match=r"nyu_data\.zip: this cannot be read as a zip"):
        Members(path)


def test_truncated_zip_is_named(tmp_path):
    path = write_zip(tmp_path / "a.zip", FILES)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DepthError, match=r"a\.zip: this cannot be read as a zip"):
        Members(path)


def test_damaged_member_is_named(tmp_path):
    path = write_zip(tmp_path / "a.zip", FILES, compression=0)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"picture", b"picturE"))
    with pytest.raises(DepthError, match=r"data/x/1\.jpg: this cannot be read as a file: Bad CRC"):
        Members(path).read("data/x/1.jpg")


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


def test_list_divides_the_set(tmp_path):
    folder = write_pairs(tmp_path / "nyu", NAMES)
    write_split(folder, {"0000": "test", "0001": "train", "0002": "test"})
    assert open_depth(folder, "train").names == ("0001",)
    assert open_depth(folder, "test").names == ("0000", "0002")
    assert open_depth(folder).parts == ("test", "train", "test")


def test_list_of_a_spreadsheet_divides_the_set(tmp_path):
    """Read a byte order mark and line ends of two characters."""
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
def test_list_that_does_not_fit_is_refused(tmp_path, parts, reason):
    folder = write_pairs(tmp_path / "nyu", NAMES)
    write_split(folder, parts)
    with pytest.raises(DepthError, match=reason):
        open_depth(folder)


def test_list_needs_its_columns(tmp_path):
    folder = write_pairs(tmp_path / "nyu", NAMES)
    (folder / "split.csv").write_text("name,split\n0000,test\n")
    with pytest.raises(DepthError, match=r'split\.csv: it has no column "index"'):
        open_depth(folder)


def test_road_images_are_divided_by_their_names(tmp_path):
    names = ("um_000000", "um_000094", "uu_000081")
    folder = write_pairs(tmp_path / "road", names, dtype=np.uint16)
    assert open_depth(folder, "test").names == ("um_000094", "uu_000081")


def test_missing_depth_file_is_named_at_once(tmp_path):
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


def test_set_may_have_no_depth(tmp_path):
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


def test_folder_without_pictures_is_named(tmp_path):
    (tmp_path / "nyu" / "rgb").mkdir(parents=True)
    with pytest.raises(DepthError, match=r"nyu/rgb: this folder holds no pictures"):
        open_depth(tmp_path / "nyu")
    with pytest.raises(DepthError, match="this folder holds no pictures"):
        open_depth(tmp_path, kind="images")


def test_file_that_vanishes_is_named(tmp_path):
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
def test_real_sets_are_read(real_depth, name, n_images, shape, low, high):
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


def test_real_nyu_set_has_the_official_parts(real_depth):
    sizes = [len(open_depth(real_depth / "nyu_v2", part)) for part in ("train", "test")]
    assert sizes == [795, 654]


EXPECTED = [
    *(f"um_0000{number}" for number in range(78, 95)),
    *(f"umm_0000{number}" for number in range(79, 96)),
    *(f"uu_0000{number}" for number in range(81, 98)),
]


def test_list_is_the_one_that_was_published():
    assert list(KITTI_ROAD_TEST) == EXPECTED
    assert len(KITTI_ROAD_TEST) == 51


def test_names_select_the_parts():
    names = ["um_000077", "um_000078", "umm_000079", "uu_000000", "uu_000097"]
    assert kitti_road_parts(names) == ["train", "test", "test", "train", "test"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["um_000001", "uu_000002"], True), (["um_000001", "0002"], False), ([], False)],
)
def test_road_images_are_known_by_their_names(names, expected):
    assert is_kitti_road(names) == expected


def test_real_set_is_divided_evenly(real_depth):
    train, test = (open_depth(real_depth / "kitti_road", part) for part in ("train", "test"))
    assert test.names == tuple(sorted(EXPECTED))
    assert len(train) == 289 - 51
    assert not set(train.names) & set(test.names)
    for category in ("um_", "umm_", "uu_"):
        assert sum(name.startswith(category) for name in test.names) == 17


def test_images_held_out_are_the_last_of_every_category():
    names = [f"{kind}_{i:06d}" for kind, n in (("um", 10), ("umm", 4), ("uu", 1)) for i in range(n)]
    held = [names[place] for place in last_of_each_category(names, 0.25)]
    assert held == ["um_000008", "um_000009", "umm_000003"]
    assert last_of_each_category(names, 0.0) == []


def test_held_out_images_of_the_real_set_are_divided_as_its_test_images(real_depth):
    train = open_depth(real_depth / "kitti_road", "train")
    held = [train.names[place] for place in last_of_each_category(train.names, 0.18)]
    counts = [sum(name.startswith(kind) for name in held) for kind in ("um_", "umm_", "uu_")]
    assert counts == [14, 14, 15]
