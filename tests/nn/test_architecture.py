"""The shape of a network as plain data."""

from __future__ import annotations

import json

import pytest
import torch

from priornet.nn.architecture import Network
from priornet.nn.ramps import RampedMLP

RAMPED = Network(2, (8, 8), 1, "normal-wishart", edges=((-1.0, 0.1, 2.0), ()))


def test_edges_survive_a_file():
    assert Network.from_json(json.loads(json.dumps(RAMPED.to_json()))) == RAMPED


def test_files_without_edges_are_plain_networks():
    plain = Network(2, (8, 8), 1)
    state = plain.to_json()
    assert "edges" not in state
    assert Network.from_json(state) == plain


def test_ramps_count_as_inputs_of_the_first_layer():
    stack = RAMPED.build([0], torch.zeros(()))
    assert isinstance(stack, RampedMLP)
    assert stack.weights.shape == (1, RAMPED.n_weights)


@pytest.mark.parametrize(
    ("edges", "message"),
    [([[0.0, 1.0]], "1 lists of edges for 2 inputs"), (["ab", "c"], "list of lists"), (3, "list")],
)
def test_edges_that_do_not_fit_are_refused(edges, message):
    with pytest.raises(ValueError, match=message):
        Network.from_json({**RAMPED.to_json(), "edges": edges})
