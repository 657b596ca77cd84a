"""The rows and columns of a table as peers take them."""

from __future__ import annotations

import numpy as np
import pandas as pd

INNER = 0.15
MOST_ONE_HOT = 50


def inner_split(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Set rows aside that say when to stop."""
    order = np.random.RandomState(seed).permutation(n)
    n_held = max(1, round(INNER * n))
    return order[n_held:], order[:n_held]


def counted_days(X: pd.DataFrame) -> pd.DataFrame:
    """Turn days into numbers, for peers that know no days."""
    days = X.select_dtypes("datetime")
    epoch, day = pd.Timestamp("1970-01-01"), pd.Timedelta("1D")
    return X.assign(**{name: (X[name] - epoch) / day for name in days})


def text_columns(X: pd.DataFrame) -> list[str]:
    """Name the columns of text."""
    return [str(name) for name in X if not pd.api.types.is_numeric_dtype(X[name])]


class Categories:
    """Text as pandas categories of the training rows; other labels are missing values."""

    def __init__(self, X: pd.DataFrame, most: int | None = None) -> None:
        X = counted_days(X)
        self.kept = {name: X[name].value_counts().index[:most] for name in text_columns(X)}

    def __call__(self, X: pd.DataFrame) -> pd.DataFrame:
        X = counted_days(X)
        coded = {name: pd.Categorical(X[name], labels) for name, labels in self.kept.items()}
        X = X.assign(**coded)
        return X.set_axis([f"c{i}" for i in range(X.shape[1])], axis=1)


class Matrix:
    """Numbers only: missing ones are the median; text is one-hot, above 50 labels target-encoded.

    The rows that it learns from are encoded without their own targets (cross-fitting).
    """

    def __init__(self, X: pd.DataFrame, y: np.ndarray) -> None:
        from sklearn.compose import make_column_transformer
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import OneHotEncoder, TargetEncoder

        X = self._filled(X)
        text = text_columns(X)
        many = [name for name in text if X[name].nunique() > MOST_ONE_HOT]
        parts = (
            (
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                sorted({*text} - {*many}),
            ),
            (TargetEncoder(target_type="continuous", random_state=0), many),
            (
                SimpleImputer(strategy="median", keep_empty_features=True),
                [name for name in X if name not in text],
            ),
        )
        self.transformer = make_column_transformer(*parts)
        self.train = np.asarray(self.transformer.fit_transform(X, y), np.float32)

    def __call__(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.transformer.transform(self._filled(X)), np.float32)

    @staticmethod
    def _filled(X: pd.DataFrame) -> pd.DataFrame:
        X = counted_days(X)
        return X.assign(**{name: X[name].fillna("missing").astype(str) for name in text_columns(X)})
