"""Importing the package needs none of the packages that only some forms need."""

import json
import subprocess
import sys

import pytest

from priornet import depth

LAZY = ("h5py", "lmdb", "PIL")
DRAWN = {
    "DepthMaps",
    "draw_maps",
    "map_files",
    "predict_photographs",
}  # by Matplotlib, which itself needs Pillow


def test_import_needs_no_extra_and_no_torch():
    block = f"import sys; sys.modules.update(dict.fromkeys({LAZY!r}))"
    code = f"{block}; import json, priornet.depth; print(json.dumps('torch' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False


def test_every_name_is_there_without_the_extras():
    block = f"import sys; sys.modules.update(dict.fromkeys({LAZY!r}))"
    found = f"[n for n in depth.__all__ if n in {DRAWN} or getattr(depth, n) is not None]"
    code = f"{block}; import json; from priornet import depth; print(json.dumps({found}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == depth.__all__


def test_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="nonsense"):
        depth.nonsense  # noqa: B018 (the access is what is tested)
