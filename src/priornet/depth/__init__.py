"""Depth from photographs: image sets, saved networks, predictions, maps and export.

Only this package opens an image. ``open_depth`` reads every form of a set. Each name is imported
when it is first used, and so is what only some forms need (h5py, lmdb); Pillow decodes pictures.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet.depth.export import depth_to_onnx
    from priornet.depth.images.augment import Augment
    from priornet.depth.images.dataset import DepthImages
    from priornet.depth.images.description import Description, describe
    from priornet.depth.images.errors import DepthError
    from priornet.depth.images.opening import KINDS, open_depth
    from priornet.depth.images.packed import pack
    from priornet.depth.images.resize import prepare_foreign
    from priornet.depth.images.road import KITTI_ROAD_TEST
    from priornet.depth.model import SavedDepth, load_depth, save_depth
    from priornet.depth.verify import DepthGraph, depth_outputs

__all__ = [
    "KINDS",
    "KITTI_ROAD_TEST",
    "Augment",
    "DepthError",
    "DepthGraph",
    "DepthImages",
    "Description",
    "SavedDepth",
    "depth_outputs",
    "depth_to_onnx",
    "describe",
    "load_depth",
    "open_depth",
    "pack",
    "prepare_foreign",
    "save_depth",
]

_HOMES = {
    "KINDS": "images.opening",
    "KITTI_ROAD_TEST": "images.road",
    "Augment": "images.augment",
    "DepthError": "images.errors",
    "DepthGraph": "verify",
    "DepthImages": "images.dataset",
    "Description": "images.description",
    "SavedDepth": "model",
    "depth_outputs": "verify",
    "depth_to_onnx": "export",
    "describe": "images.description",
    "load_depth": "model",
    "open_depth": "images.opening",
    "pack": "images.packed",
    "prepare_foreign": "images.resize",
    "save_depth": "model",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
