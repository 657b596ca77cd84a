"""A missing package is named with what it is for and how to get it."""

import sys

import pytest

from priornet._lazy import need_for


def test_a_package_that_is_there_is_given():
    assert need_for("json.decoder", "read text", "uci", ValueError).JSONDecoder


def test_a_missing_one_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    wanted = (
        r"Pillow is needed to decode; install it with `pip install '\.\[depth\]'` in a checkout"
    )
    with pytest.raises(KeyError, match=wanted):
        need_for("PIL.Image", "decode", "depth", KeyError)
