"""Errors are one line, name the file, and say what to install."""

import math
import sys

import pytest

from priornet.depth import DepthError
from priornet.depth.images.errors import need, reading


def test_a_package_that_is_there_is_imported():
    assert need("math", "count") is math


@pytest.mark.parametrize(
    ("module", "package"), [("h5py", "h5py"), ("lmdb", "lmdb"), ("PIL.Image", "Pillow")]
)
def test_a_missing_package_says_what_for_and_how_to_get_it(monkeypatch, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        DepthError, match=rf"{package} is needed to do it.*pip install '\.\[depth\]"
    ):
        need(module, "do it")


def test_what_a_library_says_becomes_one_line_with_the_file():
    with pytest.raises(DepthError) as caught, reading("a/b.jpg", "a picture"):
        raise OSError("broken\nand more")
    assert str(caught.value) == "a/b.jpg: this cannot be read as a picture: broken"
    with pytest.raises(DepthError, match="as a picture: EOFError"), reading("x", "a picture"):
        raise EOFError


def test_our_own_errors_pass_unchanged():
    with pytest.raises(DepthError, match=r"^mine$"), reading("a/b.jpg", "a picture"):
        raise DepthError("mine")
