"""A prediction that is not finite is refused by every method."""

import copy
import pickle

import numpy as np
import pytest
import torch

from priornet import (
    DeepEnsembleRegressor,
    DistilledRegressor,
    EvidentialRegressor,
    GaussianRegressor,
    PriorNetRegressor,
)
from priornet.estimators import BaseRegressor, PredictionError
from priornet.export import outputs_of

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
