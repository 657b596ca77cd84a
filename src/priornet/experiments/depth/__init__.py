"""Depth from images: the second half of the paper, on real photographs."""

from priornet.experiments.depth.config import DATASETS, METHODS, Config
from priornet.experiments.depth.overrides import with_changes
from priornet.experiments.depth.presets import PRESETS, config_for
from priornet.experiments.depth.recipe import Recipe, recipes

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
