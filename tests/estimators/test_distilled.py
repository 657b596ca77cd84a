"""The student keeps what its teacher knows, and never touches the teacher."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV

from priornet import DeepEnsembleRegressor, DistilledRegressor, GaussianRegressor
from priornet.distill import TransferSet
from priornet.distill.student import Target
from priornet.distill.targets import Objective
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart
from priornet.training import Rows
from priornet.training.stack_training import train_stack

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (400, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.standard_normal(400)
QUICK: dict[str, Any] = {
    "n_transfer": 8000,
    "student_epochs": 300,
    "student_learning_rate": 1e-2,
    "random_state": 0,
}


@functools.cache
def teacher() -> DeepEnsembleRegressor:
    return DeepEnsembleRegressor(5, hidden=(32,), epochs=60, random_state=0).fit(X, Y)


@functools.cache
def student(
    objective: Objective = "endd",
    target: Target = "auto",
    temperature: float = 1.0,
) -> DistilledRegressor:
    model = DistilledRegressor(
        teacher(), objective, target=target, temperature=temperature, hidden=(32,), **QUICK
    )
    return model.fit(X)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (("endd", "proxy", 1.0), NormalWishart),
        (("endd", "likelihood", 1.0), NormalWishart),
        (("endd", "likelihood", 10.0), NormalWishart),
        (("end", "auto", 1.0), Gaussian),
        (("md-end", "auto", 1.0), GaussianEnsemble),
    ],
)
def test_student_is_faithful(key, kind):
    model = student(*key)
    assert isinstance(model.predict_belief(X), kind)
    own, other = model.predict(X), teacher().predict(X)
    assert np.sqrt(np.mean((own - other) ** 2)) < 0.05  # targets vary by 0.8
    nll = [-float(m.predict_dist(X).log_prob(torch.tensor(Y)).mean()) for m in (model, teacher())]
    assert nll[0] < nll[1] + 0.1


@pytest.mark.parametrize("key", [("endd", "proxy"), ("endd", "likelihood"), ("md-end", "auto")])
def test_student_keeps_knowledge_uncertainty(key):
    model = student(*key)
    rows = np.concatenate([X[:100], X[:100] * 3])  # most of the second half lies outside
    own = np.log(model.predict_uncertainty(rows).knowledge_variance)
    other = np.log(teacher().predict_uncertainty(rows).knowledge_variance)
    # Five members leave much noise in the variance of their means; the student smooths it.
    assert np.corrcoef(own, other)[0, 1] > 0.5
    assert own[100:].mean() - own[:100].mean() > 1


@pytest.mark.parametrize(("n_rows", "expected"), [(400, "likelihood"), (2400, "proxy")])
def test_the_likelihood_is_the_default_on_small_tables(n_rows, expected):
    rows = np.concatenate([X] * (n_rows // len(X)))
    brief: dict[str, Any] = {**QUICK, "n_transfer": n_rows, "student_epochs": 2, "hidden": (32,)}
    targets: list[Target] = ["auto", expected]
    auto, named = (DistilledRegressor(teacher(), target=t, **brief).fit(rows) for t in targets)
    assert torch.equal(auto.fitted_.stack.weights, named.fitted_.stack.weights)
    assert auto.fitted_.training["target"] == expected


@pytest.mark.parametrize(
    ("objective", "target", "rate"),
    [("endd", "likelihood", 4e-3), ("endd", "proxy", 2e-3), ("end", "likelihood", 2e-3)],
)
def test_the_default_learning_rate_depends_on_the_target(objective, target, rate):
    brief: dict[str, Any] = {"n_transfer": 400, "student_epochs": 2, "random_state": 0}
    auto, named = (
        DistilledRegressor(teacher(), objective, target=target, **brief, **given).fit(X)
        for given in ({}, {"student_learning_rate": rate})
    )
    assert torch.equal(auto.fitted_.stack.weights, named.fitted_.stack.weights)


def test_without_targets_everything_but_calibration_works():
    model = student()
    assert len(model.fitted_.calibration_scores) == 0
    lower, upper = model.predict_interval(X)
    assert (lower < upper).all()
    with pytest.raises(ValueError, match="0 were held out"):
        model.predict_interval(X, method="conformal")


def test_targets_calibrate():
    model = DistilledRegressor(teacher(), hidden=(8,), **QUICK).fit(X, Y)
    assert len(model.fitted_.calibration_scores) == 40
    lower, upper = model.predict_interval(X, 0.9, method="conformal")
    assert np.mean((lower <= Y) & (upper >= Y)) > 0.8


def test_a_student_asks_at_training_rows_alone_and_weighs_each_by_its_own(monkeypatch):
    """Draw without noise: the inputs are those of the training rows, none of calibration rows."""
    learnt: list[Rows] = []

    def spied(stack, rows, *others):
        learnt.append(rows.data)
        return train_stack(stack, rows, *others)

    monkeypatch.setattr("priornet.distill.student.train_stack", spied)
    weight = np.linspace(0.5, 1.5, len(X))
    still = TransferSet(far_share=0.0, neighbours=0)
    settings: dict[str, Any] = {**QUICK, "n_transfer": 1000, "student_epochs": 2, "hidden": (32,)}
    model = DistilledRegressor(teacher(), transfer=still, **settings).fit(X, Y, weight)
    (data,) = learnt
    inputs = torch.as_tensor(teacher().fitted_.preprocessor.transform(X)).to(data.inputs)
    rows = torch.cdist(data.inputs, inputs).argmin(1)
    assert torch.equal(data.inputs, inputs[rows])
    n_held = len(model.fitted_.calibration_scores)
    assert n_held == 40
    assert len(rows.unique()) == len(X) - n_held
    torch.testing.assert_close(data.weight, torch.as_tensor(weight).to(data.weight)[rows])


def test_the_teacher_survives_clone_and_grid_search_unchanged():
    weights = teacher().fitted_.stack.weights.detach().clone()
    model = DistilledRegressor(teacher(), hidden=(8,), n_transfer=500, student_epochs=2)
    copy: Any = clone(model)
    assert copy.teacher is teacher()
    grid = GridSearchCV(model, {"student_learning_rate": [1e-3, 1e-2]}, cv=2).fit(X, Y)
    assert grid.best_estimator_.teacher is teacher()
    assert torch.equal(teacher().fitted_.stack.weights, weights)


def test_a_teacher_trained_here_is_kept():
    model = DistilledRegressor(hidden=(16,), n_members=3, epochs=5, **QUICK).fit(X, Y)
    assert isinstance(model.teacher_, DeepEnsembleRegressor)
    assert model.teacher_.predict(X).shape == (400,)
    copy: Any = clone(model)
    assert copy.teacher is None


@pytest.mark.parametrize("objective", ["endd", "end", "md-end"])
@pytest.mark.parametrize("n_members", [1, 2])
def test_a_student_starts_as_members_side_by_side(objective, n_members):
    model = DistilledRegressor(teacher(), objective, n_transfer=500, student_epochs=1)
    model.set_params(student_hidden=(32 * n_members,), student_learning_rate=0.0).fit(X)
    members = teacher().predict_belief(X).means[:n_members].mean(0)
    torch.testing.assert_close(
        model.predict_belief(X).predictive().mean, members, rtol=1e-5, atol=1e-5
    )


def test_students_are_twice_as_wide_as_members_by_default():
    assert student().fitted_.network.widths == (64,)


def test_knowledge_reaches_outside_where_members_hardly_see_noise():
    """Give columns on a curve and exact targets: members differ beside it, each of them sure."""
    t = RNG.uniform(-1, 1, (250, 1))
    rows = np.concatenate([t, t**2, np.sin(2 * t), t + 1e-3 * RNG.standard_normal(t.shape)], 1)
    model = DistilledRegressor(n_members=5, hidden=(32, 32), epochs=60, **QUICK)
    # As long as by default: a few thousand steps fit what is inside, and the evidence comes after.
    model.set_params(student_epochs=6000).fit(rows, np.cos(3 * t[:, 0]))
    far = rows.mean(0) + 6 * rows.std(0) * RNG.choice([-1, 1], rows.shape)
    for kept in (model, model.teacher_):
        inside, outside = (
            np.median(kept.predict_uncertainty(at).knowledge_variance) for at in (rows, far)
        )
        assert outside > 100 * inside
    assert model.predict_belief(far).belief.min() < 1e-4


def test_names_in_place_of_objects_are_refused():
    named: Any = "noise"
    with pytest.raises(
        TypeError, match=r"`transfer` must be a priornet.distill.TransferSet.*noise"
    ):
        DistilledRegressor(transfer=named).fit(X, Y)
    with pytest.raises(TypeError, match=r"read 'more.csv' first"):
        DistilledRegressor().fit(X, Y, unlabelled="more.csv")


def test_wrong_teachers_are_refused():
    with pytest.raises(TypeError, match="got LinearRegression"):
        DistilledRegressor(LinearRegression()).fit(X)
    with pytest.raises(NotFittedError, match="`teacher` is not fitted"):
        DistilledRegressor(DeepEnsembleRegressor()).fit(X)
    single = GaussianRegressor(hidden=(4,), epochs=1).fit(X, Y)
    with pytest.raises(TypeError, match="whose members can disagree"):
        DistilledRegressor(single).fit(X)
    with pytest.raises(ValueError, match="requires y to be passed"):
        DistilledRegressor().fit(X)
