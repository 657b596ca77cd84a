"""How long a student trains."""

from __future__ import annotations

import math

import pytest

from priornet.estimators.student import student_plan


@pytest.mark.parametrize(("n_rows", "n_steps"), [(30, 6000), (3000, 15_000), (40_000, 24_000)])
def test_students_of_larger_tables_train_for_longer(n_rows, n_steps):
    plan = student_plan(n_rows, "auto", 256)
    assert plan.epochs * math.ceil(n_rows / 256) == pytest.approx(n_steps, rel=0.01)


def test_what_was_chosen_is_kept():
    plan = student_plan(3000, 7, 100)
    assert (plan.epochs, plan.batch_size, plan.patience) == (7, 100, None)
