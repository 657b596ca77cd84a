"""``priornet reproduce depth-maps``: maps of finished depth models, from files alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from priornet.cli.errors import InputError, blamed_on
from priornet.cli.options import Overwrite
from priornet.cli.output import print_lines
from priornet.cli.outputs import check_outputs, figure_paths, make_folder
from priornet_paper.depth.command import Preset
from priornet_paper.depth.files import NoMaps, read_maps

__all__ = ["depth_maps"]

_SETS = ("nyu", "kitti")
_N_OWN, _N_FOREIGN = 4, 2  # images of the own set, and of each foreign one, in one figure
_TITLES = {"nyu": "NYU", "kitti": "KITTI", "lsun_bedroom": "bedroom"}


def depth_maps(
    data: Annotated[
        Path,
        typer.Option(
            help="The folder with the sets, as for `reproduce depth`: measured depths and "
            "photographs are taken from it."
        ),
    ],
    foreign: Annotated[
        list[str] | None,
        typer.Option(help="Another set as NAME=PATH, as for `reproduce depth`; may repeat."),
    ] = None,
    results: Annotated[
        Path, typer.Option(help="Folder with nyu.json, kitti.json and .parts.")
    ] = Path("results/depth"),
    preset: Annotated[
        Preset, typer.Option(help="Of the results; others than fast have it in their name.")
    ] = Preset.FAST,
    images: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the figures without photographs; docs/images by default, for other "
            "presets RESULTS/photographs/PRESET."
        ),
    ] = None,
    photographs: Annotated[
        Path | None,
        typer.Option(
            help="Folder for those with them; RESULTS/photographs by default, for other presets "
            "RESULTS/photographs/PRESET."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw what the ensemble and EnD2 say of the first images of each set.

    Reads the maps that `reproduce depth` left in RESULTS/.parts; no weights
    are needed, nothing is trained. Prediction, error, total variance and
    EPKL side by side, for images of the models' own set and of others, and
    the measures against predicted depth. A set without maps is left out.
    Photographs have owners: figures that show them go to a folder of their
    own.
    """
    from priornet_paper.depth.experiment import file_name
    from priornet_paper.depth.sources import named_paths

    files = {name: results / file_name(name, preset) for name in _SETS}
    found = {name: path for name, path in files.items() if path.exists()}
    if not found:
        names = " or ".join(path.name for path in files.values())
        raise InputError(f"{results}: no {names} there; run `reproduce depth`.")
    usual = preset is Preset.FAST
    own = results / "photographs" / ("" if usual else preset)  # git ignores it
    public, private = images or (Path("docs/images") if usual else own), photographs or own
    for folder in (public, private):
        make_folder(folder)
    try:
        others = named_paths(foreign or [])
    except ValueError as error:
        raise InputError(str(error)) from error
    without: dict[str, str] = {}
    for name, path in found.items():
        try:
            with blamed_on(path):
                paths = _draw(path, data, others, public, private, overwrite=overwrite)
        except NoMaps as error:
            without[name] = str(error)
            continue
        print_lines([f"Figure: {figure}" for figure in paths])
    if len(without) == len(found):
        raise InputError(" ".join(without.values()))
    for name, reason in without.items():
        typer.echo(f"{name} is left out: {reason}", err=True)


def _draw(
    path: Path,
    data: Path,
    others: Mapping[str, Path],
    images: Path,
    private: Path,
    *,
    overwrite: bool,
) -> list[Path]:
    """All figures of one set's models."""
    import numpy as np

    from priornet.depth import DepthMaps, draw_maps
    from priornet.report.figure_files import write_figure
    from priornet_paper.depth.charts import draw_inputs, draw_scale
    from priornet_paper.depth.protocol import PROTOCOLS

    sets = read_maps(path, data, others)
    (name, own), *foreign = sets.items()
    height, width = next(iter(own.models.values())).prediction.shape[-2:]
    region = PROTOCOLS[name].region.slices(height, width)
    inside = {
        _TITLES.get(n, n): {m: maps.part(slice(None), *region) for m, maps in found.models.items()}
        for n, found in sets.items()
    }
    first = slice(_N_OWN)
    maps = {model: found.part(first) for model, found in own.models.items()}
    target = None if own.target is None else own.target[first]
    public: dict[str, Any] = {
        f"depth-maps-{name}": draw_maps(maps, target),
        f"depth-scale-{name}": draw_scale(inside),
    }
    inputs = {_TITLES.get(n, n): found.photographs for n, found in sets.items()}
    shown = {
        f"maps-{name}": draw_maps(maps, target, own.photographs[first]),
        f"inputs-{name}": draw_inputs(inputs),
    }
    if foreign:
        few = slice(_N_FOREIGN)
        models = {
            model: DepthMaps.joined([found.models[model].part(few) for _, found in foreign])
            for model in own.models
        }
        pictures = [found.photographs[few] for _, found in foreign]
        labels = [
            f"{_TITLES.get(n, n)} {i + 1}"
            for (n, _), some in zip(foreign, pictures, strict=True)
            for i in range(len(some))
        ]
        public[f"depth-foreign-{name}"] = draw_maps(models, names=labels)
        whole = np.concatenate(pictures)
        shown[f"foreign-{name}"] = draw_maps(models, None, whole, labels)
    written = [*figure_paths(images, *public), *figure_paths(private, *shown)]
    check_outputs(written, overwrite=overwrite)
    paths = [write_figure(figure, images, n)["png"] for n, figure in public.items()]
    return paths + [write_figure(figure, private, n)["png"] for n, figure in shown.items()]
