"""How a row stands among those of training, as nodes: :mod:`priornet.estimators.verdict`.

The in-domain score counts reference rows. They are sorted, and looked through in two steps: which
block of some forty, and where in it. Memory is then a few hundred bytes a row, not thousands.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from priornet.estimators.verdict import NOISY, WORDS, Reference
from priornet.export.onnx.graph import Graph, Value

__all__ = ["STANDING", "Standing", "no_number", "standing"]


class Standing(NamedTuple):
    """Each ``(rows,)``."""

    in_domain: Value | None
    """Share of reference rows at least as uncertain; None without knowledge uncertainty."""
    verdict: Value
    """One of the three words."""


STANDING = Standing._fields
"""Names of the outputs."""


def standing(
    graph: Graph,
    reference: Reference,
    knowledge: Value,
    data: Value,
    n_targets: int,
    odd: Value,
    *,
    is_enough: bool = True,
) -> Standing:
    """Nodes from the variances of standardised targets to score and word.

    Args:
        graph: Gets the nodes.
        reference: Of the model.
        knowledge: Knowledge variance, ``(rows, K)``.
        data: Data variance, ``(rows, K)``.
        n_targets: K.
        odd: Rows that are unfamiliar whatever their variances, ``(rows, 1)``.
        is_enough: Whether the model had rows enough; otherwise all are unfamiliar.
    """
    if n_targets > 1:
        knowledge, data = (v.reduce("ReduceMean", 1, keep=True) for v in (knowledge, data))
    noisy = data.do("Sqrt").compare("Greater", NOISY * reference.data)
    place = noisy.cast(np.int64)
    score = None
    if reference.has_knowledge:
        score = _familiarity(graph, reference.knowledge, knowledge)
        familiar = knowledge.compare("LessOrEqual", reference.limit)  # nan is not
        place = graph.where(familiar, place, graph.constant(2, np.int64))
    place = graph.where(odd, graph.constant(2, np.int64), place)
    words = graph.constant(list(WORDS) if is_enough else [WORDS[2]] * len(WORDS), object)
    return Standing(score, words.do("Gather", place.at(0), axis=0))


def no_number(graph: Graph, mean: Value) -> Value:
    """Tell where a prediction ``(rows, K)`` has overflown, ``(rows, 1)``: a graph cannot refuse."""
    largest = np.finfo(np.float64).max
    is_finite = mean.cast(np.float64).do("Abs").compare("LessOrEqual", largest)
    every = is_finite.cast(np.int64).reduce("ReduceMin", 1, keep=True)
    return every.compare("Equal", 0)


def _familiarity(graph: Graph, ordered: NDArray[np.float64], knowledge: Value) -> Value:
    """The score, ``(rows,)``, from knowledge ``(rows, 1)``."""
    n = len(ordered)
    size = math.ceil(math.sqrt(n))
    n_blocks = n // size + 1  # the last ends beyond every number
    blocks = np.full((n_blocks, size), np.inf)
    blocks.reshape(-1)[:n] = ordered

    def n_below(numbers: Value) -> Value:
        below = graph.add("Less", numbers, knowledge, dtype=bool).cast(np.float64)
        return below.reduce("ReduceSum", 1)

    block = n_below(graph.constant(blocks[:-1, -1], np.float64))
    table = graph.constant(blocks, np.float64)
    rest = n_below(table.do("Gather", block.cast(np.int64), axis=0))
    return (1.0 + n - (block * size + rest)) * (1 / (1 + n))
