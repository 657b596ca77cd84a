"""Students of teachers that are no models of this library: raw rows, own units, faithfulness."""

from __future__ import annotations

import functools
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

from priornet import DistilledRegressor, load
from priornet.distill import (
    AgreementWarning,
    FaithfulnessWarning,
    ForestTeacher,
    StoredTeacher,
    TeacherError,
    TransferSet,
    draw_inputs,
)
from priornet.nn import Network
from priornet.training.stack_training import train_stack

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (400, 2))
Y = 300 + 50 * (np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.standard_normal(400))
QUICK: dict[str, Any] = {
    "hidden": (32, 32),
    "transfer": TransferSet(far=(0.05, 1.0)),
    "n_transfer": 8000,
    "student_epochs": 1200,
    "random_state": 0,
}


def committee(rows):
    """Answer with five curves that differ outside, and noise that grows to the right."""
    rows = np.asarray(rows, float)
    base = np.sin(2 * rows[:, 0]) + 0.3 * rows[:, 1]
    off = np.linspace(-1, 1, 5)[:, None] * (0.02 + 0.1 * (rows**2).sum(1))
    noise = 0.1 + 0.05 * (rows[:, 0] + 2).clip(0, 4)
    return 300 + 50 * (base + off), np.broadcast_to((50 * noise) ** 2, off.shape)


@functools.cache
def student() -> DistilledRegressor:
    return DistilledRegressor(committee, **QUICK).fit(X)


def test_a_function_is_distilled_faithfully_in_its_own_units():
    found: Any = student().faithfulness_
    assert found.problems == ()
    assert found.inside.r2 > 0.98
    assert found.inside.rank_knowledge > 0.8
    assert found.everywhere.rank_knowledge > 0.8
    assert found.everywhere.rank_total > 0.8
    assert found.inside.nll - found.inside.nll_teacher < 0.1
    means, variances = committee(X)
    assert student().predict(X).shape == (400,)
    assert np.abs(student().predict(X) - means.mean(0)).mean() < 5
    record = student().predict_uncertainty(X)
    assert np.median(record.data_variance / variances[0]) == pytest.approx(1, abs=0.15)


def test_targets_score_student_and_teacher():
    truth: Any = student().faithfulness(X, Y).truth
    mean = committee(X)[0]
    rmse = np.sqrt(np.mean((mean.mean(0) - Y) ** 2))
    assert truth["teacher"]["rmse"] == pytest.approx(rmse)
    assert truth["student"]["rmse"] == pytest.approx(rmse, rel=0.3)
    assert truth["student"]["nll"] == pytest.approx(truth["teacher"]["nll"], abs=0.2)
    assert student().faithfulness_.truth is None


def test_a_saved_student_needs_no_teacher(tmp_path):
    student().save(tmp_path / "student")
    back = load(tmp_path / "student")
    np.testing.assert_array_equal(back.predict(X), student().predict(X))
    assert back.fitted_.training["teacher"] == {"class": "FunctionTeacher", "n_members": 5}
    assert back.fitted_.training["faithfulness"]["is_faithful"] is True
    assert isinstance(back, DistilledRegressor)
    with pytest.raises(ValueError, match="does not keep its teacher: give `teacher`"):
        back.faithfulness(X)
    assert back.faithfulness(X, teacher=committee).inside == student().faithfulness_.inside


def test_clone_and_pickle_keep_the_teacher():
    copy: Any = clone(student())
    assert copy.teacher is committee
    back = pickle.loads(pickle.dumps(student()))
    np.testing.assert_array_equal(back.predict(X), student().predict(X))
    assert back.teacher_.function is committee


@pytest.mark.filterwarnings("ignore::priornet.distill.FaithfulnessWarning")  # brief training
def test_targets_calibrate_and_name():
    y = pd.Series(Y, name="price")
    model = DistilledRegressor(committee, **{**QUICK, "student_epochs": 200}).fit(X, y)
    assert model.fitted_.targets.names == ("price",)
    assert len(model.fitted_.calibration_scores) == 40
    lower, upper = model.predict_interval(X, 0.9, method="conformal")
    assert np.mean((lower <= Y) & (upper >= Y)) > 0.8
    assert model.faithfulness_.truth is not None
    with pytest.raises(ValueError, match="`y` has 2 columns; the teacher predicts 1 targets"):
        DistilledRegressor(committee, **QUICK).fit(X, np.column_stack([Y, Y]))


def test_an_unfaithful_student_warns_by_how_much_and_where():
    def jagged(rows):
        base = np.where(rows[:, 0] > 0, np.sin(40 * rows[:, 1]), 0.0)
        return np.stack([base - 0.01, base + 0.01]), np.full((2, len(rows)), 1e-2)

    model = DistilledRegressor(jagged, **{**QUICK, "student_epochs": 5})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    said = [str(w.message) for w in caught if w.category is FaithfulnessWarning]
    assert any("R2 of the mean is" in text and "worst where column 0 is" in text for text in said)
    assert not model.faithfulness_.is_faithful


