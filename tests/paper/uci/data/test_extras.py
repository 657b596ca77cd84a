"""Packages that are not there are named, with the command that brings them."""

import math
import sys

import pytest

from priornet_paper.uci.data import UciError
from priornet_paper.uci.data.extras import need


def test_a_package_that_is_there_is_imported():
    assert need("math", "count") is math


def test_a_missing_package_says_what_for_and_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "xlrd", None)
    with pytest.raises(UciError, match=r"xlrd is needed to read .xls.*pip install '\.\[uci\]"):
        need("xlrd", "read .xls files")
