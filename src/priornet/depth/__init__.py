"""Depth from photographs: image sets, saved networks, predictions, maps and export.

Only this package opens an image. ``open_depth`` reads every form of a set. Names are imported when
they are first used, and so are packages that only some forms need (h5py, lmdb).
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet.depth.depth_maps import DepthMaps, draw_maps
    from priornet.depth.images.augment import Augment
    from priornet.depth.images.dataset import DepthImages, Description, describe
    from priornet.depth.images.decoding import DepthError, Picture, StoredDepth, check_shapes
    from priornet.depth.images.image_folders import (
        KITTI_ROAD_TEST,
        is_kitti,
        is_kitti_road,
        is_pair_folder,
        last_of_each_category,
    )
    from priornet.depth.images.opening import KINDS, open_depth
    from priornet.depth.images.packed import pack
    from priornet.depth.onnx_file import DepthGraph, depth_to_onnx, verify_depth
    from priornet.depth.photographs import map_files, predict_photographs
    from priornet.depth.saved import (
        SavedDepth,
        depth_outputs,
        depth_record,
        load_depth,
        save_depth,
    )

__all__ = [
    "KINDS",
    "KITTI_ROAD_TEST",
    "Augment",
    "DepthError",
    "DepthGraph",
    "DepthImages",
    "DepthMaps",
    "Description",
    "Picture",
    "SavedDepth",
    "StoredDepth",
    "check_shapes",
    "depth_outputs",
    "depth_record",
    "depth_to_onnx",
    "describe",
    "draw_maps",
    "is_kitti",
    "is_kitti_road",
    "is_pair_folder",
    "last_of_each_category",
    "load_depth",
    "map_files",
    "open_depth",
    "pack",
    "predict_photographs",
    "save_depth",
    "verify_depth",
]

_HOMES = {
    "images.augment": ("Augment",),
    "images.dataset": ("DepthImages", "Description", "describe"),
    "images.decoding": ("DepthError", "Picture", "StoredDepth", "check_shapes"),
    "images.image_folders": (
        "KITTI_ROAD_TEST",
        "is_kitti",
        "is_kitti_road",
        "is_pair_folder",
        "last_of_each_category",
    ),
    "images.opening": ("KINDS", "open_depth"),
    "images.packed": ("pack",),
    "depth_maps": ("DepthMaps", "draw_maps"),
    "saved": ("SavedDepth", "depth_outputs", "depth_record", "load_depth", "save_depth"),
    "onnx_file": ("DepthGraph", "depth_to_onnx", "verify_depth"),
    "photographs": ("map_files", "predict_photographs"),
}
__getattr__, __dir__ = lazy_names(
    __name__, {name: home for home, names in _HOMES.items() for name in names}
)
