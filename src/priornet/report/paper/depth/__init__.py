"""The depth half of the page: tables beside the paper's, goals and claims, from results JSON."""

from priornet.report.paper.depth.claims import DEPTH_CLAIMS
from priornet.report.paper.depth.drawing import draw_depth
from priornet.report.paper.depth.half import DEPTH_FIGURES, depth_parts
from priornet.report.paper.depth.new_seeds import new_seeds_in_short
from priornet.report.paper.depth.recipes import recipes_in_short
from priornet.report.paper.depth.scores import published_depth, read_depth
from priornet.report.paper.depth.setting import setting_in_short

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
