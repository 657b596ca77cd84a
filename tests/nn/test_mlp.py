"""The multilayer perceptron, by itself and under each head and loss on tiny problems."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from _asserts import assert_close
from priornet import losses
from priornet.distributions import GaussianEnsemble
from priornet.nn import MLP, GaussianHead, GaussianMixtureHead, NormalWishartHead
from priornet.priors import semi_informative_prior


def test_mlp_is_linear_layers_with_relu_between():
    mlp, x = MLP(3, 5, 4).double(), torch.randn(7, 3, dtype=torch.float64)
    first, _, second, _ = mlp.layers
    assert isinstance(first, nn.Linear)
    assert isinstance(second, nn.Linear)
    hidden = (x @ first.weight.T + first.bias).clamp(min=0)
    assert_close(mlp(x), (hidden @ second.weight.T + second.bias).clamp(min=0), rel=1e-12)
    assert mlp.out_features == 4
    assert mlp(x.reshape(1, 7, 3)).shape == (1, 7, 4)


def test_mlp_needs_a_hidden_layer():
    with pytest.raises(ValueError, match="`widths` must name at least one"):
        MLP(3)


# -- training sanity ------------------------------------------------------------------------------

X = 2 * torch.eye(8)  # eight inputs with nothing in common: all of them can be learnt by heart
Y = torch.tensor([1.2, -0.7, 0.4, -1.6, 0.9, 1.5, -0.8, -0.9]).unsqueeze(-1)
# A teacher that knows the eight points: five members around them.
_OFFSETS = torch.tensor([-0.10, -0.05, 0.0, 0.05, 0.10]).reshape(5, 1, 1)
_VARIANCES = torch.tensor([0.010, 0.015, 0.020, 0.025, 0.030]).reshape(5, 1, 1)


def teacher(y=Y):
    return GaussianEnsemble(y + _OFFSETS, _VARIANCES.expand(5, len(y), 1))


def _prior(y=Y):
    return semi_informative_prior(y)


METHODS = {
    "gaussian_nll": (GaussianHead, {}, lambda p, y: losses.gaussian_nll(p, y)),
    "beta_nll": (GaussianHead, {}, lambda p, y: losses.beta_nll(p, y)),
    "end": (GaussianHead, {}, lambda p, y: losses.end(p, teacher(y))),
    "md_end": (GaussianMixtureHead, {"n_members": 5}, lambda p, y: losses.md_end(p, teacher(y))),
    "endd": (NormalWishartHead, {}, lambda p, y: losses.endd(p, teacher(y))),
    "endd_tied": (
        NormalWishartHead,
        {"tied_evidence": True},
        lambda p, y: losses.endd(p, teacher(y), 2.0, "mean-preserving"),
    ),
    "proxy": (NormalWishartHead, {}, lambda p, y: losses.proxy(p, teacher(y))),
    "reverse_kl": (NormalWishartHead, {}, lambda p, y: losses.reverse_kl(p, y, _prior(), 1e2)),
    "forward_kl": (NormalWishartHead, {}, lambda p, y: losses.forward_kl(p, y, _prior(), 1e2)),
    "evidential": (NormalWishartHead, {}, lambda p, y: losses.evidential(p, y, 0.01)),
}


def train(method, x=X, y=Y, steps=300, seed=0):
    head, options, loss = METHODS[method]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mlp = MLP(x.shape[-1], 32, 32)
        model = nn.Sequential(mlp, head(mlp.out_features, y.shape[-1], **options))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(x), y).mean().backward()
        optimizer.step()
        schedule.step()
    return model


def predicted_mean(model, x):
    with torch.no_grad():
        belief = model(x)
    return belief.means.mean(0) if isinstance(belief, GaussianEnsemble) else belief.loc


@pytest.mark.parametrize("method", METHODS)
def test_network_overfits_eight_points(method):
    model = train(method)
    error = (predicted_mean(model, X) - Y).square().mean().sqrt()
    assert error < 0.1 * Y.std(), f"root mean squared error {error:.3f}"


@pytest.mark.parametrize("method", ["gaussian_nll", "md_end", "reverse_kl"])
def test_same_seed_gives_the_same_weights(method):
    first, second, other = (train(method, steps=20, seed=s) for s in (3, 3, 4))
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(next(first.parameters()), next(other.parameters()))


@pytest.mark.parametrize("method", METHODS)
def test_network_is_never_worse_than_predicting_the_mean(method):
    # A noisy line: new inputs between the training inputs, standardised targets.
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 1, generator=generator)
    y = x + 0.5 * torch.randn(64, 1, generator=generator)
    y = (y - y.mean()) / y.std(correction=0)
    train_x, test_x, train_y, test_y = x[:48], x[48:], y[:48], y[48:]
    model = train(method, train_x, train_y, steps=60)
    error = (predicted_mean(model, test_x) - test_y).square().mean()
    assert error < (train_y.mean() - test_y).square().mean()


def test_out_of_domain_term_brings_the_belief_back_to_the_prior():
    # Eq. (8): with the second term, knowledge uncertainty far away is that of the prior.
    near, far = torch.linspace(-0.6, 0.6, 8).unsqueeze(-1), torch.tensor([[-2.4], [-2.1], [2.1]])
    prior, beta = semi_informative_prior(Y), 1e2
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(MLP(1, 32, 32), NormalWishartHead(32))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.95))
    for _ in range(300):
        optimizer.zero_grad()
        inside = losses.reverse_kl(model(near), Y, prior, beta)
        outside = losses.reverse_kl(model(far), None, prior, 0.0)
        losses.multi_task(inside, outside, gamma=1.0).total.backward()
        optimizer.step()
    with torch.no_grad():
        known, unknown = model(near).mutual_information(), model(far).mutual_information()
    assert known.max() < 0.1 * unknown.min()
    assert_close(unknown, prior.mutual_information().expand(3), rel=0.3)
