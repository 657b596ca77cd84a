"""Depth from images: the second half of the paper, on real photographs."""

from priornet_paper.depth.config import (
    DATASETS,
    METHODS,
    PRESETS,
    Config,
    Variant,
    config_for,
    variants,
    with_changes,
)

__all__ = [
    "DATASETS",
    "METHODS",
    "PRESETS",
    "Config",
    "Variant",
    "config_for",
    "variants",
    "with_changes",
]
