"""Every estimator keeps scikit-learn's contract, on arrays and on tables."""

from __future__ import annotations

import functools
import pickle
from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    estimator_checks_generator,
)

from priornet import (
    DeepEnsembleRegressor,
    DistilledRegressor,
    EvidentialRegressor,
    GaussianRegressor,
    PriorNetRegressor,
    SharedPriorRegressor,
)

QUICK = {"hidden": (16,), "epochs": 60, "random_state": 0}
STUDENT = {**QUICK, "n_members": 3, "student_epochs": 30, "n_transfer": 2000}
MAKERS = {
    "single": lambda: GaussianRegressor(**QUICK),
    "ensemble": lambda: DeepEnsembleRegressor(3, **QUICK),
    "prior network": lambda: PriorNetRegressor(**QUICK),
    "evidential": lambda: EvidentialRegressor(**QUICK),
    "endd": lambda: DistilledRegressor(**STUDENT),
    "endd likelihood": lambda: DistilledRegressor(**STUDENT, target="likelihood", temperature=5.0),
    "end": lambda: DistilledRegressor(objective="end", **STUDENT),
    "md-end": lambda: DistilledRegressor(objective="md-end", **STUDENT),
    "shared": lambda: SharedPriorRegressor(4, **QUICK),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def table(n: int = 150) -> tuple[pd.DataFrame, pd.Series]:
    """Make a table of numbers and labels with missing values."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.standard_normal(n),
            "age": rng.uniform(0, 90, n),
            "colour": rng.choice(["red", "green", "blue"], n),
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "colour"] = None
    y = 1e3 * frame["size"] + 500 * (frame["colour"] == "red") + rng.normal(0, 50, n) + 1e4
    return frame, pd.Series(y, name="price")


@functools.cache
def fitted(name: str):
    """Train once for all tests that change nothing."""
    return MAKERS[name]().fit(*table())


@functools.cache
def fitted_pair(name: str):
    """Train with two target columns."""
    X, y = table()
    return MAKERS[name]().fit(X, pd.DataFrame({"price": y, "rent": 0.01 * y + X["size"]}))


@pytest.mark.filterwarnings("ignore:.*:priornet.estimators.TableWarning")  # of tables of few rows
@pytest.mark.parametrize("name", ["single", "ensemble", "prior network", "evidential", "endd"])
def test_check_estimator(name):
    n_passed = 0
    checks: Any = estimator_checks_generator(with_epochs(name, 3))
    for quick, check in checks:
        # One check, in three forms, asks for a good score: it takes training.
        learns = check.func.__name__ == "check_regressors_train"
        try:
            check(with_epochs(name, 100) if learns else quick)
        except SkipTest:
            continue
        n_passed += 1
    assert n_passed > 40


def test_columns_in_another_order_are_no_error_though_scikit_learn_demands_one():
    """Expect a failure: columns are found by their names here, and others may be there."""
    with pytest.raises(AssertionError, match="predict did not raise"):
        check_dataframe_column_names_consistency("GaussianRegressor", GaussianRegressor(**QUICK))


def with_epochs(name, epochs):
    estimator = MAKERS[name]().set_params(epochs=epochs)
    if isinstance(estimator, DistilledRegressor):
        estimator.set_params(student_epochs=epochs)
    return estimator


@every
def test_default_parameters_are_stored_unchanged(make):
    estimator = make()
    given = estimator.get_params(deep=False)
    assert type(estimator)(**given).get_params(deep=False) == given


@pytest.mark.parametrize("name", MAKERS)
def test_learns_a_table_with_text_and_missing_values(name):
    X, y = table()
    assert fitted(name).score(X, y) > 0.8


@pytest.mark.parametrize("name", MAKERS)
def test_predictive_is_in_target_units(name):
    X, y = table()
    model = fitted(name)
    dist = model.predict_dist(X)
    assert dist.batch_shape == (len(X),)
    assert dist.event_shape == ()
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(dist.mean.numpy(), mean)
    np.testing.assert_allclose(dist.stddev.numpy(), std)
    assert 8e3 < mean.mean() < 1.2e4
    # Half of the targets lie below the median, give or take what training cannot know.
    below = dist.cdf(torch.tensor(y.to_numpy())).numpy()
    assert 0.3 < np.mean(below < 0.5) < 0.7
    lower, upper = model.predict_interval(X, coverage=0.8)
    np.testing.assert_allclose(dist.cdf(torch.from_numpy(lower)), 0.1, atol=1e-6)
    np.testing.assert_allclose(dist.cdf(torch.from_numpy(upper)), 0.9, atol=1e-6)


@pytest.mark.parametrize("name", MAKERS)
def test_uncertainty_adds_up(name):
    X, _ = table()
    model = fitted(name)
    record = model.predict_uncertainty(X)
    np.testing.assert_allclose(
        record.total_variance, record.data_variance + record.knowledge_variance
    )
    np.testing.assert_allclose(record.total_variance, model.predict(X, return_std=True)[1] ** 2)
    if record.mutual_information is not None:
        total = record.data_entropy + record.mutual_information
        np.testing.assert_allclose(record.total_entropy, total, atol=1e-9)
    has_knowledge = name not in ("single", "end")
    assert (record.knowledge_variance > 0).all() == has_knowledge
    np.testing.assert_array_equal(record.to_frame()["epkl"], record.epkl)


def test_uncertainty_joins_the_rows_that_it_is_of():
    X, y = table()
    model = fitted("ensemble")
    everything = model.predict_uncertainty(X).total_variance
    parts: Any = train_test_split(X, y, random_state=0)
    _, X_test, _, y_test = parts
    record = model.predict_uncertainty(X_test)
    joined = X_test.join(y_test).join(record.to_frame())
    np.testing.assert_allclose(joined["total_variance"], everything[joined.index])
    pair = fitted_pair("ensemble").predict_uncertainty(X_test).to_frame()
    assert pair.index.equals(X_test.index)
    other = record.to_frame(index=range(7, 7 + len(X_test)))
    assert other.index[0] == 7
    columns = {name: X_test[name].to_numpy() for name in X_test}  # without an index: positions
    assert model.predict_uncertainty(columns).to_frame().index.tolist() == [*range(len(X_test))]
    again = pickle.loads(pickle.dumps(record)).to_frame()
    pd.testing.assert_frame_equal(again, record.to_frame())


@pytest.mark.parametrize("name", MAKERS)
def test_units_of_the_target_only_scale(name):
    X, y = table(80)
    model, scaled = MAKERS[name]().fit(X, y), MAKERS[name]().fit(X, 8.0 * y)
    np.testing.assert_allclose(scaled.predict(X), 8 * model.predict(X), rtol=1e-5)
    ours, theirs = model.predict_uncertainty(X), scaled.predict_uncertainty(X)
    np.testing.assert_allclose(theirs.data_variance, 64 * ours.data_variance, rtol=1e-3)
    np.testing.assert_allclose(theirs.data_entropy, ours.data_entropy + np.log(8), atol=1e-3)


@pytest.mark.parametrize("name", MAKERS)
def test_several_targets_have_a_full_covariance(name):
    X, _ = table()
    model = fitted_pair(name)
    dist = model.predict_dist(X)
    assert dist.event_shape == (2,)
    assert model.predict(X).shape == (len(X), 2)
    covariance = model.predict_belief(X).total_covariance()
    off = covariance[:, 0, 1] / covariance.diagonal(dim1=-2, dim2=-1).prod(-1).sqrt()
    assert float(off.abs().mean()) > 0.1  # the second target is mostly the first
    record = model.predict_uncertainty(X)
    assert record.total_variance.shape == (len(X), 2)
    assert "total_variance_rent" in record.to_frame()
    lower, upper = model.predict_interval(X)
    assert lower.shape == upper.shape == (len(X), 2)
    assert (lower < upper).all()


@every
def test_same_seed_same_model_another_seed_another(make):
    X, y = table(60)
    first, second = make().fit(X, y).predict(X), make().fit(X, y).predict(X)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, make().set_params(random_state=1).fit(X, y).predict(X))


@every
def test_fit_leaves_torchs_generator_alone(make):
    X, y = table(60)
    before = torch.random.get_rng_state()
    make().fit(X, y)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("name", MAKERS)
def test_pickle_and_clone(name):
    X, _ = table()
    model = fitted(name)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    fresh: Any = clone(model)
    assert repr(fresh.get_params()) == repr(model.get_params())
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_works_in_pipeline_grid_search_and_cross_validation():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(120)
    pipeline = make_pipeline(StandardScaler(), GaussianRegressor(**QUICK))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
    grid = GridSearchCV(GaussianRegressor(**QUICK), {"learning_rate": [1e-5, 1e-2]}, cv=2)
    assert grid.fit(X, y).best_params_ == {"learning_rate": 1e-2}


def test_a_mapping_of_columns_is_a_table_too():
    X, y = table()
    columns = {name: X[name].to_numpy() for name in X}
    model = GaussianRegressor(**QUICK).fit(columns, y.to_numpy())
    np.testing.assert_array_equal(model.predict(columns), fitted("single").predict(X))


def test_columns_are_checked_by_name():
    X, _ = table()
    model = fitted("ensemble")
    assert model.feature_names_in_.tolist() == ["size", "age", "colour"]
    with pytest.raises(ValueError, match=r"now missing:\n- age"):
        model.predict(X.drop(columns="age"))
    with pytest.raises(ValueError, match=r"now missing:\n- age\n$"):
        model.predict(X.drop(columns="age").assign(extra=1))
    numbered = X.set_axis(range(3), axis="columns")  # without names their order counts
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        found = model.predict(numbered)
    np.testing.assert_array_equal(found, model.predict(X))


def all_answers(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """Collect the answers of every ``predict`` method."""
    return {
        "predict": model.predict(X),
        "std": model.predict(X, return_std=True)[1],
        "dist": model.predict_dist(X).mean.numpy(),
        "belief": model.predict_belief(X).predictive().mean.numpy(),
        "uncertainty": model.predict_uncertainty(X).knowledge_variance,
        "interval": model.predict_interval(X, 0.9, "conformal")[0],
        "familiarity": model.predict_familiarity(X),
        "verdict": model.predict_verdict(X),
        "score": model.score(X, y),
    }


@pytest.mark.parametrize("name", ["single", "ensemble", "prior network", "evidential", "endd"])
def test_columns_may_come_in_any_order_with_others_among_them(name):
    X, y = table()
    model = fitted(name)
    expected = all_answers(model, X, y)
    others: Any = X[["colour", "age", "size"]]
    others.insert(1, "note", [["not", "a", "feature"]] * len(X))
    tables = {
        "frame": others,
        "arrow": pa.Table.from_pandas(others),
        "batch": pa.RecordBatch.from_pandas(others),
        "mapping": {column: others[column].to_numpy() for column in others},
    }
    for kind, given in tables.items():
        for method, answer in all_answers(model, given, y).items():
            np.testing.assert_array_equal(answer, expected[method], err_msg=f"{kind}, {method}")


def test_a_student_of_a_named_teacher_takes_columns_in_any_order():
    X, y = table()
    others = X[["colour", "age", "size"]].assign(note="none")
    teacher = fitted("ensemble")
    student: Any = {"student_epochs": 5, "n_transfer": 500, "random_state": 0}
    first = DistilledRegressor(teacher, **student).fit(X, y, unlabelled=X)
    second = DistilledRegressor(teacher, **student).fit(others, y, unlabelled=others)
    assert second.feature_names_in_.tolist() == list(X)
    np.testing.assert_array_equal(first.predict(others), second.predict(X))
    assert first.faithfulness(others).inside == second.faithfulness(X).inside


def test_out_of_domain_inputs_may_come_in_any_order():
    X, y = table(60)
    others = X[["colour", "age", "size"]].assign(note="none")
    models = [PriorNetRegressor(**QUICK).fit(X, y, X_ood=rows) for rows in (X, others)]
    np.testing.assert_array_equal(*[model.predict(X) for model in models])


@pytest.mark.filterwarnings("ignore:.*:priornet.estimators.TableWarning")
def test_weight_two_is_a_repeated_row_and_weight_zero_none():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
    weight = rng.integers(0, 3, 20)
    weighted = GaussianRegressor(**QUICK).fit(X, y, sample_weight=weight)
    repeated = GaussianRegressor(**QUICK).fit(X.repeat(weight, 0), y.repeat(weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7, atol=1e-9)


def test_heavy_rows_count_more():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1))
    y = np.where(np.arange(200) % 2 == 0, 1.0, -1.0) + 0.1 * rng.standard_normal(200)
    weight = np.where(np.arange(200) % 2 == 0, 9.0, 1.0)
    model = GaussianRegressor(**QUICK).fit(X, y, sample_weight=weight)
    assert model.predict(X).mean() == pytest.approx(0.8, abs=0.15)


BAD = {
    "constant": (lambda X, y: (X, np.ones(len(y))), "the target 'y' is constant"),
    "one row": (lambda X, y: (X[:1], y[:1]), "minimum of 2 is required"),
    "infinite": (lambda X, y: (np.where(X == 9, np.inf, X), y), "column 1, row 4: .* .infinity."),
    "infinite target": (
        lambda X, y: (X, np.column_stack([y, np.where(y == 7, -np.inf, y)])),
        r"the target 'y1' is -inf \(infinity\) in row 7: give a number, or leave the row out",
    ),
    "too many rows": (
        lambda X, y: (np.broadcast_to(1.0, (10**12, 7)), y),
        r"1000000000000 rows with 7 inputs takes about 556000.0 GB, and \d+\.\d GB of memory are "
        r"free: at most \d+ such rows fit",
    ),
    "nan target": (lambda X, y: (X, y * np.nan), "missing .NaN. in row 0: give a number"),
    "text target": (lambda X, y: (X, np.full(len(y), "a")), "not numeric"),
    "lengths": (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_tables_are_refused(change, message):
    X, y = change(np.arange(60.0).reshape(30, 2), np.arange(30.0))
    with pytest.raises(ValueError, match=message):
        GaussianRegressor(**QUICK).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (GaussianRegressor(hidden=()), "`hidden` must be a tuple"),
        (GaussianRegressor(validation_fraction=1.0), "`validation_fraction` must lie"),
        (GaussianRegressor(calibration_fraction=-1), "`calibration_fraction` must be"),
        (DeepEnsembleRegressor(1), "`n_members` must be at least 2"),
        (PriorNetRegressor(beta=0), "`beta` must be positive"),
        (EvidentialRegressor(coefficient=-1), "`coefficient` must not be negative"),
        (DistilledRegressor().set_params(objective="best"), 'unknown objective "best"'),
        (DistilledRegressor(temperature=5.0), "`temperature` above 1 needs"),
        (DistilledRegressor(student_learning_rate=-1.0), "`student_learning_rate` must be"),
        (DistilledRegressor().set_params(student_learning_rate="fast"), 'or "auto"; got fast'),
        (DistilledRegressor().set_params(student_learning_rate=None), 'or "auto"; got None'),
        (DistilledRegressor(n_transfer=0), "`n_transfer` must be a whole number"),
        (GaussianRegressor(epochs=0), "`epochs` must be a whole number of at least 1, or 'auto'"),
        (GaussianRegressor(batch_size=-3), "`batch_size` must be a whole number"),
        (GaussianRegressor(patience=0), "`patience` must be a whole number of at least 1, or None"),
        (GaussianRegressor(learning_rate=-1), "must not be negative"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_bad_parameters_are_refused(estimator, message):
    X, y = table(50)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)


def test_members_of_a_small_table_stop_before_they_overfit():
    """Train on pure noise: the best NLL is that of a standard Gaussian."""
    rng = np.random.default_rng(0)
    model = DeepEnsembleRegressor(random_state=0).fit(rng.normal(size=(30, 5)), rng.normal(size=30))
    y = torch.tensor(rng.normal(size=1000))
    nll = -model.predict_dist(rng.normal(size=(1000, 5))).log_prob(y).mean()
    assert float(nll) < 1.419 + 0.3
