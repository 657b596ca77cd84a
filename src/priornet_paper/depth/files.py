"""What finished depth experiments leave for figures: maps of models, and the images they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from priornet.cli import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from priornet.depth import DepthMaps
    from priornet_paper.depth.sets import Sets

__all__ = ["MapsOfSet", "NoMaps", "read_maps"]

_MODELS = ("ENSM", "EnD2")
_NEEDED = ("dataset", "config", "foreign", "digests")


class NoMaps(InputError):
    """The maps of a finished experiment are not there, though its results are."""


@dataclass(frozen=True)
class MapsOfSet:
    """Maps of the models for the first images of one set, and these images."""

    models: dict[str, DepthMaps]
    photographs: NDArray[np.uint8]
    """``(N, H, W, 3)``."""
    target: NDArray[Any] | None = None
    """Measured depth at the maps' resolution, of the models' own set only."""


def read_maps(
    path: Path, data: Path, foreign: Mapping[str, Path] | None = None
) -> dict[str, MapsOfSet]:
    """Maps of all sets that the models were shown, their own first.

    Args:
        path: A results file of the depth experiment, with ``.parts`` beside it.
        data: The folder with the sets.
        foreign: Other sets by name, where they are not in it.

    Raises:
        NoMaps: Maps are missing.
        InputError: They are damaged, or the images are not those that were scored.
    """
    from priornet.evaluation import read_results
    from priornet_paper.depth.protocol import nearest

    content = read_results(path)
    missing = [name for name in _NEEDED if name not in content]
    if missing:
        raise InputError(f"{path}: not a results file: it has no `{missing[0]}`; run it again.")
    own, models = content["dataset"], _models(path, content)
    n_images = len(next(iter(models[own].values())))
    sets = _sets(path, content, data, dict(foreign or {}), n_images)
    pictures, depth = sets.test
    size = next(iter(models[own].values())).prediction.shape[-2:]
    found = {own: MapsOfSet(models[own], _seen(pictures), nearest(depth, size).numpy())}
    for name in models:
        if name != own:
            found[name] = MapsOfSet(models[name], _seen(sets.foreign(name)))
    return found


def _models(path: Path, content: dict[str, Any]) -> dict[str, dict[str, DepthMaps]]:
    """Maps by set and model."""
    from priornet.depth import DepthMaps
    from priornet.nn import read_tensors

    found: dict[str, dict[str, DepthMaps]] = {}
    for model in _MODELS:
        file = f"{model}.{content['config']['seeds'][0]}.maps.safetensors"
        part = path.parent / ".parts" / path.stem / file
        if not part.exists():
            raise NoMaps(
                f"{part}: it is not there; `reproduce depth --data DATA --dataset "
                f"{content['dataset']} --preset {content.get('preset', 'fast')} --methods "
                "ensemble,endd --out OTHER` trains them anew in a folder of its own, for "
                "`depth-maps --results OTHER`."
            )
        tensors = read_tensors(part).tensors
        for name in dict.fromkeys(key.partition("/")[0] for key in sorted(tensors)):
            maps = (tensors[f"{name}/{k}"] for k in ("prediction", "total_variance", "epkl"))
            found.setdefault(name, {})[model] = DepthMaps(*(m.float().numpy() for m in maps))
    return found


def _sets(
    path: Path, content: dict[str, Any], data: Path, foreign: dict[str, Path], n_images: int
) -> Sets:
    """The first images, once all are known to be those of the results."""
    from priornet_paper.depth import Config
    from priornet_paper.depth.sets import Sets
    from priornet_paper.depth.sources import find_sources

    kept = {n: content["config"][n] for n in ("dataset", "height", "width", "n_test", "holdout")}
    config, sources = Config(**kept), find_sources(data, content["dataset"], foreign)
    whole, digests = Sets(config, sources), content["digests"]
    same = {"test": whole.test_print == digests["test"]}
    for name in content["foreign"]:
        if name not in sources.foreign:
            raise InputError(
                f"{data}: no images of {name} there; say where they are (--foreign {name}=PATH)."
            )
        same[name] = whole.foreign_print(name) == digests[name]
    others = [name for name, is_same in same.items() if not is_same]
    if others:
        raise InputError(f"{data}: other {others[0]} images than those that {path} was made with.")
    return Sets(replace(config, n_test=n_images), sources)


def _seen(pictures: Any) -> NDArray[np.uint8]:
    """Images as Matplotlib wants them."""
    return pictures.permute(0, 2, 3, 1).contiguous().numpy()
