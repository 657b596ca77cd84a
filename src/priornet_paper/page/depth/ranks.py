"""What uncertainty goes along with: predicted depth, the error, the ensemble's maps."""

from __future__ import annotations

from priornet_paper.page.depth.accuracy import methods_of
from priornet_paper.page.depth.numbers import DEPTH_MEASURES, NONE, TITLES, DepthScores
from priornet_paper.page.markdown import shown, table

__all__ = ["ranks"]

_STUDENTS = ("EnD2", "EnD2-T1", "EnD2-T10", "EnD2-proxy", "EnD", "MD-EnD")


def ranks(ours: DepthScores) -> list[str]:
    """Spearman's correlations, in three tables per set."""
    lines = [
        "Spearman's correlation. *With depth*: of each measure with the predicted depth, over "
        "pixels of the test images; the paper explains inverted detection on KITTI by it. *With "
        "the error*: of an image's measure with its rmse / its rel, over images. *With the "
        "ensemble's*: of students' maps with those of their ensemble, the mean over images of the "
        "correlation inside each; a student's I is compared with the ensemble's K, which has a "
        "closed form.",
    ]
    symbols = list(DEPTH_MEASURES.values())
    for dataset in ours.datasets:
        methods = methods_of(ours, dataset, has_belief=True)
        depth = [[name, *_row(ours, dataset, name, "spearman_depth")] for name in methods]
        error = [[name, *_pairs(ours, dataset, name)] for name in methods]
        students = [name for name in _STUDENTS if _agrees(ours, dataset, name)]
        maps = [
            [name, *_row(ours, dataset, name, "agreement", after=("within_images",))]
            for name in students
        ]
        depths = [
            _cell(ours, dataset, name, "agreement", "prediction", "within_images")
            for name in students
        ]
        maps = [[*row, text] for row, text in zip(maps, depths, strict=True)]
        title = TITLES[dataset]
        lines += ["", f"**{title}, with depth**", *table(["", *symbols], depth)]
        lines += ["", f"**{title}, with the error (rmse / rel)**", *table(["", *symbols], error)]
        if maps:
            lines += ["", f"**{title}, with the ensemble's**"]
            lines += table(["", *symbols, "prediction"], maps)
    return lines


def _agrees(ours: DepthScores, dataset: str, method: str) -> bool:
    return ours.get(dataset, method, "agreement", "prediction", "within_images") is not None


def _row(
    ours: DepthScores, dataset: str, method: str, group: str, after: tuple[str, ...] = ()
) -> list[str]:
    return [_cell(ours, dataset, method, group, measure, *after) for measure in DEPTH_MEASURES]


def _cell(ours: DepthScores, dataset: str, method: str, *path: str) -> str:
    return ours.text(2, dataset, method, *path)


def _pairs(ours: DepthScores, dataset: str, method: str) -> list[str]:
    cells: list[str] = []
    for measure in DEPTH_MEASURES:
        both = [
            ours.mean(dataset, method, "spearman_error", measure, error)
            for error in ("rmse", "rel")
        ]
        texts = [NONE if value is None else shown(value) for value in both]
        cells.append(NONE if both == [None, None] else " / ".join(texts))
    return cells
