"""The ``config.json`` of a saved model: every field is checked before it is used.

It ends with a digest of all its text, and holds the digest of the weights, so that a changed file,
or one of other weights, is found. The first format had neither. Values are checked against type
hints: JSON has lists instead of tuples, and whole numbers that no float can hold.
"""

from __future__ import annotations

import hashlib
import json
import math
import types
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

import numpy as np

from priornet.distill import TransferSet
from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.factory import ESTIMATORS
from priornet.nn.architecture import Network
from priornet.nn.shared import SharedNetwork
from priornet.special.maps import map_from_json
from priornet.tables.learning import Scaling, TargetColumns
from priornet.tables.preprocessing import TablePreprocessor

FORMAT = 2
LARGEST = 1 << 28  # bytes; no model has a longer file
_MOST_NETWORKS = 1 << 20
_LARGEST_NUMBER = 1e308  # compared, not converted: a whole number may be too large for a float
_LONGEST = 500  # characters of a message
_DIGEST, _WEIGHTS_DIGEST = "sha256", "weights_sha256"

Signed = NewType("Signed", float)
Object = dict[str, object]

_HINT_WORDS: dict[Any, str] = {
    int: "a whole number, not negative",
    float: "a finite number, not negative",
    Signed: "a finite number",
    bool: "true or false",
    str: "a text",
    object: "anything",
    Any: "anything with finite numbers",
    type(None): "null",
}
_FIELDS: dict[str, Any] = {
    "format": int,
    "class": str,
    "parameters": Object,
    "network": Object,
    "n_networks": int,
    "preprocessing": Object,
    "feature_names": tuple[str, ...] | None,
    "targets": Object,
    "reference_data": float,
    "training": dict[str, Any],
}
_MAY_MISS: dict[str, Any] = {"versions": dict[str, str]}
_DIGESTS: dict[str, Any] = {_WEIGHTS_DIGEST: str, _DIGEST: str}
_TARGETS: dict[str, Any] = {
    "names": tuple[str, ...],
    "is_vector": bool,
    "shift": tuple[Signed, ...],
    "scale": tuple[float, ...],
}
_MAPS: dict[str, Any] = {"maps": tuple[dict[str, Any], ...]}  # younger than the format
# The other fields of a network are younger than the format.
_NETWORK = ("n_inputs", "widths", "n_targets", "head", "n_members", "min_excess")


class ModelError(ValueError):
    """A folder without a model that this version can read."""


@dataclass(frozen=True)
class SavedConfig:
    """A checked configuration."""

    model: BaseRegressor
    """The estimator with its parameters and the names of its inputs, not fitted yet."""
    preprocessor: TablePreprocessor
    network: Network | SharedNetwork
    n_networks: int
    targets: TargetColumns
    reference_data: float
    """Median data standard deviation of the reference rows."""
    training: dict[str, Any]
    """Summary of the training."""
    weights_digest: str | None
    """SHA-256 of the file of weights; None in the first format."""


def config_text(state: dict[str, Any], weights: bytes) -> str:
    """Write a configuration as text, with its digest and that of the file of weights."""
    state = {"format": FORMAT, **state, _WEIGHTS_DIGEST: hashlib.sha256(weights).hexdigest()}
    return _with_digest(json.dumps(state, indent=2, allow_nan=False))


def read_config(content: bytes, path: Path) -> SavedConfig:
    """Read the content of a file; a :class:`ModelError` names ``path`` and the wrong field."""
    try:
        return _checked(_read_json(content, path))
    except RecursionError as error:
        raise ModelError(f"{path} is damaged: it is nested too deeply.") from error
    except ModelError as error:
        message = " ".join(str(error).split())
        if str(path) not in message:
            message = f"{path}: {message}"
        raise ModelError(message[: len(str(path)) + _LONGEST]) from error


def _read_json(content: bytes, path: Path) -> dict[str, Any]:
    """Parse the file, and check its format and its digest."""
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
    head, digest = text.removesuffix("\n}"), hashlib.sha256(text.encode()).hexdigest()
    return f'{head},\n  "{_DIGEST}": "{digest}"\n}}'


def _has_own_digest(text: str) -> bool:
    text = text.replace("\r\n", "\n")  # as version control on Windows may write lines
    head, _, _ = text.rpartition(f',\n  "{_DIGEST}": ')
    return text == _with_digest(f"{head}\n}}")


# -- the parts ------------------------------------------------------------------------------------


