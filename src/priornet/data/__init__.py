"""Data: tables and what becomes of their columns, out-of-domain inputs, the synthetic task."""

from priornet.data import generators, preprocessing, synthetic
from priornet.data.generators import FactorAnalysisGenerator
from priornet.data.preprocessing import TablePreprocessor

__all__ = [
    "FactorAnalysisGenerator",
    "TablePreprocessor",
    "generators",
    "preprocessing",
    "synthetic",
]
