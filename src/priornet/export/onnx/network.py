"""Stacked perceptrons as nodes."""

from __future__ import annotations

from priornet.export.onnx.graph import Graph, Value
from priornet.nn import StackedMLP
from priornet.nn.ramps import RampedMLP

__all__ = ["perceptron"]


def perceptron(graph: Graph, stack: StackedMLP, x: Value) -> Value:
    """Raw outputs ``(rows, n)`` of one network, ``(S, rows, n)`` of several."""
    x = _with_ramps(graph, stack, x)
    parts = [part.detach().cpu().numpy() for part in stack.pieces().values()]
    layers = list(
        zip(parts[::2], parts[1::2], strict=True)
    )  # weights (S, in, out), biases (S, out)
    for i, (weight, bias) in enumerate(layers):
        if stack.n_networks == 1:
            w, b = (graph.constant(part[0], x.dtype) for part in (weight, bias))
            x = x.do("Gemm", w, b)
        else:
            x = x @ weight + bias[:, None]
        if i < len(layers) - 1:
            x = x.do("Relu")
    return x


def _with_ramps(graph: Graph, stack: StackedMLP, x: Value) -> Value:
    """Inputs, and behind them the ramps of a stack that reads numbers so."""
    if not isinstance(stack, RampedMLP):
        return x
    own = {name: part.cpu().numpy() for name, part in stack.named_buffers()}
    n_inputs, n_all = own["pick"].shape
    pick, shift = (graph.constant(own[name], x.dtype) for name in ("pick", "shift"))
    laid = x.do("Gemm", pick, shift)
    ends = (graph.constant(end, x.dtype) for end in (0.0, 1.0))
    ramps = (laid.at(list(range(n_inputs, n_all))) * own["slope"]).do("Clip", *ends)
    return graph.join([laid.at(list(range(n_inputs))), ramps])
