"""Answers are checked in one place: shapes, covariances, missing answers, agreement; and pooled."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from _asserts import assert_close
from _beliefs import DIMENSIONS, random_ensemble
from priornet.distill import AgreementWarning, FunctionTeacher, TeacherError, ask, ask_all
from priornet.distill.answers import pool_covariances, pooled_share
from priornet.distributions import GaussianEnsemble, NormalWishart

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


EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)


@EVERY_K
def test_variances_of_the_ensemble_stay(k_dim):
    ensemble = random_ensemble(7, k_dim, (4,))
    pooled = pool_covariances(ensemble, 0.3)
    assert_close(pooled.data_covariance(), ensemble.data_covariance())
    assert_close(pooled.knowledge_covariance(), ensemble.knowledge_covariance())


@EVERY_K
def test_members_keep_their_part(k_dim):
    ensemble = random_ensemble(7, k_dim, (4,))
    pooled = pool_covariances(ensemble, 0.3)
    off = ensemble.covariances - ensemble.data_covariance()
    assert_close(pooled.covariances - pooled.data_covariance(), 0.7 * off)


def test_a_share_of_nothing_changes_no_digit():
    ensemble = random_ensemble(7, 2, (4,))
    assert pool_covariances(ensemble, 0.0) is ensemble


def test_a_member_that_is_sure_by_chance_counts_less():
    """Give one of ten members a hundredth of the deviation, two deviations from the others."""
    means = torch.zeros(10, 1, 1, dtype=torch.float64)
    means[0], variances = 2.0, torch.ones_like(means)
    variances[0] = 1e-4
    ensemble = GaussianEnsemble(means, variances)
    alone, pooled = (NormalWishart.fit(pool_covariances(ensemble, s)) for s in (0.0, 0.2))
    assert float(alone.loc) > 1.99
    assert float(pooled.loc) < 1.0
    y = torch.zeros(1, 1, dtype=torch.float64)  # where the others are
    mixture = float(ensemble.predictive().log_prob(y))
    assert float(alone.predictive().log_prob(y)) < mixture - 1
    assert float(pooled.predictive().log_prob(y)) > mixture - 0.5


def unequal(slope: float, sure: float) -> GaussianEnsemble:
    """Make three members of two targets; the first is more sure of one target."""
    tril = torch.eye(2, dtype=torch.float64).repeat(3, 1, 1, 1)
    tril[..., 1, 0], tril[0, :, 1, 1] = slope, sure
    means = torch.zeros(3, 1, 2, dtype=torch.float64)
    return GaussianEnsemble.from_precision_tril(means, tril, validate_args=False)


def test_members_of_unequal_targets_keep_their_digits():
    """Keep members that agree, although their covariances could not be factored again."""
    ensemble = unequal(1e9, 1.0)
    assert_close(pool_covariances(ensemble, 0.2).precision_tril, ensemble.precision_tril)


def test_members_that_overflow_stay_as_they_are():
    ensemble = unequal(0.0, 1e200)
    assert torch.equal(pool_covariances(ensemble, 0.2).precision_tril, ensemble.precision_tril)


def test_fewer_rows_share_more_and_many_nothing():
    shares = [pooled_share(n) for n in range(1, 400)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 0.5
    assert pooled_share(60) == pytest.approx(0.15)
    assert pooled_share(239) > 0
    assert {pooled_share(n) for n in (240, 1000, 10**6)} == {0.0}
