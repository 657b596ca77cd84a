"""A function is a teacher."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from priornet.distill import AgreementWarning, FunctionTeacher, TeacherError, ask, ask_all
from priornet.distill.teacher import columns_by_name


def lines(X):
    return np.stack([X[:, 0], -X[:, 0]]), np.ones((2, len(X)))


def test_it_is_called_with_the_table():
    means, variances = FunctionTeacher(lines).gaussians(np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(means, [[0, 2, 4], [0, -2, -4]])
    assert variances.shape == (2, 3)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="must be callable; got int"):
        FunctionTeacher(3)  # pyright: ignore


def test_the_size_of_a_function_is_unknown():
    assert FunctionTeacher(lines).n_bytes() is None


@pytest.mark.parametrize(
    "table",
    [np.ones((3, 2)), pd.DataFrame(np.ones((3, 2)), columns=["a", "b"]), {"a": np.ones(3)}],
    ids=["array", "frame", "mapping"],
)
def test_a_function_that_changes_its_table_changes_a_copy(table):
    def centred(rows):
        column = rows[:, 0] if isinstance(rows, np.ndarray) else rows["a"]
        column -= 5.0
        if not isinstance(rows, np.ndarray):
            rows["new"] = column
        return np.zeros((2, 3)), np.ones((2, 3))

    FunctionTeacher(centred).gaussians(table)
    assert "new" not in table
    values = table if isinstance(table, np.ndarray) else np.asarray(table["a"])
    assert (values == 1).all()


FRAME = pd.DataFrame({"b": [1, 2], "other": [0, 0], "a": [3, 4]})


def test_frames_and_mappings_are_put_in_order():
    assert columns_by_name(FRAME, ("a", "b")).columns.tolist() == ["a", "b"]
    assert list(columns_by_name({"b": [1], "c": [2], "a": [3]}, ("a", "b"))) == ["a", "b"]


def test_labels_that_are_numbers_are_found():
    frame = pd.DataFrame(np.arange(6).reshape(2, 3), columns=[1, 2, 3])
    assert columns_by_name(frame, ("3", "1")).to_numpy().tolist() == [[2, 0], [5, 3]]


def test_what_has_no_names_stays():
    array = np.ones((2, 2))
    assert columns_by_name(array, ("a", "b")) is array
    assert columns_by_name(FRAME, None) is FRAME


def test_a_missing_column_is_named():
    with pytest.raises(TeacherError, match='no column "z"'):
        columns_by_name(FRAME, ("a", "z"))


X = np.arange(40.0).reshape(20, 2)


def answering(means, covariances):
    return FunctionTeacher(lambda rows: (means[:, : len(rows)], covariances[:, : len(rows)]))


def made_answers(m=3, n=20, k=2):
    rng = np.random.default_rng(0)
    root = rng.standard_normal((m, n, k, k))
    return rng.standard_normal((m, n, k)), root @ root.swapaxes(-1, -2) + 0.1 * np.eye(k)


def test_full_covariances_arrive_as_they_are():
    means, covariances = made_answers()
    found = ask_all(answering(means, covariances), X)
    assert found.kept.all()
    np.testing.assert_allclose(found.ensemble.means.numpy(), means)
    np.testing.assert_allclose(found.ensemble.covariances.numpy(), covariances)


@pytest.mark.parametrize("shape", [(3, 20), (3, 20, 1)])
def test_one_target_needs_no_dimension_of_its_own(shape):
    means = np.random.default_rng(0).standard_normal(shape)
    found = ask_all(answering(means, np.full(shape, 2.0)), X)
    assert found.ensemble.means.shape == (3, 20, 1)
    assert float(found.ensemble.covariances.max()) == 2.0


def test_pieces_put_together_are_the_whole():
    seen = []

    def function(rows):
        seen.append(len(rows))
        return np.stack([rows[:, 0], rows[:, 1]]), np.ones((2, len(rows)))

    pieces = list(ask(FunctionTeacher(function), X, at_once=8))
    assert seen == [8, 8, 4]
    whole = torch.cat([piece.ensemble.means for piece in pieces], 1)
    np.testing.assert_array_equal(whole[0, :, 0].numpy(), X[:, 0])


@pytest.mark.parametrize(
    ("means", "covariances", "message"),
    [
        (np.zeros((3, 19, 2)), np.ones((3, 19, 2)), r"shape \(M, 20, K\), M members; got \(3, 19"),
        (np.zeros(20), np.ones(20), "shape"),
        (np.zeros((3, 20, 2)), np.ones((3, 20)), r"\(3, 20, 2, 2\), or \(3, 20, 2\)"),
        (np.zeros((0, 20, 2)), np.ones((0, 20, 2)), "no members"),
        (np.zeros((3, 20)), np.full((3, 20), -1.0), "member 0 is -1 for input 0"),
        (np.zeros((3, 20)), np.zeros((3, 20)), "must be positive"),
        (np.zeros((1, 20, 2)), np.tile([[1, 2], [2, 1]], (1, 20, 1, 1)), "positive definite"),
        (np.zeros((1, 20, 2)), np.tile([[1, 0], [0.5, 1]], (1, 20, 1, 1)), "symmetric"),
        (np.array([["a"] * 20] * 2), np.ones((2, 20)), "not an array of numbers"),
    ],
)
def test_wrong_answers_are_refused(means, covariances, message):
    with pytest.raises(TeacherError, match=message):
        ask_all(FunctionTeacher(lambda rows: (means, covariances)), X)


def test_something_else_than_two_arrays_is_refused():
    with pytest.raises(TeacherError, match="two arrays, means and covariances; got ndarray"):
        ask_all(FunctionTeacher(lambda rows: np.ones((2, 20))), X)  # pyright: ignore
    with pytest.raises(TeacherError, match=r"two arrays, .*; got a tuple of 3"):
        ask_all(FunctionTeacher(lambda rows: (1, 2, 3)), X)  # pyright: ignore


def test_a_failing_teacher_is_named_with_its_error():
    def function(rows):
        raise KeyError("colour")

    with pytest.raises(TeacherError, match="FunctionTeacher failed: KeyError: 'colour'"):
        ask_all(FunctionTeacher(function), X)


def test_a_few_inputs_without_answer_are_left_out_with_a_count():
    rows = np.arange(500.0)[:, None]
    means = np.stack([rows[:, 0], -rows[:, 0]])
    variances = np.ones_like(means)
    means[0, 7], variances[1, 11] = np.nan, np.inf
    with pytest.warns(UserWarning, match="no finite answer for 2 of 500 inputs"):
        found = ask_all(answering(means, variances), rows)
    assert (~found.kept).nonzero().flatten().tolist() == [7, 11]
    assert found.ensemble.means.shape == (2, 498, 1)
    assert 7.0 not in found.ensemble.means[0]


def test_more_than_one_in_a_hundred_is_an_error():
    means = np.stack([X[:, 0], -X[:, 0]])
    means[:, 3] = np.nan
    with pytest.warns(UserWarning, match="no finite answer for 1 of 20"):  # one may always be
        assert int(ask_all(answering(means, np.ones((2, 20))), X).kept.sum()) == 19
    means[:, 4] = np.nan
    with pytest.raises(TeacherError, match="2 or more of 20 inputs; at most 1%"):
        ask_all(answering(means, np.ones((2, 20))), X)
    with pytest.raises(TeacherError, match="1 or more of 1 inputs"):
        ask_all(answering(means[:, 3:4], np.ones((2, 1))), X[:1])


@pytest.mark.parametrize("n_members", [1, 4])
def test_members_that_agree_leave_no_knowledge_uncertainty(n_members):
    means = np.tile(X[:, 0], (n_members, 1))
    with pytest.warns(AgreementWarning, match="knowledge uncertainty is zero"):
        ask_all(answering(means, np.ones_like(means)), X)


def test_members_that_part_at_one_input_do_not_agree(recwarn):
    means = np.tile(X[:, 0], (3, 1))
    means[0, 5] += 0.1
    ask_all(answering(means, np.ones_like(means)), X)
    assert len(recwarn) == 0


def test_complex_answers_are_refused():
    for means in (np.full((2, 20), 1j), torch.full((2, 20), 1j)):
        with pytest.raises(TeacherError, match="not an array of numbers: they are complex"):
            ask_all(FunctionTeacher(lambda rows, m=means: (m, np.ones((2, 20)))), X)


def test_a_teacher_that_changes_its_members_is_refused():
    def function(rows):
        n_members = 2 if rows[0, 0] == 0 else 3
        return np.ones((n_members, len(rows))), np.ones((n_members, len(rows)))

    with pytest.raises(TeacherError, match="2 members and 1 target, then with 3 and 1"):
        list(ask(FunctionTeacher(function), X, at_once=8))
