"""LSUN's LMDB is read in the order of its keys."""

import pytest

from _depth_files import encoded, opened, photograph, write_lmdb
from priornet.depth import DepthError, open_depth

PICTURES = {
    b"00ab": encoded(photograph(seed=0)),
    b"7f31": encoded(photograph(20, 10, seed=1), "WEBP"),
    b"33cc": encoded(photograph(seed=2), "PNG"),
}


def test_pictures_come_in_the_order_of_their_keys(tmp_path):
    images = open_depth(write_lmdb(tmp_path / "bedroom_val_lmdb", PICTURES))
    assert images.names == ("00ab", "33cc", "7f31")
    assert images.name == "bedroom_val_lmdb"
    assert not images.has_depth
    for row, key in enumerate(sorted(PICTURES)):
        assert (images.image(row) == opened(PICTURES[key])).all()
    assert images.depth(0) is None


def test_file_itself_may_be_named(tmp_path):
    write_lmdb(tmp_path / "bedroom", PICTURES)
    assert len(open_depth(tmp_path / "bedroom" / "data.mdb")) == 3


def test_two_readers_may_look_at_one_file(tmp_path):
    path = write_lmdb(tmp_path / "bedroom", PICTURES)
    first, second = open_depth(path), open_depth(path)
    assert (first.image(0) == second.image(0)).all()
    images, depth = first.tensors((8, 8), crop=True, workers=2)
    assert images.shape == (3, 3, 8, 8)
    assert depth is None


def test_folder_need_not_be_writable(tmp_path):
    path = write_lmdb(tmp_path / "bedroom", PICTURES)
    (path / "lock.mdb").unlink()
    open_depth(path).image(0)
    assert not (path / "lock.mdb").exists()


def test_damaged_picture_is_named(tmp_path):
    data = PICTURES[b"00ab"]
    images = open_depth(write_lmdb(tmp_path / "bedroom", {b"00ab": data[: len(data) // 2]}))
    with pytest.raises(DepthError, match=r"bedroom: 00ab: this cannot be read as a picture"):
        images.image(0)


def test_other_files_are_named(tmp_path):
    (tmp_path / "bedroom").mkdir()
    (tmp_path / "bedroom" / "data.mdb").write_bytes(b"nothing" * 2000)
    with pytest.raises(DepthError, match="bedroom: this cannot be read as an LMDB"):
        open_depth(tmp_path / "bedroom")


@pytest.mark.parametrize("left", [0.4, 0.99])
def test_truncated_lmdb_is_named(tmp_path, left):
    """Refuse it before the library reads past its end, which kills the process."""
    path = write_lmdb(tmp_path / "bedroom", {**PICTURES, b"zz": bytes(9000)})
    whole = (path / "data.mdb").read_bytes()
    (path / "data.mdb").write_bytes(whole[: int(left * len(whole))])
    with pytest.raises(DepthError, match=r"bedroom/data\.mdb: it is truncated, \d+ of \d+ bytes"):
        open_depth(path)


def test_empty_lmdb_is_named(tmp_path):
    with pytest.raises(DepthError, match="bedroom: this LMDB is empty"):
        open_depth(write_lmdb(tmp_path / "bedroom", {}))
