"""Write an ONNX graph as arithmetic: values with operators, equal constants kept once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from priornet._version import __version__
from priornet.export.interface import ExportError, need

LEAST_OPSET = 18
"""The oldest supported version of the operators."""
_ML_OPSET = 3
_METADATA = "priornet"
_OWN = "/priornet/"  # begins the names of inner values

Number: TypeAlias = "Value | float | NDArray[Any]"
Operator: TypeAlias = "Callable[[Value, Number], Value]"


def _operators(kind: str) -> tuple[Operator, Operator]:
    """Return the methods of an operator for a value on its left, and on its right."""

    def on_left(self: Value, other: Number) -> Value:
        return self.do(kind, self.graph.constant(other, self.dtype))

    def on_right(self: Value, other: Number) -> Value:
        return self.graph.constant(other, self.dtype).do(kind, self)

    return on_left, on_right


class Value:
    """A tensor of a graph: its name there, and its type.

    Arithmetic with a number or an array makes that a constant of the same type.
    """

    __array_ufunc__ = None  # an array on the left leaves the arithmetic to this class

    def __init__(self, graph: Graph, name: str, dtype: Any) -> None:
        self.graph, self.name, self.dtype = graph, name, np.dtype(dtype)

    __add__, __radd__ = _operators("Add")
    __sub__, __rsub__ = _operators("Sub")
    __mul__, __rmul__ = _operators("Mul")
    __truediv__, __rtruediv__ = _operators("Div")
    __matmul__ = _operators("MatMul")[0]

    def do(self, kind: str, *others: Value, **attributes: Any) -> Value:
        """Apply an operator that keeps the type."""
        return self.graph.add(kind, self, *others, dtype=self.dtype, **attributes)

    def cast(self, dtype: Any) -> Value:
        """Cast to another type."""
        if np.dtype(dtype) == self.dtype:
            return self
        to = self.graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.graph.add("Cast", self, dtype=dtype, to=to)

    def compare(self, kind: str, other: Number) -> Value:
        """Compare: ``Equal``, ``Less``, ``LessOrEqual``, ``Greater`` or ``GreaterOrEqual``."""
        return self.graph.add(kind, self, self.graph.constant(other, self.dtype), dtype=bool)

    def where(self, yes: Value, no: Number) -> Value:
        """Choose between two values, element by element; this one is boolean."""
        no = self.graph.constant(no, yes.dtype)
        return self.graph.add("Where", self, yes, no, dtype=yes.dtype)

    def clip(self, low: float, high: float) -> Value:
        """Move numbers outside of two limits to the nearer one."""
        return self.do("Clip", *(self.graph.constant(end, self.dtype) for end in (low, high)))

    def at(self, index: int | list[int], axis: int = -1) -> Value:
        """Select entries along an axis; a single index drops the axis."""
        return self.do("Gather", self.graph.constant(np.array(index), np.int64), axis=axis)

    def reduce(self, kind: str, axis: int, *, keep: bool = False) -> Value:
        """Reduce an axis, counted from 0, by ``ReduceSum``, ``ReduceMean``, ``ReduceMin``, ..."""
        assert axis >= 0, "onnxruntime does not reduce axes counted from the end without rows"
        return self.do(kind, self.graph.constant([axis], np.int64), keepdims=int(keep))

    def reshape(self, *shape: int) -> Value:
        """Reshape; 0 keeps a size, -1 takes the rest."""
        return self.do("Reshape", self.graph.constant(list(shape), np.int64))


def join(values: list[Value], axis: int = -1) -> Value:
    """Concatenate values."""
    first, *others = values
    return first.do("Concat", *others, axis=axis) if others else first


class Graph:
    """Nodes, constants, inputs and outputs of a graph.

    The body of a loop has a parent, the graph around it, which holds the constants. No inner value
    gets a name that is taken by an input or an output.
    """

    def __init__(self, parent: Graph | None = None, taken: Iterable[str] = ()) -> None:
        self.onnx: Any = need("onnx", "export a model") if parent is None else parent.onnx
        self._root = self if parent is None else parent._root
        self._own = unlike(taken, _OWN) if parent is None else parent._own
        self._nodes: list[Any] = []
        self._constants: dict[tuple[Any, ...], Any] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._domains: set[str] = set()
        self._count = 0

    def input(self, name: str, dtype: Any, shape: list[Any] | None) -> Value:
        """Add an input; a text in the shape names a size that may vary, None stands for any."""
        self._inputs.append(self._described(name, dtype, shape))
        return Value(self, name, dtype)

    def output(self, name: str, value: Value, shape: list[Any] | None) -> None:
        """Add an output: a value under a name."""
        self._nodes.append(self.onnx.helper.make_node("Identity", [value.name], [name]))
        self._outputs.append(self._described(name, value.dtype, shape))

    def _described(self, name: str, dtype: Any, shape: list[Any] | None) -> Any:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)

    def constant(self, value: Any, dtype: Any) -> Value:
        """Return a number or an array as a value; equal constants are kept once."""
        if isinstance(value, Value):
            return value
        array, known = np.asarray(value, dtype), self._root._constants
        content = tuple(array.flat) if array.dtype == object else array.tobytes()  # texts, numbers
        key = (array.dtype.str, array.shape, content)
        if key not in known:
            name = f"{self._own}constant_{len(known)}"
            known[key] = self.onnx.numpy_helper.from_array(array, name)
        return Value(self, known[key].name, array.dtype)

    def add(
        self, kind: str, *inputs: Value, dtype: Any, domain: str = "", **attributes: Any
    ) -> Value:
        """Add a node with one output, inside a loop if an input is of its body."""
        graph = next((value.graph for value in inputs if value.graph is not self._root), self)
        (name,) = graph._add(kind, inputs, 1, domain=domain, **attributes)
        return Value(graph, name, dtype)

    def _add(
        self, kind: str, inputs: Sequence[Value], n_outputs: int, **attributes: Any
    ) -> list[str]:
        """Add a node, and return the names of its outputs."""
        root = self._root
        names = [f"{self._own}{kind.lower()}_{root._count + i}" for i in range(n_outputs)]
        root._count += n_outputs
        root._domains.add(attributes.get("domain", ""))
        given = [value.name for value in inputs]
        self._nodes.append(self.onnx.helper.make_node(kind, given, names, **attributes))
        return names

    def loop(
        self,
        most: int,
        start: list[Value],
        step: Callable[[list[Value]], tuple[Value, list[Value]]],
    ) -> list[Value]:
        """Add a loop that ends after ``most`` steps, or when its step returns false.

        The step gets values like ``start``, in the graph of the loop's body. It returns a boolean
        value, true to go on, and the values of the next step.
        """
        body, number = Graph(self), self._root._count
        body.input(f"{self._own}step_{number}", np.int64, [])
        body.input(f"{self._own}going_{number}", bool, [])
        names = [f"{self._own}carried_{number}_{i}" for i in range(len(start))]
        pairs = zip(names, start, strict=True)
        go_on, after = step([body.input(name, value.dtype, None) for name, value in pairs])
        for i, value in enumerate([go_on, *after]):
            body.output(f"{self._own}next_{self._root._count}_{i}", value, None)
        limits = (self.constant(most, np.int64), self.constant(True, bool))
        found = self._add("Loop", [*limits, *start], len(start), body=body.proto("body"))
        return [Value(self, name, v.dtype) for name, v in zip(found, start, strict=True)]

    def proto(self, name: str) -> Any:
        """Return the graph as an ``onnx.GraphProto``."""
        constants = list(self._constants.values())
        return self.onnx.helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, constants
        )

    def model(self, opset: int, origin: dict[str, Any]) -> Any:
        """Return the graph as a checked ``onnx.ModelProto`` with its origin in the metadata."""
        helper = self.onnx.helper
        versions = [helper.make_opsetid("", opset)]
        versions += [helper.make_opsetid(d, _ML_OPSET) for d in sorted(self._domains) if d]
        model = helper.make_model(
            self.proto("priornet"),
            opset_imports=versions,
            producer_name="priornet",
            producer_version=__version__,
            ir_version=helper.find_min_ir_version_for(versions),
        )
        set_origin(self.onnx, model, origin)
        return model


def unlike(taken: Iterable[str], start: str) -> str:
    """Extend ``start`` by itself until no taken name begins with it."""
    taken, beginning = tuple(taken), start
    while any(name.startswith(beginning) for name in taken):
        beginning += start
    return beginning


def check_opset(opset: int) -> None:
    """Refuse operators too old for the graph, or too new for the installed package."""
    newest = need("onnx", "export a model").defs.onnx_opset_version()
    if not LEAST_OPSET <= opset <= newest:
        why = "too old" if opset < LEAST_OPSET else "not known to the installed onnx"
        raise ExportError(f"opset {opset} is {why}; choose one from {LEAST_OPSET} to {newest}.")


def set_origin(onnx: Any, model: Any, origin: dict[str, Any]) -> None:
    """Write a model's origin into its metadata, and check the model."""
    onnx.helper.set_model_props(model, {_METADATA: json.dumps(origin)})
    onnx.checker.check_model(model, full_check=True)
