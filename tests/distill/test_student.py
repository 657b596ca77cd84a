"""Default size of a student, length of its training, and weights of answers."""

from __future__ import annotations

import math

import pytest
import torch

from priornet.distill.student import (
    StudentSize,
    balance,
    default_rate,
    learning_rates,
    student_plan,
    student_size,
)
from priornet.distill.targets import targets_for
from priornet.distributions import GaussianEnsemble


@pytest.mark.parametrize("n_rows", [30, 3000, 40_000])
def test_passes_make_the_steps(n_rows):
    plan = student_plan(n_rows, "auto", 256, 15_000)
    assert plan.epochs * math.ceil(n_rows / 256) == pytest.approx(15_000, rel=0.01)


def test_given_settings_are_kept():
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


@pytest.mark.parametrize(("n_rows", "n_steps"), [(30, 12_000), (3000, 15_000), (40_000, 24_000)])
def test_students_of_larger_tables_train_for_longer(n_rows, n_steps):
    size = student_size(n_rows, (64, 64), "smooth")
    assert size.n_steps == n_steps


def test_students_are_wider_than_their_teachers():
    assert student_size(30, (50,), "smooth") == StudentSize((100,), 0, 20_000, 12_000)
    assert student_size(30, (50,), "fine").hidden == (200,)


def test_students_that_follow_rows_are_wider_the_more_rows_there_are():
    sizes = [student_size(n, (64, 64), "rows") for n in (900, 8600, 41_000)]
    widths = [size.hidden[0] for size in sizes]
    assert widths == sorted(set(widths))
    assert [size.n_pieces for size in sizes] == [8, 16, 16]
    assert sizes[0].hidden == (96, 96)


def test_the_teacher_is_asked_at_least_once_per_row():
    size = student_size(10**6, (64, 64), "rows")
    assert size.n_transfer == 10**6


def test_steps_are_read_in_ramps_without_more_width():
    smooth, steps = (student_size(8600, (64, 64), kind) for kind in ("smooth", "steps"))
    assert (smooth.hidden, smooth.n_pieces) == ((128, 128), 0)
    assert steps.hidden == smooth.hidden
    assert steps.n_pieces > 0


def test_wider_layers_learn_in_smaller_steps():
    assert learning_rates(1.0, "smooth", 128) == (5.0, 2.0)
    narrow, wide = (learning_rates(1.0, "rows", width) for width in (256, 512))
    assert wide == (narrow[0] / 2, narrow[1] / 2)


def test_the_likelihood_of_own_members_is_learnt_faster():
    rates = {default_rate(by, has) for by, has in ((False, True), (True, False), (False, False))}
    assert rates == {2e-3}
    assert default_rate(by_likelihood=True, has_weights=True) == 4e-3
