"""The scikit-learn face: tables in, predictions with their uncertainty out."""

from priornet.estimators.base import BaseRegressor
from priornet.estimators.distilled import DistilledRegressor
from priornet.estimators.ensemble import DeepEnsembleRegressor, GaussianRegressor
from priornet.estimators.evidential import EvidentialRegressor
from priornet.estimators.factory import make_estimator
from priornet.estimators.files.persistence import ModelError, load
from priornet.estimators.prediction import Prediction, PredictionError, RowUncertainty
from priornet.estimators.prior_network import PriorNetRegressor
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
    "TableWarning",
    "load",
    "make_estimator",
]
