"""``priornet predict`` for depth networks: photographs in, maps of depth and uncertainty out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from priornet.cli.errors import InputError, blamed_on, called
from priornet.cli.export_depth import load_network
from priornet.cli.kinds import IMAGE_TABLE, MAPS
from priornet.cli.output import progress
from priornet.cli.outputs import check_outputs, figure_paths, make_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from priornet.depth import DepthImages, SavedDepth
    from priornet.estimators.verdict import Reference

__all__ = ["PhotoRequest", "photo_sentences", "score_photographs"]

_BATCH = 8
_SHOWN = 4  # photographs in the figure
_DEVIATIONS = {
    "total": "total_variance",
    "data": "data_variance",
    "knowledge": "knowledge_variance",
}
_INFORMATION = ("mutual_information", "epkl")  # the first that a network has tells strange images
_ENOUGH = 100  # familiar images, for a share of one in a hundred
_LONGEST = 24  # letters of a name in the figure


_Shown = tuple[str, Any, dict[str, Any]]
"""A photograph's name, its pixels, and what the network says of them."""


@dataclass(frozen=True)
class PhotoRequest:
    """What to look at, and where to put what is seen."""

    model: Path
    data: str
    out: Path
    familiar: Path | None = None
    coverage: float = 0.9
    overwrite: bool = False


def score_photographs(request: PhotoRequest, *, quiet: bool = True) -> dict[str, Any]:
    """Write maps of every photograph, a table with a row for each, and a figure of the first.

    Returns:
        What ``--json`` prints.
    """
    if not 0 < request.coverage < 1:
        raise InputError(f"--coverage must lie between 0 and 1; got {request.coverage:g}.")
    if request.data == "-":
        raise InputError("a depth network looks at photographs: name a file or a folder.")
    saved = load_network(request.model)
    known = None if request.familiar is None else _opened(request.familiar)
    images = _opened(request.data)
    _check_names(images)
    _check_apart(request)
    _check_outputs(request, images, quiet=quiet)
    make_folder(request.out)
    n_images = len(images) + len(known or ())
    start = time.perf_counter()
    with progress(n_images, "images", shown=not quiet) as advance:
        usual = None
        if known is not None and request.familiar is not None:
            with blamed_on(request.familiar):
                usual = _usual(saved, known, request, advance)
        with blamed_on(request.data):
            rows, shown = _look(saved, images, request, advance)
    seconds = time.perf_counter() - start
    if usual is not None:
        _add_verdicts(rows, usual)
    table = request.out / "images.csv"
    _write_table(table, rows)
    _draw(request, shown)
    words = [row["verdict"] for row in rows if "verdict" in row]
    return {
        "model": str(request.model),
        "data": request.data,
        "out": str(request.out),
        "n_images": len(rows),
        "seconds": round(seconds, 3),
        "size": list(saved.size),
        "has_knowledge": any(_strangeness(row) > 0 for row in rows),
        "n_familiar": None if known is None else len(known),
        "verdicts": {word: words.count(word) for word in dict.fromkeys(words)},
        "table": str(table),
        "figure": str(request.out / "first.png"),
    }


def photo_sentences(summary: dict[str, Any]) -> Iterator[str]:
    """What the command says."""
    n_images = summary["n_images"]
    who = "1 image" if n_images == 1 else f"{n_images} images"
    counts = ", ".join(f"{count} {word}" for word, count in summary["verdicts"].items())
    yield f"{who} in {summary['seconds']:.1f} s{': ' if counts else ''}{counts}."
    n_known = summary["n_familiar"]
    if not summary["has_knowledge"]:
        yield "Which of them are strange it cannot say: one Gaussian has no knowledge uncertainty."
    elif n_known is None:
        yield "Which of them are strange it cannot say: give images that it knows as --familiar."
    elif n_known < _ENOUGH:
        known = "1 image" if n_known == 1 else f"{n_known} images"
        yield (
            f"With {known} to compare with, one in {n_known + 1} of the same kind is called "
            f"unfamiliar; with {_ENOUGH} or more, one in a hundred."
        )
    yield f"Written: {summary['table']}, maps beside it, and {summary['figure']}"


def _opened(path: str | Path) -> DepthImages:
    from priornet.depth import open_depth

    with blamed_on(path):
        images = open_depth(path)
        if not len(images):
            raise InputError(f"{called(path)}: there are no images in it.")
    return images


def _check_names(images: DepthImages) -> None:
    """Maps are written below the folder, whatever images are called."""
    for name in images.names:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InputError(
                f"{images.name}: an image is called {name}, which is no file to write."
            )


def _check_apart(request: PhotoRequest) -> None:
    """The figure that is written would be one of the photographs the next time."""
    out = request.out.resolve()
    for path in filter(None, (request.data, request.familiar)):
        folder = Path(path).resolve()
        if folder.is_dir() and out.is_relative_to(folder):
            raise InputError(f"{request.out}: it lies among the images of {path}; name another.")


def _check_outputs(request: PhotoRequest, images: DepthImages, *, quiet: bool) -> None:
    maps = ((_maps_path(request, name), MAPS) for name in images.names)
    written = [
        (request.out / "images.csv", IMAGE_TABLE),
        *figure_paths(request.out, "first"),
        *maps,
    ]
    inputs = (request.data, request.model, request.familiar)
    check_outputs(written, inputs, overwrite=request.overwrite, quiet=quiet)


