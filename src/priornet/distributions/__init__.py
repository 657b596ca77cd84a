"""Distributions over targets and over Gaussians.

Constructors take ``validate_args``: look at the values of parameters; torch's default when None.
"""

from priornet.distributions.averages import (
    CovarianceAverages,
    PrecisionAverages,
    covariance_averages,
    precision_averages,
)
from priornet.distributions.base import Decomposition, GaussianParameters
from priornet.distributions.ensemble import GaussianEnsemble, ensemble_information
from priornet.distributions.gaussian import Gaussian, Normal
from priornet.distributions.kl import as_gaussian
from priornet.distributions.mixture import GaussianMixture, NormalMixture
from priornet.distributions.normal_wishart import NormalWishart
from priornet.distributions.product import ProductNormalWishart, ProductStudentT
from priornet.distributions.student_t import MultivariateStudentT, StudentT
from priornet.distributions.transformed import TransformedMultivariate, TransformedUnivariate
from priornet.distributions.transformed_belief import TransformedBelief
from priornet.distributions.wishart import Wishart

__all__ = [
    "CovarianceAverages",
    "Decomposition",
    "Gaussian",
    "GaussianEnsemble",
    "GaussianMixture",
    "GaussianParameters",
    "MultivariateStudentT",
    "Normal",
    "NormalMixture",
    "NormalWishart",
    "PrecisionAverages",
    "ProductNormalWishart",
    "ProductStudentT",
    "StudentT",
    "TransformedBelief",
    "TransformedMultivariate",
    "TransformedUnivariate",
    "Wishart",
    "as_gaussian",
    "covariance_averages",
    "ensemble_information",
    "precision_averages",
]
