"""Figures of the page: drawn from results alone, shown if their files are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from priornet.methods import COLOURS, LABELS
from priornet.report import TEXT, tidy, write_figure
from priornet_paper.depth.figures import (
    draw_calibration,
    draw_correlations,
    draw_detection,
    draw_gammas,
    draw_likelihoods,
)
from priornet_paper.page.depth_tables import gammas_of, methods_of
from priornet_paper.page.numbers import (
    DEPTH_METHODS,
    DEPTH_SETS,
    MEASURES,
    OOD_SETS,
    SETS,
    TEN_METRES,
    TITLES,
    Content,
    Scores,
    ablation,
    every_method,
    published_depth,
    read_scores,
)
from priornet_paper.page.results import Results

_REJECTED_BY = ("total_variance", "variance_of_mean")
_ORACLE: dict[str, Any] = {"color": "black", "lw": 1.2, "ls": (0, (4, 2))}
_RANDOM: dict[str, Any] = {"color": "#777777", "lw": 1.2, "ls": ":"}
_POSSIBLE = "#E3E3E3"
_MEASURES = {
    "total_entropy": "total entropy",
    "total_variance": "total variance",
    "expected_entropy": "expected entropy",
    "mutual_information": "mutual information",
    "epkl": "EPKL",
    "variance_of_mean": "variance of the mean",
}
_GAMMA_SCORES = {
    "δ1": ("delta1",),
    "NLL": ("nll",),
    "AUC by H[E]": ("ood_auc", "lsun_bedroom", "total_entropy"),
    "AUC by I": ("ood_auc", "lsun_bedroom", "mutual_information"),
}
_CORRELATIONS = {
    "with predicted depth": ("spearman_depth", ()),
    "with the rmse": ("spearman_error", ("rmse",)),
}
_DEPTH_CAPTIONS = {
    "likelihood": "{set}: NLL of pixels, its density and its upper tail. Dots are the 99 % "
    "and 99.9 % quantiles; where histograms end, lines go straight on through them.",
    "calibration": "{set}: share of pixels inside central intervals against the share that "
    "was promised: the predictive's own, and normal ones with the same moments.",
    "maps": "{set}: the first test images, uncurated. Measured depth; prediction, absolute error, "
    "total variance and EPKL of the ensemble and of EnD2 on common scales. Grey: not measured.",
    "foreign": "The same models of {set} on the first images of other sets: prediction, total "
    "variance, EPKL.",
    "scale": "Models of {set}: total variance and EPKL against predicted depth, medians "
    "over the pixels of the first images of each set; bands between quartiles.",
}
_CAPTIONS = {
    "synthetic-panels": "Training data, and the total, data and knowledge uncertainty of each "
    "method. Training inputs lie in the shaded region. Dashed: NWPN with the paper's prior to the "
    "letter, which expects 201 times the variance of the targets and hides the noise.",
    "behaviours": "Three beliefs of a Normal-Wishart: low, data and knowledge uncertainty. Above "
    "Gaussians drawn from it, below its density over mean and precision.",
    "rejection": "Error that is left when the most uncertain rows are rejected first, between "
    "chance and an oracle. The coloured share of the area between these two is the PRR.",
    **{
        f"depth-{kind}-{name}": caption.format(set=TITLES[name])
        for kind, caption in _DEPTH_CAPTIONS.items()
        for name in DEPTH_SETS
    },
    "depth-detection": "AUC of each measure and method, as bars from chance.",
    "depth-gamma": "NWPN by the weight of the out-of-domain images that it learns; AUC against "
    "LSUN bedroom.",
    "depth-correlations": "Spearman's correlation of each measure with the predicted depth over "
    "pixels, and with the rmse over images: mean over seeds, and their range.",
}


def drawn_figures() -> list[str]:
    """List the figures that the page may draw; others are shown if they are there."""
    of_sets = [f"depth-{k}-{name}" for name in DEPTH_SETS for k in ("likelihood", "calibration")]
    return ["rejection", *of_sets, "depth-detection", "depth-gamma", "depth-correlations"]


def figures(folder: Path | None, *names: str) -> list[str]:
    """Write lines that show the figures of these names, as far as their PNG files are there."""
    if folder is None:
        return []
    lines: list[str] = []
    for name in names:
        if (folder / f"{name}.png").exists():
            caption = _CAPTIONS[name]
            lines += ["", f"![{caption}]({folder.name}/{name}.png)", "", f"*{caption}*", ""]
    return lines


def draw_figures(results: Results, folder: Path) -> list[str]:
    """Draw what the results allow, and name the figures."""
    drawn = {**_draw_rejection(results), **_draw_depth(results.depth)}
    for name, figure in drawn.items():
        write_figure(figure, folder, name)
    return list(drawn)


# -- rejection curves of the UCI tables -----------------------------------------------------------


def _draw_rejection(results: Results) -> dict[str, Figure]:
    """Draw the curves of EnD2 on the paper's sets, if a whole table has them."""
    runs = [results.get("paper", name) for name in SETS]
    whole = [run.content for run in runs if run is not None and run.is_complete]
    found = [
        content
        for content in whole
        if {*_REJECTED_BY} <= content["methods"].get("EnD2", {}).get("rejection", {}).keys()
    ]
    return {"rejection": draw_rejection(found, measures=_REJECTED_BY)} if found else {}


