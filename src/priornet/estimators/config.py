"""The ``config.json`` of a saved model: every field is checked before it is used.

It ends with a digest of all its text, and holds the digest of the weights, so that a changed file,
or one of other weights, is found. The first format had neither. Values are checked against the type
hints of the fields: JSON has lists instead of tuples, and whole numbers that no float can hold.
"""

from __future__ import annotations

import hashlib
import json
import math
import types
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from priornet.distill import TransferSet
from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.factory import ESTIMATORS
from priornet.nn.architecture import Network
from priornet.tables.learning import Scaling, TargetColumns
from priornet.tables.preprocessing import TablePreprocessor

FORMAT = 2
LARGEST = 1 << 28  # bytes; no model has a longer file
_MOST_NETWORKS = 1 << 20
_LARGEST_NUMBER = 1e308  # compared, not converted: a whole number may be too large for a float
_HINT_WORDS = {
    int: "a whole number, not negative",
    float: "a finite number, not negative",
    bool: "true or false",
    str: "a text",
    type(None): "null",
}
_LONGEST = 500  # characters of a message
_DIGEST, _WEIGHTS_DIGEST = "sha256", "weights_sha256"
_FIELDS = {
    "format",
    "class",
    "parameters",
    "network",
    "n_networks",
    "preprocessing",
    "feature_names",
    "targets",
    "reference_data",
    "training",
    "versions",
}


class ModelError(ValueError):
    """A folder without a model that this version can read."""


@dataclass(frozen=True)
class SavedConfig:
    """A checked configuration."""

    model: BaseRegressor
    """The estimator with its parameters, not fitted yet."""
    preprocessor: TablePreprocessor
    feature_names: list[str] | None
    """Names as scikit-learn keeps them, if there are any."""
    network: Network
    n_networks: int
    targets: TargetColumns
    reference_data: float
    """Median data standard deviation of the reference rows."""
    training: dict[str, Any]
    """Summary of the training."""
    weights_digest: str | None = None
    """SHA-256 of the file of weights; None in the first format."""


def config_text(state: dict[str, Any], weights: bytes) -> str:
    """Write a configuration as text with digests, so that a change of it is found.

    Args:
        state: Fields, ready for JSON.
        weights: Content of the file of weights.
    """
    state = {"format": FORMAT, **state, _WEIGHTS_DIGEST: sha256(weights)}
    return _with_digest(json.dumps(state, indent=2, allow_nan=False))


def sha256(content: bytes) -> str:
    """Compute the digest of a file's bytes, as text."""
    return hashlib.sha256(content).hexdigest()


def read_config(content: bytes, path: Path) -> SavedConfig:
    """Read a configuration.

    Args:
        content: The bytes of the file.
        path: The file, for messages.

    Raises:
        ModelError: It is damaged, or from a newer version; the message names file and field.
    """
    try:
        state = _read_json(content, path)
        return _checked(state)
    except RecursionError as error:
        raise ModelError(f"{path} is damaged: it is nested too deeply.") from error
    except ModelError as error:
        message = " ".join(str(error).split())
        if str(path) not in message:
            message = f"{path}: {message}"
        raise ModelError(message[: len(str(path)) + _LONGEST]) from error


def _read_json(content: bytes, path: Path) -> dict[str, Any]:
    try:
        text = content.decode("utf-8")
        state: Any = json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        raise ModelError(f"{path} is damaged or truncated: {error}.") from error
    if not isinstance(state, dict) or "format" not in state:
        raise ModelError(f'{path} does not describe a priornet model: it has no field "format".')
    found: Any = state["format"]
    whole = isinstance(found, int) and not isinstance(found, bool)
    if whole and found > FORMAT:
        raise ModelError(
            f"{path} has format {shown_value(found)}, this version reads up to {FORMAT}: upgrade "
            "priornet."
        )
    if not whole or found < 1:
        raise ModelError(f'{path}: "format" is {shown_value(found)}, which no version has written.')
    if found > 1 and not _has_own_digest(text):
        raise ModelError(
            f"{path} has changed since it was saved: its digest does not fit; restore the folder "
            "from a copy, or save the model again."
        )
    known = _FIELDS if found == 1 else _FIELDS | {_DIGEST, _WEIGHTS_DIGEST}
    for key in state:
        _expect(key in known, f"format {found} has no field {shown_value(key)}.")
    return state


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dictionary of fields, and refuse a field that stands there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
        raise ValueError(f"the field {shown_value(twice)} stands there twice")
    return found


def _with_digest(text: str) -> str:
    """Add a last field with the digest of the text."""
    head = text.removesuffix("\n}")
    return f'{head},\n  "{_DIGEST}": "{sha256(text.encode())}"\n}}'


def _has_own_digest(text: str) -> bool:
    text = text.replace("\r\n", "\n")  # as version control on Windows may write lines
    head, _, _ = text.rpartition(f',\n  "{_DIGEST}": ')
    return text == _with_digest(f"{head}\n}}")


