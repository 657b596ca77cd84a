"""The scikit-learn face: tables in, predictions with their uncertainty out."""

from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.distilled import DistilledRegressor
from priornet.estimators.factory import make_estimator
from priornet.estimators.persistence import ModelError, load
from priornet.estimators.prediction import Prediction, PredictionError, RowUncertainty
from priornet.estimators.regressors import (
    DeepEnsembleRegressor,
    EvidentialRegressor,
    GaussianRegressor,
    PriorNetRegressor,
)
from priornet.estimators.shared import SharedPriorRegressor
from priornet.tables.column_summaries import ColumnSummary, ColumnWarning, TableWarning

__all__ = [
    "BaseRegressor",
    "ColumnSummary",
    "ColumnWarning",
    "DeepEnsembleRegressor",
    "DistilledRegressor",
    "EvidentialRegressor",
    "GaussianRegressor",
    "ModelError",
    "Prediction",
    "PredictionError",
    "PriorNetRegressor",
    "RowUncertainty",
    "SharedPriorRegressor",
    "TableWarning",
    "load",
    "make_estimator",
]
