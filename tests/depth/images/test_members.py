"""The same files from a zip and from a folder."""

import pytest

from _depth_files import write_zip
from priornet.depth import DepthError
from priornet.depth.images.members import Members

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


def test_a_missing_file_is_named(members):
    members.check(FILES)
    for act in (lambda: members.check(["data/x/2.jpg"]), lambda: members.read("data/x/2.jpg")):
        with pytest.raises(DepthError, match=r"data/x/2\.jpg"):
            act()


def test_an_archive_may_have_a_folder_of_its_own(tmp_path):
    inside = write_zip(tmp_path / "b.zip", {f"top/{name}": data for name, data in FILES.items()})
    assert Members(inside).home_of("data/list.csv") == "top/"
    assert Members(inside).home_of("nothing.csv") is None


def test_home_is_empty_where_the_name_is_whole(members):
    assert members.home_of("data/list.csv") == ""
    assert members.home_of("list.csv") in (None, "data/")


def test_what_is_no_zip_is_named(tmp_path):
    path = tmp_path / "nyu_data.zip"
    path.write_bytes(b"<html>not found</html>")
    with pytest.raises(DepthError, match=r"nyu_data\.zip: this cannot be read as a zip"):
        Members(path)


def test_a_truncated_zip_is_named(tmp_path):
    path = write_zip(tmp_path / "a.zip", FILES)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DepthError, match=r"a\.zip: this cannot be read as a zip"):
        Members(path)


def test_a_damaged_member_is_named(tmp_path):
    path = write_zip(tmp_path / "a.zip", FILES, compression=0)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"picture", b"picturE"))
    with pytest.raises(DepthError, match=r"data/x/1\.jpg: this cannot be read as a file: Bad CRC"):
        Members(path).read("data/x/1.jpg")
