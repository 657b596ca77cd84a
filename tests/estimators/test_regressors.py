"""A prior network's defaults, in and out of domain, on noisy and exact tables."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from priornet import PriorNetRegressor
from priornet.distributions import NormalWishart
from priornet.training import Batch
from priornet.training.stack_training import train_stack

RNG = np.random.default_rng(0)


def test_the_first_epochs_detect_out_of_domain_rows():
    """Use targets that are nearly noise: one of the first epochs has the best likelihood."""
    X = RNG.standard_normal((200, 5))
    y = 0.3 * X[:, 0] + RNG.standard_normal(200)
    far = 6 * RNG.choice([-1.0, 1.0], X.shape)
    model = PriorNetRegressor(random_state=0).fit(X, y)
    inside, outside = (
        np.sqrt(np.median(model.predict_uncertainty(rows).knowledge_variance)) for rows in (X, far)
    )
    assert outside > 5 * inside
    assert model.fitted_.training["prior_belief"] == 3e-3  # the weaker prior is not clearly better


def test_the_prior_leaves_little_variance_where_targets_are_exact():
    X = RNG.uniform(-1, 1, (400, 2))
    y = X[:, 0] + 0.5 * X[:, 1]
    model = PriorNetRegressor(random_state=0).fit(X, y)
    data = np.sqrt(np.median(model.predict_uncertainty(X).data_variance))
    # At a belief and excess of 0.01 the prior alone accounts for 3 % of the targets' deviation.
    assert data < 0.015 * y.std()
    assert model.fitted_.training["prior_belief"] == 1e-4


def test_a_given_prior_is_taken():
    X = RNG.uniform(-1, 1, (60, 2))
    model = PriorNetRegressor(prior_belief=0.5, epochs=3, random_state=0).fit(X, X[:, 0])
    assert "prior_belief" not in model.fitted_.training
    assert model.fitted_.stack.n_networks == 1


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_warm_up_must_leave_time_for_targets(share):
    with pytest.raises(ValueError, match=r"`warm_up` must lie in \[0, 1\)"):
        PriorNetRegressor(warm_up=share).fit(np.zeros((50, 2)), np.arange(50.0))


def test_out_of_domain_rows_count_gamma_times(monkeypatch):
    """Expect three times the loss at three times the gamma, for out-of-domain rows only."""
    learnt = []

    def spied(stack, rows, loss, *others):
        learnt.append(loss)
        return train_stack(stack, rows, loss, *others)

    monkeypatch.setattr("priornet.estimators.base_regressor.train_stack", spied)
    X = RNG.uniform(-1, 1, (60, 2))
    for gamma in (0.5, 1.5):
        PriorNetRegressor(gamma=gamma, prior_belief=0.1, epochs=1, random_state=0).fit(X, X[:, 0])
    y_and_mark = torch.tensor([[[2.0, 1.0], [0.0, 0.0]]])  # an in-domain row, an out-of-domain row
    batch = Batch(torch.empty(0), y_and_mark, torch.ones(1, 2), None)
    nw = NormalWishart.from_excess(
        torch.ones(1, 2, 1), torch.ones(1, 2, 1, 1), torch.tensor(4.0), torch.tensor(3.0)
    )
    one, three = (loss(nw, batch, 0.5) for loss in learnt)
    assert bool((one > 0).all())
    torch.testing.assert_close(three, one * torch.tensor([1.0, 3.0]))
