"""The rows to trust least: in the right order, with reasons that name the unusual values."""

import numpy as np

from priornet import GaussianRegressor
from priornet.evaluation import evaluate


def row(evaluation, label):
    return next(row for row in evaluation.rows if row.label == label)


def test_unfamiliar_rows_lead_and_noisy_ones_follow(evaluation):
    rank = {"unfamiliar": 0, "noisy": 1, "trust": 2}
    order = [rank[row.verdict] for row in evaluation.rows]
    assert order == sorted(order)
    for verdict, part in (("unfamiliar", "knowledge"), ("noisy", "total"), ("trust", "total")):
        of_kind = [r.position for r in evaluation.rows if r.verdict == verdict]
        sizes = evaluation.row_spread[part][of_kind]
        assert (np.diff(sizes) <= 0).all()


def test_no_row_left_out_is_trusted_less(evaluation):
    rank = np.array([{"unfamiliar": 0, "noisy": 1, "trust": 2}[str(w)] for w in evaluation.verdict])
    listed = [row.position for row in evaluation.rows]
    rest = np.setdiff1d(np.arange(len(rank)), listed)
    assert rank[rest].min() >= rank[listed].max()


def test_reason_names_the_feature_outside_its_range(evaluation, ensemble):
    old, rich = row(evaluation, "row 7"), row(evaluation, "row 9")
    assert old.verdict == rich.verdict == "unfamiliar"
    known = {column.name: column for column in ensemble.model.fitted_.preprocessor.columns_}
    top = known["age"].maximum
    assert f"age = 140 is above its training range, {known['age'].minimum:.4g}" in old.reason
    assert f"to {top:.4g}" in old.reason
    assert "income = 900 is above its training range" in rich.reason


def test_reason_says_which_uncertainty_and_how_much(evaluation):
    typical = {part: np.median(evaluation.row_spread[part]) for part in ("data", "knowledge")}
    for found in evaluation.rows:
        part = {"unfamiliar": "knowledge", "noisy": "data"}.get(found.verdict)
        if part is not None:
            times = evaluation.row_spread[part][found.position] / typical[part]
            assert found.reason.startswith(f"{part} uncertainty {times:.1f}x the median")


def test_unknown_category_is_named(ensemble):
    found = row(ensemble.evaluate(most_rows=150), "row 5")
    assert "city = Atlantis did not occur in training" in found.reason


def test_expected_missing_values_are_no_reason(ensemble):
    everything = ensemble.evaluate(most_rows=150)
    assert len(everything.rows) == 150
    assert not any("height is missing" in found.reason for found in everything.rows)


def test_an_unexpected_missing_value_is_named(single):
    X = single.X.copy()
    X[3, 1] = np.nan
    found = row(evaluate(single.model, X, single.y, most_rows=150), "3")
    assert "x1 is missing" in found.reason


def test_a_row_that_lacks_too_many_values_is_unfamiliar_and_says_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    y = X.sum(1)
    X[np.arange(120), rng.integers(0, 4, 120)] = np.nan  # each row lacks one value
    model = GaussianRegressor(hidden=(8,), epochs=5, random_state=0).fit(X, y)
    X[3] = [np.nan, np.nan, np.nan, 0.0]
    found = evaluate(model, X, y, most_rows=120)
    assert row(found, "3").verdict == "unfamiliar"
    assert "3 of 4 values are missing" in row(found, "3").reason
    assert "values are missing" not in row(found, "4").reason
    assert found.metrics["unseen"]["n_rows"] == found.metrics["verdicts"]["unfamiliar"] == 1
    assert found.metrics["unseen"]["columns"] == {"0": 1, "1": 1, "2": 1}
