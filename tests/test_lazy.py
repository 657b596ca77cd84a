"""A missing package is named with its purpose and its extra."""

import sys

import pytest

from priornet._lazy import need_for


def test_an_installed_package_is_returned():
    assert need_for("json.decoder", "read text", "uci", ValueError).JSONDecoder


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    wanted = (
        r"Pillow is needed to decode; install it with `pip install '\.\[depth\]'` in a checkout"
    )
    with pytest.raises(KeyError, match=wanted):
        need_for("PIL.Image", "decode", "depth", KeyError)
