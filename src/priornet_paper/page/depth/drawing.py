"""Curves and charts of the depth half, drawn from results files into the page's folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from priornet_paper.page.depth.accuracy import methods_of
from priornet_paper.page.depth.detection import gammas_of
from priornet_paper.page.depth.numbers import (
    DEPTH_METHODS,
    FOREIGN,
    TEN_METRES,
    TITLES,
    DepthScores,
    ablation,
    every_method,
    published_depth,
    read_depth,
)
from priornet_paper.page.numbers import MEASURES

__all__ = ["draw_depth"]

Contents = Mapping[str, Mapping[str, Any]]


def draw_depth(contents: Contents, folder: Path) -> list[str]:
    """Draw what the results of each set allow.

    Returns:
        Names of the figures.
    """
    if not contents:
        return []
    from priornet.report.figure_files import write_figure
    from priornet_paper.depth.charts import draw_correlations, draw_detection, draw_gammas
    from priornet_paper.depth.figures import draw_calibration, draw_likelihoods

    ours, drawn = read_depth(contents), dict[str, Any]()
    for name, content in contents.items():
        every = every_method(content)
        believing = methods_of(ours, name, has_belief=True)
        shown = {n: every[n] for n in believing if ours.get(name, n, "nll") is not None}
        if shown:
            drawn[f"depth-likelihood-{name}"] = draw_likelihoods(shown)
            drawn[f"depth-calibration-{name}"] = draw_calibration(shown)
    panels, printed = _detection(ours), _detection_of_paper(ours)
    if panels:
        drawn["depth-detection"] = draw_detection(panels, printed, MEASURES)
    weights = {name: gammas_of(content) for name, content in contents.items()}
    if any(len(gammas) > 1 for gammas in weights.values()):
        drawn["depth-gamma"] = draw_gammas(*_gammas(ours, weights))
    rows = _correlations(ours)
    if any(rows.values()):
        drawn["depth-correlations"] = draw_correlations(rows, MEASURES)
    for name, figure in drawn.items():
        write_figure(figure, folder, name)
    return list(drawn)


def _by_measure(ours: DepthScores, dataset: str, *before: str, after: str = "") -> dict[str, Any]:
    """Values of every seed, by method and measure."""
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for method in DEPTH_METHODS:
        for measure in MEASURES:
            value = ours.get(dataset, method, *before, measure, *([after] if after else []))
            if value is not None:
                found.setdefault(method, {})[measure] = value.values
    return found


def _detection(ours: DepthScores) -> dict[str, Any]:
    found = {
        _pair(dataset, other): _by_measure(ours, dataset, "ood_auc", other)
        for dataset in ours.datasets
        for other in FOREIGN[dataset]
    }
    return {title: values for title, values in found.items() if values}


def _detection_of_paper(ours: DepthScores) -> dict[str, dict[str, dict[str, float]]]:
    paper = published_depth()
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (dataset, method, *path), value in paper.numbers.items():
        if path[0] == "ood_auc" and dataset in ours.datasets:
            panel = found.setdefault(_pair(dataset, path[1]), {})
            panel.setdefault(method, {})[path[2]] = value.mean
    return found


def _pair(dataset: str, other: str) -> str:
    return f"{TITLES[dataset]} against {TITLES[other]}"


def _gammas(
    ours: DepthScores, weights: Mapping[str, Mapping[float, str]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scores by weight: ours with every seed, and the paper's."""
    bedroom = ("ood_auc", "lsun_bedroom")
    titles = {
        "δ1": ("delta1",),
        "NLL": ("nll",),
        "AUC by H[E]": (*bedroom, "total_entropy"),
        "AUC by I": (*bedroom, "mutual_information"),
    }
    found: dict[str, Any] = {}
    printed: dict[str, Any] = {}
    for dataset, names in weights.items():
        own: dict[str, dict[float, tuple[float, ...]]] = {}
        for title, path in titles.items():
            for gamma, name in names.items():
                value = ours.get(dataset, name, *path)
                if value is not None:
                    own.setdefault(title, {})[gamma] = value.values
        theirs, measure = ablation(dataset)
        shift = TEN_METRES if dataset == "nyu" else 0.0
        rows = {gamma: theirs[f"{gamma:g}"] for gamma in names if f"{gamma:g}" in theirs}
        found[TITLES[dataset]] = own
        printed[TITLES[dataset]] = {
            "δ1": {gamma: row["delta1"] for gamma, row in rows.items()},
            "NLL": {gamma: row["nll"] + shift for gamma, row in rows.items()},
            f"AUC by {MEASURES[measure]}": {gamma: row["ood_auc"] for gamma, row in rows.items()},
        }
    return found, printed


def _correlations(ours: DepthScores) -> dict[str, dict[str, Any]]:
    kinds = {
        "with predicted depth": ("spearman_depth", ""),
        "with the rmse": ("spearman_error", "rmse"),
    }
    return {
        what: {
            TITLES[dataset]: values
            for dataset in ours.datasets
            if (values := _by_measure(ours, dataset, group, after=after))
        }
        for what, (group, after) in kinds.items()
    }
