"""The gradient in the outputs is autograd's, whichever way it was found."""

from __future__ import annotations

import pytest
import torch

from _asserts import assert_close
from priornet import losses
from priornet.distributions import Gaussian
from priornet.losses._closed_form import kernel_gradient
from priornet.nn import GaussianHead, GaussianMixtureHead, NormalWishartHead
from priornet.priors import semi_informative_prior

BATCH = (3, 4)
GENERATOR = torch.Generator().manual_seed(0)
WEIGHT = torch.rand(BATCH, generator=GENERATOR, dtype=torch.float64)


def draw(*shape):
    """Numbers on the CPU, where the heads are, whatever the device under test."""
    where = {"dtype": torch.float64, "device": "cpu"}
    return torch.randn(*BATCH, *shape, generator=GENERATOR, **where)


Y, Y2 = draw(1), draw(2)


def nll(prediction):
    return losses.gaussian_nll(prediction, Y)


def nll_of_two(prediction):
    return losses.gaussian_nll(prediction, Y2)


def reverse_kl(prediction):
    return losses.reverse_kl(prediction, Y, semi_informative_prior(Y.flatten(0, 1)), 10.0)


def scaled_in_place(prediction):
    loss = nll(prediction)
    loss *= 3.0
    return loss


def of_a_fixed_mean(prediction):
    fixed = Gaussian(prediction.loc.detach(), precision_tril=prediction.precision_tril)
    return nll(fixed)


def looked_at_before(prediction):
    loss = nll(prediction)
    torch.autograd.grad(loss.sum(), prediction.loc, retain_graph=True)
    return loss


def of_the_mixture(prediction):
    return losses.gaussian_nll(prediction.members, Y.expand(5, *Y.shape)).mean(0)


CASES = {
    "a kernel's": (GaussianHead(8), nll),
    "a kernel's, four parameters": (NormalWishartHead(8), reverse_kl),
    "with a mask": (GaussianHead(8), lambda p: losses.gaussian_nll(p, Y, Y[..., 0] > 0)),
    "scaled": (GaussianHead(8), lambda p: nll(p) * 3.0),
    "scaled in place": (GaussianHead(8), scaled_in_place),
    "of the mean alone": (GaussianHead(8), lambda p: (p.loc - Y).square().sum(-1)),
    "of a fixed mean": (GaussianHead(8), of_a_fixed_mean),
    "evaluated before": (GaussianHead(8), looked_at_before),
    "composed": (NormalWishartHead(8), lambda p: losses.gaussian_nll(p.predictive(), Y)),
    "one output for two parameters": (NormalWishartHead(8, tied_evidence=True), reverse_kl),
    "a product": (NormalWishartHead(8, covariance="diagonal"), lambda p: p.entropy()),
    "two targets": (GaussianHead(8, 2), nll_of_two),
    "a mixture": (GaussianMixtureHead(8, n_members=5), of_the_mixture),
}


@pytest.mark.parametrize("case", CASES)
def test_gradient_is_that_of_autograd_through_the_head(case):
    head, loss = CASES[case]
    raw = draw(head.n_outputs)
    outputs = raw.clone().requires_grad_()
    expected = loss(head.distribution(outputs))
    torch.autograd.backward(expected, WEIGHT)

    leaf = head.leaf(raw)
    found = loss(leaf.prediction)
    gradient = leaf.gradient(found, WEIGHT)
    assert_close(found.detach(), expected.detach(), rel=1e-12)
    assert outputs.grad is not None
    torch.testing.assert_close(gradient, outputs.grad, rtol=1e-11, atol=1e-13)


def test_parameters_of_a_loss_of_ones_own_learn_too():
    leaf = GaussianHead(8).leaf(draw(2))
    factor = torch.ones((), dtype=torch.float64, device="cpu", requires_grad=True)
    loss = factor * nll(leaf.prediction)
    leaf.gradient(loss, WEIGHT)
    assert factor.grad is not None
    assert_close(factor.grad, (loss.detach() * WEIGHT).sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("case", "is_known"),
    [
        ("a kernel's", True),
        ("a kernel's, four parameters", True),
        ("scaled", False),
        ("scaled in place", False),
        ("of a fixed mean", False),
        ("evaluated before", False),
        ("composed", False),
    ],
)
def test_a_kernel_speaks_for_its_own_loss_only(case, is_known):
    head, loss = CASES[case]
    prediction = head.leaf(draw(head.n_outputs)).prediction
    assert (kernel_gradient(loss(prediction), prediction) is not None) is is_known


def test_single_precision_gradients_keep_their_digits():
    head = NormalWishartHead(8)
    raw = 3 * draw(4)
    wanted = head.leaf(raw.clone())
    expected = wanted.gradient(reverse_kl(wanted.prediction), WEIGHT)
    leaf = head.leaf(raw.float())
    prior = semi_informative_prior(Y.flatten(0, 1).float())
    loss = losses.reverse_kl(leaf.prediction, Y.float(), prior, 10.0)
    gradient = leaf.gradient(loss, WEIGHT.float()).double()
    assert float((gradient - expected).abs().max() / expected.abs().max()) < 1e-5
