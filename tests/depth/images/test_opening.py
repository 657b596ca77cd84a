"""Every form is recognised, and other files are refused."""

import pytest

from _depth_files import write_pairs, write_zip
from priornet.depth import KINDS, DepthError, open_depth


def test_missing_path_is_named(tmp_path):
    with pytest.raises(DepthError, match=r"nowhere: there is no such file or folder"):
        open_depth(tmp_path / "nowhere")


def test_another_zip_is_named_with_what_was_expected(tmp_path):
    path = write_zip(tmp_path / "nyu_data.zip", {"readme.txt": b"hello"})
    with pytest.raises(DepthError, match=r"nyu_data\.zip: this zip is neither.*nyu2_train\.csv"):
        open_depth(path)


@pytest.mark.parametrize("kind", ["dense-depth", "dense-depth-test", "packed"])
def test_named_form_must_fit_the_files(tmp_path, kind):
    path = write_zip(tmp_path / "a.zip", {"readme.txt": b"hello"})
    with pytest.raises(DepthError, match=r"a\.zip"):
        open_depth(path, kind=kind)


def test_other_files_are_named(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(
        DepthError, match=r"table\.csv: this is no set of images.* expected a picture \(\.jpg"
    ):
        open_depth(tmp_path / "table.csv")


def test_empty_folder_is_named(tmp_path):
    (tmp_path / "IMG_0001.HEIC").touch()
    with pytest.raises(DepthError, match=r"no images in a form that is known; .* end in \.jpg, "):
        open_depth(tmp_path)


def test_folder_of_several_sets_is_refused_with_their_names(tmp_path):
    for name in ("rooms", "roads"):
        write_pairs(tmp_path / name, ["0000"])
    with pytest.raises(DepthError, match=r"which of the sets in it.*roads, rooms"):
        open_depth(tmp_path)


def test_unknown_form_lists_the_known_ones(tmp_path):
    with pytest.raises(DepthError, match=r'unknown kind "nyu"; choose one of: pairs.*kitti'):
        open_depth(tmp_path, kind="nyu")
    assert len(KINDS) == 8


def test_form_may_be_named(tmp_path):
    write_pairs(tmp_path / "rooms", ["0000", "0001"])
    images = open_depth(tmp_path / "rooms", kind="images")
    assert images.names == ("depth/0000.png", "depth/0001.png", "rgb/0000.jpg", "rgb/0001.jpg")


def test_one_picture_is_a_set(tmp_path):
    write_pairs(tmp_path / "rooms", ["0000", "0001"])
    images = open_depth(tmp_path / "rooms" / "rgb" / "0001.jpg")
    assert images.names == ("0001.jpg",)
    assert not images.has_depth
    assert images.image(0).shape == (12, 16, 3)
