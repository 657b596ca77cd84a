"""Settings are judged on rows that they have not seen, several networks as an ensemble."""

import pytest
import torch

from priornet.nn import GaussianHead, NormalWishartHead
from priornet.nn.stacked import StackedMLP
from priornet_paper.uci.choice import tells_best, validation_nll

X = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
Y = X[:, :1]


def test_networks_of_a_setting_are_a_mixture():
    stack = StackedMLP(2, (8,), GaussianHead(8, init_gain=1.0), range(6))
    found = validation_nll(stack, X, Y, 3)
    alone = [-g.log_prob(Y) for g in (stack.select([i]).together(X) for i in range(6))]
    for setting, members in enumerate((alone[:3], alone[3:])):
        density = torch.stack([torch.exp(-nll[0]) for nll in members]).mean(0)
        torch.testing.assert_close(found[setting], -torch.log(density).detach())


@pytest.mark.parametrize("gap", [0.0, 5.0])
def test_only_those_as_good_as_the_best_are_asked_about_strange_rows(gap):
    """The second network doubts strange rows; it is taken unless its NLL is clearly worse."""
    stack = StackedMLP(2, (8,), NormalWishartHead(8), [0, 0])
    with torch.no_grad():
        stack.pieces()["1.weight"][1, :, 2] = -0.2  # belief falls where features grow
    nll = torch.randn(1, 30, generator=torch.Generator().manual_seed(1)).repeat(2, 1)
    nll[1] += gap
    assert tells_best(stack, nll, X, 10 * X, 1) == (1 if gap == 0 else 0)


@pytest.mark.parametrize(("gap", "is_as_good"), [(0.257, True), (0.259, False)])
def test_as_good_is_within_one_standard_error_of_the_mean(gap, is_as_good):
    """By hand: half of 16 gaps are g - 1, half g + 1.

    Their deviation is sqrt(16 / 15), and the standard error of their mean sqrt(1 / 15) = 0.2582.
    """
    stack = StackedMLP(2, (8,), NormalWishartHead(8), [0, 0])
    with torch.no_grad():
        stack.pieces()["1.weight"][1, :, 2] = -0.2  # doubts strange rows, as above
    nll = torch.zeros(2, 16, dtype=torch.float64)
    nll[1] = gap + torch.tensor([-1.0, 1.0]).repeat(8)
    assert tells_best(stack, nll, X, 10 * X, 1) == int(is_as_good)
