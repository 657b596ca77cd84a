"""Familiarity is a p-value, and the words follow their thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from priornet import DeepEnsembleRegressor
from priornet.estimators.verdict import NOISY, UNFAMILIAR, Reference


def reference(n: int = 999, data: float = 4.0) -> Reference:
    return Reference.of(np.arange(1.0, n + 1), np.full(n, data))


def test_familiarity_counts_reference_rows_at_least_as_uncertain():
    scores = reference().familiarity(np.array([0.5, 500.0, 999.0, 1000.0]))
    np.testing.assert_allclose(scores, [1.0, 501 / 1000, 2 / 1000, 1 / 1000])


def test_a_row_like_the_reference_is_as_likely_to_score_anything():
    """With 19 rows the score is 1/20, 2/20, ..., each with the same probability."""
    rng = np.random.default_rng(0)
    draws = rng.exponential(size=(4000, 20))
    scores = [Reference.of(row[:-1], row[:-1]).familiarity(row[-1:])[0] for row in draws]
    counts = np.bincount(np.round(20 * np.array(scores)).astype(int), minlength=21)[1:]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_many_reference_rows_are_thinned_without_moving_the_scores():
    rng = np.random.default_rng(0)
    rows = rng.exponential(size=100_000)
    known = Reference.of(rows, np.ones(100_000))
    assert len(known.knowledge) == 2000
    for value in (0.01, 0.7, 3.0, 6.0):
        assert abs(known.familiarity(np.array([value]))[0] - np.mean(rows >= value)) < 1e-3


def test_words_follow_the_thresholds():
    known = reference()
    knowledge = np.array([500.0, 500.0, 985.0, 995.0, 1e9])
    data = np.array([4.0, (2.001 * NOISY) ** 2, (1.999 * NOISY) ** 2, 4.0, 1e9])
    words = known.words(knowledge, data)
    assert known.familiarity(knowledge)[3] < UNFAMILIAR < known.familiarity(knowledge)[2]
    assert words.tolist() == ["trust", "noisy", "trust", "unfamiliar", "unfamiliar"]


def test_beyond_all_of_few_reference_rows_is_unfamiliar():
    known = reference(20)
    words = known.words(np.array([20.0, 20.1]), np.array([4.0, 4.0]))
    assert words.tolist() == ["trust", "unfamiliar"]


@pytest.mark.parametrize("n", [1, 20, 98, 99, 100, 199, 200, 999, 2000])
def test_the_limit_is_where_the_word_changes(n):
    """By the definition: fewer than 1 % of the rows as uncertain, or none of them all."""
    known = reference(n)
    knowledge = np.arange(0.5, n + 1.5, 0.5)
    score = known.familiarity(knowledge)
    expected = (score < UNFAMILIAR) | (knowledge > n)
    words = known.words(knowledge, np.full(len(knowledge), 4.0))
    assert ((words == "unfamiliar") == expected).all()
    assert expected.any()


def test_without_knowledge_uncertainty_nothing_is_unfamiliar():
    known = Reference.of(np.zeros(10), np.ones(10))
    assert np.isnan(known.familiarity(np.zeros(3))).all()
    assert known.words(np.zeros(2), np.array([1.0, 9.0])).tolist() == ["trust", "noisy"]


def test_an_ensemble_knows_its_own_from_far_rows_and_sees_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 1))
    y = np.sin(3 * X[:, 0]) + np.where(X[:, 0] > 0.5, 1.0, 0.1) * rng.standard_normal(1000)
    model = DeepEnsembleRegressor(5, epochs=30, random_state=0).fit(X, y)
    inside = model.predict_verdict(np.linspace(-0.9, 0.3, 50)[:, None])
    assert np.mean(inside == "trust") > 0.9
    assert np.mean(model.predict_verdict(np.linspace(0.6, 0.95, 50)[:, None]) == "noisy") > 0.9
    assert (model.predict_verdict(np.array([[-12.0], [12.0]])) == "unfamiliar").all()
