"""Rows of a NumPy file, one at a time."""

import numpy as np
import pytest

from _depth_files import npy, write_zip
from priornet.depth import DepthError
from priornet.depth.images.arrays import ArrayFile
from priornet.depth.images.members import Members

ROWS = np.random.default_rng(0).normal(size=(9, 4, 5)).astype(np.float32)


def array_file(folder, data, name="x.npy"):
    return ArrayFile(Members(write_zip(folder / "a.zip", {name: data})), name)


@pytest.mark.parametrize("rows", [ROWS, np.uint8(ROWS * 9), ROWS.astype(">f8"), ROWS[:, 0, 0]])
def test_rows_are_those_of_the_array(tmp_path, rows):
    found = array_file(tmp_path, npy(rows))
    assert found.shape == rows.shape
    for index in (0, 1, 5, 8, 2, 0):  # back and forth
        assert (found.read(index) == rows[index]).all()


def test_a_folder_serves_as_well(tmp_path):
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


def test_a_file_that_ends_early_is_named(tmp_path):
    found = array_file(tmp_path, npy(ROWS)[:-50])
    assert (found.read(7) == ROWS[7]).all()
    with pytest.raises(DepthError, match=r"x\.npy: the file ends before row 8"):
        found.read(8)
