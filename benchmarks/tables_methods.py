"""The methods that are compared, each with a `fit` and an `answer`.

Peers have their defaults, 1000 rounds, and stop early on an inner 15 % of their rows after 50
rounds without gain. Each takes labels and missing values in its own way; where it has none, numbers
get their median, text is one-hot, above 50 labels target-encoded. Days are counted as numbers.
The methods of priornet come from its own table of methods, with their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
import torch
from tables_inputs import INNER, Categories, Matrix, counted_days, inner_split, text_columns
from tables_scores import COVERAGE, LEVELS, Answer
from tables_tabm import TabM
from torch.distributions import Normal

from priornet.estimators import make_estimator
from priornet.methods import TABULAR

ROUNDS, PATIENCE = 1000, 50
MOST_LABELS = 254  # HistGradientBoosting knows 255 values of a column
VIRTUAL_ENSEMBLES = 10


class Method(Protocol):
    """One way to predict a table."""

    def fit(self, X: pd.DataFrame, y: np.ndarray, seed: int) -> None:
        """Learn from rows."""
        ...

    def answer(self, X: pd.DataFrame) -> Answer:
        """Predict rows."""
        ...


class LightGBM:
    """LightGBM with its categories."""

    def fit(self, X: pd.DataFrame, y: np.ndarray, seed: int) -> None:
        self.encode = Categories(X)
        kept, held = inner_split(len(y), seed)
        self.model = fit_lightgbm(self.encode(X), y, (kept, held), seed)

    def answer(self, X: pd.DataFrame) -> Answer:
        return Answer(np.asarray(self.model.predict(self.encode(X))))


def fit_lightgbm(
    X: pd.DataFrame, y: np.ndarray, rows: tuple[np.ndarray, np.ndarray], seed: int, **loss: Any
) -> Any:
    """Fit LightGBM on some rows, stopped early on others."""
    import lightgbm  # pyright: ignore[reportMissingImports]

    kept, held = rows
    model = lightgbm.LGBMRegressor(
        n_estimators=ROUNDS, random_state=seed, n_jobs=1, verbose=-1, **loss
    )
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    return model.fit(X.iloc[kept], y[kept], eval_set=[(X.iloc[held], y[held])], callbacks=[stop])


class Mapie:
    """Conformalised quantile regression of MAPIE on three LightGBM models.

    Another 15 % of the rows, which no model saw, make the intervals conformal.
    """

    def fit(self, X: pd.DataFrame, y: np.ndarray, seed: int) -> None:
        from mapie.regression import (  # pyright: ignore[reportMissingImports]
            ConformalizedQuantileRegressor,
        )

        self.encode = Categories(X)
        rows = self.encode(X)
        seen, apart = inner_split(len(y), seed + 1)
        kept, held = inner_split(len(seen), seed)
        models = [
            fit_lightgbm(rows, y, (seen[kept], seen[held]), seed, objective="quantile", alpha=level)
            for level in ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2, 0.5)
        ]
        self.model = ConformalizedQuantileRegressor(models, confidence_level=COVERAGE, prefit=True)
        self.model.conformalize(rows.iloc[apart], y[apart])

    def answer(self, X: pd.DataFrame) -> Answer:
        points, intervals = self.model.predict_interval(self.encode(X))
        lower, upper = intervals[:, 0, 0], intervals[:, 1, 0]
        return Answer(np.asarray(points), intervals={"conformal": (lower, upper)})


class HistGradientBoosting:
    """Trees of scikit-learn; text above 254 labels keeps the most frequent ones."""

    def fit(self, X: pd.DataFrame, y: np.ndarray, seed: int) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor

        self.encode = Categories(X, MOST_LABELS)
        self.model = HistGradientBoostingRegressor(
            max_iter=ROUNDS,
            early_stopping=True,
            validation_fraction=INNER,
            n_iter_no_change=PATIENCE,
            categorical_features="from_dtype",
            random_state=seed,
        ).fit(self.encode(X), y)

    def answer(self, X: pd.DataFrame) -> Answer:
        return Answer(self.model.predict(self.encode(X)))


class CatBoost:
    """CatBoost, by squared error or with uncertainty and virtual ensembles."""

    def __init__(self, loss: str = "RMSE") -> None:
        self.loss = loss

    def fit(self, X: pd.DataFrame, y: np.ndarray, seed: int) -> None:
        from catboost import CatBoostRegressor

        kept, held = inner_split(len(y), seed)
        rows = self.encode(X)
        self.model = CatBoostRegressor(
            loss_function=self.loss,
            iterations=ROUNDS,
            early_stopping_rounds=PATIENCE,
            cat_features=text_columns(rows),
            random_seed=seed,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
        )
        self.model.fit(rows.iloc[kept], y[kept], eval_set=(rows.iloc[held], y[held]))

    def encode(self, X: pd.DataFrame) -> pd.DataFrame:
        X = counted_days(X)
        return X.assign(**{name: X[name].fillna("missing").astype(str) for name in text_columns(X)})

    def answer(self, X: pd.DataFrame) -> Answer:
        rows = self.encode(X)
        found = np.asarray(self.model.predict(rows, thread_count=1))
        if self.loss == "RMSE":
            return Answer(found)
        mean, variance = (torch.from_numpy(part.copy()) for part in found.T)
        density = Normal(mean, variance.sqrt(), validate_args=False)
        return Answer(found[:, 0], density, knowledge={"variance_of_mean": self._knowledge(rows)})

    def _knowledge(self, rows: pd.DataFrame) -> np.ndarray:
        """Compute the variance of virtual ensembles; each needs trees of its own, at least two."""
        count = min(VIRTUAL_ENSEMBLES, self.model.tree_count_ // 2)
        if count < 2:
            return np.zeros(len(rows))
        found = self.model.virtual_ensembles_predict(
            rows,
            prediction_type="TotalUncertainty",
            virtual_ensembles_count=count,
            thread_count=1,
        )
        return np.asarray(found)[:, 1]


class NGBoost:
    """NGBoost with a Gaussian."""

    def fit(self, X: pd.DataFrame, y: np.ndarray, seed: int) -> None:
        from ngboost import NGBRegressor  # pyright: ignore[reportMissingImports]

        self.encode = Matrix(X, y)
        kept, held = inner_split(len(y), seed)
        rows = self.encode.train
        self.centre, self.scale = y.mean(), y.std()
        units = (y - self.centre) / self.scale  # large numbers overflow in its natural gradient
        self.model = NGBRegressor(n_estimators=ROUNDS, verbose=False, random_state=seed)
        held_rows = rows[held], units[held]
        self.model.fit(rows[kept], units[kept], *held_rows, early_stopping_rounds=PATIENCE)

    def answer(self, X: pd.DataFrame) -> Answer:
        parts = self.model.pred_dist(self.encode(X), max_iter=self.model.best_val_loss_itr).params
        mean = self.centre + self.scale * parts["loc"]
        scale = torch.from_numpy(self.scale * parts["scale"])
        return Answer(mean, Normal(torch.from_numpy(mean), scale, validate_args=False))


class QuantileForest:
    """A quantile regression forest with its defaults."""

    def fit(self, X: pd.DataFrame, y: np.ndarray, seed: int) -> None:
        from quantile_forest import (  # pyright: ignore[reportMissingImports]
            RandomForestQuantileRegressor,
        )

        self.encode = Matrix(X, y)
        self.model = RandomForestQuantileRegressor(random_state=seed, n_jobs=1)
        self.model.fit(self.encode.train, y)

    def answer(self, X: pd.DataFrame) -> Answer:
        rows = self.encode(X)
        ends = (1 - COVERAGE) / 2, (1 + COVERAGE) / 2
        found = self.model.predict(rows, quantiles=[*LEVELS, *ends])
        return Answer(
            self.model.predict(rows, quantiles="mean"),
            quantiles=found[:, :-2],
            intervals={"predictive": (found[:, -2], found[:, -1])},
        )


class Priornet:
    """A method of priornet with its defaults."""

    def __init__(self, key: str, has_knowledge: bool) -> None:
        self.key, self.has_knowledge = key, has_knowledge

    def fit(self, X: pd.DataFrame, y: np.ndarray, seed: int) -> None:
        self.model = make_estimator(self.key, random_state=seed).fit(X, y)

    def answer(self, X: pd.DataFrame) -> Answer:
        found = self.model.predict_all(X)
        knowledge = {"variance_of_mean": found.knowledge} if self.has_knowledge else {}
        information = found.uncertainty.mutual_information if self.has_knowledge else None
        if information is not None:
            knowledge["mutual_information"] = information
        intervals = {"predictive": (found.lower, found.upper)}
        if self.model.fitted_.has_conformal(COVERAGE):
            intervals["conformal"] = found.interval(COVERAGE, "conformal")
        return Answer(found.mean, found.distribution, intervals=intervals, knowledge=knowledge)


class Entry(NamedTuple):
    """A method: the call that makes it, and the packages that its signature names."""

    make: Callable[[], Method]
    packages: tuple[str, ...]
    is_ours: bool = False


PEERS: Mapping[str, Entry] = {
    "CatBoost": Entry(CatBoost, ("catboost",)),
    "CatBoost-uncertainty": Entry(lambda: CatBoost("RMSEWithUncertainty"), ("catboost",)),
    "LightGBM": Entry(LightGBM, ("lightgbm",)),
    "HistGradientBoosting": Entry(HistGradientBoosting, ("scikit-learn",)),
    "QuantileForest": Entry(QuantileForest, ("quantile-forest", "scikit-learn")),
    "MAPIE-LightGBM": Entry(Mapie, ("mapie", "lightgbm")),
    "TabM": Entry(TabM, ("tabm", "rtdl_num_embeddings")),
    "NGBoost": Entry(NGBoost, ("ngboost",)),
}
OURS: Mapping[str, Entry] = {
    method.key: Entry(
        lambda method=method: Priornet(method.key, method.has_knowledge),
        ("scikit-learn",),
        is_ours=True,
    )
    for method in TABULAR
}
ENTRIES: Mapping[str, Entry] = {**PEERS, **OURS}
TREES = ("CatBoost", "LightGBM", "HistGradientBoosting")
