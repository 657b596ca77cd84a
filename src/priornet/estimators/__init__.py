"""The scikit-learn face: tables in, predictions with their uncertainty out."""

from priornet.data.column_summaries import ColumnSummary, ColumnWarning, TableWarning
from priornet.estimators.base import BaseRegressor
from priornet.estimators.distilled import DistilledRegressor
from priornet.estimators.ensemble import DeepEnsembleRegressor, GaussianRegressor
from priornet.estimators.evidential import EvidentialRegressor
from priornet.estimators.fitted import PredictionError
from priornet.estimators.persistence import ModelError, load
from priornet.estimators.prior_network import PriorNetRegressor
from priornet.estimators.records import RowUncertainty

__all__ = [
    "BaseRegressor",
    "ColumnSummary",
    "ColumnWarning",
    "DeepEnsembleRegressor",
    "DistilledRegressor",
    "EvidentialRegressor",
    "GaussianRegressor",
    "ModelError",
    "PredictionError",
    "PriorNetRegressor",
    "RowUncertainty",
    "TableWarning",
    "load",
]
