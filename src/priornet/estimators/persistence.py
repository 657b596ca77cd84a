"""Models on disk: a folder with ``weights.safetensors`` and ``config.json``, nothing to execute.

Whatever is read is checked before it is used: an unknown class, another tensor shape, a damaged or
a newer file is refused with the reason. Weights are plain numbers and the rest is JSON, so reading
a model from a stranger is safe.
"""

from __future__ import annotations

import json
import os
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet._version import __version__
from priornet.estimators.base import BaseRegressor
from priornet.estimators.config_file import FORMAT, ModelError, SavedConfig, read_config
from priornet.estimators.fitted import Fitted
from priornet.estimators.folders import found_folder, replace_folder, temporary_folder
from priornet.estimators.verdict import Reference
from priornet.notices import warn_user

__all__ = ["ModelError", "load", "save"]

CONFIG, WEIGHTS = "config.json", "weights.safetensors"


# -- writing --------------------------------------------------------------------------------------


def save(model: BaseRegressor, path: Path) -> None:
    """Write a fitted model; an existing one is replaced in one step, or left alone.

    Killed at any moment, it leaves the old model or the new one for :func:`load` to find.

    Args:
        model: Fitted.
        path: The folder. If it exists it must be a model, or empty.
    """
    from safetensors.torch import save as to_bytes

    path = Path(os.path.realpath(path))  # a link stays, and leads to the new model
    if path.exists() and not _is_replaceable(path):
        raise FileExistsError(f"{path} exists and is not a model folder: choose another path.")
    path.parent.mkdir(parents=True, exist_ok=True)
    config = json.dumps(_config(model), indent=2, allow_nan=False)
    fresh = temporary_folder(path)
    try:
        (fresh / WEIGHTS).write_bytes(to_bytes(_tensors(model.fitted_)))
        (fresh / CONFIG).write_text(config, encoding="utf-8")
        for name in (WEIGHTS, CONFIG):  # on the disk before the name says so
            with (fresh / name).open("rb") as file:
                os.fsync(file.fileno())
        readable = (fresh / CONFIG).stat().st_mode & 0o444  # as the user's files are
        fresh.chmod(0o700 | readable | readable >> 2)
        replace_folder(fresh, path)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _is_replaceable(path: Path) -> bool:
    if not path.is_dir():
        return False
    return {entry.name for entry in path.iterdir()} <= {CONFIG, WEIGHTS}


def _tensors(fitted: Fitted) -> dict[str, Tensor]:
    return {
        "weights": fitted.stack.weights.detach().cpu().contiguous(),
        "calibration_scores": torch.from_numpy(np.ascontiguousarray(fitted.calibration_scores)),
        "reference_knowledge": torch.from_numpy(np.ascontiguousarray(fitted.reference.knowledge)),
    }


def _config(model: BaseRegressor) -> dict[str, Any]:
    fitted = model.fitted_
    names = getattr(model, "feature_names_in_", None)
    return {
        "format": FORMAT,
        "class": type(model).__name__,
        "parameters": _parameters(model),
        "network": fitted.network.to_json(),
        "n_networks": fitted.stack.n_networks,
        "preprocessing": fitted.preprocessor.to_json(),
        "feature_names": None if names is None else [str(name) for name in names],
        "targets": {
            "names": list(fitted.targets.names),
            "is_vector": fitted.targets.is_vector,
            "shift": fitted.targets.scaling.shift.tolist(),
            "scale": fitted.targets.scaling.scale.tolist(),
        },
        "reference_data": fitted.reference.data,
        "training": fitted.training,
        "versions": {
            "priornet": __version__,
            **{name: version(name) for name in ("torch", "numpy", "scikit-learn")},
        },
    }


def _parameters(model: BaseRegressor) -> dict[str, Any]:
    """Constructor arguments as JSON; a generator and a teacher are not kept."""
    parameters = model.get_params(deep=False)
    if not isinstance(parameters["random_state"], (int, np.integer, type(None))):
        parameters["random_state"] = None
    parameters.pop("teacher", None)
    parameters["device"] = str(parameters["device"])
    if parameters.get("transfer") is not None:
        parameters["transfer"] = vars(parameters["transfer"])
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in parameters.items()
    }


