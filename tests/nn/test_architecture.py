"""The shape of a network as plain data."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from priornet.nn import GaussianHead
from priornet.nn.architecture import Network, RampedMLP, n_ramps, quantile_edges

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


EDGES = ((-1.0, 0.5, 2.0), (), (0.0, 1.0))


def ramped(n_networks=1):
    return RampedMLP(EDGES, (7, 5), GaussianHead(5), range(n_networks), torch.float64)


def inputs(*shape):
    generator = torch.Generator().manual_seed(0)
    return 3 * torch.randn(*shape, 3, dtype=torch.float64, generator=generator)


def test_a_ramp_rises_from_0_to_1_between_its_edges():
    x = inputs(50)
    found = ramped().features(x)
    a, _, c = x.T.numpy()
    pieces = [(a, -1.0, 0.5), (a, 0.5, 2.0), (c, 0.0, 1.0)]
    expected = [np.interp(column, [low, high], [0, 1]) for column, low, high in pieces]
    np.testing.assert_array_equal(found[:, :3], x)
    np.testing.assert_allclose(found[:, 3:].T, expected, atol=1e-15)


def test_far_numbers_end_their_ramps_in_single_precision_too():
    stack = RampedMLP(EDGES, (5,), GaussianHead(5), [0])
    far = stack.features(torch.tensor([[-1e12, 0.0, -1e12], [1e12, 0.0, 1e12]]))
    assert far[:, 3:].tolist() == [[0.0] * 3, [1.0] * 3]


def test_ramps_of_single_precision_round_once_per_step():
    """Another runtime computes the same with Gather, Sub, Mul and Clip, bit for bit."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((1000, 3)).astype(np.float32) * 100
    edges = quantile_edges(torch.from_numpy(table), 32, [True] * 3)
    stack = RampedMLP(edges, (5,), GaussianHead(5), [0])
    found = stack.features(torch.from_numpy(table))[:, 3:].numpy()
    low = np.concatenate([own[:-1] for own in edges])
    slope = 1 / (np.concatenate([own[1:] for own in edges]) - low)
    picked = np.repeat(table, 32, 1)
    expected = ((picked - low.astype(np.float32)) * slope.astype(np.float32)).clip(0, 1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_networks", [1, 4])
def test_a_training_step_has_the_gradient_that_autograd_finds(n_networks):
    stack, x = ramped(n_networks), inputs(n_networks, 6)
    slope = torch.randn(n_networks, 6, 2, dtype=torch.float64)
    (expected,) = torch.autograd.grad(stack.raw(x), stack.weights, slope)
    torch.testing.assert_close(stack.start_step(x), stack.raw(x))
    stack.finish_step(slope)
    torch.testing.assert_close(stack.weights.grad, expected)


def test_no_rows_have_no_ramps():
    assert ramped().features(inputs(1, 0)).shape == (1, 0, 6)


def test_selected_networks_answer_the_same_and_move_alone():
    stack, x = ramped(3), inputs(3, 6)
    chosen = stack.select([2])
    torch.testing.assert_close(chosen.raw(x[2:]), stack.raw(x)[2:])
    chosen.to(torch.float32)
    assert stack.shift.dtype == torch.float64


def test_edges_cut_columns_into_pieces_of_as_many_rows():
    column = torch.arange(101.0)[torch.randperm(101, generator=torch.Generator().manual_seed(0))]
    table = torch.stack([column, column**3, column], 1)
    edges = quantile_edges(table, 4, [True, True, False])
    assert edges[0] == (0, 25, 50, 75, 100)
    assert edges[1] == (0, 25**3, 50**3, 75**3, 100**3)
    assert edges[2] == ()
    assert n_ramps(edges) == 8


def test_columns_of_few_values_have_few_ramps():
    table = torch.tensor([[0.0, 5.0], [0.0, 5.0], [0.0, 5.0], [2.0, 5.0]])
    assert quantile_edges(table, 16, [True, True]) == ((0.0, 2.0), ())


@pytest.mark.parametrize("edges", [[(0.0, 0.0)], [(1.0, 0.0)], [(0.0, float("nan"))]])
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(ValueError, match="rise within each column"):
        RampedMLP(edges, (5,), GaussianHead(5), [0])
