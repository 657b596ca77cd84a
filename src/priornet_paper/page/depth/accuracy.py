"""Accuracy, likelihood and calibration beside the paper's."""

from __future__ import annotations

from priornet_paper.page.depth.numbers import (
    DEPTH_METHODS,
    NONE,
    TEN_METRES,
    TITLES,
    DepthScores,
)
from priornet_paper.page.markdown import shown, table
from priornet_paper.page.numbers import Number

__all__ = ["accuracy", "likelihood", "methods_of"]

_METRICS = {
    "delta1": "δ1 ↑",
    "delta2": "δ2 ↑",
    "delta3": "δ3 ↑",
    "rel": "rel ↓",
    "rmse": "rmse, m ↓",
    "log10": "log10, mean ↓",
    "rmse_log10": "log10, rms ↓",
    "nll": "NLL ↓",
    "nll_moment_matched": "NLL, moments ↓",
}
_QUANTILES = ("50", "90", "99", "99.9")
_AREAS = {
    "predictive_intervals": "own intervals",
    "normal_intervals": "normal intervals",
    "predictive_quantiles": "own quantiles",
}


def methods_of(scores: DepthScores, dataset: str, *, has_belief: bool = False) -> list[str]:
    """Methods of a set in the order of tables, then variants but for those of the ablation."""
    paths = [path for path in (*scores.numbers, *scores.failed) if path[0] == dataset]
    found = dict.fromkeys(path[1] for path in paths)
    believing = {path[1] for path in paths if path[2] == "nll"}
    variants = [n for n in found if n not in DEPTH_METHODS and not n.startswith("NWPN-g")]
    listed = [*(n for n in DEPTH_METHODS if n in found), *variants]
    return [name for name in listed if not has_belief or name in believing]


def accuracy(ours: DepthScores, paper: DepthScores) -> list[str]:
    """One table per set, every metric with the paper's below it."""
    lines = [
        "Mean over seeds ± its standard error; below it the paper's mean of four. *log10, mean* is "
        "the mean of |log10 y - log10 ŷ|, *log10, rms* the root of the mean square: the paper "
        "defines the second and prints numbers of the size of the first (rel / ln 10). NLL is in "
        "nats and metres, of the Student-T or of the mixture; *moments*: of the normal with the "
        "same mean and variance, by which the paper probably scores ensembles.",
    ]
    if "nyu" in ours.datasets:
        lines += [
            "",
            "The paper's NLL on NYU seems to be in units of 10 m: -1.47 in metres would mean "
            "errors of 6 cm beside an rmse of 0.45 m. In brackets, as printed; before them, "
            f"in metres ({shown(TEN_METRES)} more).",
        ]
    for dataset in ours.datasets:
        rows = [_row(ours, paper, dataset, name) for name in methods_of(ours, dataset)]
        lines += ["", f"**{TITLES[dataset]}**", *table(["", *_METRICS.values()], rows)]
    return lines


def _row(ours: DepthScores, paper: DepthScores, dataset: str, method: str) -> list[str]:
    is_printed = paper.get(dataset, method, "delta1") is not None
    cells = [f"**{method}**<br>the paper" if is_printed else f"**{method}**"]
    for metric in _METRICS:
        text, theirs = ours.text(3, dataset, method, metric), paper.get(dataset, method, metric)
        if is_printed:
            text += f"<br>{NONE if theirs is None else _printed(dataset, metric, theirs)}"
        cells.append(text)
    return cells


def _printed(dataset: str, metric: str, theirs: Number) -> str:
    if metric != "nll":
        return shown(theirs.mean, 3)
    if dataset != "nyu":
        return shown(theirs.mean)
    return f"{shown(theirs.mean + TEN_METRES)} ({shown(theirs.mean)})"


def likelihood(ours: DepthScores) -> list[str]:
    """Quantiles of the NLL over pixels, and the area between calibration curve and diagonal."""
    lines = [
        "NLL that so many per cent of the pixels do not exceed, and C-AUC, the area between the "
        "calibration curve and the diagonal (0 is perfect): of the predictive's own central "
        "intervals, of the normal ones with the same moments, which the paper draws, and of its "
        "quantiles. The paper shows histograms without numbers.",
    ]
    header = ["", *(f"NLL, {q} %" for q in _QUANTILES)]
    header += [f"C-AUC, {title}" for title in _AREAS.values()]
    for dataset in ours.datasets:
        rows = [
            [
                name,
                *(ours.text(2, dataset, name, "nll_quantiles", q) for q in _QUANTILES),
                *(ours.text(3, dataset, name, "c_auc", area) for area in _AREAS),
            ]
            for name in methods_of(ours, dataset, has_belief=True)
        ]
        lines += ["", f"**{TITLES[dataset]}**", *table(header, rows)]
    return lines
