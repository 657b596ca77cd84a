"""Every network sees each of its rows once an epoch, in an order of its own."""

from __future__ import annotations

import functools
import operator

import pytest
import torch

from priornet.training import Batches, Rows

N = 50


def table(n: int = N) -> Rows:
    numbers = torch.arange(n, dtype=torch.float32)
    return Rows(numbers[:, None], 2 * numbers[:, None], torch.ones(n))


def seen(batches: Batches, network: int) -> list[list[int]]:
    """Rows with weight, step by step."""
    return [b.inputs[network, b.weight[network] > 0, 0].int().tolist() for b in batches.epoch()]


def test_an_epoch_is_a_permutation_of_each_networks_rows():
    rows = [torch.arange(0, 40), torch.arange(10, 50), torch.arange(7)]
    batches = Batches(table(), rows, seeds=[0, 1, 2], batch_size=16)
    for network, own in enumerate(rows):
        order = functools.reduce(operator.iadd, seen(batches, network), [])
        assert sorted(order) == own.tolist()
    assert seen(batches, 0) != seen(batches, 0)  # another epoch, another order


def test_order_does_not_depend_on_the_company():
    rows = torch.arange(N)
    alone = Batches(table(), [rows], seeds=[5], batch_size=16)
    among = Batches(table(), [rows] * 100, seeds=[*range(99), 5], batch_size=16)
    # A neighbour with more rows makes more steps, not other batches.
    longer = Batches(table(80), [torch.arange(80), rows], seeds=[0, 5], batch_size=16)
    for _ in range(3):
        expected = seen(alone, 0)
        assert seen(among, 99) == expected
        assert [rows for rows in seen(longer, 1) if rows] == expected


def test_weights_of_a_batch_average_its_rows():
    batches = Batches(table(), [torch.arange(N)], seeds=[0], batch_size=16)
    *full, last = list(batches.epoch())
    assert all(torch.allclose(b.weight, torch.full((1, 16), 1 / 16)) for b in full)
    assert sorted(last.weight[0].tolist()) == pytest.approx([0.0] * 14 + [0.5] * 2)


def test_networks_without_rows_in_a_step_are_inactive():
    batches = Batches(table(), [torch.arange(N), torch.arange(20)], seeds=[0, 1], batch_size=16)
    active = [b.active if b.active is None else b.active.tolist() for b in batches.epoch()]
    assert active == [None, None, [True, False], [True, False]]


def test_targets_and_sample_weights_travel_with_their_rows():
    inputs, targets, _ = table()
    batches = Batches(Rows(inputs, targets, inputs[:, 0]), [torch.arange(N)], [0], 16)
    for b in batches.epoch():
        assert torch.equal(b.targets, 2 * b.inputs)
        shares = b.weight / b.inputs[..., 0].clamp(min=1e-9)
        assert torch.allclose(shares[b.weight > 0], shares.max())


def test_extra_rows_come_with_every_step():
    extra = [torch.arange(40, 50), torch.arange(30, 40)]
    batches = Batches(table(), [torch.arange(30)] * 2, [0, 1], 16, extra, extra_size=8)
    for b in batches.epoch():
        assert b.inputs.shape == (2, 24, 1)
        assert bool(((b.inputs[0, 16:] >= 40) & (b.inputs[1, 16:] < 40)).all())
        torch.testing.assert_close(b.weight[:, 16:].sum(-1), torch.ones(2))


def test_no_rows_and_no_batch_are_refused():
    with pytest.raises(ValueError, match="at least one row"):
        Batches(table(), [torch.arange(0)], [0], 16)
    with pytest.raises(ValueError, match="`batch_size` must be at least 1"):
        Batches(table(), [torch.arange(3)], [0], 0)


def test_short_epochs_go_on_where_the_last_one_ended():
    """By hand: of ten rows, four an epoch, each comes once in ten and twice in five epochs."""
    batches = Batches(table(), [torch.arange(10)], [0], batch_size=4, epoch_rows=4)
    order = [row for _ in range(5) for step in seen(batches, 0) for row in step]
    assert sorted(order[:10]) == list(range(10))
    assert sorted(order[10:]) == list(range(10))
