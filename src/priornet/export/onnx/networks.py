"""Networks as nodes: plain perceptrons, and members that share a body."""

from __future__ import annotations

import math

import numpy as np

from priornet.export.onnx.graph import Value, join
from priornet.nn import StackedMLP
from priornet.nn.architecture import RampedMLP
from priornet.nn.shared import LAST_WAVE, SharedMLP


def perceptron(stack: StackedMLP, x: Value) -> Value:
    """Add the layers of a stack: ``(rows, n)`` of one network, ``(S, rows, n)`` of several."""
    parts = [part.detach().cpu().numpy() for part in stack.pieces().values()]
    # Weights (S, in, out), biases (S, out).
    layers = list(zip(parts[::2], parts[1::2], strict=True))
    if isinstance(stack, RampedMLP):
        x = _with_ramps(stack, x)
    for i, (weight, bias) in enumerate(layers):
        if len(weight) == 1:
            w, b = (x.graph.constant(part[0], x.dtype) for part in (weight, bias))
            x = x.do("Gemm", w, b)
        else:
            x = x @ weight + bias[:, None]
        if i < len(layers) - 1:
            x = x.do("Relu")
    return x


def _with_ramps(stack: RampedMLP, x: Value) -> Value:
    """Append the ramps of a stack to its inputs."""
    own = {name: part.cpu().numpy() for name, part in stack.named_buffers()}
    n_inputs, n_all = own["pick"].shape
    pick, shift = (x.graph.constant(own[name], x.dtype) for name in ("pick", "shift"))
    laid = x.do("Gemm", pick, shift)
    ramps = (laid.at(list(range(n_inputs, n_all))) * own["slope"]).clip(0.0, 1.0)
    return join([laid.at(list(range(n_inputs))), ramps])


def outputs_of_members(stack: SharedMLP, x: Value) -> Value:
    """Add a shared network with its members folded to plain perceptrons, ``(M, rows, n)``."""
    network = stack.network
    found = perceptron(stack.plain_members(), _embedded(stack, x))
    if not network.witnessed:
        return found
    share = stack.pieces()["witness"][0].detach().cpu().numpy()
    skips = np.zeros((network.n_members, network.n_targets, stack.head.n_outputs))
    own = np.arange(network.n_targets)
    skips[: network.witnessed, own, own] = share[: network.witnessed]
    return found + x.at(list(range(len(network.knots), network.n_inputs))) @ skips


def _embedded(stack: SharedMLP, x: Value) -> Value:
    """Add the inputs of the body: waves, scores, witness, labels, and the rest."""
    network = stack.network
    parts = {name: part[0].detach().cpu().numpy() for name, part in stack.pieces().items()}
    numbers = [_scores(stack, x.at(network.numbers))] if network.numbers else []
    if network.witnessed:
        numbers.append(x.at(list(range(len(network.knots), network.n_inputs))))
    found: list[Value] = []
    if numbers:
        joined = join(numbers)
        waving = joined.clip(-LAST_WAVE, LAST_WAVE).reshape(0, len(parts["frequencies"]), 1)
        angle = (waving * (2 * math.pi) * parts["frequencies"]).do("Transpose", perm=[1, 0, 2])
        waves = join([angle.do("Sin"), angle.do("Cos")]) @ parts["waves.weight"]
        units = (waves + parts["waves.bias"][:, None]).do("Relu").do("Transpose", perm=[1, 0, 2])
        found = [units.reshape(0, parts["waves.bias"].size), joined]
    for i, (first, end) in enumerate(network.label_columns):
        found.append(x.at(list(range(first, end))) @ parts[f"labels.{i}"])
    return join([*found, x.at(network.rest)] if network.rest else found)


def _scores(stack: SharedMLP, numbers: Value) -> Value:
    """Add the normal scores of numbers ``(rows, numbers)``."""
    own = {name: part.cpu().numpy() for name, part in stack.named_buffers()}
    low, first, high = own["start"]
    zero, length = (numbers.graph.constant(v, numbers.dtype) for v in (0.0, own["length"]))
    outside = (numbers - low).do("Min", zero) + (numbers - high).do("Max", zero) + first
    if not own["length"].size:  # constant columns
        return outside
    inside = (numbers.reshape(0, len(low), 1) - own["shift"]).do("Max", zero).do("Min", length)
    return outside + (inside * own["slope"]).reduce("ReduceSum", 2)
