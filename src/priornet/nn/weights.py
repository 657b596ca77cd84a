"""Weights in files: published ones, checked before use, and priornet's own format.

A file of priornet holds tensors in the safetensors format and all other data as JSON in its header:
reading it executes nothing. It is written whole or not at all, so that a process may be killed at
any moment. The header has a checksum of everything, so that damage is noticed and named.
"""

from __future__ import annotations

import json
import os
import pickle
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from priornet.writing import whole_path

_COUNTER = "num_batches_tracked"  # of a batch normalisation: older files do not have it


def read_weights(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read tensors by name from a safetensors file, or from one that ``torch.save`` wrote.

    Nothing but tensors is ever unpickled. A checkpoint may hold the tensors under the key
    ``state_dict``.

    Args:
        path: The file; safetensors if its name ends in ``.safetensors``.
    """
    path = Path(path)
    if not path.is_file():
        what = "a folder, not a file of weights" if path.is_dir() else "there is no such file"
        raise FileNotFoundError(f"{path}: {what}.")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            found: Any = load_file(path)
        else:
            found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:  # torch's own message advises to trust the file
        raise ValueError(
            f"{path} is not a file of weights: it holds something else than tensors. Of a whole "
            "network, save its `state_dict()`."
        ) from error
    except Exception as error:  # damaged files fail in many ways
        reason = str(error).split("\n")[0]
        kind = type(error).__name__
        raise ValueError(f"{path} is not a file of weights ({kind}: {reason}).") from error
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    if not isinstance(found, Mapping) or not all(isinstance(v, Tensor) for v in found.values()):
        raise ValueError(f"{path} must hold tensors by name, as a state dict does.")
    return dict(found)


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
        module: Takes the weights.
        path: See :func:`read_weights`.
        ignore: Prefixes of names in the file that the module lacks (a classifier).
        rename: Converts a name in the file to one in the module.
    """
    given = {
        rename(name): value
        for name, value in read_weights(path).items()
        if not name.startswith(ignore)
    }
    if problems := _differences(given, module.state_dict()):
        kind = type(module).__name__
        raise ValueError(f"{path} does not hold the weights of {kind}: {'; '.join(problems)}.")
    module.load_state_dict(given, strict=False)


def _differences(given: dict[str, Tensor], wanted: dict[str, Tensor]) -> list[str]:
    """List the problems of given tensors, one phrase each."""
    shared = [n for n in given if n in wanted]
    lists = {
        "missing": [n for n in wanted if n not in given and not n.endswith(_COUNTER)],
        "unknown": [n for n in given if n not in wanted],
        "of another shape": [
            f"{n} is {tuple(given[n].shape)} instead of {tuple(wanted[n].shape)}"
            for n in shared
            if given[n].shape != wanted[n].shape
        ],
        "with values that are not finite": [n for n in shared if not given[n].isfinite().all()],
    }
    return [
        f"{len(names)} {what} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"
        for what, names in lists.items()
        if names
    ]


def initialise(module: nn.Module, slope: float = 0.0) -> None:
    """Initialise convolutions so that leaky ReLUs keep the variance, and biases to zero."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, a=slope)
            if part.bias is not None:
                nn.init.zeros_(part.bias)


@torch.no_grad()
def fold_norm(parent: nn.Module, conv_name: str, norm_name: str) -> None:
    """Fold a batch norm, with its statistics, into the convolution before it.

    An identity replaces the norm; a norm that is folded already stays as it is.
    """
    conv, norm = getattr(parent, conv_name), getattr(parent, norm_name)
    if not isinstance(norm, nn.BatchNorm2d):
        return
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
    conv.weight.mul_(scale.reshape(-1, 1, 1, 1))
    shift = norm.bias - norm.running_mean * scale
    conv.bias = nn.Parameter(shift, requires_grad=norm.bias.requires_grad)
    setattr(parent, norm_name, nn.Identity())


# -- priornet's own files --------------------------------------------------------------------------

_STATE, _CHECKSUM = "state", "crc32"


class TensorFileError(ValueError):
    """A file that is damaged, or that :func:`write_tensors` did not write."""


class TensorFile(NamedTuple):
    """Tensors by name, and plain data beside them."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]


def write_tensors(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write one file, whole or not at all.

    Raises:
        OSError: The file cannot be written, for example on a full disk; the message names it.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    own = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(state, allow_nan=False)
    header = {_STATE: text, _CHECKSUM: str(_checksum(own, text))}
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_path(path) as fresh:
        try:
            save_file(own, fresh, header)
        except SafetensorError as error:  # its name for an error of the system
            raise OSError(f"{path}: it cannot be written ({error})") from error


def read_tensors(path: Path) -> TensorFile:
    """Read a file of :func:`write_tensors`.

    Raises:
        TensorFileError: The file is damaged, or of another kind; the message names it.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            state: Any = json.loads(header[_STATE])
            names = file.keys()  # the file itself is no iterable
            tensors = {name: file.get_tensor(name) for name in names}
        if _CHECKSUM in header:
            is_whole = header[_CHECKSUM] == str(_checksum(tensors, header[_STATE]))
        else:  # older files have a checksum of their numbers only
            is_whole = state.pop(_CHECKSUM) == _checksum(tensors)
        if not is_whole:
            raise ValueError("it has changed since it was written")
    except FileNotFoundError:
        raise
    except KeyError as error:
        raise TensorFileError(f"{path}: not a file that priornet wrote (no {error}).") from error
    except (SafetensorError, OSError, ValueError, AttributeError, TypeError) as error:
        raise TensorFileError(f"{path}: damaged ({error}).") from error
    return TensorFile(tensors, state)


def _checksum(tensors: Mapping[str, Tensor], text: str | None = None) -> int:
    """Compute the checksum of tensors; with a text also of the text, the names and the shapes."""
    total = 0 if text is None else zlib.crc32(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        if text is not None:
            described = json.dumps([name, str(tensor.dtype), list(tensor.shape)])
            total = zlib.crc32(described.encode(), total)
        total = zlib.crc32(tensor.reshape(-1).contiguous().view(torch.uint8).numpy().data, total)
    return total