def draw_rejection(
    results: Sequence[Content],
    methods: Sequence[str] = ("EnD2",),
    measures: Sequence[str] = ("total_variance",),
) -> Figure:
    """Draw a panel for each table, method and measure, tables side by side.

    Args:
        results: Results of tables, as in ``results/uci/*.json``.
        methods: Names of methods in the results.
        measures: Uncertainty that decides what is rejected first.
    """
    rows = [(method, measure) for method in methods for measure in measures]
    if not results or not rows:
        raise ValueError("`results`, `methods` and `measures` must each name at least one.")
    size = (max(1.9 * len(results), 4.5), 0.6 + 2.0 * len(rows))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(rows), len(results), sharex=True, sharey=True, squeeze=False)
    for line, (method, measure) in zip(panels, rows, strict=True):
        for ax, table in zip(line, results, strict=True):
            plot_rejection(table, method, measure, ax=ax)
        line[0].set_ylabel(f"by {_MEASURES.get(measure, measure)}\nerror left", color=TEXT)
    for ax in panels[-1]:
        ax.set_xlabel("rows rejected", color=TEXT)
    handles: list[Artist] = [
        *(Line2D([], [], color=COLOURS[m], lw=2, label=LABELS.get(m, m)) for m in methods),
        Line2D([], [], **_ORACLE, label="largest errors first"),
        Line2D([], [], **_RANDOM, label="by chance"),
        Patch(color=_POSSIBLE, lw=0, label="possible gain"),
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles),
        fontsize=9,
        frameon=False,
        labelcolor=TEXT,
    )
    return figure


