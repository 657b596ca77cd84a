"""Foreign images told apart by each measure, and what the weight of foreign images does to NWPN."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import stdev
from typing import Any

from priornet_paper.page.depth.accuracy import methods_of
from priornet_paper.page.depth.numbers import (
    DEPTH_MEASURES,
    FOREIGN,
    TEN_METRES,
    TITLES,
    DepthScores,
    ablation,
)
from priornet_paper.page.markdown import shown, table

__all__ = ["detection", "gamma_table", "gammas_of"]

_BEDROOM = ("ood_auc", "lsun_bedroom")
_GAMMA_COLUMNS = {
    "δ1": ("delta1",),
    "rel": ("rel",),
    "rmse, m": ("rmse",),
    "NLL": ("nll",),
    "AUC by H[E]": (*_BEDROOM, "total_entropy"),
    "AUC by I": (*_BEDROOM, "mutual_information"),
    "AUC by V[y]": (*_BEDROOM, "total_variance"),
}


def detection(ours: DepthScores, paper: DepthScores) -> list[str]:
    """AUC of every measure, set and method, the paper's in brackets."""
    lines = [
        "Area under the ROC curve of in-domain test images against those of another set (1 is "
        "perfect, 0.5 is chance, below it foreign images look *more* certain); the paper's in "
        "brackets. An image's number is the mean over one fixed region of pixels, of the logarithm "
        "for variances. H[E] and V[y] are total, I, K (EPKL) and V[mu] knowledge, E[H] data "
        "uncertainty. I and H[E] of ensembles and of MD-EnD are estimated by sampling. NWPN is not "
        "scored on the set that it learnt as foreign. LSUN church images were not to be had: the "
        "paper's numbers stand alone.",
    ]
    for dataset in ours.datasets:
        rows = [
            [TITLES[other], name, *_cells(ours, paper, dataset, name, other)]
            for other in (*FOREIGN[dataset], "lsun_church")
            for name in methods_of(ours, dataset, has_belief=True)
            if _is_scored(ours, paper, dataset, name, other)
        ]
        header = ["foreign set", "method", *DEPTH_MEASURES.values()]
        lines += ["", f"**Models of {TITLES[dataset]}**", *table(header, rows, left=2)]
    return lines


def _is_scored(
    ours: DepthScores, paper: DepthScores, dataset: str, method: str, other: str
) -> bool:
    return any(
        scores.get(dataset, method, "ood_auc", other, measure) is not None
        for scores in (ours, paper)
        for measure in DEPTH_MEASURES
    )


def _cells(
    ours: DepthScores, paper: DepthScores, dataset: str, method: str, other: str
) -> list[str]:
    cells: list[str] = []
    for measure in DEPTH_MEASURES:
        text = ours.text(3, dataset, method, "ood_auc", other, measure)
        theirs = paper.get(dataset, method, "ood_auc", other, measure)
        if other == "lsun_church" and theirs is not None:
            text = "no images"
        cells.append(text if theirs is None else f"{text} ({shown(theirs.mean, 3)})")
    return cells


def gammas_of(content: Mapping[str, Any]) -> dict[float, str]:
    """Names of the prior networks by their weight of foreign images, the smallest first."""
    found = {
        float(name.removeprefix("NWPN-g")): name for name in content["variants"] if "-g" in name
    }
    if "NWPN" in content["methods"]:
        found[content["config"]["gamma"]] = "NWPN"
    return dict(sorted(found.items()))


def gamma_table(ours: DepthScores, contents: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """NWPN by the weight of foreign training images."""
    lines = [
        "NWPN learns the other set as foreign, with weight gamma. The paper's in brackets: its OOD "
        "AUC is by H[E] on NYU (against LSUN bedroom, as its number for Single shows) and by I on "
        "KITTI (it does not say against what); ours is against LSUN bedroom. Its NLL on NYU is "
        "turned into metres.",
    ]
    header = ["gamma", *_GAMMA_COLUMNS]
    for dataset in ours.datasets:
        gammas, (theirs, measure) = gammas_of(contents[dataset]), ablation(dataset)
        names = {"Single": "Single", **{f"{gamma:g}": name for gamma, name in gammas.items()}}
        rows = [
            [label, *_gamma_cells(ours, dataset, name, theirs.get(label, {}), measure)]
            for label, name in names.items()
        ]
        lines += ["", f"**{TITLES[dataset]}**"]
        lines += table(header, rows) if gammas else ["", "Not run.", ""]
        lines += _gamma_seeds(ours, dataset, gammas)
    return lines


def _gamma_seeds(ours: DepthScores, dataset: str, gammas: Mapping[float, str]) -> list[str]:
    """How many seeds each weight has, and whether weights differ by more than seeds do."""
    found = {
        title: {
            gamma: value.values
            for gamma, name in gammas.items()
            if (value := ours.get(dataset, name, *path)) is not None
        }
        for title, path in _GAMMA_COLUMNS.items()
    }
    counts = {gamma: len(found["δ1"].get(gamma, ())) for gamma in gammas}
    if len(counts) < 2 or not all(counts.values()):
        return []
    seeds = [
        f"{n} ({', '.join(f'{g:g}' for g, m in counts.items() if m == n)})"
        for n in sorted(set(counts.values()))
    ]
    text = f"Seeds of each gamma: {'; '.join(seeds)}."
    most = max(counts, key=lambda gamma: counts[gamma])
    if counts[most] < 2:
        return [text, ""]
    # The first seed of each weight: these began alike, so that only the weight differs.
    wide = [
        title
        for title, values in found.items()
        if values and stdev([v[0] for v in values.values()]) > stdev(values[most])
    ]
    where = ", ".join(wide) if len(wide) < len(found) else "every column"
    where = where or "no column: weights differ within the spread of seeds"
    return [
        f"{text} The standard deviation over weights (first seeds) is larger than that over the "
        f"seeds of {most:g} in {where}.",
        "",
    ]


def _gamma_cells(
    ours: DepthScores, dataset: str, method: str, theirs: Mapping[str, float], measure: str
) -> list[str]:
    cells: list[str] = []
    for metric in ("delta1", "rel", "rmse", "nll"):
        shift = TEN_METRES if metric == "nll" and dataset == "nyu" else 0.0
        text, printed = ours.text(3, dataset, method, metric), theirs.get(metric)
        digits = 2 if metric == "nll" else 3
        cells.append(text if printed is None else f"{text} ({shown(printed + shift, digits)})")
    for name in ("total_entropy", "mutual_information", "total_variance"):
        found = ours.get(dataset, method, "ood_auc", "lsun_bedroom", name)
        # The paper's number for Single must be by another measure on KITTI: Single has no I.
        printed = theirs.get("ood_auc") if found is not None and name == measure else None
        text = ours.text(3, dataset, method, "ood_auc", "lsun_bedroom", name)
        cells.append(text if printed is None else f"{text} ({shown(printed, 3)})")
    return cells
