"""How long a student trains, and which answers count how much."""

from __future__ import annotations

import math

import pytest
import torch

from priornet.distill.targets import targets_for
from priornet.distributions import GaussianEnsemble
from priornet.estimators.student import balance, student_plan


@pytest.mark.parametrize("n_rows", [30, 3000, 40_000])
def test_passes_make_the_steps(n_rows):
    plan = student_plan(n_rows, "auto", 256, 15_000)
    assert plan.epochs * math.ceil(n_rows / 256) == pytest.approx(15_000, rel=0.01)


def test_what_was_chosen_is_kept():
    plan = student_plan(3000, 7, 100, 15_000)
    assert (plan.epochs, plan.batch_size, plan.patience) == (7, 100, None)


def balanced(spreads):
    means = torch.tensor(spreads) * torch.tensor([-1.0, 1.0])[:, None]
    ensemble = GaussianEnsemble(means.unsqueeze(-1), torch.ones(2, len(spreads), 1))
    targets = targets_for("end", 1, 2, proxy=False, annealed=False)
    return balance(targets, targets.pack(ensemble))


def test_answers_count_by_the_spread_of_the_members():
    weights = balanced([1.0, 2.0, 3.0, 1e-6])
    assert float(weights.mean()) == pytest.approx(1)
    assert float(weights[2] / weights[0]) == pytest.approx(3, rel=0.1)
    assert float(weights[3] / weights[0]) > 0.1  # members that agree are not forgotten


def test_members_that_all_agree_count_alike():
    assert balanced([0.0, 0.0, 0.0]).tolist() == [1.0, 1.0, 1.0]
