"""Tables of the depth experiment: accuracy, likelihood, OOD detection, gamma, correlations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import stdev

from priornet_paper.page.numbers import (
    DEPTH_MEASURES,
    DEPTH_METHODS,
    NONE,
    OOD_SETS,
    TEN_METRES,
    TITLES,
    Content,
    Number,
    Scores,
    ablation,
    shown,
)
from priornet_paper.page.sections import table


def methods_of(scores: Scores, dataset: str, *, has_belief: bool = False) -> list[str]:
    """List the methods of a set in the order of tables, then variants except the ablation's."""
    paths = [path for path in (*scores.numbers, *scores.failed) if path[0] == dataset]
    found = dict.fromkeys(path[1] for path in paths)
    believing = {path[1] for path in paths if path[2] == "nll"}
    variants = [n for n in found if n not in DEPTH_METHODS and not n.startswith("NWPN-g")]
    listed = [*(n for n in DEPTH_METHODS if n in found), *variants]
    return [name for name in listed if not has_belief or name in believing]


def _beside(text: str, printed: float | None, digits: int = 3) -> str:
    return text if printed is None else f"{text} ({shown(printed, digits)})"


# -- accuracy and likelihood ----------------------------------------------------------------------

_ABOUT_ACCURACY = (
    "Mean over seeds ± its standard error; below it the paper's mean of four. *log10, mean* is "
    "the mean of |log10 y - log10 ŷ|, *log10, rms* the root of the mean square: the paper "
    "defines the second and prints numbers of the size of the first (rel / ln 10). NLL is in "
    "nats and metres, of the Student-T or of the mixture; *moments*: of the normal with the "
    "same mean and variance, by which the paper probably scores ensembles."
)
_ABOUT_UNITS = (
    "The paper's NLL on NYU seems to be in units of 10 m: -1.47 in metres would mean "
    "errors of 6 cm beside an rmse of 0.45 m. In brackets, as printed; before them, "
    f"in metres ({shown(TEN_METRES)} more)."
)
_ABOUT_LIKELIHOOD = (
    "NLL that so many per cent of the pixels do not exceed, and C-AUC, the area between the "
    "calibration curve and the diagonal (0 is perfect): of the predictive's own central "
    "intervals, of the normal ones with the same moments, which the paper draws, and of its "
    "quantiles. The paper shows histograms without numbers."
)
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


def accuracy(ours: Scores, paper: Scores) -> list[str]:
    """Write one table per set, every metric with the paper's below it."""
    lines = [_ABOUT_ACCURACY]
    lines += ["", _ABOUT_UNITS] if "nyu" in ours.datasets else []
    for dataset in ours.datasets:
        rows = [_accuracy_row(ours, paper, dataset, name) for name in methods_of(ours, dataset)]
        lines += ["", f"**{TITLES[dataset]}**", *table(["", *_METRICS.values()], rows)]
    return lines


def _accuracy_row(ours: Scores, paper: Scores, dataset: str, method: str) -> list[str]:
    texts = {metric: ours.text(3, dataset, method, metric) for metric in _METRICS}
    if paper.get(dataset, method, "delta1") is None:
        return [f"**{method}**", *texts.values()]
    printed = [_printed(dataset, m, paper.get(dataset, method, m)) for m in _METRICS]
    cells = [f"{text}<br>{theirs}" for text, theirs in zip(texts.values(), printed, strict=True)]
    return [f"**{method}**<br>the paper", *cells]


def _printed(dataset: str, metric: str, theirs: Number | None) -> str:
    if theirs is None:
        return NONE
    if metric != "nll":
        return shown(theirs.mean, 3)
    if dataset != "nyu":
        return shown(theirs.mean)
    return f"{shown(theirs.mean + TEN_METRES)} ({shown(theirs.mean)})"


def likelihood(ours: Scores) -> list[str]:
    """Write quantiles of the NLL over pixels, and the area of the calibration curve."""
    lines = [_ABOUT_LIKELIHOOD]
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


# -- OOD detection --------------------------------------------------------------------------------

_ABOUT_DETECTION = (
    "Area under the ROC curve of in-domain test images against those of another set (1 is "
    "perfect, 0.5 is chance, below it out-of-domain images look *more* certain); the paper's in "
    "brackets. An image's number is the mean over one fixed region of pixels, of the logarithm "
    "for variances. H[E] and V[y] are total, I, K (EPKL) and V[mu] knowledge, E[H] data "
    "uncertainty. I and H[E] of ensembles and of MD-EnD are estimated by sampling. NWPN is not "
    "scored on the set that it learnt as out-of-domain. LSUN church images were not available: "
    "the paper's numbers stand alone."
)


def detection(ours: Scores, paper: Scores) -> list[str]:
    """Write the AUC of every measure, set and method, the paper's in brackets."""
    lines = [_ABOUT_DETECTION]
    for dataset in ours.datasets:
        rows = [
            [TITLES[other], name, *cells]
            for other in (*OOD_SETS[dataset], "lsun_church")
            for name in methods_of(ours, dataset, has_belief=True)
            if (cells := _detection_cells(ours, paper, dataset, name, other))
        ]
        header = ["OOD set", "method", *DEPTH_MEASURES.values()]
        lines += ["", f"**Models of {TITLES[dataset]}**", *table(header, rows, left=2)]
    return lines


