"""Photographs with a depth for each pixel: the forms in which such sets come, and one of our own.

``open_depth`` reads them all. Each name is imported when it is first used, and so is what only some
forms need (h5py, lmdb); Pillow decodes pictures.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from priornet.data.depth.augment import Augment
    from priornet.data.depth.description import Description, describe
    from priornet.data.depth.errors import DepthError
    from priornet.data.depth.images import DepthImages
    from priornet.data.depth.opening import KINDS, open_depth
    from priornet.data.depth.packed import pack
    from priornet.data.depth.resize import prepare_foreign
    from priornet.data.depth.road import KITTI_ROAD_TEST

__all__ = [
    "KINDS",
    "KITTI_ROAD_TEST",
    "Augment",
    "DepthError",
    "DepthImages",
    "Description",
    "describe",
    "open_depth",
    "pack",
    "prepare_foreign",
]

_HOME = {
    "KINDS": "opening",
    "KITTI_ROAD_TEST": "road",
    "Augment": "augment",
    "DepthError": "errors",
    "DepthImages": "images",
    "Description": "description",
    "describe": "description",
    "open_depth": "opening",
    "pack": "packed",
    "prepare_foreign": "resize",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
