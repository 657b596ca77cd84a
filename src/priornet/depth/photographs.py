"""Predict photographs: maps of depth and its uncertainty, a table with a row for each, a figure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from priornet.depth.depth_maps import DepthMaps, draw_maps
from priornet.depth.images.dataset import DepthImages
from priornet.depth.images.decoding import DepthError
from priornet.depth.saved import SavedDepth, depth_outputs
from priornet.estimators.held_out import Reference
from priornet.report.figures import write_figure
from priornet.tables.write import TableWriter
from priornet.writing import whole_file

Rows = list[dict[str, Any]]
Maps = dict[str, NDArray[np.float64]]
Photograph = tuple[str, NDArray[np.uint8], Maps]
"""Name, pixels ``(H, W, 3)`` and outputs."""

_BATCH = 8
_SHOWN = 4  # photographs in the figure
_LONGEST = 24  # letters of a name in the figure
_DEVIATIONS = {name: f"{name}_variance" for name in ("total", "data", "knowledge")}
_INFORMATION = ("mutual_information", "epkl")  # the first that a network has gives the verdict


def predict_photographs(
    network: SavedDepth,
    images: DepthImages,
    out: str | Path,
    *,
    familiar: DepthImages | None = None,
    coverage: float = 0.9,
    progress: Callable[[int], object] = lambda _: None,
) -> dict[str, Any]:
    """Write maps of all photographs, a table with a row for each, and a figure of the first.

    Args:
        network: A network with uncertainty.
        images: The photographs; their middle is cut out in the shape of the training images.
        out: Folder of ``maps/NAME.npz``, ``images.csv``, ``first.png`` and ``first.svg``.
        familiar: Images like those of training, for in-domain scores and verdicts.
        coverage: Coverage of the interval from ``lower`` to ``upper``.
        progress: Called with the number of images after each.

    Returns:
        Counts and paths, ready for JSON.
    """
    out, start = Path(out), time.perf_counter()
    reference = None if familiar is None else _reference(network, familiar, coverage, progress)
    found = _predicted(network, images, coverage, progress)
    rows, shown = _write_all(found, map_files(images, out))
    seconds = time.perf_counter() - start
    if reference is not None:
        _add_verdicts(rows, reference)
    _write_table(out / "images.csv", rows)
    figure = write_figure(_figure(Path(network.name).stem, shown), out, "first")
    return {
        "n_images": len(rows),
        "seconds": round(seconds, 3),
        "size": list(network.size),
        "has_knowledge": any(_information(row) > 0 for row in rows),
        "n_familiar": None if familiar is None else len(familiar),
        "verdicts": dict(Counter(row["verdict"] for row in rows if "verdict" in row)),
        **{"table": str(out / "images.csv"), "figure": str(figure["png"])},
    }


def _write_all(
    predicted: Iterator[Photograph], files: dict[str, Path]
) -> tuple[Rows, list[Photograph]]:
    """Write the maps of all photographs; return their rows, and the first for the figure."""
    rows: Rows = []
    shown: list[Photograph] = []
    for name, picture, maps in predicted:
        _write_maps(files[name], maps)
        rows.append({"image": name, **_summary(maps)})
        if len(shown) < _SHOWN:
            shown.append((name, picture, maps))
    return rows, shown


def map_files(images: DepthImages, out: str | Path) -> dict[str, Path]:
    """Return the file of each image's maps; refuse a name that leads out of the folder."""
    for name in images.names:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise DepthError(
                f"{images.name}: an image is called {name}, which is no file to write."
            )
    return {name: Path(out) / "maps" / f"{name}.npz" for name in images.names}


def _predicted(
    network: SavedDepth, images: DepthImages, coverage: float, progress: Callable[[int], object]
) -> Iterator[Photograph]:
    """Yield each photograph, cut and rescaled, with the network's outputs."""
    if not len(images):
        raise DepthError(f"{images.name}: there are no images in it.")
    names, pairs = iter(images.names), images.pairs(size=network.size, crop=True, with_depth=False)
    while batch := [picture for picture, _ in islice(pairs, _BATCH)]:
        pixels = torch.from_numpy(np.stack(batch)).permute(0, 3, 1, 2).float() / 255
        found = depth_outputs(network, pixels, coverage)
        for place, picture in enumerate(batch):
            yield next(names), picture, {name: values[place] for name, values in found.items()}
            progress(1)


def _reference(
    network: SavedDepth, familiar: DepthImages, coverage: float, progress: Callable[[int], object]
) -> Reference:
    """Measure the network's uncertainty of familiar images."""
    predicted = _predicted(network, familiar, coverage, progress)
    found = Reference.of(*_compared([_summary(maps) for _, _, maps in predicted]))
    if not found.has_knowledge:
        raise DepthError(
            f"{network.name}: it has no knowledge uncertainty for verdicts, because it predicts "
            "one Gaussian; leave out the familiar images, or use EnD2's weights."
        )
    return found


def _summary(maps: Maps) -> dict[str, float]:
    """Average an image's maps; deviations are roots of mean variances."""
    row = {"depth": float(maps["mean"].mean())}
    row |= {name: float(maps[source].mean() ** 0.5) for name, source in _DEVIATIONS.items()}
    return row | {name: float(maps[name].mean()) for name in _INFORMATION if name in maps}


def _compared(rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the knowledge in nats and the data variance of each image, for verdicts.

    The knowledge variance would not do: it is small where objects look near, as in many
    out-of-domain images.
    """
    knowledge = np.array([_information(row) for row in rows])
    return knowledge, np.array([row["data"] ** 2 for row in rows])


def _information(row: dict[str, Any]) -> float:
    return next(row[name] for name in _INFORMATION if name in row)


def _add_verdicts(rows: Rows, reference: Reference) -> None:
    knowledge, data = _compared(rows)
    found = zip(reference.familiarity(knowledge), reference.words(knowledge, data), strict=True)
    for row, (score, word) in zip(rows, found, strict=True):
        row |= {"in_domain": float(score), "verdict": str(word)}


def _write_maps(path: Path, found: Maps) -> None:
    """Write maps in single precision."""
    maps = {"depth": found["mean"], "lower": found["lower"], "upper": found["upper"]}
    maps |= {name: np.sqrt(found[source]) for name, source in _DEVIATIONS.items()}
    maps |= {name: found[name] for name in _INFORMATION if name in found}
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        single: dict[str, Any] = {name: m.astype(np.float32) for name, m in maps.items()}
        np.savez_compressed(file, **single)


def _write_table(path: Path, rows: Rows) -> None:
    """Write numbers with six digits: an image's summary has no more."""
    import pyarrow as pa

    rounded = [
        {n: float(f"{v:.6g}") if isinstance(v, float) else v for n, v in row.items()}
        for row in rows
    ]
    with TableWriter(path) as writer:
        writer.write(pa.RecordBatch.from_pylist(rounded))


def _figure(model: str, shown: list[Photograph]) -> Any:
    """Draw the first photographs with their maps."""
    names = ("mean", "total_variance", "epkl")
    maps = DepthMaps(*(np.stack([found[name] for _, _, found in shown]) for name in names))
    photographs = np.stack([picture for _, picture, _ in shown])
    return draw_maps(
        {_label(model): maps}, None, photographs, [_label(name) for name, _, _ in shown]
    )


def _label(name: str) -> str:
    """Cut a name to its end, and escape the sign of Matplotlib's mathematics."""
    end = name if len(name) <= _LONGEST else f"...{name[3 - _LONGEST :]}"
    return end.replace("$", r"\$")
