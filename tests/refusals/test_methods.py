"""Bad arguments of methods: each mistake raises one clear sentence that names what came."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch

from _contract import DISTRIBUTIONS, points
from priornet.distributions import (
    GaussianEnsemble,
    NormalMixture,
    NormalWishart,
    ProductNormalWishart,
    StudentT,
)

CASES = [pytest.param(case, id=case.name) for case in DISTRIBUTIONS]


# -- values to evaluate at ------------------------------------------------------------------------

EVALUATED = {
    "log_prob": "value",
    "log_prob_covariance": "value",
    "expected_log_prob": "y",
    "posterior.loc": "y",
    "log_evidence": "y",
    "cdf": "value",
    "icdf": "value",
    "moment_matched_log_prob": "y",
    "predictive.log_prob": "value",
}
QUESTIONS = [
    pytest.param(case, query, id=f"{case.name}-{query}")
    for case in DISTRIBUTIONS
    for query in EVALUATED
    if query in case.queries
]


@pytest.mark.parametrize(("case", "query"), QUESTIONS)
def test_a_value_does_not_become_a_square(case, query):
    """A value (B, 1, ...) against a batch (B,), and (B, ...) against (B, 1): never (B, B)."""
    ask = case.queries[query][0]
    for k_dim in case.dimensions:
        column = {n: v.unsqueeze(1) for n, v in points(k_dim, (4,)).items()}
        with pytest.raises(ValueError, match=r"shape"):
            ask(case.make(k_dim, (4,)), column)
        with pytest.raises(ValueError, match=r"shape"):
            ask(case.make(k_dim, (4, 1)), points(k_dim, (4,)))
        with pytest.raises(ValueError, match=r"shape"):
            ask(case.make(k_dim, (4,)), points(k_dim, (3,)))


@pytest.mark.parametrize(("case", "query"), QUESTIONS)
def test_a_value_of_another_dimension_is_refused(case, query):
    if case.dimensions == (1,):
        return
    with pytest.raises(ValueError, match=r"`(value|y|mean|precision|covariance)` must .*shape"):
        case.queries[query][0](case.make(2, (4,)), points(3, (4,)))


@pytest.mark.parametrize(("case", "query"), QUESTIONS)
def test_a_value_of_another_kind_is_refused(case, query):
    ask, d = case.queries[query][0], case.make(1, (4,))
    at = points(1, (4,))
    for bad, kind, message in (
        ({n: v.float() for n, v in at.items()}, TypeError, r"is torch\.float32 but .* is torch"),
        ({n: v.long() for n, v in at.items()}, TypeError, r"torch\.int64"),
        ({n: v.to("meta") for n, v in at.items()}, ValueError, r"is on meta but .* is on cpu"),
    ):
        with pytest.raises(kind, match=message) as caught:
            ask(d, bad)
        assert not re.search(r"`_\w+`", str(caught.value)), str(caught.value)
    if case.dimensions != (1,):  # of numbers: the query itself takes the coordinate
        with pytest.raises(TypeError, match=r"must be a tensor; got list"):
            ask(d, {n: v.tolist() for n, v in at.items()})


def test_a_belief_is_evaluated_at_a_pair():
    one = torch.ones(2)
    pairs: dict[str, Any] = {
        "(mean, precision)": NormalWishart(torch.zeros(2), torch.eye(2), 1.0, 4.0),
        "(mean, precisions)": ProductNormalWishart(one, one, one, one),
    }
    for expected, belief in pairs.items():
        for bad in (torch.zeros(2), torch.zeros(2, 2), (torch.zeros(2),), None):
            with pytest.raises(TypeError, match=rf"`value` must be a pair {re.escape(expected)}"):
                belief.log_prob(bad)
    with pytest.raises(TypeError, match=r"`value` must be a pair \(mean, covariance\)"):
        pairs["(mean, precision)"].log_prob_covariance(torch.zeros(2))


def test_a_pair_whose_halves_do_not_fit_is_refused():
    """Each fits the distribution, but together they would make an outer product."""
    belief = NormalWishart(torch.zeros(2), torch.eye(2), 1.0, 4.0)
    mean, precision = torch.zeros(4, 2), torch.eye(2).expand(4, 1, 2, 2)
    for ask in (belief.log_prob, belief.log_prob_covariance):
        with pytest.raises(ValueError, match=r"`mean` \(4,\), `\w+` \(4, 1\)"):
            ask((mean, precision))
    one = torch.ones(2)
    product = ProductNormalWishart(one, one, one, one)
    with pytest.raises(ValueError, match=r"`mean` \(4,\), `precisions` \(4, 1\)"):
        product.log_prob((mean, torch.ones(4, 1, 2)))


@pytest.mark.parametrize("name", ["NormalWishart", "ProductNormalWishart"])
def test_a_bad_beta_of_the_posterior_is_refused(name):
    case = next(c for c in DISTRIBUTIONS if c.name == name)
    nw, y = case.make(2, (4,)), points(2, (4,))["y"]
    for beta, kind, message in (
        (torch.ones(4, 1, dtype=torch.float64), ValueError, r"`beta` .*\(4, 1\)"),
        (torch.ones(3, dtype=torch.float64), ValueError, r"`beta` .*\(3,\)"),
        (torch.ones(4), TypeError, r"`beta` is torch\.float32"),
        (torch.ones(4, dtype=torch.int64), TypeError, r"`beta` must hold floating-point numbers"),
        (torch.ones(4, device="meta", dtype=torch.float64), ValueError, r"`beta` is on meta"),
        (-1.0, ValueError, r"`beta` must not be negative"),
        (math.nan, ValueError, r"`beta`"),
        ("1", TypeError, r"`beta` must be a tensor or a number; got str"),
    ):
        with pytest.raises(kind, match=message):
            nw.posterior(y, beta)


@pytest.mark.parametrize("case", CASES)
def test_quantiles_of_vectors_point_to_the_marginals(case):
    if case.dimensions == (1,) or not hasattr(case.make(2, ()), "marginals"):
        return
    d = case.make(2, (4,))
    if isinstance(d, ProductNormalWishart):
        return  # a belief about Gaussians, not a distribution of targets
    for what, value in (("cdf", torch.zeros(4, 2).double()), ("icdf", torch.ones(4).double() / 2)):
        message = rf"`{what}` .*K = 2; use `marginals\(\)\.{what}`"
        with pytest.raises(NotImplementedError, match=message):
            getattr(d, what)(value)


def test_probabilities_outside_the_unit_interval_have_no_quantile():
    for d in (
        StudentT(torch.tensor(3.0)),
        NormalMixture(torch.tensor([0.0, 1.0]), torch.ones(2)),
    ):
        assert d.icdf(torch.tensor([-0.1, 1.1])).isnan().all()
        assert d.icdf(torch.tensor([0.0, 1.0])).tolist() == [-math.inf, math.inf]


# -- ensembles ------------------------------------------------------------------------------------


def test_measures_without_closed_form_name_the_way_out():
    ensemble = GaussianEnsemble(torch.zeros(2, 1), torch.ones(2, 1))
    with pytest.raises(NotImplementedError, match=r"`expected_pairwise_kl\(\)`, or `mutual_inf"):
        ensemble.mutual_information()
    with pytest.raises(NotImplementedError, match=r"use `predictive_entropy_mc\(n, generator\)`"):
        ensemble.predictive_entropy()


@pytest.mark.parametrize("n", [0, -1])
def test_an_estimate_needs_a_draw(n):
    ensemble = GaussianEnsemble(torch.zeros(2, 1), torch.ones(2, 1))
    for measure in (ensemble.mutual_information_mc, ensemble.predictive_entropy_mc):
        with pytest.raises(ValueError, match=rf"`n` must be at least 1; got {n}\."):
            measure(n)


def test_full_covariances_have_no_independent_coordinates():
    ensemble = GaussianEnsemble(torch.zeros(3, 2), torch.eye(2).expand(3, 2, 2))
    with pytest.raises(ValueError, match=r"full covariances.*pass variances"):
        ensemble.coordinates()
