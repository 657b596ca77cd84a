"""Change a saved model and give it the digests of what it holds now, as a forger would.

Spelled out here and not imported: a digest must be what the page says, whatever the code does.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file


def signed(state: dict[str, Any], weights: bytes) -> str:
    """The text of a configuration, with both digests."""
    state = {key: value for key, value in state.items() if key != "sha256"}
    state["weights_sha256"] = hashlib.sha256(weights).hexdigest()
    text = json.dumps(state, indent=2)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return text[:-2] + ',\n  "sha256": "' + digest + '"\n}'


def sign(folder: Path, **fields: Any) -> None:
    """Sign a folder again, with other fields in its configuration."""
    state = {**json.loads((folder / "config.json").read_text()), **fields}
    text = signed(state, (folder / "weights.safetensors").read_bytes())
    (folder / "config.json").write_text(text)


def make_first_format(folder: Path) -> None:
    """Rewrite a folder as the first format had it, without digests."""
    state = json.loads((folder / "config.json").read_text())
    del state["sha256"], state["weights_sha256"]
    (folder / "config.json").write_text(json.dumps({**state, "format": 1}, indent=2))


def change_tensor(folder: Path, name: str, change: Any) -> None:
    """Change one tensor, without a new digest."""
    tensors = load_file(folder / "weights.safetensors")
    tensors[name] = change(tensors[name])
    save_file(tensors, folder / "weights.safetensors")
