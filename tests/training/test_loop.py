"""Training: learns, keeps the best weights, and treats each network as if it were alone."""

from __future__ import annotations

import pytest
import torch

from priornet import losses
from priornet.nn import GaussianHead, NormalWishartHead
from priornet.nn.stacked import StackedMLP
from priornet.priors import semi_informative_prior
from priornet.training import Batches, Rows, StackedAdam, Tick, fit

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(60, 3, generator=GENERATOR, dtype=torch.float64)
Y = X[:, :1].sin() + 0.1 * torch.randn(60, 1, generator=GENERATOR, dtype=torch.float64)
TABLE = Rows(X, Y, torch.ones(60, dtype=torch.float64))


def nll(gaussian, batch, share):
    return losses.gaussian_nll(gaussian, batch.targets)


def reverse_kl(nw, batch, share):
    return losses.reverse_kl(nw, batch.targets, semi_informative_prior(Y), beta=10.0)


LOSSES = {"gaussian": (GaussianHead, nll), "normal-wishart": (NormalWishartHead, reverse_kl)}


def train(seeds, rows, rates, decays, epochs=5, kind="gaussian", **options):
    head, loss = LOSSES[kind]
    stack = StackedMLP(3, (16,), head(16), seeds, torch.float64)
    batches = Batches(TABLE, rows, seeds, batch_size=16)
    optimizer = StackedAdam(stack.weights, rates, decays, clip=10.0)
    return stack, fit(stack, loss, batches, optimizer, epochs=epochs, **options)


@pytest.mark.parametrize("kind", LOSSES)
def test_a_network_trains_the_same_alone_and_among_a_hundred(kind):
    seeds = list(range(100))
    rows = [torch.arange(40 + i % 20) for i in seeds]  # ragged: some run out of rows earlier
    rates = [1e-2 / (1 + i % 3) for i in seeds]
    decays = [1e-4 * (i % 2) for i in seeds]
    among, _ = train(seeds, rows, rates, decays, kind=kind)
    for i in (0, 41, 99):
        alone, _ = train([i], [rows[i]], [rates[i]], [decays[i]], kind=kind)
        torch.testing.assert_close(alone.weights[0], among.weights[i], rtol=1e-9, atol=1e-9)


def test_same_seed_gives_the_same_weights():
    first, second = (train([3], [torch.arange(60)], 1e-2, 0.0)[0] for _ in range(2))
    assert torch.equal(first.weights, second.weights)


def test_overfits_eight_points():
    stack, _ = train([0, 1], [torch.arange(8)] * 2, 1e-2, 0.0, epochs=1500)
    error = stack.together(X[:8]).loc.detach() - Y[:8]
    assert float(error.square().mean().sqrt()) < 0.01  # the targets vary by 0.7


def test_best_weights_come_back():
    held_out = torch.arange(40, 60)

    def validation(stack):
        y = Y[held_out].expand(stack.n_networks, -1, -1)
        return losses.gaussian_nll(stack.together(X[held_out]), y).mean(-1)

    stack, history = train(
        [0, 1, 2], [torch.arange(12)] * 3, 3e-2, 0.0, epochs=200, validation=validation
    )
    table = torch.stack(history.validation)
    torch.testing.assert_close(validation(stack), table.min(0).values)
    assert history.best_epoch is not None
    assert torch.equal(history.best_epoch, table.argmin(0) + 1)
    assert bool((history.best_epoch < 200).all())  # twelve points are soon overfitted


def test_patience_ends_training_and_each_network_waits_for_itself():
    values = iter(range(1000))

    def validation(stack):
        # The first network gets worse at once, the second after twenty epochs.
        epoch = next(values)
        return torch.tensor([float(epoch), float(abs(epoch - 20))], dtype=torch.float64)

    _, history = train(
        [0, 1], [torch.arange(60)] * 2, 1e-3, 0.0, epochs=100, validation=validation, patience=5
    )
    assert history.best_epoch is not None
    assert history.best_epoch.tolist() == [1, 21]
    assert history.n_epochs == 26


def test_a_stopped_network_does_not_come_back():
    script = iter([1.0, 2.0, 3.0, 0.0, 0.0])

    def validation(stack):
        return torch.tensor([next(script), -1.0], dtype=torch.float64)

    _, history = train(
        [0, 1], [torch.arange(60)] * 2, 1e-3, 0.0, epochs=5, validation=validation, patience=2
    )
    assert history.best_epoch is not None
    assert history.best_epoch.tolist() == [1, 1]
    assert history.n_epochs == 3


def test_progress_hears_of_every_epoch():
    ticks: list[Tick] = []
    _, history = train([0], [torch.arange(60)], 1e-3, 0.0, progress=ticks.append)
    assert [t.epoch for t in ticks] == [1, 2, 3, 4, 5]
    assert ticks[-1].loss == pytest.approx(float(history.train[-1]))
    assert ticks[-1].best is None  # nothing to choose by


def test_progress_hears_of_the_loss_of_the_weights_kept():
    script = iter([(4.0, 2.0), (1.0, 3.0), (9.0, 8.0), (9.0, 0.0)])

    def validation(stack):
        return torch.tensor(next(script), dtype=torch.float64)

    ticks: list[Tick] = []
    train(
        [0, 1],
        [torch.arange(60)] * 2,
        1e-3,
        0.0,
        epochs=4,
        validation=validation,
        patience=2,  # over for the second network when it would get to 0
        progress=ticks.append,
    )
    assert [t.loss for t in ticks] == [3.0, 2.0, 8.5, 4.5]
    assert [t.best for t in ticks] == [3.0, 1.5, 1.5, 1.5]


def test_threads_are_put_back():
    before = torch.get_num_threads()
    train([0], [torch.arange(60)], 1e-3, 0.0)
    assert torch.get_num_threads() == before
