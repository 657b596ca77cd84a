"""Quickly trained models of every kind, and rows to score."""

import functools

import numpy as np
import pandas as pd
import pytest

import priornet
from priornet import (
    DeepEnsembleRegressor,
    DistilledRegressor,
    GaussianRegressor,
    SharedPriorRegressor,
)

QUICK = {"hidden": (16,), "epochs": 5, "random_state": 0}
STUDENT = {**QUICK, "n_members": 3, "student_epochs": 5, "n_transfer": 500}
MAKERS = {
    "single": lambda: GaussianRegressor(**QUICK),
    "ensemble": lambda: DeepEnsembleRegressor(4, **QUICK),
    "mapped single": lambda: GaussianRegressor(target_transform="quantile", **QUICK),
    "rkl": lambda: priornet.PriorNetRegressor(**QUICK),
    "der": lambda: priornet.EvidentialRegressor(**QUICK),
    "endd": lambda: DistilledRegressor(**STUDENT),
    "end": lambda: DistilledRegressor(objective="end", **STUDENT),
    "md-end": lambda: DistilledRegressor(objective="md-end", **STUDENT),
    "shared": lambda: SharedPriorRegressor(6, trees=False, **QUICK),
    "shared trees": lambda: SharedPriorRegressor(6, trees=True, **QUICK),
}
TARGETS = ["price", "weight", "length"]


def make_table(n_rows=200, seed=0):
    """Make numbers and labels, some with missing values, large close numbers, and dates."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "blue", "grün, hell"], n_rows).astype(object)
    x = rng.normal(size=n_rows)
    frame = pd.DataFrame(
        {
            "x": x,
            "colour": colour,
            "gap": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows)),
            "id": 1e9 + rng.normal(size=n_rows),
            "day": pd.Timestamp("2020-02-03") + pd.to_timedelta(rng.integers(0, 99, n_rows), "D"),
            "size": rng.choice(["S", "M"], n_rows),
            "is_new": rng.random(n_rows) < 0.5,
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "colour"] = None
    y = 3e4 + 1e3 * (np.sin(x) + (colour == "red") + 0.1 * rng.normal(size=n_rows))
    return frame.assign(price=y, weight=1e-3 * y + x, length=rng.normal(size=n_rows) * np.exp(x))


def features(frame):
    return frame.drop(columns=TARGETS)


@functools.cache
def fitted(name, n_targets):
    table = make_table()
    y = table["price"] if n_targets == 1 else table[TARGETS[:n_targets]]
    return MAKERS[name]().fit(features(table), y)


@pytest.fixture(scope="session")
def model_of():
    """Return a function that fits a model of a kind and a number of targets."""
    return fitted


@pytest.fixture(scope="session")
def table():
    """Return the training table of the models."""
    return make_table()


@pytest.fixture(scope="session")
def rows():
    """Make rows that training did not see, some of them out-of-domain."""
    frame = features(make_table(300, seed=1))
    frame.loc[0, "colour"] = "purple"
    frame.loc[1, "size"] = None  # complete in training
    frame.loc[2, "x"] = np.nan
    frame.loc[3, "x"] = 1e9
    frame.loc[4, "x"] = -1e30
    frame.loc[5, "day"] = pd.NaT
    frame.loc[6:150, "x"] *= 10
    return frame