def _maps_path(request: PhotoRequest, name: str) -> Path:
    return request.out / "maps" / f"{name}.npz"


def _answers(
    saved: SavedDepth, images: DepthImages, request: PhotoRequest
) -> Iterator[tuple[NDArray[np.uint8], dict[str, NDArray[np.float64]]]]:
    """Each photograph as the network sees it ``(H, W, 3)``, and what it says of its pixels."""
    import numpy as np
    import torch

    from priornet.depth import depth_outputs

    pictures = (
        picture for picture, _ in images.pairs(size=saved.size, crop=True, with_depth=False)
    )
    while batch := list(islice(pictures, _BATCH)):
        pixels = torch.from_numpy(np.stack(batch)).permute(0, 3, 1, 2).float() / 255
        with blamed_on(request.model):
            found = depth_outputs(saved, pixels, request.coverage)
        for place, picture in enumerate(batch):
            yield picture, {name: values[place] for name, values in found.items()}


def _usual(
    saved: SavedDepth, known: DepthImages, request: PhotoRequest, advance: Callable[[int], object]
) -> Reference:
    """How uncertain the network is of images that it knows."""
    from priornet.estimators.verdict import Reference

    rows: list[dict[str, Any]] = []
    for _, found in _answers(saved, known, request):
        rows.append(_summary(found))
        advance(1)
    usual = Reference.of(*_compared(rows))
    if not usual.has_knowledge:
        raise InputError(
            f"{request.model}: it has no knowledge uncertainty by which to tell strange images, as "
            "one Gaussian has none; leave --familiar out, or use EnD2's weights."
        )
    return usual


def _look(
    saved: SavedDepth, images: DepthImages, request: PhotoRequest, advance: Callable[[int], object]
) -> tuple[list[dict[str, Any]], list[_Shown]]:
    """Write maps; a row for each photograph, and the first ones to be drawn."""
    rows: list[dict[str, Any]] = []
    shown: list[_Shown] = []
    answers = _answers(saved, images, request)
    for name, (picture, found) in zip(images.names, answers, strict=True):
        _write_maps(_maps_path(request, name), found)
        rows.append({"image": name, **_summary(found)})
        if len(shown) < _SHOWN:
            shown.append((name, picture, found))
        advance(1)
    return rows, shown


def _summary(found: dict[str, Any]) -> dict[str, float]:
    """An image in a few numbers: deviations are roots of mean variances over its pixels."""
    row = {"depth": float(found["mean"].mean())}
    row |= {name: float(found[source].mean() ** 0.5) for name, source in _DEVIATIONS.items()}
    return row | {name: float(found[name].mean()) for name in _INFORMATION if name in found}


def _compared(rows: list[dict[str, Any]]) -> tuple[Any, Any]:
    """What images are compared by: knowledge in nats, and the variance of the data.

    Not by a variance of knowledge, which is small wherever things look near, as foreign ones do.
    """
    import numpy as np

    return np.array([_strangeness(row) for row in rows]), np.array(
        [row["data"] ** 2 for row in rows]
    )


def _strangeness(row: dict[str, Any]) -> float:
    return next(row[name] for name in _INFORMATION if name in row)


def _add_verdicts(rows: list[dict[str, Any]], usual: Reference) -> None:
    """How familiar each image is, and a word for it."""
    knowledge, data = _compared(rows)
    found = zip(usual.familiarity(knowledge), usual.words(knowledge, data), strict=True)
    for row, (share, word) in zip(rows, found, strict=True):
        row |= {"in_domain": float(share), "verdict": str(word)}


def _write_maps(path: Path, found: dict[str, Any]) -> None:
    """Maps in single precision, whole or not at all."""
    import numpy as np

    from priornet.writing import whole_file

    maps = {"depth": found["mean"], "lower": found["lower"], "upper": found["upper"]}
    maps |= {name: np.sqrt(found[source]) for name, source in _DEVIATIONS.items()}
    maps |= {name: found[name] for name in _INFORMATION if name in found}
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        np.savez_compressed(file, **{name: m.astype(np.float32) for name, m in maps.items()})


def _write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Six figures of every number: more are not known of an image."""
    import pyarrow as pa

    from priornet.tables.write import TableWriter

    rounded = [
        {n: float(f"{v:.6g}") if isinstance(v, float) else v for n, v in row.items()}
        for row in rows
    ]
    with TableWriter(path) as writer:
        writer.write(pa.RecordBatch.from_pylist(rounded))


def _draw(request: PhotoRequest, shown: list[_Shown]) -> None:
    """The first photographs, and what the network says of them."""
    import numpy as np

    from priornet.depth.maps import DepthMaps, draw_maps
    from priornet.report.figure_files import write_figure

    names = ("mean", "total_variance", "epkl")
    maps = DepthMaps(*(np.stack([found[name] for _, _, found in shown]) for name in names))
    photographs = np.stack([picture for _, picture, _ in shown])
    labels = [_label(name) for name, _, _ in shown]
    figure = draw_maps({_label(request.model.stem): maps}, None, photographs, labels)
    write_figure(figure, request.out, "first")


def _label(name: str) -> str:
    """A name for the figure: its end, and no signs that Matplotlib reads as mathematics."""
    end = name if len(name) <= _LONGEST else f"...{name[3 - _LONGEST :]}"
    return end.replace("$", r"\$")
