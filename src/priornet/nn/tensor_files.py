"""Tensors by name with plain data beside them, in one file.

The tensors lie in the safetensors format and everything else as JSON in its header: reading it
executes nothing. A file is written whole or not at all, so that a process may be killed at any
moment; all of it is summed up in the header, so that damage is noticed and named.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from priornet.writing import whole_path

__all__ = ["TensorFile", "TensorFileError", "read_tensors", "write_tensors"]

_STATE, _CHECKSUM = "state", "crc32"


class TensorFileError(ValueError):
    """A file that is damaged, or of another kind than :func:`write_tensors` writes."""


class TensorFile(NamedTuple):
    """Tensors by name, and the plain data that goes with them."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]


def write_tensors(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write one file, whole or not at all.

    Raises:
        OSError: It cannot be written, as on a full disk; the message names it.
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
        except SafetensorError as error:  # its name for what the system says
            raise OSError(f"{path}: it cannot be written ({error})") from error


def read_tensors(path: Path) -> TensorFile:
    """Read what :func:`write_tensors` wrote.

    Raises:
        TensorFileError: The file is damaged, or another kind of file; the message names it.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            state: Any = json.loads(header[_STATE])
            names = file.keys()  # it is no mapping: it cannot be gone through itself
            tensors = {name: file.get_tensor(name) for name in names}
        if _CHECKSUM in header:
            is_whole = header[_CHECKSUM] == str(_checksum(tensors, header[_STATE]))
        else:  # older files summed up their numbers alone
            is_whole = state.pop(_CHECKSUM) == _checksum(tensors)
        if not is_whole:
            raise ValueError("it has changed since it was written")
    except FileNotFoundError:
        raise
    except KeyError as error:
        raise TensorFileError(f"{path}: not one of our files (no {error} in it).") from error
    except (SafetensorError, OSError, ValueError, AttributeError, TypeError) as error:
        raise TensorFileError(f"{path}: damaged ({error}).") from error
    return TensorFile(tensors, state)


def _checksum(tensors: Mapping[str, Tensor], text: str | None = None) -> int:
    """Sum up the bytes of tensors; with a text also that, and the tensors' names and shapes."""
    total = 0 if text is None else zlib.crc32(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        if text is not None:
            described = json.dumps([name, str(tensor.dtype), list(tensor.shape)])
            total = zlib.crc32(described.encode(), total)
        flat = tensor.reshape(-1).contiguous()
        total = zlib.crc32(flat.view(torch.uint8).numpy().data, total) if flat.numel() else total
    return total
