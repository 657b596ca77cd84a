"""Familiarity is a p-value, words follow thresholds, conformal intervals cover as promised."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from priornet import (
    DeepEnsembleRegressor,
    DistilledRegressor,
    EvidentialRegressor,
    GaussianRegressor,
    PriorNetRegressor,
    load,
)
from priornet.estimators import TableWarning
from priornet.estimators.held_out import (
    FEWEST,
    NOISY,
    UNFAMILIAR,
    Reference,
    conformal_quantile,
    conformal_scores,
)


def reference(n: int = 999, data: float = 4.0) -> Reference:
    return Reference.of(np.arange(1.0, n + 1), np.full(n, data))


def test_familiarity_counts_reference_rows_at_least_as_uncertain():
    scores = reference().familiarity(np.array([0.5, 500.0, 999.0, 1000.0]))
    np.testing.assert_allclose(scores, [1.0, 501 / 1000, 2 / 1000, 1 / 1000])


def test_a_row_like_the_reference_is_as_likely_to_score_anything():
    """Use 19 rows: the score is 1/20, 2/20, ..., each with the same probability."""
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


def test_a_row_above_all_of_few_reference_rows_is_unfamiliar():
    known = reference(20)
    words = known.words(np.array([20.0, 20.1]), np.array([4.0, 4.0]))
    assert words.tolist() == ["trust", "unfamiliar"]


@pytest.mark.parametrize("n", [1, 20, 98, 99, 100, 199, 200, 999, 2000])
def test_the_limit_is_where_the_word_changes(n):
    """Apply the definition: fewer than 1 % of the rows, or none, are as uncertain."""
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


def test_an_ensemble_tells_far_rows_from_its_own_and_finds_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 1))
    y = np.sin(3 * X[:, 0]) + np.where(X[:, 0] > 0.5, 1.0, 0.1) * rng.standard_normal(1000)
    model = DeepEnsembleRegressor(5, epochs=30, random_state=0).fit(X, y)
    inside = model.predict_verdict(np.linspace(-0.9, 0.3, 50)[:, None])
    assert np.mean(inside == "trust") > 0.9
    assert np.mean(model.predict_verdict(np.linspace(0.6, 0.95, 50)[:, None]) == "noisy") > 0.9
    far = np.array([[-2.9], [2.9]])  # not so far that a network's answer is of no interest
    assert (model.predict_verdict(far) == "unfamiliar").all()


@functools.cache
def small_models():
    """Fit every kind of belief to a table in which heights are missing, and never ages."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, 150),
            "height": np.where(rng.random(150) < 0.2, np.nan, rng.normal(1.7, 0.1, 150)),
            "city": rng.choice(["Graz", "Linz"], 150),
        }
    )
    y = X["age"] + 3 * (X["city"] == "Graz") + rng.normal(0, 0.3, 150)
    quick: Any = {"hidden": (16,), "epochs": 60, "random_state": 0}
    single, members = GaussianRegressor(**quick).fit(X, y), DeepEnsembleRegressor(3, **quick)
    members.fit(X, y)
    student = {**quick, "student_epochs": 30, "n_transfer": 2000}
    return X, {
        "single": single,
        "ensemble": members,
        "prior network": PriorNetRegressor(**quick).fit(X, y),
        "evidential": EvidentialRegressor(**quick).fit(X, y),
        "endd": DistilledRegressor(members, **student).fit(X),
        "end": DistilledRegressor(members, "end", **student).fit(X),
        "md-end": DistilledRegressor(members, "md-end", **student).fit(X),
    }


every_model = pytest.mark.parametrize(
    "name", ["single", "ensemble", "prior network", "evidential", "endd", "end", "md-end"]
)


@every_model
def test_a_row_with_what_training_never_had_is_unfamiliar(name):
    """Change an ordinary row, the first, in the columns named beside each other row."""
    X, models = small_models()
    row = {"age": 40.0, "height": 1.7, "city": "Graz"}
    changes = {
        "": {"height": np.nan},
        "age": {"age": np.nan},
        "city": {"city": "Wien"},
        "age; city": {"age": 1e9, "city": None, "height": np.nan},
    }
    rows = pd.DataFrame([row, *({**row, **change} for change in changes.values())])
    words, columns = models[name].predict_verdict(rows, return_columns=True)
    assert columns.tolist() == ["", *changes]
    assert words[2:].tolist() == ["unfamiliar"] * 3
    assert (models[name].predict_verdict(X) == "unfamiliar").mean() < 0.05


@every_model
def test_scores_and_predictions_of_such_rows_stay(name):
    X, models = small_models()
    typical = X.assign(age=models[name].fitted_.preprocessor.columns_[0].median)
    lacking = X.assign(age=np.nan)
    np.testing.assert_array_equal(models[name].predict(lacking), models[name].predict(typical))
    np.testing.assert_array_equal(
        models[name].predict_familiarity(lacking), models[name].predict_familiarity(typical)
    )


def test_a_warning_names_rows_by_the_index_and_their_columns():
    X, models = small_models()
    rows = X.iloc[:9].set_index(pd.Index(list("abcdefghi")))
    rows.loc["c", "age"] = np.nan
    rows.loc["f", "city"] = "Wien"
    with pytest.warns(
        UserWarning, match=r"^2 of 9 rows .*: row c \(age\), row f \(city\);"
    ) as told:
        words = models["single"].predict_verdict(rows)
    assert told[0].filename == __file__
    assert set(words[[2, 5]]) == {"unfamiliar"}
    with pytest.warns(UserWarning, match=r"row 4 \(age\) and 1 more;"):
        models["single"].predict_verdict(X[:6].assign(age=np.nan))


