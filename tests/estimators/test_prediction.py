"""One record of a prediction: made in one pass, and the same as the command's columns."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from _golden_table import INPUTS, ROWS, call, make_table
from priornet import (
    DeepEnsembleRegressor,
    DistilledRegressor,
    EvidentialRegressor,
    GaussianRegressor,
    PriorNetRegressor,
    SharedPriorRegressor,
)
from priornet.estimators import BaseRegressor, PredictionError
from priornet.evaluation import evaluate
from priornet.export import outputs_of
from priornet.nn import StackedMLP
from priornet.tables.preprocessing import TablePreprocessor

QUICK = {"hidden": (8,), "epochs": 5, "random_state": 0}
MAKERS = {
    "single": lambda: GaussianRegressor(**QUICK),
    "ensemble": lambda: DeepEnsembleRegressor(2, **QUICK),
    "prior network": lambda: PriorNetRegressor(**QUICK),
}
TABLE = make_table()
ONE, TWO = "price", ["price", "rent"]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of rows unlike the training's


@pytest.fixture
def passes(monkeypatch):
    """Count the rows that go through preprocessing and through networks."""
    counts = {"preprocessing": 0, "networks": 0}
    transform, raw = TablePreprocessor.transform, StackedMLP.raw

    def counted_transform(self, X, **options):
        found = transform(self, X, **options)
        counts["preprocessing"] += len(found)
        return found

    def counted_raw(self, x):
        counts["networks"] += x.shape[1]
        return raw(self, x)

    monkeypatch.setattr(TablePreprocessor, "transform", counted_transform)
    monkeypatch.setattr(StackedMLP, "raw", counted_raw)
    return counts


@pytest.mark.parametrize("targets", [ONE, TWO], ids=["one", "two"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_table_has_the_columns_of_the_command(name, targets, tmp_path):
    model = MAKERS[name]().fit(TABLE[INPUTS], TABLE[targets])
    model.save(tmp_path / "model")
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    out, asked = tmp_path / "out.parquet", ("--coverage", "0.8", "--interval", "conformal")
    call("predict", tmp_path / "model", tmp_path / "rows.csv", "--out", out, *asked, "--entropies")
    expected = pd.read_parquet(out).drop(columns=list(ROWS))
    rows = ROWS[INPUTS].set_axis([f"row {i}" for i in range(len(ROWS))])
    found = model.predict_table(rows, 0.8, "conformal", entropies=True)
    assert found.index.tolist() == rows.index.tolist()
    pd.testing.assert_frame_equal(found.reset_index(drop=True), expected, check_exact=True)
    assert list(model.predict_table(rows)) == list(expected)[:-4]


def test_a_table_takes_a_prefix_where_a_name_is_taken():
    X = pd.DataFrame(TABLE[INPUTS]).rename(columns={"size": "total"})
    model = MAKERS["single"]().fit(X, TABLE[ONE])
    found = model.predict_table(X)
    assert all(name.startswith("priornet_") for name in found)
    assert X.join(found).shape == (len(X), X.shape[1] + 9)
    taken = X.rename(columns={"rooms": "priornet_total"})
    model = MAKERS["single"]().fit(taken, TABLE[ONE])
    with pytest.raises(ValueError, match='"priornet_total", to be added, is there already'):
        model.predict_table(taken)


@pytest.mark.parametrize("name", MAKERS)
def test_every_method_is_a_view_of_one_record(name):
    model, X = MAKERS[name]().fit(TABLE[INPUTS], TABLE[TWO]), ROWS[INPUTS]
    found = model.predict_all(X, coverage=0.8)
    mean, std = model.predict(X, return_std=True)
    lower, upper = model.predict_interval(X, 0.8)
    words, columns = model.predict_verdict(X, return_columns=True)
    measured = model.predict_uncertainty(X)
    for one, other in (
        (found.mean, mean),
        (found.std, std),
        (found.lower, lower),
        (found.upper, upper),
        (found.in_domain, model.predict_familiarity(X)),
        (found.verdict, words),
        (found.unseen.columns, columns),
        (found.uncertainty.data_entropy, measured.data_entropy),
    ):
        np.testing.assert_array_equal(one, other)
    for part in ("total", "data", "knowledge"):
        variance = getattr(measured, f"{part}_variance")
        np.testing.assert_allclose(getattr(found, part) ** 2, variance, rtol=1e-12)


def test_a_table_is_predicted_in_one_pass(passes):
    model = MAKERS["prior network"]().fit(TABLE[INPUTS], TABLE[ONE])
    passes.update(preprocessing=0, networks=0)
    model.predict_table(ROWS[INPUTS], entropies=True)
    assert passes == {"preprocessing": len(ROWS), "networks": len(ROWS)}


def test_rows_are_evaluated_in_one_pass(passes, monkeypatch):
    """Leave out the sweeps along each feature, which predict rows of their own."""
    monkeypatch.setattr("priornet.evaluation.evaluate_model.panels", lambda *_: ())
    held, rest = TABLE[:20], TABLE[20:]
    model = MAKERS["prior network"]().fit(rest[INPUTS], rest[ONE])
    passes.update(preprocessing=0, networks=0)
    found = evaluate(model, held[INPUTS], held[ONE], coverage=0.8)
    assert set(found.interval["observed"]) == {"predictive", "conformal"}
    assert passes == {"preprocessing": 20, "networks": 20}


QUICK = {"hidden": (8,), "epochs": 5, "random_state": 0}
STUDENT = {**QUICK, "n_members": 2, "student_epochs": 5, "n_transfer": 300}
MAKERS = {
    "single": lambda: GaussianRegressor(**QUICK),
    "ensemble": lambda: DeepEnsembleRegressor(2, **QUICK),
    "prior network": lambda: PriorNetRegressor(**QUICK),
    "evidential": lambda: EvidentialRegressor(**QUICK),
    "endd": lambda: DistilledRegressor(**STUDENT),
    "end": lambda: DistilledRegressor(objective="end", **STUDENT),
    "md-end": lambda: DistilledRegressor(objective="md-end", **STUDENT),
    "shared": lambda: SharedPriorRegressor(4, **QUICK),
}
ASKED = (
    *("predict", "predict_dist", "predict_belief", "predict_uncertainty", "predict_interval"),
    *("predict_familiarity", "predict_verdict"),
)


def overflowing(model: BaseRegressor, factor: float) -> BaseRegressor:
    """Copy a model with weights that are finite, and too large."""
    spoilt = copy.deepcopy(model)
    with torch.no_grad():
        spoilt.fitted_.stack.weights.mul_(factor)
    assert torch.isfinite(spoilt.fitted_.stack.weights).all()
    return spoilt


@pytest.mark.parametrize("n_rows", [20, 120], ids=["double", "single"])
@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_predictions_that_overflow_are_refused(make, n_targets, n_rows):
    X = np.random.default_rng(0).standard_normal((n_rows, 2))
    model = make().fit(X, X[:, :n_targets])
    spoilt = overflowing(model, torch.finfo(model.fitted_.stack.weights.dtype).max ** 0.9)
    for name in ASKED:
        with pytest.raises(PredictionError, match="not a finite number in row") as caught:
            getattr(spoilt, name)(X)
        assert caught.value.row < n_rows
    with pytest.raises(PredictionError):
        outputs_of(spoilt, X, {"coverage": 0.9, "interval": "predictive"})


def test_an_overflow_in_units_of_the_target_is_refused():
    X = np.random.default_rng(0).standard_normal((20, 2))
    spoilt = overflowing(GaussianRegressor(**QUICK).fit(X, 1e135 * X[:, 0]), 1e110)
    for name in ASKED:
        with pytest.raises(PredictionError):
            getattr(spoilt, name)(X)


def test_the_row_is_named():
    X = np.random.default_rng(0).standard_normal((120, 2))
    model = overflowing(GaussianRegressor(**QUICK).fit(X, X[:, 0]), 1e15)
    X[[7, 9]] = 1e12
    with pytest.raises(PredictionError, match=r"in row 7 \(and in 1 more\)") as caught:
        model.predict(X)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert np.isfinite(model.predict(X[:7])).all()
