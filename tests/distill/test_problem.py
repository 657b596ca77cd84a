"""Answers whose squares are no numbers are refused, with a way out."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestRegressor

from priornet import DistilledRegressor
from priornet.distill import TeacherError, as_teacher, ask_all
from priornet.distill.problem import teacher_scaling
from priornet.distill.teacher import Answers
from priornet.distributions import GaussianEnsemble

X = np.random.default_rng(0).normal(size=(60, 2))


def teacher(factor):
    def answer(rows):
        means = factor * np.stack([rows[:, 0], 1.1 * rows[:, 0], rows[:, 1]])
        return means, np.full_like(means, factor**2)

    return answer


@pytest.mark.parametrize(
    ("factor", "message"),
    [(1e145, r"too large \(.* divided by a power"), (1e-145, r"too small \(.* multiplied by a")],
)
def test_answers_that_are_too_large_or_small_are_refused(factor, message):
    with pytest.raises(TeacherError, match=message):
        DistilledRegressor(teacher(factor)).fit(X)


@pytest.mark.parametrize("given", [True, False])
def test_a_forest_of_constant_targets_is_refused(given):
    from priornet.distill import ForestTeacher

    y = np.full(60, 3.5)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"constant \(3\.5 in every leaf\)"):
        ForestTeacher(forest, *((X, y) if given else ()))


def test_targets_that_a_teacher_expects_vary_by_all_its_uncertainty():
    """Compute by hand: means 0 and 4 vary by 4; at each row the variances are 2 and 1."""
    means = torch.tensor([[-1.0, 3.0], [1.0, 5.0]], dtype=torch.float64)[..., None]
    variances = torch.tensor([[1.0, 1.0], [3.0, 3.0]], dtype=torch.float64)[..., None]
    answers = Answers(GaussianEnsemble(means, variances), torch.ones(2, dtype=torch.bool))
    shift, scale = teacher_scaling(answers)
    assert shift == pytest.approx([2.0])
    assert scale == pytest.approx([np.sqrt(4 + 2 + 1)])


def test_an_answer_at_a_mistyped_row_does_not_set_the_scale():
    def answer(rows):
        means = np.stack([rows[:, 0], 1.1 * rows[:, 0], rows[:, 1]])
        return means, 1 + means**2

    def scaling(rows):
        return teacher_scaling(ask_all(as_teacher(answer), rows))

    mistyped = X.copy()
    mistyped[5, 0] = 1e5
    clean = scaling(X)
    np.testing.assert_allclose(scaling(mistyped), clean, atol=0.2 * clean.scale[0])
