"""Losses of methods against :mod:`priornet.losses`, and schedules at the points where they bend."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.distributions import kl_divergence
from torch.testing import assert_close

from priornet import losses
from priornet.distributions import Gaussian, NormalWishart
from priornet.training import Batch, linear_ramp, objectives, temperature

SHAPE = (2, 3)  # networks, rows


def normal_wishart(loc=1.0, belief=4.0):
    return NormalWishart.from_excess(
        torch.full((*SHAPE, 1), loc),
        torch.ones(*SHAPE, 1, 1),
        torch.tensor(belief),
        torch.tensor(3.0),
    )


def batch(columns, mask=None):
    return Batch(torch.empty(0), columns, torch.ones(SHAPE), None, mask)


@pytest.fixture
def y():
    return torch.linspace(-2, 2, 6).view(*SHAPE, 1)


@pytest.fixture
def marked(y):
    """Targets of rows inside, the last row of each network out of domain."""
    has_target = torch.tensor([1.0, 1.0, 0.0]).expand(SHAPE).unsqueeze(-1)
    return batch(torch.cat([y * has_target, has_target], -1))


def test_masked_rows_cost_nothing(y):
    mask = torch.tensor([True, False, True]).expand(SHAPE)
    gaussian = Gaussian(torch.zeros(*SHAPE, 1), torch.ones(*SHAPE, 1, 1))
    for loss, prediction in (
        (objectives.likelihood, gaussian),
        (objectives.evidential(0.1), normal_wishart()),
    ):
        whole, found = loss(prediction, batch(y), 0.0), loss(prediction, batch(y, mask), 0.0)
        assert_close(found, whole * mask)
        assert bool((whole != 0).all())


def test_a_coefficient_per_network_counts_for_its_own_rows(y):
    column = objectives.evidential(torch.tensor([[0.1], [0.7]]))(normal_wishart(), batch(y), 0.0)
    for i, coefficient in enumerate((0.1, 0.7)):
        alone = objectives.evidential(coefficient)(normal_wishart(), batch(y), 0.0)
        assert_close(column[i], alone[i])


def test_a_prior_network_learns_the_posterior_inside_and_the_prior_outside(y, marked):
    prior, nw = normal_wishart(0.0, 0.1), normal_wishart()
    found = objectives.prior_network(prior, 20.0, 0.5)(nw, marked, 0.5)
    inside = losses.reverse_kl(nw, y, prior, 20.0) / 20
    outside = kl_divergence(nw, prior) * 0.5 / 20
    assert_close(found, torch.where(marked.targets[..., 1] > 0, inside, outside))
    raw = objectives.prior_network(prior, 20.0, 0.5, per_target=False)(nw, marked, 0.5)
    assert_close(raw, 20 * found)


@pytest.mark.parametrize("wrap", [float, torch.tensor])
def test_the_weight_of_rows_outside_ramps(marked, wrap):
    loss = objectives.prior_network(normal_wishart(0.0, 0.1), 20.0, 0.5, ramp=0.4)
    early, late = (loss(normal_wishart(), marked, wrap(share)) for share in (0.1, 0.9))
    assert_close(early[:, 2], late[:, 2] / 4)
    assert_close(early[:, :2], late[:, :2])


@pytest.mark.parametrize("wrap", [float, torch.tensor])
def test_warming_rows_learn_the_pooled_posterior(marked, wrap):
    prior, nw = normal_wishart(0.0, 0.1), normal_wishart()
    pooled = NormalWishart.from_excess(
        torch.tensor([0.3]), torch.eye(1), torch.tensor(15.0), torch.tensor(2.0)
    )
    loss = objectives.prior_network(prior, 20.0, 0.5, warm_up=0.2, pooled=pooled)
    early, late = (loss(nw, marked, wrap(share)) for share in (0.1, 0.3))
    assert_close(early[:, :2], kl_divergence(nw, pooled.expand(SHAPE))[:, :2] / 20)
    assert_close(early[:, 2], late[:, 2])
    assert_close(late, objectives.prior_network(prior, 20.0, 0.5)(nw, marked, 0.3))


@pytest.mark.parametrize("start", [10.0, torch.tensor([[10.0], [4.0]])])
def test_a_student_is_annealed(start, y):
    seen = []

    def spied(_prediction, columns, temperature):
        seen.append(temperature)
        return columns

    answers: Any = SimpleNamespace(loss=spied)
    loss = objectives.student(answers, start)
    for share in (0.0, 0.5, 0.9):
        loss(None, batch(y), share)
    assert_close(seen[0], start)
    assert_close(seen[1], 1 + (start - 1) / 2)
    assert seen[2] == 1.0  # a plain number: losses without temperature are faster
    assert isinstance(seen[2], float)


@pytest.mark.parametrize(
    ("share", "value"), [(0, 10), (0.2, 10), (0.35, 7.75), (0.5, 5.5), (0.8, 1), (1, 1)]
)
def test_temperature_holds_falls_and_rests(share, value):
    assert temperature(share, 10.0) == pytest.approx(value)


@pytest.mark.parametrize(("share", "until", "value"), [(0, 0.5, 0), (0.25, 0.5, 0.5), (0, 0, 1)])
def test_ramp_rises_to_one(share, until, value):
    assert linear_ramp(share, until) == value
