"""Scores of a model on rows and results files, as arrays and plain numbers; nothing is drawn here.

Each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet.evaluation.distilled_files import FileDistillation, distil_file
    from priornet.evaluation.evaluate_model import Evaluation, evaluate
    from priornet.evaluation.labelled_files import (
        FileEvaluation,
        FileFit,
        evaluate_file,
        fit_file,
    )
    from priornet.evaluation.results import (
        check_scores,
        check_summaries,
        preset_of,
        provenance,
        provenance_of,
        read_results,
        signature_of,
        summary,
        write_results,
    )
    from priornet.evaluation.scored_files import score_file
    from priornet.evaluation.scores import MEASURES

__all__ = [
    "MEASURES",
    "Evaluation",
    "FileDistillation",
    "FileEvaluation",
    "FileFit",
    "check_scores",
    "check_summaries",
    "distil_file",
    "evaluate",
    "evaluate_file",
    "fit_file",
    "preset_of",
    "provenance",
    "provenance_of",
    "read_results",
    "score_file",
    "signature_of",
    "summary",
    "write_results",
]

_HOMES = {
    "MEASURES": "scores",
    **dict.fromkeys(("FileDistillation", "distil_file"), "distilled_files"),
    **dict.fromkeys(("preset_of", "provenance", "provenance_of"), "results"),
    **dict.fromkeys(("read_results", "write_results"), "results"),
    **dict.fromkeys(("Evaluation", "evaluate"), "evaluate_model"),
    **dict.fromkeys(("FileEvaluation", "FileFit", "evaluate_file", "fit_file"), "labelled_files"),
    "score_file": "scored_files",
    **dict.fromkeys(("check_scores", "check_summaries", "signature_of", "summary"), "results"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
