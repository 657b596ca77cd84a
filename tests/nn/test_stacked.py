"""A stack is its networks side by side: same numbers and same first weights as each one alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from priornet.nn import MLP, GaussianHead, NormalWishartHead
from priornet.nn.stacked import StackedMLP, StackedModules


def perceptron(stack: StackedMLP, network: int) -> nn.Sequential:
    """The same network as plain torch layers."""
    layers: list[nn.Module] = []
    pieces = [part[network].detach() for part in stack.pieces().values()]
    for weight, bias in zip(pieces[::2], pieces[1::2], strict=True):
        n_in, n_out = weight.shape
        layer = nn.Linear(n_in, n_out, dtype=weight.dtype)
        layer.weight.data, layer.bias.data = weight.T.clone(), bias.clone()
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def varied(seeds, dtype=torch.float64) -> StackedMLP:
    return StackedMLP(3, (7, 5), GaussianHead(5, init_gain=1.0), seeds, dtype)


@pytest.mark.parametrize("n_networks", [1, 4])
def test_outputs_are_those_of_the_networks_one_by_one(n_networks):
    stack = varied(range(n_networks))
    x = torch.randn(n_networks, 6, 3, dtype=torch.float64)
    for i in range(n_networks):
        torch.testing.assert_close(stack.raw(x)[i], perceptron(stack, i)(x[i]))


def test_first_weights_do_not_depend_on_other_networks():
    alone = varied([17])
    among = varied([*range(99), 17])
    assert torch.equal(alone.weights[0], among.weights[99])
    assert not torch.equal(among.weights[0], among.weights[1])


def test_first_weights_agree_between_precisions():
    assert torch.equal(varied([3], torch.float32).weights.double(), varied([3]).weights)


def test_first_weights_are_spread_as_torch_spreads_them():
    stack = StackedMLP(100, (400,), GaussianHead(400, init_gain=1.0), [0])
    layer = nn.Linear(100, 400)
    found = stack.pieces()["0.weight"].detach()
    torch.testing.assert_close(found.std(), layer.weight.std().detach(), rtol=0.02, atol=0.0)
    assert float(found.abs().max()) <= 0.1


def test_first_prediction_is_that_of_the_head():
    stack = StackedMLP(3, (8,), NormalWishartHead(8), range(2))
    belief = stack(torch.randn(2, 5, 3))
    assert torch.equal(belief.loc, torch.zeros(2, 5, 1))
    torch.testing.assert_close(belief.belief, torch.full((2, 5), 10.0))


def test_select_copies_rows():
    stack = varied(range(4))
    some = stack.select([2, 0])
    assert torch.equal(some.weights, stack.weights[[2, 0]])
    x = torch.randn(2, 6, 3, dtype=torch.float64)
    torch.testing.assert_close(some.raw(x), stack.raw(x[[1, 0, 0, 1]])[[2, 0]])
    with torch.no_grad():
        some.weights.zero_()
    assert bool((stack.weights != 0).any())


def test_together_gives_every_network_the_same_inputs():
    stack = varied(range(3))
    x = torch.randn(6, 3, dtype=torch.float64)
    torch.testing.assert_close(stack.together(x).loc, stack(x.repeat(3, 1, 1)).loc)


def test_only_the_weights_are_parameters():
    assert [name for name, p in varied([0]).named_parameters() if p.requires_grad] == ["weights"]


def test_modules_agree_with_themselves_and_leave_the_generator_alone():
    head = GaussianHead(2)
    before = torch.random.get_rng_state()
    stack = StackedModules(lambda: MLP(3, 8, 2), head, range(3))
    assert torch.equal(before, torch.random.get_rng_state())
    x = torch.randn(3, 5, 3)
    for i in range(3):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(i)
            network = MLP(3, 8, 2)
        torch.testing.assert_close(stack.raw(x)[i], network(x[i]))


def test_modules_with_convolutions_stack():
    def make():
        return nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))

    stack = StackedModules(make, GaussianHead(2), range(2))
    assert stack(torch.randn(2, 7, 1, 6)).batch_shape == (2, 7)


def ends_in_tanh():
    return nn.Sequential(nn.Linear(3, 7), nn.ReLU(), nn.Linear(7, 2), nn.Tanh())


@pytest.mark.parametrize(
    "stack",
    [
        varied(range(4)),
        varied(range(1)),
        # Its last operation remembers the outputs, which a step of training writes over.
        StackedModules(ends_in_tanh, GaussianHead(2), range(4), torch.float64),
    ],
    ids=["perceptrons", "one perceptron", "modules"],
)
def test_a_step_gives_the_gradient_of_autograd(stack):
    x = torch.randn(stack.n_networks, 6, 3, dtype=torch.float64)
    slope = torch.randn(stack.n_networks, 6, 2, dtype=torch.float64)
    (expected,) = torch.autograd.grad(stack.raw(x), stack.weights, slope)
    outputs = stack.start_step(x)
    torch.testing.assert_close(outputs, stack.raw(x).detach())
    outputs.zero_()
    stack.finish_step(slope)
    torch.testing.assert_close(stack.weights.grad, expected)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: StackedMLP(3, (), GaussianHead(5), [0]), "at least one hidden layer"),
        (lambda: StackedMLP(3, (4,), GaussianHead(5), [0]), "takes 5 features"),
        (lambda: StackedMLP(3, (5,), GaussianHead(5), []), "one seed per network"),
        (
            lambda: StackedModules(lambda: nn.BatchNorm1d(2), GaussianHead(2), [0]),
            "without buffers",
        ),
    ],
)
def test_bad_stack_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("head", [GaussianHead(5), NormalWishartHead(5)], ids=["gaussian", "nw"])
def test_half_precision_outputs_are_lifted_to_float32(head):
    stack, x = StackedMLP(3, (5,), head, [0, 1]), torch.ones(2, 4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert stack(x).loc.dtype == torch.float32
    raw = torch.zeros(4, head.n_outputs, dtype=torch.float16)
    assert head.distribution(raw).loc.dtype == torch.float32