def _checked(state: dict[str, Any]) -> SavedConfig:
    model = _model(_get(state, "class"), _get(state, "parameters"))
    with _field("preprocessing"):
        preprocessor = TablePreprocessor.from_json(_get(state, "preprocessing"))
    names = _feature_names(_get(state, "feature_names"), preprocessor)
    network = _network(_get(state, "network"))
    n_outputs = len(preprocessor.source_)
    _expect(
        network.n_inputs == n_outputs,
        f'"network.n_inputs" is {shown_value(network.n_inputs)}, but the networks do not fit the '
        f"preprocessing then: that has {n_outputs} outputs.",
    )
    count = _get(state, "n_networks")
    whole = isinstance(count, int) and not isinstance(count, bool)
    _expect(
        whole and 1 <= count <= _MOST_NETWORKS,
        f'"n_networks" is {shown_value(count)}; it should be a positive whole number.',
    )
    targets = _targets(_get(state, "targets"), network.n_targets)
    data = _get(state, "reference_data")
    _expect(
        is_number(data) and data >= 0,
        f'"reference_data" is {shown_value(data)}; it should be a finite number, not negative.',
    )
    training = _plain(_get(state, "training"), "training")
    _texts(state.get("versions", {}), "versions")
    digest = None if state["format"] == 1 else _get(state, _WEIGHTS_DIGEST)
    _expect(
        digest is None or isinstance(digest, str),
        f'"{_WEIGHTS_DIGEST}" is {shown_value(digest)}; it should be a text.',
    )
    return SavedConfig(
        model, preprocessor, names, network, count, targets, float(data), training, digest
    )


# -- the parts ------------------------------------------------------------------------------------


def _model(name: Any, parameters: Any) -> BaseRegressor:
    if not isinstance(name, str) or name not in ESTIMATORS:
        listing = ", ".join(sorted(ESTIMATORS))
        raise ModelError(
            f'"class": unknown class {shown_value(name)}; this version knows: {listing}.'
        )
    cls: Any = ESTIMATORS[name]
    known = set(cls().get_params(deep=False)) - {"teacher"}
    hints = {**get_type_hints(cls), "random_state": int | None, "verbose": bool | int}
    _expect(isinstance(parameters, dict), f'"parameters" is {shown_value(parameters)}, no object.')
    given: dict[str, Any] = {}
    for key, value in parameters.items():
        _expect(key in known, f'"parameters": {name} has no parameter {shown_value(key)}.')
        if key == "transfer" and value is not None:
            given[key] = _transfer(value)
        else:
            given[key] = _value(f"parameters.{key}", value, hints[key])
    with _field("parameters"):
        model = cls(**{**given, "device": "cpu"})  # where it was trained may not be here
        model.check_parameters()
    return model


def _transfer(state: Any) -> TransferSet:
    place = "parameters.transfer"
    _expect(isinstance(state, dict), f'"{place}" is {shown_value(state)}, no object.')
    given = _values(place, state, TransferSet)
    with _field(place):
        return TransferSet(**given)


def _network(state: Any) -> Network:
    _expect(
        isinstance(state, dict), f'"network" is {shown_value(state)}; it does not describe one.'
    )
    edges = state.get("edges", [])  # older files have none; a number may be negative here
    is_list = isinstance(edges, list) and all(isinstance(own, list) for own in edges)
    _expect(is_list, f'"network.edges" is {shown_value(edges)}; it should be a list of lists.')
    for own in edges:
        rises = all(is_number(edge) for edge in own) and sorted(set(own)) == own
        _expect(rises, f'"network.edges" has {shown_value(own)}; numbers should rise in it.')
    rest = {key: value for key, value in state.items() if key != "edges"}
    for key in ("n_inputs", "widths", "n_targets", "head", "n_members", "min_excess"):
        _get(state, key, "network.")  # the others are younger than the format
    _values("network", rest, Network)
    for key in ("min_excess", "min_belief"):
        _expect(state.get(key, 1) > 0, f'"network.{key}" is {state.get(key)}; it must be positive.')
    with _field("network"):
        network = Network.from_json(state)
        _ = network.n_weights  # a size that cannot be built is refused here
        return network


def _feature_names(names: Any, preprocessor: TablePreprocessor) -> list[str] | None:
    if names is None:
        return None
    n = preprocessor.n_features_in_
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    _expect(
        is_list and len(set(names)) == len(names) == n,
        f'"feature_names" is {shown_value(names)}; it should be null or {n} different texts.',
    )
    known = preprocessor.feature_names_in_
    _expect(
        known is None or set(known) == set(names),
        f'"feature_names" is {shown_value(names)}; the preprocessing has other names.',
    )
    return names


