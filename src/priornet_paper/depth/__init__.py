"""Depth from images: the second half of the paper, on real photographs."""

from priornet_paper.depth.config import DATASETS, METHODS, Config
from priornet_paper.depth.overrides import with_changes
from priornet_paper.depth.presets import PRESETS, config_for
from priornet_paper.depth.recipe import Recipe, recipes

__all__ = [
    "DATASETS",
    "METHODS",
    "PRESETS",
    "Config",
    "Recipe",
    "config_for",
    "recipes",
    "with_changes",
]
