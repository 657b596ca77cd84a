"""``priornet predict`` for depth networks: photographs in, maps of depth and uncertainty out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from priornet.cli.errors import InputError
from priornet.cli.inputs import load_network
from priornet.cli.kinds import IMAGE_TABLE, MAPS
from priornet.cli.options import Interval
from priornet.cli.output import progress
from priornet.cli.outputs import check_outputs, figure_paths, make_folder

if TYPE_CHECKING:
    from priornet.depth import DepthImages

__all__ = ["PhotoRequest", "photo_sentences", "score_photographs"]

_ENOUGH = 100  # familiar images, for a share of one in a hundred


@dataclass(frozen=True)
class PhotoRequest:
    """The arguments of the command."""

    model: Path
    data: str
    out: Path
    familiar: Path | None = None
    coverage: float = 0.9
    overwrite: bool = False


def score_photographs(
    request: PhotoRequest, interval: Interval = Interval.PREDICTIVE, *, quiet: bool = True
) -> dict[str, Any]:
    """Check the arguments and predict the photographs; return the content of ``--json``."""
    if not 0 < request.coverage < 1:
        raise InputError(f"--coverage must lie between 0 and 1; got {request.coverage:g}.")
    if request.data == "-":
        raise InputError("a depth network predicts photographs: name a file or a folder.")
    network = load_network(request.model, interval)
    from priornet.depth import open_depth, predict_photographs

    known = None if request.familiar is None else open_depth(request.familiar)
    images = open_depth(request.data)
    _check_files(request, images, quiet=quiet)
    make_folder(request.out)
    n_images = len(images) + len(known or ())
    with progress(n_images, "images", shown=not quiet) as advance:
        summary = predict_photographs(
            network,
            images,
            request.out,
            familiar=known,
            coverage=request.coverage,
            progress=lambda n: advance(n, n_images),
        )
    paths = {"model": str(request.model), "data": request.data, "out": str(request.out)}
    return paths | summary


def _check_files(request: PhotoRequest, images: DepthImages, *, quiet: bool) -> None:
    """Refuse files that may not be written; the next call would take them for photographs."""
    from priornet.depth import map_files

    out = request.out.resolve()
    for path in filter(None, (request.data, request.familiar)):
        folder = Path(path).resolve()
        if folder.is_dir() and out.is_relative_to(folder):
            raise InputError(f"{request.out}: it lies among the images of {path}; name another.")
    written = [
        (request.out / "images.csv", IMAGE_TABLE),
        *figure_paths(request.out, "first"),
        *((path, MAPS) for path in map_files(images, request.out).values()),
    ]
    inputs = (request.data, request.model, request.familiar)
    check_outputs(written, inputs, overwrite=request.overwrite, quiet=quiet)


def photo_sentences(summary: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that the command prints."""
    n_images = summary["n_images"]
    who = "1 image" if n_images == 1 else f"{n_images} images"
    counts = ", ".join(f"{count} {word}" for word, count in summary["verdicts"].items())
    yield f"{who} in {summary['seconds']:.1f} s{': ' if counts else ''}{counts}."
    n_known = summary["n_familiar"]
    if not summary["has_knowledge"]:
        yield "There are no verdicts: one Gaussian has no knowledge uncertainty."
    elif n_known is None:
        yield "For verdicts, give images like those of training as --familiar."
    elif n_known < _ENOUGH:
        known = "1 image" if n_known == 1 else f"{n_known} images"
        yield (
            f"With {known} to compare with, one in {n_known + 1} of the same kind is called "
            f"unfamiliar; with {_ENOUGH} or more, one in a hundred."
        )
    yield f"Written: {summary['table']}, maps beside it, and {summary['figure']}"