def _targets(state: Any, n_targets: int) -> TargetColumns:
    _expect(isinstance(state, dict), f'"targets" is {shown_value(state)}, no object.')
    names = _get(state, "names", "targets.")
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    _expect(
        is_list and len(set(names)) == len(names) == n_targets,
        f'"targets.names" is {shown_value(names)}; these do not fit the networks: it should be '
        f"{n_targets} different texts.",
    )
    is_vector = _get(state, "is_vector", "targets.")
    _expect(
        isinstance(is_vector, bool) and (not is_vector or n_targets == 1),
        f'"targets.is_vector" is {shown_value(is_vector)}; that does not fit {n_targets} targets.',
    )
    shift = _numbers("targets.shift", _get(state, "shift", "targets."), n_targets)
    scale = _numbers("targets.scale", _get(state, "scale", "targets."), n_targets)
    _expect(bool((scale > 0).all()), f'"targets.scale" is {scale.tolist()}; it must be positive.')
    return TargetColumns(tuple(names), is_vector, Scaling(shift, scale))


# -- checking values -----------------------------------------------------------------------------


def _get(state: dict[str, Any], key: str, prefix: str = "") -> Any:
    _expect(key in state, f'"{prefix}{key}" is missing.')
    return state[key]


def _expect(is_true: bool, otherwise: str) -> None:
    if not is_true:
        raise ModelError(otherwise)


@contextmanager
def _field(name: str) -> Generator[None]:
    """Name the field in errors of other modules."""
    try:
        yield
    except ModelError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise ModelError(f'"{name}": {error}') from error


def _values(place: str, state: dict[str, Any], cls: type) -> dict[str, Any]:
    """Check fields of a dataclass; absent fields keep their defaults."""
    hints = get_type_hints(cls)
    known = {field.name for field in fields(cls)}
    for key in state:
        shown = shown_value(key)
        _expect(key in known, f'"{place}" has a field {shown} that this version does not know.')
    return {key: _value(f"{place}.{key}", value, hints[key]) for key, value in state.items()}


def _value(place: str, value: Any, hint: Any) -> Any:
    """Check a value against a type hint, and make lists tuples."""
    _expect(
        fits_hint(value, hint),
        f'"{place}" is {shown_value(value)}; it should be {describe_hint(hint)}.',
    )
    if place.endswith("_fraction") and is_number(value):
        _expect(value <= 1, f'"{place}" is {value}; it should not exceed 1.')
    return tuple(value) if isinstance(value, list) else value


def _numbers(place: str, values: Any, count: int) -> NDArray[np.float64]:
    fine = isinstance(values, list) and len(values) == count and all(map(is_number, values))
    _expect(fine, f'"{place}" is {shown_value(values)}; it should be {count} finite numbers.')
    return np.array(values, np.float64)


def _texts(state: Any, place: str) -> None:
    fine = isinstance(state, dict) and all(isinstance(text, str) for text in state.values())
    _expect(fine, f'"{place}" is {shown_value(state)}; it should be texts by name.')


def _plain(state: Any, place: str) -> dict[str, Any]:
    """Check that this is an object in which every number is finite."""
    _expect(isinstance(state, dict), f'"{place}" is {shown_value(state)}; it should be an object.')
    waiting: list[tuple[str, Any]] = [(place, state)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{name}.{key}", one) for key, one in value.items()]
        elif isinstance(value, list):
            waiting += [(name, one) for one in value]
        elif isinstance(value, float):
            _expect(is_number(value), f'"{name}" is {value}; it should be a finite number.')
    return state


def is_number(value: object) -> bool:
    """Tell if a value is a finite number, neither true nor false."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return (isinstance(value, int) or math.isfinite(value)) and abs(value) <= _LARGEST_NUMBER


def fits_hint(value: object, hint: Any) -> bool:
    """Tell if a value read from JSON suits a type hint; numbers must not be negative.

    Knows int, float, bool, str, None, Literal, unions, and tuples, which are lists in JSON.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits_hint(value, one) for one in arguments)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in arguments)
    if origin is tuple:
        return isinstance(value, list) and _fit_each(cast(Any, value), arguments)
    if hint is float:
        return is_number(value) and cast(float, value) >= 0
    if hint is int:
        return is_number(value) and isinstance(value, int) and value >= 0
    return isinstance(value, hint)


def _fit_each(values: Sequence[Any], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        hints = (hints[0],) * len(values)
    pairs = zip(values, hints, strict=False)
    return len(values) == len(hints) and all(fits_hint(value, one) for value, one in pairs)


def describe_hint(hint: Any) -> str:
    """Describe a type hint in words."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(describe_hint(one) for one in arguments)
    if origin is Literal:
        return " or ".join(f'"{one}"' for one in arguments)
    if origin is tuple:
        return f"a list of which each is {describe_hint(arguments[0])}"
    return _HINT_WORDS.get(hint, getattr(hint, "__name__", str(hint)))


def shown_value(value: object) -> str:
    """Return a value as text for a message, cut if it is long."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 1e18 else f"{str(value)[:20]}"
    return text if len(text) <= 60 else f"{text[:60]}..."