@pytest.mark.filterwarnings("ignore::priornet.distill.FaithfulnessWarning")  # brief training
def test_text_and_missing_values_reach_the_teacher_as_they_are():
    frame = pd.DataFrame({"x": X[:, 0], "colour": RNG.choice(["red", "blue"], 400), "z": X[:, 1]})
    frame.loc[:50, "z"] = np.nan
    asked = []

    def teacher(rows):
        asked.append(rows)
        assert set(rows["colour"]) <= {"red", "blue"}
        base = rows["x"].to_numpy() + np.where(rows["colour"] == "red", 1.0, 0.0)
        base = base + np.where(rows["z"].isna(), 0.5, 0.0)
        return np.stack([base - 0.1 * base**2, base + 0.1 * base**2]), np.full((2, len(rows)), 0.09)

    model = DistilledRegressor(teacher, **{**QUICK, "student_epochs": 500}).fit(frame)
    assert sum(len(rows) for rows in asked) > 8000
    assert model.faithfulness_.inside.r2 > 0.98
    red, blue = (model.predict(frame.assign(colour=c, z=0.0)) for c in ("red", "blue"))
    assert np.mean(red - blue) == pytest.approx(1, abs=0.25)


def test_the_teacher_is_asked_around_unlabelled_rows_too():
    far = X + np.array([8.0, 0.0])
    asked = []

    def teacher(rows):
        asked.append(np.asarray(rows))
        return committee(rows)

    quick = {
        **QUICK,
        "transfer": TransferSet(far_share=0.0),
        "student_epochs": 20,
        "n_transfer": 1000,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FaithfulnessWarning)
        DistilledRegressor(teacher, **quick).fit(X, unlabelled=far)
    share = np.mean(asked[1][:, 0] > 5)  # first come the rows themselves
    assert len(asked[1]) == 1000
    assert share == pytest.approx(0.5, abs=0.02)
    with pytest.raises(ValueError, match="must have 2 columns"):
        DistilledRegressor(teacher, **quick).fit(X, unlabelled=X[:, :1])


def test_own_ensembles_take_unlabelled_rows_and_measure_faithfulness():
    small: dict[str, Any] = {**QUICK, "student_epochs": 50}
    model = DistilledRegressor(n_members=3, epochs=20, **small).fit(X, Y, unlabelled=X + 1)
    found = model.faithfulness(X, Y)
    assert found.inside.n_rows == 400
    weights = model.fitted_.network.n_weights
    assert found.bytes_student == 4 * weights
    assert found.bytes_teacher == 3 * 4 * model.teacher_.fitted_.network.n_weights
    assert found.times_faster > 0