def _detection_cells(
    ours: Scores, paper: Scores, dataset: str, method: str, other: str
) -> list[str]:
    """Format a cell for each measure; none at all if neither we nor the paper have one."""
    cells: list[str] = []
    is_scored = False
    for measure in DEPTH_MEASURES:
        path = (dataset, method, "ood_auc", other, measure)
        text, theirs = ours.text(3, *path), paper.mean(*path)
        is_scored |= ours.get(*path) is not None or theirs is not None
        if other == "lsun_church" and theirs is not None:
            text = "no images"
        cells.append(_beside(text, theirs))
    return cells if is_scored else []


# -- the weight of OOD images ---------------------------------------------------------------------

_ABOUT_GAMMA = (
    "NWPN learns the other set as out-of-domain, with weight gamma. The paper's numbers stand in "
    "brackets: its OOD AUC is by H[E] on NYU (against LSUN bedroom, as its number for Single "
    "shows) and by I on KITTI (it does not name the other set); our OOD AUC is against LSUN "
    "bedroom. The paper's NLL on NYU is converted into metres."
)
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


def gammas_of(content: Content) -> dict[float, str]:
    """Name the prior networks by their weight of OOD images, the smallest first."""
    found = {
        float(name.removeprefix("NWPN-g")): name for name in content["variants"] if "-g" in name
    }
    if "NWPN" in content["methods"]:
        found[content["config"]["gamma"]] = "NWPN"
    return dict(sorted(found.items()))


def gamma_table(ours: Scores, contents: Mapping[str, Content]) -> list[str]:
    """Write NWPN's scores by the weight of OOD training images."""
    lines = [_ABOUT_GAMMA]
    for dataset in ours.datasets:
        gammas, (theirs, measure) = gammas_of(contents[dataset]), ablation(dataset)
        names = {"Single": "Single", **{f"{gamma:g}": name for gamma, name in gammas.items()}}
        rows = [
            [label, *_gamma_cells(ours, dataset, name, theirs.get(label, {}), measure)]
            for label, name in names.items()
        ]
        lines += ["", f"**{TITLES[dataset]}**"]
        lines += table(["gamma", *_GAMMA_COLUMNS], rows) if gammas else ["", "Not run.", ""]
        lines += _gamma_seeds(ours, dataset, gammas)
    return lines


def _gamma_cells(
    ours: Scores, dataset: str, method: str, theirs: Mapping[str, float], measure: str
) -> list[str]:
    cells: list[str] = []
    for path in _GAMMA_COLUMNS.values():
        if path[0] != "ood_auc":
            printed = theirs.get(path[0])
        # The paper's number for Single must be by another measure on KITTI: Single has no I.
        elif path[-1] == measure and ours.get(dataset, method, *path) is not None:
            printed = theirs.get("ood_auc")
        else:
            printed = None
        if printed is not None and path == ("nll",) and dataset == "nyu":
            printed += TEN_METRES
        text = ours.text(3, dataset, method, *path)
        cells.append(_beside(text, printed, 2 if path == ("nll",) else 3))
    return cells


def _gamma_seeds(ours: Scores, dataset: str, gammas: Mapping[float, str]) -> list[str]:
    """Count the seeds of each weight, and tell if weights differ by more than seeds do."""
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


# -- correlations ---------------------------------------------------------------------------------

_ABOUT_RANKS = (
    "Spearman's correlation. *With depth*: of each measure with the predicted depth, over "
    "pixels of the test images; the paper explains inverted detection on KITTI by it. *With "
    "the error*: of an image's measure with its rmse / its rel, over images. *With the "
    "ensemble's*: of students' maps with those of their ensemble, the mean over images of the "
    "correlation inside each; a student's I is compared with the ensemble's K, which has a "
    "closed form."
)
_STUDENTS = ("EnD2", "EnD2-T1", "EnD2-T10", "EnD2-proxy", "EnD", "MD-EnD")
_AGREEMENT = "within_images"


def ranks(ours: Scores) -> list[str]:
    """Write Spearman's correlations, in three tables per set."""
    lines = [_ABOUT_RANKS]
    header = ["", *DEPTH_MEASURES.values()]
    for dataset in ours.datasets:
        methods, title = methods_of(ours, dataset, has_belief=True), TITLES[dataset]
        depth = [_texts(ours, dataset, name, "spearman_depth", DEPTH_MEASURES) for name in methods]
        lines += ["", f"**{title}, with depth**", *table(header, depth)]
        error = [[name, *_error_cells(ours, dataset, name)] for name in methods]
        lines += ["", f"**{title}, with the error (rmse / rel)**", *table(header, error)]
        maps = [
            _texts(ours, dataset, name, "agreement", (*DEPTH_MEASURES, "prediction"), _AGREEMENT)
            for name in _STUDENTS
            if ours.get(dataset, name, "agreement", "prediction", _AGREEMENT) is not None
        ]
        if maps:
            lines += ["", f"**{title}, with the ensemble's**"]
            lines += table([*header, "prediction"], maps)
    return lines


def _texts(
    ours: Scores, dataset: str, method: str, group: str, names: Iterable[str], *after: str
) -> list[str]:
    return [method, *(ours.text(2, dataset, method, group, name, *after) for name in names)]


def _error_cells(ours: Scores, dataset: str, method: str) -> list[str]:
    cells: list[str] = []
    for measure in DEPTH_MEASURES:
        both = [ours.mean(dataset, method, "spearman_error", measure, e) for e in ("rmse", "rel")]
        texts = [NONE if value is None else shown(value) for value in both]
        cells.append(NONE if both == [None, None] else " / ".join(texts))
    return cells
