"""Digests of images and files, the same wherever they lie."""

import hashlib
import shutil

import numpy as np
import pytest
from PIL import Image

from _depth_files import write_pairs
from priornet.depth import DepthError, open_depth
from priornet_paper.depth.sources import digest, digest_of


@pytest.fixture
def folder(tmp_path):
    return write_pairs(tmp_path / "roads", ["a", "b", "c"], dtype=np.uint16)


def by_hand(folder, names, n_whole=3, with_depth=True):
    """What the digest should be, from the files alone."""
    content = "\n".join(names).encode()
    for name in names[:n_whole]:
        content += (folder / "rgb" / f"{name}.jpg").read_bytes()
        if with_depth:
            millimetres = np.asarray(Image.open(folder / "depth" / f"{name}.png"))
            content += (millimetres / 1000).astype(np.float32).tobytes()
    return hashlib.sha256(content).hexdigest()[:12]


def test_names_files_and_metres_count(folder):
    images, names = open_depth(folder), ["a", "b", "c"]
    assert digest_of(images) == by_hand(folder, names)
    assert digest_of(images, check=True) == by_hand(folder, names)
    assert digest_of(images, with_depth=False) == by_hand(folder, names, with_depth=False)
    assert digest_of(images, n_whole=2) == by_hand(folder, names, n_whole=2)
    assert digest_of(images[[2, 0]]) == by_hand(folder, ["c", "a"])


def test_digests_of_bytes_do_not_see_where_they_were_cut():
    assert digest(b"ab", b"c") == digest(b"abc") == hashlib.sha256(b"abc").hexdigest()[:12]


def test_damaged_photographs_are_found_if_asked(folder):
    path = folder / "rgb" / "b.jpg"
    path.write_bytes(path.read_bytes()[:-40])
    assert digest_of(open_depth(folder)) == by_hand(folder, ["a", "b", "c"])
    with pytest.raises(DepthError, match=r"rgb/b\.jpg: this cannot be read as a picture"):
        digest_of(open_depth(folder), check=True)


def test_depth_of_another_shape_is_found_if_asked(folder, tmp_path):
    other = write_pairs(tmp_path / "other", ["b"], shape=(24, 32), dtype=np.uint16)
    shutil.copy(other / "depth" / "b.png", folder / "depth" / "b.png")
    with pytest.raises(DepthError, match=r"depth/b\.png: depth of 24 x 32 pixels for a picture"):
        digest_of(open_depth(folder), check=True)
