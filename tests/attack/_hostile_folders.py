"""Spoil the folder of a model: its files, its configuration or its tensors."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from _models import make_first_format, signed

__all__ = ["spoil"]

CONFIG, WEIGHTS = "config.json", "weights.safetensors"
DEEPEST = 50_000


def spoil(folder: Path, other: Path, rng: random.Random) -> bool:
    """Spoil a folder at random.

    Args:
        folder: A model, as ``save`` wrote it.
        other: Another model, which stays as it is.
        rng: Draws what is done.

    Returns:
        Whether the digests were forged, or taken away as if the first format had written it; then
        the folder may be a model.
    """
    ways: tuple[Callable[[], bool], ...] = (
        lambda: spoil_place(folder, rng),
        lambda: spoil_file(folder, other, rng),
        lambda: spoil_file(folder, other, rng),
        lambda: spoil_config(folder, rng),
        lambda: spoil_tensors(folder, rng),
    )
    return rng.choice(ways)()


# -- the place of the folder ----------------------------------------------------------------------


def spoil_place(folder: Path, rng: random.Random) -> bool:
    """Put something else in the place of the folder, nothing forged."""
    shutil.rmtree(folder)
    what = rng.choice(("nothing", "file", "pipe", "loop", "dangling", "device", "empty"))
    if what == "file":
        folder.write_text("a model")
    elif what == "pipe":
        os.mkfifo(folder)
    elif what == "empty":
        folder.mkdir()
    elif what != "nothing":
        folder.symlink_to({"loop": folder.name, "dangling": "gone", "device": os.devnull}[what])
    return False


# -- files ----------------------------------------------------------------------------------------


def spoil_file(folder: Path, other: Path, rng: random.Random) -> bool:
    """Replace one of the two files, or its bytes; sometimes its digest is forged."""
    path = folder / rng.choice((CONFIG, WEIGHTS))
    if rng.random() < 0.4:
        change_bytes(path, rng)
        return path.name == WEIGHTS and forge_sometimes(folder, rng)
    instead = rng.choice(
        ("nothing", "folder", "loop", "dangling", "zeros", "folder link", "pipe", "other", "large")
    )
    if instead == "large":
        os.truncate(path, rng.choice((1 << 29, 1 << 34, 1 << 42)))
        return False
    path.unlink()
    if instead == "folder":
        path.mkdir()
    elif instead == "pipe":
        os.mkfifo(path)
    elif instead == "other":  # whose weights or configuration are whole
        shutil.copyfile(other / path.name, path)
        return forge_sometimes(folder, rng)
    elif instead != "nothing":
        target = {"loop": path.name, "dangling": "gone", "zeros": "/dev/zero", "folder link": "."}
        path.symlink_to(target[instead])
    return False


def change_bytes(path: Path, rng: random.Random) -> None:
    """Cut, lengthen, overwrite or encode the bytes of a file."""
    content = path.read_bytes()
    start, count = rng.randrange(len(content)), rng.randrange(1, 64)
    noise = rng.randbytes(count)
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: content[:start],
        lambda: content[start + 1 :],
        lambda: content + noise,
        lambda: noise + content,
        lambda: content[:start] + noise + content[start + count :],
        lambda: content[:start] + content[start + 1 :],
        lambda: content + content,
        lambda: noise,
        lambda: b"",
        lambda: bytes(len(content)),
        lambda: content.decode("latin-1").encode("utf-16"),
        lambda: b"\xef\xbb\xbf" + content,
        lambda: (
            rng.choice((0, 1, 1 << 31, 1 << 63, (1 << 64) - 1)).to_bytes(8, "little") + content[8:]
        ),
    )
    changed = rng.choice(ways)()
    path.write_bytes(changed if changed != content else content[:-1])


def forge_sometimes(folder: Path, rng: random.Random) -> bool:
    """Write digests that fit, or none as in the first format; return whether it was done."""
    way = rng.choice(("not", "sign", "first format"))
    if way == "sign":
        state = json.loads((folder / CONFIG).read_text())
        (folder / CONFIG).write_text(signed(state, (folder / WEIGHTS).read_bytes()))
    elif way == "first format":
        make_first_format(folder)
    return way != "not"


# -- the configuration ----------------------------------------------------------------------------


def spoil_config(folder: Path, rng: random.Random) -> bool:
    """Change a part of the configuration, often with a digest that fits."""
    state = json.loads((folder / CONFIG).read_text())
    before = json.dumps(state)
    while json.dumps(state) == before:  # junk may be what stands there
        change_part(state, rng)
    return write_config(folder, state, rng)


def change_part(state: dict[str, Any], rng: random.Random) -> None:
    """Replace, remove or add one field or item, as deep as it comes."""
    part: Any = state
    while True:
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        key = rng.choice(keys)
        if isinstance(part[key], (dict, list)) and part[key] and rng.random() < 0.8:
            part = part[key]
            continue
        break
    what = rng.random()
    if what < 0.1:
        del part[key]
    elif what < 0.2 and isinstance(part, dict):
        part[rng.choice(("comment", "a\nb", "", "__class__", "x" * 1000))] = junk(rng)
    elif what < 0.4 and isinstance(part[key], (int, float)):
        part[key] *= rng.choice((-1, 2, 1e10, 1e300, 10**30, 0.5))
    else:
        part[key] = junk(rng)


def junk(rng: random.Random) -> Any:
    """Draw a value that does not belong where it stands."""
    huge = rng.choice((10**20, 10**400, 1 << 40, 1e308, -1e308, 5e-324))
    nested: Any = []
    for _ in range(rng.choice((10, 200, 900))):
        nested = [nested]
    return rng.choice(
        (
            *(None, True, False, 0, 1, -1, 3, 0.5, float("nan"), float("inf")),
            *(huge, -huge, "", "x", "\ud800", "a\nb", "x" * 100_000, "1", "float32"),
            *([], {}, [None], [0] * 10_000, {"x": 1}, [[1]], nested),
        )
    )


def write_config(folder: Path, state: dict[str, Any], rng: random.Random) -> bool:
    """Write a configuration; sometimes as no JSON library would."""
    way = rng.choice(("plain", "forged", "forged", "first format", "twice", "deep"))
    weights = (folder / WEIGHTS).read_bytes()
    if way == "forged":
        text = signed(state, weights)
    elif way == "first format":
        rest = {k: v for k, v in state.items() if k not in ("sha256", "weights_sha256")}
        text = json.dumps({**rest, "format": 1})
    elif way == "twice":
        text = json.dumps(state)
        text = text[:-1] + ', "n_networks": 1}'
        text = text if text.count('"n_networks"') > 1 else text[:-1] + ', "n_networks": 1}'
    elif way == "deep":
        state["training"] = None
        text = json.dumps(state).replace("null", "[" * DEEPEST + "]" * DEEPEST, 1)
    else:
        text = json.dumps(state)
    (folder / CONFIG).write_text(text)
    return way in ("forged", "first format")


# -- tensors --------------------------------------------------------------------------------------


def spoil_tensors(folder: Path, rng: random.Random) -> bool:
    """Change a tensor, often with a digest that fits."""
    before = (folder / WEIGHTS).read_bytes()
    while (folder / WEIGHTS).read_bytes() == before:
        tensors = load_file(folder / WEIGHTS)
        change_tensors(tensors, rng)
        save_file(tensors, folder / WEIGHTS)
    return forge_sometimes(folder, rng)


def change_tensors(tensors: dict[str, torch.Tensor], rng: random.Random) -> None:
    """Remove a tensor, rename it, or give it other numbers, another shape or another type."""
    name = rng.choice(list(tensors))
    found = tensors[name]
    flat = found.reshape(-1).clone() if found.numel() else found.new_zeros(1)
    flat[rng.randrange(len(flat))] = rng.choice(
        (float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e30)
    )
    one_off = flat.reshape(found.shape) if found.numel() else flat
    ways: tuple[Callable[[], torch.Tensor], ...] = (
        lambda: one_off,
        lambda: one_off,
        lambda: found[:0].clone(),
        lambda: found.repeat(2, *[1] * (found.ndim - 1)),
        lambda: found.to(rng.choice((torch.float16, torch.float64, torch.int64, torch.bool))),
        lambda: found.reshape(-1),
        lambda: found.unsqueeze(0),
        lambda: torch.full_like(found, rng.choice((1e20, -1e20, 3e38, -1.0))),
        lambda: found.flip(0).contiguous(),
    )
    what = rng.random()
    if what < 0.1:
        del tensors[name]
    elif what < 0.2:
        tensors[f"{name}\n"] = tensors.pop(name)
    else:
        tensors[name] = rng.choice(ways)()