def test_a_stored_teacher_is_asked_at_its_own_rows(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"])
    rows = draw_inputs(frame, 3000, transfer=TransferSet(far=(0.05, 0.3)))
    means, variances = committee(rows)
    answers = {f"mean_{m}": means[m] for m in range(5)}
    answers |= {f"variance_{m}": variances[m] for m in range(5)}
    rows.assign(**answers).to_parquet(tmp_path / "answers.parquet")
    teacher = StoredTeacher(tmp_path / "answers.parquet")
    model = DistilledRegressor(teacher, **{**QUICK, "student_epochs": 200}).fit(teacher.inputs)
    assert model.faithfulness_.outside is None
    assert model.faithfulness_.inside.r2 > 0.97
    assert np.corrcoef(model.predict(frame), committee(X)[0].mean(0))[0, 1] > 0.97


def forest_teacher(**settings):
    forest = RandomForestRegressor(50, random_state=0, **settings).fit(X, Y)
    return ForestTeacher(forest, X, Y)


def test_a_forest_is_distilled(tmp_path):
    model = DistilledRegressor(forest_teacher(min_samples_leaf=3), **QUICK).fit(X)
    assert model.faithfulness_.inside.r2 > 0.97
    assert (model.faithfulness_.times_smaller or 0) > 5
    model.save(tmp_path / "student")
    np.testing.assert_array_equal(load(tmp_path / "student").predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore::priornet.distill.FaithfulnessWarning")  # brief training
def test_a_forests_answers_count_by_their_rows_and_three_tenths_teach_a_gaussian(monkeypatch):
    """Give every row twice, with weights 1 and 3 and the same answer."""
    learnt = []

    def spied(stack, rows, *others):
        learnt.append(rows.data)
        return train_stack(stack, rows, *others)

    monkeypatch.setattr("priornet.distill.student.train_stack", spied)
    forest = RandomForestRegressor(5, min_samples_leaf=5, random_state=0).fit(X[:50], Y[:50])
    options = {"hidden": (8,), "n_transfer": 100, "student_epochs": 10, "random_state": 0}
    still = TransferSet(far_share=0.0, neighbours=0)
    model = DistilledRegressor(ForestTeacher(forest, X[:50], Y[:50]), transfer=still, **options)
    rows = np.concatenate([X[:50], X[:50]])
    weight = np.repeat([1.0, 3.0], 50)
    model.set_params(calibration_fraction=0.0).fit(rows, np.concatenate([Y[:50]] * 2), weight)
    data = learnt[-1]
    _, place = data.inputs.unique(dim=0, return_inverse=True)
    for one in range(50):
        low, high = data.weight[place == one].sort().values
        assert float(high / low) == pytest.approx(3, rel=1e-5)
    assert [len(learnt), model.fitted_.training["epochs"]] == [2, 7]


def edges_of(model):
    network = model.fitted_.network
    assert isinstance(network, Network)
    return network.edges


@pytest.mark.filterwarnings("ignore::priornet.distill.FaithfulnessWarning")  # brief training
def test_a_forest_is_read_in_ramps_unless_told_otherwise():
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(kind=np.where(X[:, 0] > 0, "x", "y"))

    class Numbers(ForestTeacher):
        def gaussians(self, X):
            return super().gaussians(X[["a", "b"]].to_numpy())

    forest = RandomForestRegressor(5, random_state=0).fit(X, Y)
    quick = {**QUICK, "student_epochs": 2, "n_transfer": 500}
    edges = [
        edges_of(
            DistilledRegressor(Numbers(forest, X, Y), student_pieces=pieces, **quick).fit(frame)
        )
        for pieces in ("auto", 4, 0)
    ]
    assert [len(own) for own in edges[0]] == [9, 9, 0, 0]
    assert [len(own) for own in edges[1]] == [5, 5, 0, 0]
    assert edges[2] == ()
    assert edges_of(student()) == ()


def test_pieces_must_be_a_count():
    with pytest.raises(ValueError, match="student_pieces"):
        DistilledRegressor(committee, student_pieces=-1).fit(X)


@pytest.mark.filterwarnings("ignore::priornet.distill.FaithfulnessWarning")  # brief training
def test_several_targets_with_full_covariance():
    def teacher(rows):
        means = np.stack([np.column_stack([rows[:, 0], s * rows[:, 1]]) for s in (0.6, 1.4)])
        covariance = np.array([[1.0, 0.5], [0.5, 2.0]]) * 0.1
        return means, np.broadcast_to(covariance, (2, len(rows), 2, 2))

    model = DistilledRegressor(teacher, **{**QUICK, "student_epochs": 600}).fit(X)
    assert model.predict(X).shape == (400, 2)
    found = model.predict_belief(X).data_covariance().mean(0)
    expected = torch.tensor([[0.1, 0.05], [0.05, 0.2]], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0.2, atol=0.01)


@pytest.mark.filterwarnings("ignore::priornet.distill.FaithfulnessWarning")  # brief training
def test_the_proxy_is_the_default_with_teachers_that_are_no_models():
    quick = {**QUICK, "n_transfer": 500, "student_epochs": 20}
    made = [DistilledRegressor(committee, target=t, **quick) for t in ("auto", "proxy")]
    auto, proxy = (model.fit(X).fitted_.stack.weights for model in made)
    assert torch.equal(auto, proxy)


@pytest.mark.parametrize("target", ["proxy", "likelihood"])
def test_members_that_agree_warn_and_keep_evidence_bounded(target):
    def agreed(rows):
        return np.stack([rows[:, 0]] * 3), np.full((3, len(rows)), 0.01)

    quick = {**QUICK, "student_epochs": 100}
    with pytest.warns(AgreementWarning, match="knowledge uncertainty is zero"):
        model = DistilledRegressor(agreed, target=target, **quick).fit(X)
    belief = model.predict_belief(X)
    assert torch.isfinite(belief.belief).all()
    assert float(belief.belief.max()) < 1e9
    assert np.isfinite(model.predict_uncertainty(X).total_variance).all()


def test_a_few_rows_without_answer_are_left_out():
    def teacher(rows):
        means, variances = committee(rows)
        means[0, rows[:, 0] > 1.97] = np.nan
        return means, variances

    few = X[X[:, 0] < 1.97]
    quick = {**QUICK, "transfer": TransferSet(far_share=0.0, neighbours=1), "student_epochs": 20}
    rare = np.concatenate([few, [[1.98, 0.0]]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DistilledRegressor(teacher, **quick).fit(rare)
    said = [str(w.message) for w in caught]
    assert any(text.startswith("the teacher has no finite answer for 1 of") for text in said)
    assert any("nothing is known of out-of-domain rows" in text for text in said)
    assert 7900 < model.fitted_.training["n_rows"] < 8000
    assert model.faithfulness_.outside is None
    assert model.faithfulness_.n_dropped == 1
    with pytest.raises(TeacherError, match="at most 1% may be left out"):
        DistilledRegressor(lambda rows: (np.full((2, len(rows)), np.nan),) * 2).fit(X)


def test_wrong_answers_stop_before_the_training():
    with pytest.raises(TeacherError, match="must be positive"):
        DistilledRegressor(lambda r: (np.zeros((2, len(r))), np.zeros((2, len(r))))).fit(X)
