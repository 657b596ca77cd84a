"""The page of results: what we measured beside what the paper printed, made from results JSON only.

The paper's numbers, and those of other published methods, stand in ``published.json``.
"""

from priornet_paper.page.figures import drawn_figures
from priornet_paper.page.page import make_page, write_page
from priornet_paper.page.results import ResultsError

__all__ = ["ResultsError", "drawn_figures", "make_page", "write_page"]
