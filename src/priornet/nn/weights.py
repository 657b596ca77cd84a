"""Weights that others have trained, read from a file and checked before they are used."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["load_weights", "read_weights"]

_COUNTER = "num_batches_tracked"  # of a batch normalisation: older files do not have it


def read_weights(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Tensors by name from a safetensors file, or from one that ``torch.save`` wrote.

    Nothing but tensors is ever unpickled. A state dict inside a checkpoint is found under the key
    ``state_dict``.

    Args:
        path: The file; a name that ends in ``.safetensors`` says which of the two it is.
    """
    path = Path(path)
    if not path.is_file():
        what = "a folder, not a file of weights" if path.is_dir() else "there is no such file"
        raise FileNotFoundError(f"{path}: {what}.")
    try:
        found = _read(path)
    except pickle.UnpicklingError as error:  # its own words are advice to trust the file
        raise ValueError(
            f"{path} is not a file of weights: it holds something else than tensors. Of a whole "
            "network, save its `state_dict()`."
        ) from error
    except Exception as error:  # readers of foreign files fail in many ways
        reason = str(error).split("\n")[0]
        kind = type(error).__name__
        raise ValueError(f"{path} is not a file of weights ({kind}: {reason}).") from error
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    if not isinstance(found, Mapping) or not all(isinstance(v, Tensor) for v in found.values()):
        raise ValueError(f"{path} must hold tensors by name, as a state dict does.")
    return dict(found)


def _read(path: Path) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    return torch.load(path, map_location="cpu", weights_only=True)


def load_weights(
    module: nn.Module,
    path: str | os.PathLike[str],
    *,
    ignore: tuple[str, ...] = (),
    rename: Callable[[str], str] = str,
) -> None:
    """Fill a module with the weights of a file, all of them or none.

    Names and shapes must agree, up to counters of batches, which older files lack. Half precision
    is widened.

    Args:
        module: What to fill.
        path: See :func:`read_weights`.
        ignore: Beginnings of names in the file that the module does without (a classifier).
        rename: From a name in the file to one in the module.
    """
    given = {
        rename(name): value
        for name, value in read_weights(path).items()
        if not name.startswith(ignore)
    }
    wanted = module.state_dict()
    problems = _differences(given, wanted)
    if problems:
        kind = type(module).__name__
        raise ValueError(f"{path} does not hold the weights of {kind}: {'; '.join(problems)}.")
    with torch.no_grad():
        for name, value in given.items():
            wanted[name].copy_(value)


def _differences(given: dict[str, Tensor], wanted: dict[str, Tensor]) -> list[str]:
    """What is wrong with given tensors, one phrase each."""
    missing = [n for n in wanted if n not in given and not n.endswith(_COUNTER)]
    unknown = [n for n in given if n not in wanted]
    shared = [n for n in given if n in wanted]
    shapes = [
        f"{n} is {tuple(given[n].shape)} instead of {tuple(wanted[n].shape)}"
        for n in shared
        if given[n].shape != wanted[n].shape
    ]
    broken = [n for n in shared if not bool(torch.isfinite(given[n]).all())]
    lists = {"missing": missing, "unknown": unknown, "of another shape": shapes}
    lists["with values that are not finite"] = broken
    return [_phrase(what, names) for what, names in lists.items() if names]


def _phrase(what: str, names: list[str], shown: int = 3) -> str:
    more = ", ..." if len(names) > shown else ""
    return f"{len(names)} {what} ({', '.join(names[:shown])}{more})"
