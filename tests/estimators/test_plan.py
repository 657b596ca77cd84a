"""Every table holds rows out to stop by, also a small one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from priornet import DeepEnsembleRegressor
from priornet.estimators.plan import validation_split


@pytest.mark.parametrize(
    ("n_rows", "n_held"), [(3, 0), (4, 1), (10, 3), (20, 4), (39, 4), (40, 4), (60, 6), (1000, 100)]
)
def test_few_rows_hold_out_enough_to_stop_by(n_rows, n_held):
    train, held = validation_split(torch.arange(n_rows), 0.1, [0, 1])
    assert [len(rows) for rows in train] == [n_rows - n_held] * 2
    if held is None:
        assert n_held == 0
        return
    for own, others in zip(train, held, strict=True):
        assert torch.equal(torch.cat([own, others]).sort().values, torch.arange(n_rows))
    assert n_held < 3 or not torch.equal(held[0].sort().values, held[1].sort().values)


def test_none_are_held_out_where_none_are_wanted():
    assert validation_split(torch.arange(30), 0.0, [0])[1] is None


def test_members_of_a_small_table_stop_before_they_are_sure_of_noise():
    """Of noise alone nothing can be predicted: the best NLL is that of a standard Gaussian."""
    rng = np.random.default_rng(0)
    model = DeepEnsembleRegressor(random_state=0).fit(rng.normal(size=(30, 5)), rng.normal(size=30))
    y = torch.tensor(rng.normal(size=1000))
    nll = -model.predict_dist(rng.normal(size=(1000, 5))).log_prob(y).mean()
    assert float(nll) < 1.419 + 0.3
