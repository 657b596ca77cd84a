"""Models on disk: a folder with ``weights.safetensors`` and ``config.json``, nothing to execute.

Whatever is read is checked before it is used: an unknown class, another tensor shape, a damaged or
a newer file is refused with the reason. Weights are plain numbers and the rest is JSON, so reading
a model from a stranger is safe.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from priornet._version import __version__
from priornet.data.preprocessing import TablePreprocessor
from priornet.distill import TransferSet
from priornet.estimators.base import BaseRegressor
from priornet.estimators.distilled import DistilledRegressor
from priornet.estimators.ensemble import DeepEnsembleRegressor, GaussianRegressor
from priornet.estimators.evidential import EvidentialRegressor
from priornet.estimators.fitted import Fitted
from priornet.estimators.network import Network
from priornet.estimators.prior_network import PriorNetRegressor
from priornet.estimators.targets import Scaling, TargetColumns
from priornet.estimators.verdict import Reference

__all__ = ["ModelError", "load", "save"]

FORMAT = 1
CONFIG, WEIGHTS = "config.json", "weights.safetensors"
CLASSES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        DeepEnsembleRegressor,
        DistilledRegressor,
        EvidentialRegressor,
        GaussianRegressor,
        PriorNetRegressor,
    )
}
_LARGEST_CONFIG = 1 << 28  # bytes; a longer one is not ours


class ModelError(ValueError):
    """A folder that does not hold a model this version can read."""


# -- writing --------------------------------------------------------------------------------------


def save(model: BaseRegressor, path: Path) -> None:
    """Write a fitted model; an existing one is replaced in one step, or left alone.

    Args:
        model: Fitted.
        path: The folder. If it exists it must be a model, or empty.
    """
    from safetensors.torch import save as to_bytes

    if path.exists() and not _is_replaceable(path):
        raise FileExistsError(f"{path} exists and is not a model folder: choose another path.")
    path.parent.mkdir(parents=True, exist_ok=True)
    config = json.dumps(_config(model), indent=2, allow_nan=False)
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        (fresh / WEIGHTS).write_bytes(to_bytes(_tensors(model.fitted_)))
        (fresh / CONFIG).write_text(config, encoding="utf-8")
        for name in (WEIGHTS, CONFIG):  # on the disk before the name says so
            with (fresh / name).open("rb") as file:
                os.fsync(file.fileno())
        readable = (fresh / CONFIG).stat().st_mode & 0o444  # as the user's files are
        fresh.chmod(0o700 | readable | readable >> 2)
        _swap(fresh, path)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _is_replaceable(path: Path) -> bool:
    if not path.is_dir():
        return False
    return {entry.name for entry in path.iterdir()} <= {CONFIG, WEIGHTS}


def _swap(fresh: Path, path: Path) -> None:
    """Put a folder in the place of another; at every moment a whole model is there or beside it."""
    if not path.exists():
        fresh.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
    path.rename(old / path.name)
    try:
        fresh.rename(path)
    except BaseException:
        (old / path.name).rename(path)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


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
    if not isinstance(parameters["random_state"], (int, type(None))):
        parameters["random_state"] = None
    parameters.pop("teacher", None)
    if parameters.get("transfer") is not None:
        parameters["transfer"] = vars(parameters["transfer"])
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in parameters.items()
    }


# -- reading --------------------------------------------------------------------------------------


def load(path: str | Path) -> BaseRegressor:
    """Rebuild a model from the folder that ``save`` wrote; it predicts the same, bit for bit.

    Args:
        path: The folder.

    Raises:
        ModelError: The folder is damaged, not a model, or from a newer version.
    """
    folder = Path(path)
    if not folder.is_dir():
        found = "is a file" if folder.exists() else "does not exist"
        raise ModelError(f"no model at {folder}: it {found}; a model is a folder.")
    config = _read_config(folder / CONFIG)
    tensors = _read_weights(folder / WEIGHTS)
    try:
        return _rebuild(config, tensors)
    except ModelError as error:
        raise ModelError(f"{folder}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{folder / CONFIG} is damaged: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return f"{error} is missing." if isinstance(error, KeyError) else str(error)


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ModelError(f"no model at {path.parent}: {path.name} is missing.")
    if path.stat().st_size > _LARGEST_CONFIG:
        raise ModelError(f"{path} is too large to be a model's.")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelError(f"{path} is damaged or truncated: {error}.") from error
    if not isinstance(config, dict) or not isinstance(config.get("format"), int):
        raise ModelError(f"{path} does not describe a priornet model.")
    if config["format"] > FORMAT:
        raise ModelError(
            f"{path} has format {config['format']}, this version reads up to {FORMAT}: upgrade "
            "priornet."
        )
    return config


def _read_weights(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise ModelError(f"no model at {path.parent}: {path.name} is missing.")
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path} is damaged or truncated: {error}.") from error


def _rebuild(config: dict[str, Any], tensors: dict[str, Tensor]) -> BaseRegressor:
    model = _make(config["class"], config["parameters"])
    preprocessor = TablePreprocessor.from_json(config["preprocessing"])
    model.n_features_in_ = preprocessor.n_features_in_
    if config["feature_names"] is not None:
        model.feature_names_in_ = np.array(config["feature_names"], dtype=object)
    network = Network.from_json(config["network"])
    if network.n_inputs != len(preprocessor.source_):
        raise ModelError("the networks do not fit the preprocessing.")
    count = _expect(config["n_networks"], int, "n_networks")
    # Checked before anything of that size is made: a false number must not fill the memory.
    shape = (count, network.n_weights)
    weights = _tensor(tensors, "weights", (torch.float32, torch.float64), shape)
    if count < 1 or not bool(torch.isfinite(weights).all()):
        raise ModelError("the weights are not finite numbers.")
    stack = network.build([0] * count, weights)
    with torch.no_grad():
        stack.weights.copy_(weights)
    targets = _read_targets(config["targets"], network.n_targets)
    training = _expect(config["training"], dict, "training")
    fitted = Fitted(preprocessor, targets, network, stack, training)
    scores = _tensor(tensors, "calibration_scores", (torch.float64,), (None, network.n_targets))
    fitted.calibration_scores = scores.numpy()
    knowledge = _tensor(tensors, "reference_knowledge", (torch.float64,), (None,)).numpy()
    data = float(config["reference_data"])
    if len(knowledge) == 0 or not math.isfinite(data):
        raise ModelError("the reference rows are missing.")
    fitted.reference = Reference(knowledge, data)
    model.fitted_ = fitted
    return model


def _read_targets(state: dict[str, Any], n_targets: int) -> TargetColumns:
    names = tuple(str(name) for name in _expect(state["names"], list, "names"))
    is_vector = _expect(state["is_vector"], bool, "is_vector")
    scaling = Scaling(_floats(state["shift"]), _floats(state["scale"]))
    counts = {len(names), len(scaling.shift), len(scaling.scale)}
    if counts != {n_targets} or not (scaling.scale > 0).all() or (is_vector and n_targets != 1):
        raise ModelError("the target columns do not fit the networks.")
    return TargetColumns(names, is_vector, scaling)


def _make(name: Any, parameters: Any) -> BaseRegressor:
    if name not in CLASSES:
        listing = ", ".join(sorted(CLASSES))
        raise ModelError(f'unknown class "{name}"; this version knows: {listing}.')
    cls = CLASSES[name]
    known = set(cls().get_params(deep=False))
    unknown = sorted(set(_expect(parameters, dict, "parameters")) - known)
    if unknown:
        raise ModelError(f"{name} has no parameter {unknown[0]!r}.")
    given: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in parameters.items()
    }
    if isinstance(given.get("transfer"), dict):
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in given["transfer"].items()
        }
        given["transfer"] = TransferSet(**fields)
    model = cls(**given)
    model.device = "cpu"  # where it was trained may not be where it is read
    model.check_parameters()
    return model


def _tensor(
    tensors: dict[str, Tensor],
    name: str,
    dtypes: tuple[torch.dtype, ...],
    shape: tuple[int | None, ...],
) -> Tensor:
    if name not in tensors:
        raise ModelError(f"{WEIGHTS} has no tensor {name!r}.")
    found = tensors[name]
    fits = len(found.shape) == len(shape) and all(
        n is None or n == m for n, m in zip(shape, found.shape, strict=True)
    )
    if not fits or found.dtype not in dtypes:
        expected = tuple("any" if n is None else n for n in shape)
        raise ModelError(
            f"tensor {name!r} should be {dtypes[0]} of shape {expected}; it is {found.dtype} of "
            f"shape {tuple(found.shape)}."
        )
    return found


def _floats(values: Any) -> Any:
    array = np.array(_expect(values, list, "scaling"), dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ModelError("the scaling of the targets is not a list of finite numbers.")
    return array


def _expect(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ModelError(f"{name!r} should be {kind.__name__}; it is {type(value).__name__}.")
    return value