def _checked(state: dict[str, Any]) -> SavedConfig:
    needed = _FIELDS if state["format"] == 1 else _FIELDS | _DIGESTS
    _check("", state, needed | _MAY_MISS, needed, f"format {state['format']} has no field {{}}.")
    with _field("preprocessing"):
        preprocessor = TablePreprocessor.from_json(state["preprocessing"])
    network = _network(state["network"])
    n_outputs = len(preprocessor.source_)
    n_known = network.n_inputs - (network.n_witness if isinstance(network, SharedNetwork) else 0)
    _expect(
        n_known == n_outputs,
        f'"network.n_inputs" is {shown_value(n_known)}, but the networks do not fit the '
        f"preprocessing then: that has {n_outputs} outputs.",
    )
    count = state["n_networks"]
    _expect(
        1 <= count <= _MOST_NETWORKS,
        f'"n_networks" is {shown_value(count)}; it should be from 1 to {_MOST_NETWORKS}.',
    )
    model = _model(state["class"], state["parameters"])
    model.n_features_in_ = preprocessor.n_features_in_
    if state["feature_names"] is not None:
        _check_names("feature_names", state["feature_names"], preprocessor.n_features_in_)
        known = preprocessor.feature_names_in_
        _expect(
            known is None or set(known) == set(state["feature_names"]),
            f'"feature_names" is {shown_value(state["feature_names"])}; the preprocessing has '
            "other names.",
        )
        model.feature_names_in_ = np.array(state["feature_names"], dtype=object)
    return SavedConfig(
        model,
        preprocessor,
        network,
        count,
        _targets(state["targets"], network.n_targets),
        float(state["reference_data"]),
        state["training"],
        state.get(_WEIGHTS_DIGEST),
    )


def _model(name: str, parameters: dict[str, Any]) -> BaseRegressor:
    if name not in ESTIMATORS:
        listing = ", ".join(sorted(ESTIMATORS))
        raise ModelError(
            f'"class": unknown class {shown_value(name)}; this version knows: {listing}.'
        )
    cls: Any = ESTIMATORS[name]
    known = set(cls().get_params(deep=False)) - {"teacher"}
    hints = {key: hint for key, hint in get_type_hints(cls).items() if key in known}
    hints |= {"random_state": int | None, "verbose": bool | int}
    if "transfer" in known:
        hints["transfer"] = Object | None
    given = _check(
        "parameters", parameters, hints, (), f'"parameters": {name} has no parameter {{}}.'
    )
    for key in ("calibration_fraction", "validation_fraction"):
        share = given.get(key, 0)
        _expect(
            share == "auto" or share <= 1,
            f'"parameters.{key}" is {shown_value(share)}; it should not exceed 1.',
        )
    if given.get("transfer") is not None:
        place = "parameters.transfer"
        transfer = _check(place, given["transfer"], get_type_hints(TransferSet))
        with _field(place):
            given["transfer"] = TransferSet(**transfer)
    with _field("parameters"):
        model = cls(**{**given, "device": "cpu"})  # where it was trained may not be here
        model.check_parameters()
    return model


def _network(state: dict[str, Any]) -> Network | SharedNetwork:
    if state.get("kind") == SharedNetwork.kind:
        return _shared_network({name: part for name, part in state.items() if name != "kind"})
    hints = get_type_hints(Network) | {"edges": tuple[tuple[Signed, ...], ...]}
    given = _check("network", state, hints, _NETWORK)
    for own in given.get("edges", ()):
        rises = sorted(set(own)) == list(own)
        _expect(rises, f'"network.edges" has {shown_value(own)}; numbers should rise in it.')
    for key in ("min_excess", "min_belief"):
        _expect(given.get(key, 1) > 0, f'"network.{key}" is {given.get(key)}; it must be positive.')
    with _field("network"):
        network = Network.from_json(state)
        _ = network.n_weights  # a size that cannot be built is refused here
        return network


def _shared_network(state: dict[str, Any]) -> SharedNetwork:
    hints = get_type_hints(SharedNetwork) | {
        "knots": tuple[tuple[tuple[Signed, Signed], ...], ...],
        "label_columns": tuple[tuple[int, int], ...],
    }
    del hints["kind"]
    given = _check("network", state, hints, hints)
    with _field("network"):
        network = SharedNetwork(**given)
        _ = network.n_weights
        return network


