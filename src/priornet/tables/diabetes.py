"""A real table that comes with scikit-learn: 442 patients and their diabetes a year later.

Ten measurements at the start; the target is a measure of how far the disease progressed (Efron,
Hastie, Johnstone and Tibshirani, Least Angle Regression, 2004). Nothing is downloaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

TARGET = "progression"
_NAMES = {
    "bp": "blood_pressure",
    "s1": "cholesterol",
    "s2": "ldl",
    "s3": "hdl",
    "s4": "cholesterol_to_hdl",
    "s5": "log_triglycerides",
    "s6": "glucose",
}


def load_diabetes() -> tuple[pd.DataFrame, pd.Series]:
    """Load the measurements in their own units under readable names, and the target.

    Example:
        >>> X, y = load_diabetes()
        >>> X.shape, float(X["bmi"].median()), y.name
        ((442, 10), 25.7, 'progression')
    """
    from sklearn.datasets import load_diabetes as load

    table: Any = load(as_frame=True, scaled=False)
    return table.data.rename(columns=_NAMES), table.target.rename(TARGET)
