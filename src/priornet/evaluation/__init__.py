"""Scores of a model on rows, as arrays and plain numbers; nothing is drawn here.

Each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet.evaluation.evaluate_model import Evaluation, evaluate
    from priornet.evaluation.scored_files import score_file

__all__ = [
    "Evaluation",
    "evaluate",
    "score_file",
]

_HOMES = {
    "Evaluation": "evaluate_model",
    "evaluate": "evaluate_model",
    "score_file": "scored_files",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