# -- reading --------------------------------------------------------------------------------------


def load(path: str | Path) -> BaseRegressor:
    """Rebuild a model from the folder that ``save`` wrote; it predicts the same, bit for bit.

    Where a save was killed on a system that cannot exchange folders, the old model may lie beside
    its place; it is found there, with a warning.

    Args:
        path: The folder.

    Raises:
        ModelError: The folder is damaged, not a model, or from a newer version.
    """
    folder = found_folder(Path(path))
    if not folder.is_dir():
        found = "is a file" if folder.exists() else "does not exist"
        raise ModelError(f"no model at {folder}: it {found}; a model is a folder.")
    config = read_config(folder / CONFIG)
    tensors = _read_weights(folder / WEIGHTS)
    try:
        model = _rebuild(config, tensors)
    except ModelError as error:
        raise ModelError(f"{folder / WEIGHTS}: {error}") from error
    if folder != Path(path):
        warn_user(
            f"saving to {path} was interrupted; the model from before is read from {folder}: save "
            "it again, or rename that folder."
        )
    return model


def _read_weights(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise ModelError(f"no model at {path.parent}: {path.name} is missing.")
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path} is damaged or truncated: {error}.") from error


def _rebuild(config: SavedConfig, tensors: dict[str, Tensor]) -> BaseRegressor:
    """Bring configuration and tensors together."""
    model, network = config.model, config.network
    # Checked before anything of that size is made: a false number must not fill the memory.
    shape = (config.n_networks, network.n_weights)
    weights = _tensor(tensors, "weights", (torch.float32, torch.float64), shape)
    stack = network.build([0], weights)  # draws the first weights of one network, not of each
    stack.weights = torch.nn.Parameter(weights.clone())
    fitted = Fitted(config.preprocessor, config.targets, network, stack, config.training)
    shape = (None, network.n_targets)
    fitted.calibration_scores = _sorted(tensors, "calibration_scores", shape)
    knowledge = _sorted(tensors, "reference_knowledge", (None,))
    if len(knowledge) == 0:
        raise ModelError('tensor "reference_knowledge" is empty: the reference rows are missing.')
    fitted.reference = Reference(knowledge, config.reference_data)
    model.n_features_in_ = config.preprocessor.n_features_in_
    if config.feature_names is not None:
        model.feature_names_in_ = np.array(config.feature_names, dtype=object)
    model.fitted_ = fitted
    return model


def _sorted(
    tensors: dict[str, Tensor], name: str, shape: tuple[int | None, ...]
) -> NDArray[np.float64]:
    """Numbers that are sorted, and not negative."""
    values = _tensor(tensors, name, (torch.float64,), shape).numpy()
    if (values < 0).any():
        raise ModelError(f'tensor "{name}" has negative numbers.')
    if (np.diff(values, axis=0) < 0).any():
        raise ModelError(f'tensor "{name}" is not sorted.')
    return values


def _tensor(
    tensors: dict[str, Tensor],
    name: str,
    dtypes: tuple[torch.dtype, ...],
    shape: tuple[int | None, ...],
) -> Tensor:
    if name not in tensors:
        raise ModelError(f'there is no tensor "{name}".')
    found = tensors[name]
    fits = len(found.shape) == len(shape) and all(
        n is None or n == m for n, m in zip(shape, found.shape, strict=True)
    )
    if not fits or found.dtype not in dtypes:
        expected = tuple("any" if n is None else n for n in shape)
        raise ModelError(
            f'tensor "{name}" should be {dtypes[0]} of shape {expected}, as {CONFIG} has it; it is '
            f"{found.dtype} of shape {tuple(found.shape)}."
        )
    if found.numel() and not all(torch.isfinite(end) for end in found.aminmax()):  # nan spreads
        raise ModelError(f'tensor "{name}" has numbers that are not finite.')
    return found
