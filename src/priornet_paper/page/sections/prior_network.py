"""Our own recipe: NWPN's knowledge about foreign rows, and its NLL beside the paper's NWPN."""

from __future__ import annotations

from collections.abc import Sequence

from priornet_paper.page.compare import ROUNDING, Goal
from priornet_paper.page.markdown import (
    NOT_RUN,
    decimals,
    marked,
    table,
    with_error,
)
from priornet_paper.page.notes import Miss
from priornet_paper.page.numbers import KNOWLEDGE, MEASURES, Key, Number, Scores
from priornet_paper.page.results import Results, Run
from priornet_paper.page.section import (
    Section,
    are_whole,
    draws_of,
    in_part,
    names_of,
    over_draws,
    over_folds,
)
from priornet_paper.page.sections.beyond import BEYOND_SETS

__all__ = ["prior_network"]

_WANTED = ("concrete", "boston")
_LEAST_AUC = 0.8


def prior_network(results: Results, paper: Scores) -> Section:
    """One row per set; the goal is about two of them."""
    section = Section(
        [
            f"Goal on {' and '.join(_WANTED)}: AUC at least {_LEAST_AUC} by the knowledge measure "
            "that is best there, and a mean NLL no higher than the paper's; ± is the standard "
            "error over folds.",
        ]
    )
    rows = [
        _row(draws_of(results, dataset, "NWPN"), paper, dataset, section)
        for dataset in names_of(BEYOND_SETS, results.datasets("beyond"))
    ]
    header = ["data", "folds", "OOD AUC", "by", "NLL", "NLL, the paper's NWPN"]
    section.lines += table(header, rows)
    section.goals.append(_goal(results, paper))
    return section


def _goal(results: Results, paper: Scores) -> Goal:
    runs = {name: draws_of(results, name, "NWPN") for name in _WANTED}
    cells = [_is_good(found, paper, name) for name, found in runs.items()]
    first = [_is_good(found[:1], paper, name) for name, found in runs.items()]
    wanted = f"Our recipe, NWPN on {' and '.join(_WANTED)}: OOD AUC at least {_LEAST_AUC}, NLL no "
    return over_draws(f"{wanted}worse than the paper's NWPN", cells, first)


def _is_good(runs: Sequence[Run], paper: Scores, dataset: str) -> bool | None:
    trial = Section([])
    row = _row(runs, paper, dataset, trial)
    return None if NOT_RUN in row or not are_whole(runs) else not trial.misses


def _row(runs: Sequence[Run], paper: Scores, dataset: str, section: Section) -> list[str]:
    theirs = paper.get(dataset, "nll", "NWPN")
    printed = "" if theirs is None else with_error(theirs)
    best, nll = _best_knowledge(runs, dataset), over_folds(runs, Key(dataset, "nll", "NWPN"))
    if best is None or nll is None:
        return [dataset, "", NOT_RUN, "", NOT_RUN, printed]
    measure, auc = best
    auc_text, nll_text = with_error(auc), with_error(nll, decimals(nll.mean))
    if not are_whole(runs):
        cells = [str(len(nll.values)), auc_text, MEASURES[measure], nll_text]
        return [dataset, *in_part(cells), printed]
    is_low = dataset in _WANTED and auc.mean < _LEAST_AUC - ROUNDING
    is_worse = dataset in _WANTED and theirs is not None and nll.mean > theirs.mean + ROUNDING
    if is_low:
        text = f"{dataset}, NWPN, OOD AUC {auc_text}, goal {_LEAST_AUC}"
        section.misses.append(Miss(f"beyond/{dataset}/NWPN/ood_auc", text))
    if is_worse:
        text = f"{dataset}, NWPN, NLL {nll_text}, the paper's {printed}"
        section.misses.append(Miss(f"beyond/{dataset}/NWPN/nll", text))
    return [
        dataset,
        str(len(nll.values)),
        marked(auc_text, is_low),
        MEASURES[measure],
        marked(nll_text, is_worse),
        printed,
    ]


def _best_knowledge(runs: Sequence[Run], dataset: str) -> tuple[str, Number] | None:
    found = {m: over_folds(runs, Key(dataset, "ood_auc", "NWPN", m)) for m in KNOWLEDGE}
    known = {m: value for m, value in found.items() if value is not None}
    return max(known.items(), key=lambda pair: pair[1].mean) if known else None
