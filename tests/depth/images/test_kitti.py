"""KITTI is read in its common layouts and with the common split lists."""

import numpy as np
import pytest

from _depth_files import codes, encoded, opened, photograph, write_frame
from priornet.depth import DepthError, open_depth

DRIVE = "2011_09_26/2011_09_26_drive_0002_sync"
OTHER = "2011_09_28/2011_09_28_drive_0001_sync"


@pytest.fixture
def root(tmp_path):
    """Write two training frames, one test frame, and one without depth."""
    folder = tmp_path / "kitti"
    write_frame(folder, DRIVE, 69, seed=0)
    write_frame(folder, DRIVE, 70, seed=1, camera="image_03")
    write_frame(folder, OTHER, 5, seed=2, depth="val")
    write_frame(folder, OTHER, 0, seed=3, depth=None)
    return folder


def test_pairs_of_picture_and_depth_with_focal_lengths(root):
    gt = "2011_09_28_drive_0001_sync/proj_depth/groundtruth/image_02/0000000005.png"
    (root / "eigen_test_files_with_gt.txt").write_text(
        f"{OTHER}/image_02/data/0000000005.png {gt} 707.0493\n"
        f"{OTHER}/image_02/data/0000000000.png None 707.0493\n"
    )
    images = open_depth(root, "test")
    assert images.names == ("2011_09_28_drive_0001_sync/image_02/0000000005",)
    assert (images.image(0) == photograph(12, 44, 2)).all()
    expected = codes(12, 44, 2, np.uint16, 20_000) / 256
    assert (images.depth(0) == expected).all()


def test_drive_frame_and_side(root):
    (root / "train_files.txt").write_text(f"{DRIVE} 69 l\n{DRIVE} 0000000070 r\n\n")
    images = open_depth(root, "train")
    assert len(images) == 2
    assert (images.image(1) == photograph(12, 42, 1)).all()
    assert (images.depth(1) == codes(12, 42, 1, np.uint16, 20_000) / 256).all()


def test_stereo_pairs_in_jpeg(tmp_path):
    write_frame(tmp_path, DRIVE, 69, seed=0, form="jpg")
    (tmp_path / "eigen_train_files.txt").write_text(
        f"{DRIVE}/image_02/data/0000000069.jpg {DRIVE}/image_03/data/0000000069.jpg\n"
    )
    images = open_depth(tmp_path, "train")
    data = (tmp_path / DRIVE / "image_02/data/0000000069.jpg").read_bytes()
    assert (images.image(0) == opened(data)).all()


def test_lists_with_png_names_find_jpeg_files(tmp_path):
    write_frame(tmp_path, DRIVE, 69, seed=0, form="jpg")
    (tmp_path / "eigen_test_files.txt").write_text(f"{DRIVE}/image_02/data/0000000069.png\n")
    assert len(open_depth(tmp_path, "test")) == 1


@pytest.mark.parametrize(
    ("raw", "depth"), [("raw", "data_depth_annotated/train"), ("kitti_raw", "depth/val")]
)
def test_archives_may_be_unpacked_side_by_side(tmp_path, raw, depth):
    write_frame(tmp_path, DRIVE, 69, seed=0, raw=raw, depth=depth)
    (tmp_path / "test_files.txt").write_text(f"{DRIVE} 69 l\n")
    assert open_depth(tmp_path, "test").depth(0) is not None


def test_all_images_come_from_both_lists(root):
    (root / "train_files.txt").write_text(f"{DRIVE} 69 l\n")
    (root / "test_files.txt").write_text(f"{OTHER} 5 l\n")
    assert open_depth(root).parts == ("train", "test")


def test_split_list_may_be_outside_the_set(root, tmp_path):
    (tmp_path / "mine.txt").write_text(f"{DRIVE} 69 l\n{DRIVE} 69 l\n")
    images = open_depth(root, "train", split=tmp_path / "mine.txt")
    assert len(images) == 1  # a frame that is listed twice is one
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "test_files.txt").write_text(f"{OTHER} 5 l\n")
    assert len(open_depth(root, "test", split=tmp_path / "lists")) == 1


def test_frames_of_several_sizes_are_brought_to_one(root):
    (root / "train_files.txt").write_text(f"{DRIVE} 69 l\n{DRIVE} 70 r\n")
    images = open_depth(root, "train")
    with pytest.raises(DepthError, match=r"0000000070\.png: 12 x 42 pixels.*12 x 40; give"):
        images.tensors()
    pixels, depth = images.tensors((6, 20))
    assert pixels.shape == (2, 3, 6, 20)
    assert depth is not None
    assert depth.shape == (2, 6, 20)


def test_missing_depth_file_is_an_error_or_left_out(root):
    (root / "test_files.txt").write_text(f"{OTHER} 0 l\n{OTHER} 5 l\n")
    with pytest.raises(DepthError, match=r"0000000000\.png: this depth file of test_files\.txt is"):
        open_depth(root, "test")
    assert len(open_depth(root, "test", missing="skip")) == 1
    (root / "test_files.txt").write_text(f"{OTHER} 0 l\n")
    with pytest.raises(DepthError, match="none of the listed frames has depth"):
        open_depth(root, "test", missing="skip")


def test_missing_picture_is_named(root):
    (root / "test_files.txt").write_text(f"{OTHER} 5 l\n")
    (root / OTHER / "image_02/data/0000000005.png").unlink()
    with pytest.raises(DepthError, match=r"0000000005\.png: this picture is missing"):
        open_depth(root, "test")


@pytest.mark.parametrize("line", ["nonsense", f"{DRIVE} abc l", "a/b/c/d/e.png", "1 2 3 4"])
def test_line_that_names_no_frame_is_shown(root, line):
    (root / "test_files.txt").write_text(f"{OTHER} 5 l\n{line}\n")
    with pytest.raises(DepthError, match=r"test_files\.txt: line 2 names no frame"):
        open_depth(root, "test")


def test_missing_and_ambiguous_lists_are_refused(root, tmp_path):
    with pytest.raises(DepthError, match=r"expected one split list.*train.*found none"):
        open_depth(root, "train")
    for name in ("a_test.txt", "b_test.txt"):
        (root / name).write_text(f"{OTHER} 5 l\n")
    with pytest.raises(DepthError, match=r"found a_test\.txt, b_test\.txt"):
        open_depth(root, "test")
    with pytest.raises(DepthError, match=r"none\.txt: there is no such split list"):
        open_depth(root, "test", split=tmp_path / "none.txt")


def test_depth_of_eight_bits_is_refused(root):
    (root / "test_files.txt").write_text(f"{OTHER} 5 l\n")
    path = next(root.glob("val/**/*.png"))
    path.write_bytes(encoded(codes(), "PNG"))
    with pytest.raises(DepthError, match=r"0000000005\.png: depth must be a grey PNG of 16 bits"):
        open_depth(root, "test").depth(0)