def test_nan_is_never_trusted():
    known = reference()
    words = known.words(np.array([np.nan, 1.0]), np.array([4.0, 4.0]))
    assert words.tolist() == ["unfamiliar", "trust"]
    single = Reference.of(np.zeros(200), np.ones(200))
    assert single.words(np.array([np.nan]), np.ones(1)).tolist() == ["unfamiliar"]


MAKERS = {
    "single": GaussianRegressor,
    "ensemble": lambda **options: DeepEnsembleRegressor(2, **options),
    "endd": lambda **options: DistilledRegressor(n_members=2, student_epochs=1, **options),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("n", [2, 4, 10, FEWEST - 1])
def test_a_model_of_few_rows_is_never_trusted(name, n, tmp_path):
    X = np.random.default_rng(0).normal(size=(n, 2))
    warned = rf"{n} rows to learn from are fewer than {FEWEST}: no prediction"
    with pytest.warns(TableWarning, match=warned):
        model = MAKERS[name](hidden=(4,), epochs=2, random_state=0).fit(X, X[:, 0])
    assert set(model.predict_verdict(X)) == {"unfamiliar"}
    model.save(tmp_path / "m")
    assert set(load(tmp_path / "m").predict_verdict(X)) == {"unfamiliar"}


def test_equal_rows_are_one_row():
    X = np.random.default_rng(0).normal(size=(5, 2)).repeat(6, axis=0)
    with pytest.warns(TableWarning, match="5 rows to learn from"):
        model = GaussianRegressor(hidden=(4,), epochs=2, random_state=0).fit(X, X[:, 0])
    assert set(model.predict_verdict(X)) == {"unfamiliar"}


def test_rows_enough_may_be_trusted():
    X = np.random.default_rng(0).normal(size=(FEWEST, 2))
    model = DeepEnsembleRegressor(2, hidden=(4,), epochs=2, random_state=0).fit(X, X[:, 0])
    assert "trust" in model.predict_verdict(X)


# -- conformal intervals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "coverage", "rank"), [(9, 0.9, 9), (19, 0.9, 18), (99, 0.9, 90), (3, 0.5, 2), (1, 0.5, 1)]
)
def test_quantile_is_the_exact_order_statistic(n, coverage, rank):
    scores = np.arange(1.0, n + 1)[:, None]
    assert conformal_quantile(scores, coverage) == [rank]


def test_too_few_rows_for_a_coverage_are_refused():
    with pytest.raises(ValueError, match="needs at least 19 calibration rows; 18 were held out"):
        conformal_quantile(np.ones((18, 1)), 0.95)
    conformal_quantile(np.ones((19, 1)), 0.95)


def test_scores_are_sorted_per_target():
    y = np.array([[3.0, 0.0], [1.0, 5.0]])
    scores = conformal_scores(y, np.zeros((2, 2)), np.array([[1.0, 1.0], [1.0, 10.0]]))
    np.testing.assert_array_equal(scores, [[1.0, 0.0], [3.0, 0.5]])


def test_coverage_over_200_resamples_stays_inside_binomial_bounds():
    """Use a poor model on skewed noise: the guarantee holds all the same.

    Each resample fits, calibrates on its own held-out rows, and sees one fresh row: 200
    independent trials, each covered with probability in [c, c + 1 / (n + 1)].
    """
    rng = np.random.default_rng(0)
    coverage, n_rows = 0.8, 120

    def draw(n):
        X = rng.standard_normal((n, 2))
        return X, np.exp(X[:, 0]) + rng.exponential(1 + np.abs(X[:, 1]), n)

    hits = 0
    for seed in range(200):
        X, y = draw(n_rows)
        model = GaussianRegressor(
            hidden=(4,), epochs=2, calibration_fraction=0.25, random_state=seed
        ).fit(X, y)
        x_new, y_new = draw(1)
        (lower,), (upper,) = model.predict_interval(x_new, coverage, method="conformal")
        hits += lower <= y_new[0] <= upper
    n_held = 30
    low, _ = stats.binom.interval(0.999, 200, coverage)
    _, high = stats.binom.interval(0.999, 200, coverage + 1 / (n_held + 1))
    assert low <= hits <= high


def test_conformal_repairs_an_overconfident_model():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    y = X[:, 0] + rng.standard_t(2, 600)
    model = GaussianRegressor(
        hidden=(64, 64),
        epochs=150,
        validation_fraction=0.0,
        calibration_fraction=0.3,
        random_state=0,
    ).fit(X[:400], y[:400])

    def covered(method):
        lower, upper = model.predict_interval(X[400:], 0.9, method)
        return np.mean((lower <= y[400:]) & (y[400:] <= upper))

    assert covered("predictive") < 0.8  # overfitted on purpose
    assert covered("conformal") > 0.82


def test_without_calibration_rows_the_error_names_the_parameter():
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = GaussianRegressor(hidden=(4,), epochs=2).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="raise `calibration_fraction`"):
        model.predict_interval(X, method="conformal")


@pytest.mark.parametrize(("coverage", "method"), [(0.0, "predictive"), (1.0, "conformal")])
def test_impossible_coverage_is_refused(coverage, method):
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = GaussianRegressor(hidden=(4,), epochs=2).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="`coverage` must lie between 0 and 1"):
        model.predict_interval(X, coverage, method)
    unknown: Any = "best"
    with pytest.raises(ValueError, match='unknown method "best"'):
        model.predict_interval(X, 0.5, unknown)
