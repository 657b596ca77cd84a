"""Evaluations of real models: every score by a second route, and what cannot be scored refused."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.metrics import root_mean_squared_error

from priornet.evaluation import evaluate
from priornet.metrics import LEVELS

MEASURES = {
    "total_entropy",
    "total_variance",
    "expected_entropy",
    "mutual_information",
    "epkl",
    "variance_of_mean",
}


def test_metrics_are_ready_for_json(evaluation, single, two_targets):
    for record in (evaluation, single.evaluate(), two_targets.evaluate()):
        assert json.loads(json.dumps(record.metrics, allow_nan=False)) == record.metrics


def test_rmse_is_scikit_learns(evaluation, ensemble, two_targets):
    expected = root_mean_squared_error(ensemble.y, ensemble.model.predict(ensemble.X))
    assert evaluation.metrics["rmse"] == pytest.approx(expected)
    both = two_targets.evaluate()
    predicted = two_targets.model.predict(two_targets.X)
    each = np.sqrt(np.mean((two_targets.y.to_numpy() - predicted) ** 2, axis=0))
    found = [both.metrics["targets"][name]["rmse"] for name in both.target_names]
    assert found == pytest.approx(list(each))
    assert both.metrics["rmse"] == pytest.approx(np.mean(each))


def test_nll_and_pit_are_those_of_the_members(evaluation, ensemble):
    """The mixture by hand, from the members and scipy."""
    belief = ensemble.model.predict_belief(ensemble.X)
    mean = belief.means[..., 0].numpy()
    spread = np.sqrt(belief.covariances[..., 0, 0].numpy())
    y = ensemble.y.to_numpy()
    log_density = logsumexp(stats.norm.logpdf(y, mean, spread), axis=0) - np.log(len(mean))
    assert evaluation.metrics["nll"] == pytest.approx(-log_density.mean())
    below = stats.norm.cdf(y, mean, spread).mean(0)
    np.testing.assert_allclose(evaluation.pit[:, 0], below, rtol=1e-9)
    np.testing.assert_allclose(evaluation.observed[50, 0], (below <= 0.5).mean())


def test_crps_matches_draws(evaluation, ensemble):
    belief = ensemble.model.predict_belief(ensemble.X)
    rng, n = np.random.default_rng(0), 4000
    mean = belief.means[..., 0].numpy()
    spread = np.sqrt(belief.covariances[..., 0, 0].numpy())
    rows = np.arange(mean.shape[1])
    first, second = (
        mean[m, rows] + spread[m, rows] * rng.standard_normal((n, len(rows)))
        for m in (rng.integers(0, len(mean), (n, len(rows))) for _ in range(2))
    )
    draws = np.abs(first - ensemble.y.to_numpy()) - 0.5 * np.abs(first - second)
    per_draw = draws.mean(1)
    assert abs(per_draw.mean() - evaluation.metrics["crps"]) <= 5 * per_draw.std() / np.sqrt(n)


@pytest.mark.parametrize("method", ["predictive", "conformal"])
@pytest.mark.parametrize("level", LEVELS)
def test_coverage_and_width_are_those_of_the_intervals(evaluation, ensemble, method, level):
    lower, upper = ensemble.model.predict_interval(ensemble.X, coverage=level, method=method)
    y = ensemble.y.to_numpy()
    inside = ((lower <= y) & (y <= upper)).mean()
    found = evaluation.metrics["coverage"][method][f"{level:g}"]
    assert found["share"] == pytest.approx(inside)
    assert found["standard_error"] == pytest.approx(np.sqrt(inside * (1 - inside) / len(y)))
    width = evaluation.metrics["interval_width"][method][f"{level:g}"]
    assert width == pytest.approx((upper - lower).mean())


def test_levels_without_enough_calibration_rows_are_left_out(single):
    """Twelve held-out rows are enough for 50, 80 and 90 %, not for 95 %."""
    scores = single.evaluate().metrics
    assert len(single.model.fitted_.calibration_scores) == 12
    assert set(scores["coverage"]["conformal"]) == {"0.5", "0.8", "0.9"}
    assert set(scores["coverage"]["predictive"]) == {"0.5", "0.8", "0.9", "0.95"}


def test_every_measure_is_ranked(evaluation, ensemble, single):
    assert set(evaluation.metrics["prr"]) == set(evaluation.metrics["ood_auc"]) == MEASURES
    alone = single.evaluate().metrics
    assert set(alone["prr"]) == MEASURES
    assert "ood_auc" not in alone
    record = ensemble.model.predict_uncertainty(ensemble.X)
    np.testing.assert_allclose(evaluation.spread.measures["epkl"], record.epkl)
    measured = evaluation.spread.measures["variance_of_mean"]
    np.testing.assert_allclose(measured, record.knowledge_variance)


def test_information_is_within_its_bounds(evaluation):
    """Not negative, below the expected pairwise KL and the logarithm of the three members."""
    measures = evaluation.spread.measures
    information = measures["mutual_information"]
    assert (information > -1e-9).all()
    assert (information <= np.minimum(measures["epkl"], np.log(3)) + 1e-3).all()
    total = measures["expected_entropy"] + information
    np.testing.assert_allclose(measures["total_entropy"], total)


def test_far_rows_are_told_apart(evaluation):
    assert evaluation.metrics["ood_auc"]["variance_of_mean"] > 0.9


def test_uncertainty_adds_up(evaluation):
    spread = evaluation.spread
    np.testing.assert_allclose(spread.total**2, spread.data**2 + spread.knowledge**2, rtol=1e-9)


def test_several_targets_are_scored_in_their_own_units(two_targets):
    record = two_targets.evaluate()
    y, mean = two_targets.y.to_numpy(), two_targets.model.predict(two_targets.X)
    standardised = (y - mean) / y.std(0)
    np.testing.assert_allclose(record.error, (standardised**2).sum(1))
    variance = two_targets.model.predict_uncertainty(two_targets.X).total_variance
    expected = (variance / y.var(0)).sum(1)
    np.testing.assert_allclose(record.spread.measures["total_variance"], expected)


def test_verdicts_are_counted(evaluation, ensemble):
    verdict, columns = ensemble.model.predict_verdict(ensemble.X, return_columns=True)
    words, counts = np.unique(verdict, return_counts=True)
    assert evaluation.metrics["unseen"]["n_rows"] == np.count_nonzero(columns) > 0
    found = {word: n for word, n in evaluation.metrics["verdicts"].items() if n}
    assert found == dict(zip(words.tolist(), counts.tolist(), strict=True))


def test_evaluation_is_the_same_every_time(evaluation, ensemble):
    again = ensemble.evaluate()
    assert again.metrics == evaluation.metrics
    assert again.rows == evaluation.rows


def test_model_is_described(evaluation, ensemble, single):
    model = evaluation.model
    assert (model.method, model.label) == ("ENSM", "Ensemble")
    assert model.class_name == "DeepEnsembleRegressor"
    assert model.parameters["n_members"] == "3"
    assert model.seed == 0
    assert model.feature_names == tuple(ensemble.X.columns)
    assert model.training == ensemble.model.fitted_.training
    assert single.evaluate().model.feature_names == ("x0", "x1")
    assert evaluate(single.model, single.X, single.y, name="mine").name == "mine"


def broken(y, rows, value):
    y = y.copy()
    y.iloc[rows] = value
    return y


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: broken(y, [3], np.nan), r'target "price" is missing in row row 3; leave'),
        (lambda y: broken(y, [3, 8], np.nan), r"row row 3 \(and in 1 more rows\)"),
        (lambda y: broken(y, [4], np.inf), r'target "price" is infinite in row row 4'),
        (lambda y: pd.concat([y, y], axis=1), r"predicts 1 target\(s\), price; got 2 column"),
        (lambda y: y.iloc[:-1], r"`X` has 150 rows and `y` has 149"),
    ],
)
def test_targets_that_cannot_be_scored_are_refused(ensemble, change, message):
    with pytest.raises(ValueError, match=message):
        evaluate(ensemble.model, ensemble.X, change(ensemble.y))


def test_one_row_is_refused(ensemble):
    with pytest.raises(ValueError, match="two rows or more; got 1"):
        evaluate(ensemble.model, ensemble.X.iloc[:1], ensemble.y.iloc[:1])


def test_missing_row_of_an_array_is_named_by_its_number(single):
    y = single.y.copy()
    y[17] = np.nan
    with pytest.raises(ValueError, match='target "y" is missing in row 17'):
        evaluate(single.model, single.X, y)
