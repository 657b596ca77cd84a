"""The depth half of the page: tables beside the paper's, goals and claims, from results JSON."""

from priornet_paper.page.depth.claims import DEPTH_CLAIMS
from priornet_paper.page.depth.drawing import draw_depth
from priornet_paper.page.depth.half import DEPTH_FIGURES, depth_parts
from priornet_paper.page.depth.new_seeds import new_seeds_in_short
from priornet_paper.page.depth.numbers import published_depth, read_depth
from priornet_paper.page.depth.recipes import recipes_in_short
from priornet_paper.page.depth.setting import setting_in_short

__all__ = [
    "DEPTH_CLAIMS",
    "DEPTH_FIGURES",
    "depth_parts",
    "draw_depth",
    "new_seeds_in_short",
    "published_depth",
    "read_depth",
    "recipes_in_short",
    "setting_in_short",
]
