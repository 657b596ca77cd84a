"""Writing an ONNX graph as arithmetic: values with operators, constants shared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from priornet.export.errors import need

__all__ = ["Graph", "Number", "Value", "log1p", "unlike"]

_OWN = "/priornet/"  # begins the names of what is in between

Number: TypeAlias = "Value | float | NDArray[Any]"


class Value:
    """A tensor of a graph: its name there, and its type.

    Arithmetic with a number or an array makes that a constant of the same type.
    """

    __array_ufunc__ = None  # an array on the left leaves the arithmetic to us

    def __init__(self, graph: Graph, name: str, dtype: Any) -> None:
        self.graph, self.name, self.dtype = graph, name, np.dtype(dtype)

    def _with(self, kind: str, other: Number, swapped: bool = False) -> Value:
        other = self.graph.constant(other, self.dtype)
        pair = (other, self) if swapped else (self, other)
        return self.graph.add(kind, *pair, dtype=self.dtype)

    def __add__(self, other: Number) -> Value:
        return self._with("Add", other)

    def __radd__(self, other: Number) -> Value:
        return self._with("Add", other, swapped=True)

    def __sub__(self, other: Number) -> Value:
        return self._with("Sub", other)

    def __rsub__(self, other: Number) -> Value:
        return self._with("Sub", other, swapped=True)

    def __mul__(self, other: Number) -> Value:
        return self._with("Mul", other)

    def __rmul__(self, other: Number) -> Value:
        return self._with("Mul", other, swapped=True)

    def __truediv__(self, other: Number) -> Value:
        return self._with("Div", other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._with("Div", other, swapped=True)

    def __matmul__(self, other: Number) -> Value:
        return self._with("MatMul", other)

    def do(self, kind: str, *others: Value, **attributes: Any) -> Value:
        """An operator on this value that keeps its type."""
        return self.graph.add(kind, self, *others, dtype=self.dtype, **attributes)

    def cast(self, dtype: Any) -> Value:
        """The same numbers in another type."""
        if np.dtype(dtype) == self.dtype:
            return self
        to = self.graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.graph.add("Cast", self, dtype=dtype, to=to)

    def compare(self, kind: str, other: Number) -> Value:
        """``Equal``, ``Less``, ``LessOrEqual``, ``Greater`` or ``GreaterOrEqual``."""
        return self.graph.add(kind, self, self.graph.constant(other, self.dtype), dtype=bool)

    def at(self, index: int | list[int], axis: int = -1) -> Value:
        """Entries along an axis; a single index drops it."""
        return self.do("Gather", self.graph.constant(np.array(index), np.int64), axis=axis)

    def reduce(self, kind: str, axis: int, *, keep: bool = False) -> Value:
        """``ReduceSum``, ``ReduceMean``, ``ReduceMin`` or ``ReduceMax`` over an axis, from 0."""
        assert axis >= 0, "onnxruntime does not reduce axes counted from the end without rows"
        return self.do(kind, self.graph.constant([axis], np.int64), keepdims=int(keep))

    def reshape(self, *shape: int) -> Value:
        """Another shape; 0 keeps a size, -1 is what is left."""
        return self.do("Reshape", self.graph.constant(list(shape), np.int64))


class Graph:
    """Nodes, constants, inputs and outputs in the making.

    Args:
        parent: For the body of a loop: the graph around it, which holds the constants.
        taken: Names of inputs and outputs: nothing in between is called so.
    """

    def __init__(self, parent: Graph | None = None, taken: Iterable[str] = ()) -> None:
        self.onnx: Any = need("onnx", "export a model")
        self._root = self if parent is None else parent._root
        self._own = unlike(taken, _OWN) if parent is None else parent._own
        self._nodes: list[Any] = []
        self._constants: dict[tuple[Any, ...], Any] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._count = 0
        self.domains: set[str] = set()

    def input(self, name: str, dtype: Any, shape: list[Any]) -> Value:
        """An input; a text in the shape names a size that may vary."""
        self._inputs.append(self._described(name, dtype, shape))
        return Value(self, name, dtype)

    def output(self, name: str, value: Value, shape: list[Any] | None) -> None:
        """Call a value by a name and give it out."""
        named = self.onnx.helper.make_node("Identity", [value.name], [name])
        self._nodes.append(named)
        self._outputs.append(self._described(name, value.dtype, shape))

    def _described(self, name: str, dtype: Any, shape: list[Any] | None) -> Any:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)

    def constant(self, value: Any, dtype: Any) -> Value:
        """A number or an array as a value; equal ones are kept once."""
        if isinstance(value, Value):
            return value
        array = np.asarray(value, dtype)
        root = self._root
        content = tuple(array.flat) if array.dtype == object else array.tobytes()  # texts, numbers
        key = (array.dtype.str, array.shape, content)
        if key not in root._constants:
            name = f"{self._own}constant_{len(root._constants)}"
            root._constants[key] = self.onnx.numpy_helper.from_array(array, name)
        return Value(self, root._constants[key].name, array.dtype)

    def add(
        self, kind: str, *inputs: Value, dtype: Any, domain: str = "", **attributes: Any
    ) -> Value:
        """A node with one output."""
        (value,) = self.add_many(kind, list(inputs), [dtype], domain=domain, **attributes)
        return value

    def add_many(
        self, kind: str, inputs: list[Value], dtypes: list[Any], domain: str = "", **attributes: Any
    ) -> list[Value]:
        """A node with an output per type."""
        root = self._root
        root.domains.add(domain)
        names = [f"{self._own}{kind.lower()}_{root._count + i}" for i in range(len(dtypes))]
        root._count += len(dtypes)
        node = self.onnx.helper.make_node(
            kind, [value.name for value in inputs], names, domain=domain, **attributes
        )
        self._nodes.append(node)
        return [Value(self, name, dtype) for name, dtype in zip(names, dtypes, strict=True)]

    def join(self, values: list[Value], axis: int = -1) -> Value:
        """Values side by side."""
        if len(values) == 1:
            return values[0]
        return self.add("Concat", *values, dtype=values[0].dtype, axis=axis)

    def where(self, condition: Value, yes: Value, no: Number) -> Value:
        """Per element the one or the other."""
        return self.add("Where", condition, yes, self.constant(no, yes.dtype), dtype=yes.dtype)

    def loop(self, most: int, start: list[Value], step: Any) -> list[Value]:
        """Repeat a step while it says so.

        Args:
            most: Steps at most.
            start: What the first step gets.
            step: Given the graph of the body and values like ``start``, gives whether to go on and
                the values of the next step.
        """
        body = Graph(self)
        number = body.input(f"{self._own}step_{self._root._count}", np.int64, [])
        going = body.input(f"{self._own}going_{self._root._count}", bool, [])
        del number, going
        carried = [
            body.input(f"{self._own}carried_{self._root._count}_{i}", value.dtype, None)  # pyright: ignore[reportArgumentType] (any rank)
            for i, value in enumerate(start)
        ]
        go_on, after = step(body, carried)
        for i, value in enumerate([go_on, *after]):
            body.output(f"{self._own}next_{self._root._count}_{i}", value, None)
        count = self.constant(most, np.int64)
        yes = self.constant(True, bool)
        return self.add_many(
            "Loop",
            [count, yes, *start],
            [value.dtype for value in start],
            body=body.proto("body"),
        )

    def proto(self, name: str) -> Any:
        """The graph as ONNX has it."""
        return self.onnx.helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, list(self._constants.values())
        )


def unlike(taken: Iterable[str], start: str) -> str:
    """A beginning of names that none of those taken has: this one, as often as it takes."""
    taken, beginning = tuple(taken), start
    while any(name.startswith(beginning) for name in taken):
        beginning += start
    return beginning


def log1p(graph: Graph, x: Value) -> Value:
    """ln(1 + x) to the last digit: what 1 + x lost is put right by a quotient (Kahan)."""
    u = x + 1.0
    rounded = u - 1.0
    lost = rounded.compare("Equal", 0.0)
    return graph.where(lost, x, u.do("Log") * (x / graph.where(lost, u, rounded)))
