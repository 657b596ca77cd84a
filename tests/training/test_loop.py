"""Training: learns, keeps the best weights, and treats each network on its own."""

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


@pytest.mark.parametrize("average", [0.5, 2.0])
def test_a_network_averages_the_same_alone_and_beside_longer_ones(average):
    """Over its own epochs: at 16 rows a step one takes two steps, the others three and four."""
    sizes, options = (20, 40, 60), {"epochs": 12, "average": average}
    rows = [torch.arange(n) for n in sizes]
    among, _ = train(range(3), rows, 1e-2, 0.0, **options)
    for i, own in enumerate(rows):
        alone, _ = train([i], [own], 1e-2, 0.0, **options)
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


class Recorded(StackedAdam):
    """Keeps the weights after every step."""

    def __init__(self, weights, learning_rate):
        super().__init__(weights, learning_rate)
        self.seen = [weights.detach().clone()]

    def step(self, factor=1.0, active=None):
        super().step(factor, active)
        self.seen.append(self.weights.detach().clone())


def recorded(sizes, **options):
    """Train networks on so many rows each, 16 a step; all weights on the way, and the last."""
    stack = StackedMLP(3, (16,), GaussianHead(16), range(len(sizes)), torch.float64)
    batches = Batches(TABLE, [torch.arange(n) for n in sizes], range(len(sizes)), batch_size=16)
    optimizer = Recorded(stack.weights, 1e-2)
    fit(stack, nll, batches, optimizer, **options)
    return optimizer.seen, stack.weights.detach()


def test_weights_are_averaged_over_steps():
    """By hand: the n-th step has a share of 1 / (1 + n / 10): 10/11, then 10/12.

    The second network has no rows in the second step, and keeps the average that it has.
    """
    (w0, w1, w2), kept = recorded([32, 16], epochs=1, average=10)
    assert not torch.equal(w1[0], w2[0])
    assert torch.equal(w1[1], w2[1])
    torch.testing.assert_close(kept[0], (w0[0] + 10 * w1[0] + 55 * w2[0]) / 66)
    torch.testing.assert_close(kept[1], (w0[1] + 10 * w1[1]) / 11)


@pytest.mark.parametrize("with_validation", [False, True])
def test_a_share_is_never_less_than_that_of_the_horizon(with_validation):
    """By hand: over 1.5 epochs of a step each, from the fifth step on the share is 1 / 1.5."""
    judged: list[torch.Tensor] = []

    def validation(stack):
        judged.append(stack.weights.detach().clone())
        return -torch.full((1,), float(len(judged)), dtype=torch.float64)  # the last is the best

    options = {"validation": validation} if with_validation else {}
    seen, kept = recorded([16], epochs=7, average=1.5, **options)
    shares = [10 / 11, 10 / 12, 10 / 13, 10 / 14, 2 / 3, 2 / 3, 2 / 3]
    expected = seen[0]
    for weights, share in zip(seen[1:], shares, strict=True):
        expected = (1 - share) * expected + share * weights
    torch.testing.assert_close(kept, expected)
    if with_validation:  # the averages are judged, not the weights themselves
        torch.testing.assert_close(judged[-1], expected)


def test_no_average_keeps_the_last_weights():
    seen, kept = recorded([16], epochs=3)
    assert torch.equal(kept, seen[-1])


def test_rates_fall_with_the_steps_and_losses_hear_of_the_epochs():
    """By hand: three epochs of four steps; a rate's share counts steps, a loss's whole epochs."""
    factors: list[float] = []
    shares: list[float] = []

    class Listening(StackedAdam):
        def step(self, factor=1.0, active=None):
            factors.append(float(factor))
            super().step(factor, active)

    def loss(gaussian, batch, share):
        shares.append(share)
        return losses.gaussian_nll(gaussian, batch.targets)

    stack = StackedMLP(3, (16,), GaussianHead(16), [0], torch.float64)
    batches = Batches(TABLE, [torch.arange(60)], [0], batch_size=16)
    fit(stack, loss, batches, Listening(stack.weights, 1e-3), epochs=3, schedule=lambda done: done)
    assert factors == pytest.approx([step / 12 for step in range(12)])
    assert shares == pytest.approx([0.0] * 4 + [1 / 3] * 4 + [2 / 3] * 4)
