"""Models on disk: a folder with ``weights.safetensors`` and ``config.json``, nothing to execute.

Everything is checked before it is used: an unknown class, another tensor shape, a damaged or a
newer file is refused with the reason. Weights are plain numbers and the rest is JSON, so reading a
model from an unknown source is safe.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from priornet._version import __version__
from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.config import (
    LARGEST,
    ModelError,
    SavedConfig,
    config_text,
    read_config,
)
from priornet.estimators.held_out import Reference
from priornet.estimators.prediction import Fitted, in_units, label_counts
from priornet.messages import warn_user
from priornet.nn.shared import SharedNetwork
from priornet.tables.learning import TargetColumns
from priornet.tables.trees import Trees
from priornet.uncertainty import uncertainty
from priornet.writing import (
    found_folder,
    open_together,
    state_of,
    whole_folder,
)

CONFIG, WEIGHTS = "config.json", "weights.safetensors"

_PAUSES = (0.0, *(0.001 * 2**i for i in range(7)), *[0.1] * 12)  # seconds before another try
_PROBED = (0.0, 1.0, -1.0, 1e6, -1e6)  # standard deviations; the last catch what nearly overflows
_TREES = "trees."
_LARGEST_REST = 1 << 30  # bytes of a file of weights that are not weights
_WAY_OUT = "restore the folder from a copy, or save the model again"


# -- writing --------------------------------------------------------------------------------------


def save(model: BaseRegressor, path: Path) -> None:
    """Write a fitted model; an existing one is replaced in one step, or left alone.

    After a kill at any moment, :func:`load` finds the old model or the new one.
    """
    from safetensors.torch import save as to_bytes

    path = Path(os.path.realpath(path))  # a link stays, and leads to the new model
    if path.exists() and not _is_replaceable(path):
        raise FileExistsError(f"{path} exists and is not a model folder: choose another path.")
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = to_bytes(_tensors(model.fitted_))
    config = config_text(_config(model), weights)
    with whole_folder(path) as fresh:
        (fresh / WEIGHTS).write_bytes(weights)
        (fresh / CONFIG).write_bytes(config.encode())


def is_model(path: Path) -> bool:
    """Tell whether a folder holds a model, damaged or not, and not files of other programs."""
    try:
        config: Any = json.loads((path / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    is_ours = isinstance(config, dict) and {"format", "class", "network"} <= set(config)
    return is_ours and (path / WEIGHTS).is_file()


def _is_replaceable(path: Path) -> bool:
    if not path.is_dir():
        return False
    names = {entry.name for entry in path.iterdir()}
    return not names or (names <= {CONFIG, WEIGHTS} and is_model(path))


def _tensors(fitted: Fitted) -> dict[str, Tensor]:
    trees = {} if fitted.trees is None else fitted.trees.tensors()
    own = {f"{_TREES}{name}": np.ascontiguousarray(part) for name, part in trees.items()}
    return {
        **{name: torch.from_numpy(part) for name, part in own.items()},
        "weights": fitted.stack.weights.detach().cpu().contiguous(),
        "calibration_scores": torch.from_numpy(np.ascontiguousarray(fitted.calibration_scores)),
        "reference_knowledge": torch.from_numpy(np.ascontiguousarray(fitted.reference.knowledge)),
    }


def _config(model: BaseRegressor) -> dict[str, Any]:
    fitted = model.fitted_
    names = getattr(model, "feature_names_in_", None)
    return {
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
            **_maps(fitted.targets),
        },
        "reference_data": fitted.reference.data,
        "training": _without_nan(fitted.training),
        "versions": {
            "priornet": __version__,
            **{name: version(name) for name in ("torch", "numpy", "scikit-learn")},
        },
    }


def _maps(targets: TargetColumns) -> dict[str, Any]:
    """Return the maps of the targets, if they have any: models without stay as they were."""
    return {} if targets.maps is None else {"maps": [own.to_json() for own in targets.maps]}


def _without_nan(value: Any) -> Any:
    """Replace losses that are no numbers by null: JSON has neither nan nor infinity."""
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parameters(model: BaseRegressor) -> dict[str, Any]:
    """Return constructor arguments for JSON, without a generator and a teacher."""
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
    """Read a model from the folder that ``save`` wrote; it predicts the same, bit for bit.

    A folder that is replaced meanwhile gives the old model or the new one. A digest shows if
    anything changed since it was saved; the first format had none, and a warning says so. After a
    killed save, on a system that cannot exchange folders, the old model may lie beside its place;
    it is found there, with a warning.

    Args:
        path: The folder.

    Raises:
        ModelError: The folder is damaged, not a model, or from a newer version.
    """
    path = Path(path)
    folder, config, model = _read_patiently(path)
    if folder != path and not path.exists():
        warn_user(
            f"saving to {path} was interrupted; the model from before is read from {folder}: save "
            "it again, or rename that folder."
        )
    if config.weights_digest is None:
        warn_user(
            f"{folder} was saved without a digest, so that damage to it may stay unseen: load the "
            "model and save it again to add one."
        )
    return model


def _read_patiently(path: Path) -> tuple[Path, SavedConfig, BaseRegressor]:
    """Read a folder, again if another one takes its place meanwhile; return the folder too."""
    pauses = iter(_PAUSES)
    while True:
        folder = found_folder(path)
        before = state_of(folder, (CONFIG, WEIGHTS))
        try:
            return folder, *_read(folder)
        except (ModelError, OSError):
            pause = next(pauses, None)
            if pause is None or state_of(found_folder(path), (CONFIG, WEIGHTS)) == before:
                raise
            time.sleep(pause)


def _read(folder: Path) -> tuple[SavedConfig, BaseRegressor]:
    """Read the folder that is at a path now."""
    from safetensors import SafetensorError
    from safetensors.torch import load as from_bytes

    if not folder.is_dir():
        found = "is a file" if folder.exists() else "does not exist"
        raise ModelError(f"no model at {folder}: it {found}; a model is a folder.")
    try:
        with open_together(folder, (CONFIG, WEIGHTS)) as (config_file, weights_file):
            config = read_config(_content(config_file, folder / CONFIG, LARGEST), folder / CONFIG)
            largest = 8 * config.n_networks * config.network.n_weights + _LARGEST_REST
            weights = _content(weights_file, folder / WEIGHTS, largest)
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise ModelError(f"no model at {folder}: {missing} is missing.") from error
    except IsADirectoryError as error:
        raise ModelError(f"no model at {folder}: {error.filename} is a folder.") from error
    digest = hashlib.sha256(weights).hexdigest()
    if config.weights_digest is not None and digest != config.weights_digest:
        raise ModelError(
            f"{folder / WEIGHTS} is not what was saved with {CONFIG}: it is damaged, truncated or "
            f"of another model; {_WAY_OUT}."
        )
    try:
        tensors = from_bytes(weights)
    except (SafetensorError, ValueError) as error:
        raise ModelError(
            f"{folder / WEIGHTS}: it is damaged or truncated ({error}); {_WAY_OUT}."
        ) from error
    try:
        model = _rebuild(config, tensors)
        with ThreadPoolExecutor(1) as thread:  # torch keeps helpers of this one; forks lack them
            thread.submit(_check_predictions, model.fitted_).result()
    except ModelError as error:
        raise ModelError(f"{folder / WEIGHTS}: {error}") from error
    return config, model


def _content(file: BinaryIO, path: Path, largest: int) -> bytes:
    """Read a whole file; refuse other things than files, and files that are too large."""
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        raise ModelError(f"no model at {path.parent}: {path.name} is not a file.")
    if found.st_size > largest:
        raise ModelError(f"{path} is too large to be a model's ({found.st_size} bytes).")
    return file.read(found.st_size)


def _rebuild(config: SavedConfig, tensors: dict[str, Tensor]) -> BaseRegressor:
    """Build the estimator from its configuration and its tensors."""
    model, network = config.model, config.network
    # Checked before anything of that size is made: a false number must not fill the memory.
    shape = (config.n_networks, network.n_weights)
    weights = _tensor(tensors, "weights", shape, is_weight=True)
    stack = network.build([0], weights)  # draws the first weights of one network, not of each
    stack.weights = torch.nn.Parameter(weights.clone())
    fitted = Fitted(config.preprocessor, config.targets, network, stack, config.training)
    if isinstance(network, SharedNetwork) and network.witnessed:
        fitted.trees = _trees(tensors, config)
    shape = (None, network.n_targets)
    fitted.calibration_scores = _tensor(tensors, "calibration_scores", shape).numpy()
    knowledge = _tensor(tensors, "reference_knowledge", (None,)).numpy()
    if len(knowledge) == 0:
        raise ModelError('tensor "reference_knowledge" is empty: the reference rows are missing.')
    fitted.reference = Reference(knowledge, config.reference_data)
    model.fitted_ = fitted
    return model


def _trees(tensors: dict[str, Tensor], config: SavedConfig) -> Trees:
    own = {
        name.removeprefix(_TREES): tensor.numpy()
        for name, tensor in tensors.items()
        if name.startswith(_TREES)
    }
    try:
        n_labels = label_counts(config.preprocessor)
        return Trees.from_tensors(own, n_labels, config.network.n_targets)
    except ValueError as error:
        raise ModelError(f"{error}") from error


def _check_predictions(fitted: Fitted) -> None:
    """Refuse finite weights with infinite predictions, at and around the mean of training."""
    rows = torch.tensor([[deviations] for deviations in _PROBED])
    try:
        belief = fitted.standard_belief(rows.expand(-1, fitted.network.n_inputs))
        record, predictive = uncertainty(belief), in_units(belief, fitted.targets).predictive()
        found = (
            predictive.mean,
            predictive.variance[:3],  # in units of the target, whose squares may be near the end
            record.data_variance,
            record.knowledge_variance,
        )
        is_finite = all(bool(torch.isfinite(values).all()) for values in found)
    except (ArithmeticError, RuntimeError, ValueError):  # what distributions say of such numbers
        is_finite = False
    if not is_finite:
        raise ModelError(
            "its numbers are finite, but its predictions are not, even around the mean of the "
            f"training table; {_WAY_OUT}."
        )


def _tensor(
    tensors: dict[str, Tensor], name: str, shape: tuple[int | None, ...], *, is_weight: bool = False
) -> Tensor:
    """Take a tensor of finite numbers; all but weights are sorted and not negative."""
    if name not in tensors:
        raise ModelError(f'there is no tensor "{name}".')
    found = tensors[name]
    dtypes = (torch.float32, torch.float64) if is_weight else (torch.float64,)
    fits = len(found.shape) == len(shape) and all(
        n is None or n == m for n, m in zip(shape, found.shape, strict=True)
    )
    if not fits or found.dtype not in dtypes:
        expected = tuple("any" if n is None else n for n in shape)
        raise ModelError(
            f'tensor "{name}" should be {dtypes[0]} of shape {expected}, as {CONFIG} has it; it is '
            f"{found.dtype} of shape {tuple(found.shape)}."
        )
    values = found.numpy()  # torch would start threads, which forks lack
    if values.size and not np.isfinite([values.min(), values.max()]).all():  # nan spreads
        raise ModelError(f'tensor "{name}" has numbers that are not finite.')
    if not is_weight and (values < 0).any():
        raise ModelError(f'tensor "{name}" has negative numbers.')
    if not is_weight and (np.diff(values, axis=0) < 0).any():
        raise ModelError(f'tensor "{name}" is not sorted.')
    return found
