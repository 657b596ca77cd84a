"""Open exported graphs and programs again, and score rows with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.held_out import WORDS
from priornet.export.interface import (
    INPUT,
    ExportError,
    describe_columns,
    feeds,
    input_names,
    need,
    numbers,
    quiet,
)
from priornet.export.onnx.graph import LEAST_OPSET

Outputs = Mapping[str, NDArray[Any]]
"""Outputs by name; texts are objects."""


class Exported(Protocol):
    """A file that scores rows."""

    @property
    def about(self) -> dict[str, Any]:
        """Return the metadata, with coverage and method of the interval."""
        ...

    def score(self, model: BaseRegressor, rows: Any) -> Outputs:
        """Score the rows of a table that the model can read."""
        ...


def open_exported(path: Path) -> Exported:
    """Open a file that :func:`to_onnx` or :func:`to_torch_export` wrote, whatever its name."""
    try:
        with path.open("rb") as file:
            start = file.read(2)
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror}.") from error
    return _ProgramFile(path) if start == b"PK" else GraphFile(path)  # torch writes a zip archive


class GraphFile:
    """An ONNX file.

    Args:
        path: A file that this package wrote.
    """

    def __init__(self, path: Path) -> None:
        purpose = "run an exported model"
        onnx, runtime = need("onnx", purpose), need("onnxruntime", purpose)
        self._path = path
        try:
            model = onnx.load_model(path)
        except Exception as error:  # protobuf has many
            raise ExportError(f"{path}: it is no ONNX model.") from error
        versions = {entry.domain: entry.version for entry in model.opset_import}
        if not versions or not model.graph.node:
            raise ExportError(f"{path}: it is no ONNX model.")
        if versions.get("", 0) < LEAST_OPSET:
            raise ExportError(
                f"{path}: its opset {versions.get('', 0)} is too old; export the model again, with "
                f"opset {LEAST_OPSET} or newer."
            )
        self.about = _metadata(path, {p.key: p.value for p in model.metadata_props}.get("priornet"))
        try:
            self._session = runtime.InferenceSession(
                model.SerializeToString(), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a class of its own for every kind
            raise ExportError(f"{path}: {_refusal(error, versions[''])}") from error

    @property
    def input_shapes(self) -> dict[str, list[Any]]:
        """Return the shapes of the inputs; a text stands for a size that may vary."""
        return {one.name: list(one.shape) for one in self._session.get_inputs()}

    def score(self, model: BaseRegressor, rows: Any) -> Outputs:
        """Run the graph on the raw columns of a table."""
        kinds = {one.name: one.type for one in self._session.get_inputs()}
        wanted = input_names(model.fitted_.preprocessor) or (INPUT,)
        _check_columns(self._path, wanted, list(kinds))
        fed = feeds(model.fitted_.preprocessor, rows)
        for name, values in fed.items():
            if kinds[name] != ("tensor(string)" if values.dtype == object else "tensor(double)"):
                raise ExportError(
                    f'{self._path}: the column "{name}" is a {kinds[name]} in the file, but not in '
                    "the model; export it again."
                )
        return self.run(fed)

    def run(self, fed: Mapping[str, NDArray[Any]]) -> Outputs:
        """Return the outputs for given inputs, both by name."""
        prefix = self.about.get("prefix", "")
        outputs = [one.name.removeprefix(prefix) for one in self._session.get_outputs()]
        return dict(zip(outputs, self._session.run(None, dict(fed)), strict=True))


class _ProgramFile:
    """A file of ``torch.export``."""

    def __init__(self, path: Path) -> None:
        import torch

        from priornet.export.torch_export import METADATA

        self._path = path
        texts = {METADATA: ""}
        try:
            with quiet("torch.export"):
                self._program: Any = torch.export.load(path, extra_files=texts).module()
        except Exception as error:  # torch has many
            raise ExportError(f"{path}: it is no program of torch.export.") from error
        self.about = _metadata(path, texts[METADATA])

    def score(self, model: BaseRegressor, rows: Any) -> Outputs:
        """Run the program on the raw columns of a table."""
        import torch

        prep = model.fitted_.preprocessor
        wanted, given = describe_columns(prep), self.about.get("columns", [])
        _check_columns(self._path, *([c["name"] for c in side] for side in (wanted, given)))
        for in_model, in_file in zip(wanted, given, strict=True):
            if in_model != in_file:
                raise ExportError(
                    f'{self._path}: the column "{in_model["name"]}" differs between file and model '
                    "in its kind or its labels; export the model again."
                )
        found = self._program(torch.from_numpy(numbers(prep, rows)))
        outputs = {name: value.numpy() for name, value in found.items()}
        if "verdict" in outputs:  # a program has only numbers
            outputs["verdict"] = np.array(WORDS, object)[outputs["verdict"]]
        return outputs


def _refusal(error: Exception, opset: int) -> str:
    """Describe onnxruntime's error: mostly, operators or the format are too new for it."""
    if "supported IR version" in str(error) or "till opset" in str(error):
        return (
            f"its opset {opset} is too new for the installed onnxruntime; export the model again, "
            f"with an older one (from {LEAST_OPSET})."
        )
    return f"onnxruntime cannot load it: {error}"


def _metadata(path: Path, text: str | None) -> dict[str, Any]:
    try:
        about = json.loads(text or "")
        coverage, method = about["coverage"], about["interval"]
        known = 0 < coverage < 1 and method in ("predictive", "conformal")
    except (ValueError, TypeError, KeyError):
        known, about = False, {}
    if not known:
        raise ExportError(f"{path}: `priornet export` did not write it: it names no coverage.")
    return about


def _check_columns(path: Path, wanted: Any, given: Any) -> None:
    missing = [name for name in wanted if name not in set(given)]
    extra = [name for name in given if name not in set(wanted)]
    if missing or extra:
        name, where = (missing[0], "the model") if missing else (extra[0], "the file")
        raise ExportError(f'{path}: it has other columns: only {where} has "{name}".')
