"""Figures of the page: shown where the files are, by their path beside the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from priornet_paper.page.numbers import SETS
from priornet_paper.page.results import Results

__all__ = ["draw_rejection", "figures"]

_REJECTED_BY = ("total_variance", "variance_of_mean")
_OF_MAPS = (
    "{set}: the first test images, uncurated. Measured depth; prediction, absolute error, total "
    "variance and EPKL of the ensemble and of EnD2 on common scales. Grey: not measured."
)
_OF_FOREIGN = (
    "The same models of {set} on the first images of other sets: prediction, total variance, EPKL."
)
_CAPTIONS = {
    "synthetic-panels": "Training data, and the total, data and knowledge uncertainty of each "
    "method. Training inputs lie in the shaded region. Dashed: NWPN with the paper's prior to the "
    "letter, which expects 201 times the variance of the targets and hides the noise.",
    "behaviours": "What a Normal-Wishart can say: low, data and knowledge uncertainty. Above "
    "Gaussians drawn from it, below its density over mean and precision.",
    "rejection": "Error that is left when the most uncertain rows are rejected first, between "
    "chance and an oracle. The coloured share of the area between these two is the PRR.",
    **{
        f"depth-{kind}-{name}": caption.format(set=title)
        for kind, caption in {
            "likelihood": "{set}: NLL of pixels, its density and its upper tail. Dots are the 99 % "
            "and 99.9 % quantiles; where histograms end, lines go straight on through them.",
            "calibration": "{set}: share of pixels inside central intervals against the share that "
            "was promised: the predictive's own, and normal ones with the same moments.",
            "maps": _OF_MAPS,
            "foreign": _OF_FOREIGN,
            "scale": "Models of {set}: total variance and EPKL against predicted depth, medians "
            "over the pixels of the first images of each set; bands between quartiles.",
        }.items()
        for name, title in (("nyu", "NYU"), ("kitti", "KITTI"))
    },
    "depth-detection": "AUC of each measure and method, as bars from chance.",
    "depth-gamma": "NWPN by the weight of the foreign images that it learns; AUC against LSUN "
    "bedroom.",
    "depth-correlations": "Spearman's correlation of each measure with the predicted depth over "
    "pixels, and with the rmse over images: mean over seeds, and their range.",
}


def draw_rejection(results: Results, folder: Path) -> bool:
    """Draw the rejection curves of EnD2 on the paper's sets, if any whole one has them."""
    from priornet.report.figure_files import write_figure
    from priornet_paper.page.rejection_figure import draw

    runs = [results.get("paper", name) for name in SETS]
    whole = [run.content for run in runs if run is not None and run.is_complete]
    drawn = [content for content in whole if _has_curves(content["methods"].get("EnD2", {}))]
    if drawn:
        write_figure(draw(drawn, measures=_REJECTED_BY), folder, "rejection")
    return bool(drawn)


def _has_curves(method: dict[str, Any]) -> bool:
    return all(name in method.get("rejection", {}) for name in _REJECTED_BY)


def figures(folder: Path | None, *names: str) -> list[str]:
    """Lines that show the figures of these names, as far as their PNG files are there."""
    if folder is None:
        return []
    lines: list[str] = []
    for name in names:
        if (folder / f"{name}.png").exists():
            caption = _CAPTIONS[name]
            lines += ["", f"![{caption}]({folder.name}/{name}.png)", "", f"*{caption}*", ""]
    return lines