def _targets(state: dict[str, Any], n_targets: int) -> TargetColumns:
    given = _check("targets", state, _TARGETS | _MAPS, _TARGETS)
    _check_names("targets.names", given["names"], n_targets)
    _expect(
        not given["is_vector"] or n_targets == 1,
        f'"targets.is_vector" is true; that does not fit {n_targets} targets.',
    )
    shift, scale = (np.array(given[key], np.float64) for key in ("shift", "scale"))
    for key, values in (("shift", shift), ("scale", scale)):
        _expect(
            len(values) == n_targets,
            f'"targets.{key}" is {shown_value(values.tolist())}; it should be {n_targets} numbers.',
        )
    _expect(bool((scale > 0).all()), f'"targets.scale" is {scale.tolist()}; it must be positive.')
    maps = None
    if "maps" in given:
        count = len(given["maps"])
        _expect(count == n_targets, f'"targets.maps" has {count} maps for {n_targets} targets.')
        with _field("targets.maps"):
            maps = tuple(map(map_from_json, given["maps"]))
    return TargetColumns(given["names"], given["is_vector"], Scaling(shift, scale), maps)


# -- checking values -----------------------------------------------------------------------------


def _expect(is_true: bool, otherwise: str) -> None:
    if not is_true:
        raise ModelError(otherwise)


@contextmanager
def _field(name: str) -> Generator[None]:
    """Name the field in errors of other modules."""
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise ModelError(f'"{name}": {error}') from error


def _check(
    place: str,
    state: dict[str, Any],
    hints: dict[str, Any],
    needed: Iterable[str] = (),
    unknown: str = "",
) -> dict[str, Any]:
    """Check the fields of an object against type hints, and make lists tuples.

    Args:
        place: The object's name in messages; empty for the whole file.
        state: The object.
        hints: Hints of the known fields.
        needed: Fields that must be there.
        unknown: The message about an unknown field.
    """
    prefix = f"{place}." if place else ""
    unknown = unknown or f'"{place}" has a field {{}} that this version does not know.'
    for key in state:
        _expect(key in hints, unknown.format(shown_value(key)))
    for key in needed:
        _expect(key in state, f'"{prefix}{key}" is missing.')
    for key, value in state.items():
        _expect(
            fits_hint(value, hints[key]),
            f'"{prefix}{key}" is {shown_value(value)}; it should be {describe_hint(hints[key])}.',
        )
    return {key: _as_tuple(value) for key, value in state.items()}


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def _check_names(place: str, names: Sequence[str], count: int) -> None:
    _expect(
        len(set(names)) == len(names) == count,
        f'"{place}" is {shown_value(names)}; these do not fit: it should be {count} different '
        "texts.",
    )


def is_number(value: object) -> bool:
    """Tell if a value is a finite number, neither true nor false."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return (isinstance(value, int) or math.isfinite(value)) and abs(value) <= _LARGEST_NUMBER


def fits_hint(value: Any, hint: Any) -> bool:
    """Tell if a value read from JSON suits a type hint; numbers must not be negative.

    Knows int, float, bool, str, None, Literal, unions, dictionaries, tuples, which are lists in
    JSON, and Any, in which all numbers are finite.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits_hint(value, one) for one in arguments)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in arguments)
    if origin is dict:
        return isinstance(value, dict) and all(
            fits_hint(one, arguments[1]) for one in value.values()
        )
    if origin is tuple:
        if not isinstance(value, list):
            return False
        hints = [arguments[0]] * len(value) if arguments[1] is Ellipsis else arguments
        return len(value) == len(hints) and all(map(fits_hint, value, hints))
    if hint is Signed:
        return is_number(value)
    if hint in (int, float):
        return is_number(value) and isinstance(value, (int, hint)) and value >= 0
    if hint is not Any:
        return isinstance(value, hint)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(fits_hint(one, Any) for one in parts) and (
        not isinstance(value, float) or is_number(value)
    )


def describe_hint(hint: Any) -> str:
    """Describe a type hint in words."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(describe_hint(one) for one in arguments)
    if origin is Literal:
        return " or ".join(f'"{one}"' for one in arguments)
    if origin is tuple:
        return f"a list of which each is {describe_hint(arguments[0])}"
    if origin is dict:
        return f"an object whose values are {describe_hint(arguments[1])}"
    return _HINT_WORDS.get(hint, str(hint))


def shown_value(value: object) -> str:
    """Return a value as text for a message, cut if it is long."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 1e18 else f"{str(value)[:20]}"
    return text if len(text) <= 60 else f"{text[:60]}..."