def plot_rejection(results: Content, method: str, measure: str, *, ax: Axes | None = None) -> Axes:
    """Plot the error left when the most uncertain rows are rejected first, from best to chance.

    The ratio of the coloured area to the grey one and it together is the prediction rejection
    ratio; the number is the mean of the folds' own.

    Args:
        results: Results of one table.
        method: Name of the method in the results.
        measure: Uncertainty that decides what is rejected first.
        ax: Axes to draw on; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    entry, table = _entry(results, method, measure), results["dataset"]
    curves, colour = entry["rejection"], COLOURS[method]
    x, chance = curves["fraction"], curves["random"]
    ax.fill_between(x, curves["oracle"], chance, color=_POSSIBLE, lw=0)
    ax.fill_between(x, curves[measure], chance, color=colour, alpha=0.35, lw=0)
    ax.plot(x, curves["oracle"], **_ORACLE)
    ax.plot(x, chance, **_RANDOM)
    ax.plot(x, curves[measure], color=colour, lw=1.8)
    ratio = f"PRR {entry['prr'][measure]['mean']:.2f}"
    ax.text(0.95, 0.95, ratio, transform=ax.transAxes, ha="right", va="top", color=TEXT)
    name = f"{table}, {LABELS.get(method, method)}"
    ax.set(title=name, xlim=(0, 1), ylim=(0, 1.02), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    ax.set_xticklabels(["0", "0.5", "1"])
    tidy(ax)
    ax.title.set_fontsize(10)
    return ax


def _entry(results: Content, method: str, measure: str) -> Mapping[str, Any]:
    """Return the scores of a method that has the curve."""
    methods = results["methods"]
    if method not in methods:
        names = ", ".join(methods)
        raise ValueError(
            f'{results["dataset"]}: unknown method "{method}"; choose one of: {names}.'
        )
    curves = methods[method]["rejection"]
    if measure not in curves:
        names = ", ".join(name for name in curves if name in _MEASURES)
        raise ValueError(
            f'{results["dataset"]}: {method} has no curve by "{measure}"; choose one of: {names}.'
        )
    return methods[method]


# -- depth ----------------------------------------------------------------------------------------


def _draw_depth(contents: Mapping[str, Content]) -> dict[str, Figure]:
    """Draw what the depth results of each set allow."""
    ours, drawn = read_scores(contents), dict[str, Figure]()
    for name, content in contents.items():
        every = every_method(content)
        believing = methods_of(ours, name, has_belief=True)
        shown = {n: every[n] for n in believing if ours.get(name, n, "nll") is not None}
        if shown:
            drawn[f"depth-likelihood-{name}"] = draw_likelihoods(shown)
            drawn[f"depth-calibration-{name}"] = draw_calibration(shown)
    panels = {
        _pair(dataset, other): values
        for dataset in ours.datasets
        for other in OOD_SETS[dataset]
        if (values := _by_measure(ours, dataset, "ood_auc", other))
    }
    if panels:
        drawn["depth-detection"] = draw_detection(panels, _printed_auc(ours), MEASURES)
    weights = {name: gammas_of(content) for name, content in contents.items()}
    if any(len(gammas) > 1 for gammas in weights.values()):
        drawn["depth-gamma"] = draw_gammas(
            {TITLES[name]: _gammas(ours, name, found) for name, found in weights.items()},
            {TITLES[name]: _printed_gammas(name, found) for name, found in weights.items()},
        )
    rows = {
        what: {
            TITLES[dataset]: values
            for dataset in ours.datasets
            if (values := _by_measure(ours, dataset, group, after=after))
        }
        for what, (group, after) in _CORRELATIONS.items()
    }
    if any(rows.values()):
        drawn["depth-correlations"] = draw_correlations(rows, MEASURES)
    return drawn


def _pair(dataset: str, other: str) -> str:
    return f"{TITLES[dataset]} against {TITLES[other]}"


def _by_measure(
    ours: Scores, dataset: str, *before: str, after: Sequence[str] = ()
) -> dict[str, dict[str, tuple[float, ...]]]:
    """Collect the values of every seed, by method and measure."""
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for method in DEPTH_METHODS:
        for measure in MEASURES:
            value = ours.get(dataset, method, *before, measure, *after)
            if value is not None:
                found.setdefault(method, {})[measure] = value.values
    return found


def _printed_auc(ours: Scores) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (dataset, method, *path), value in published_depth().numbers.items():
        if path[0] == "ood_auc" and dataset in ours.datasets:
            panel = found.setdefault(_pair(dataset, path[1]), {})
            panel.setdefault(method, {})[path[2]] = value.mean
    return found


def _gammas(
    ours: Scores, dataset: str, names: Mapping[float, str]
) -> dict[str, dict[float, tuple[float, ...]]]:
    """Collect scores by weight, with every seed."""
    found: dict[str, dict[float, tuple[float, ...]]] = {}
    for title, path in _GAMMA_SCORES.items():
        for gamma, name in names.items():
            value = ours.get(dataset, name, *path)
            if value is not None:
                found.setdefault(title, {})[gamma] = value.values
    return found


def _printed_gammas(dataset: str, gammas: Iterable[float]) -> dict[str, dict[float, float]]:
    theirs, measure = ablation(dataset)
    shift = TEN_METRES if dataset == "nyu" else 0.0
    rows = {gamma: theirs[f"{gamma:g}"] for gamma in gammas if f"{gamma:g}" in theirs}
    return {
        "δ1": {gamma: row["delta1"] for gamma, row in rows.items()},
        "NLL": {gamma: row["nll"] + shift for gamma, row in rows.items()},
        f"AUC by {MEASURES[measure]}": {gamma: row["ood_auc"] for gamma, row in rows.items()},
    }
