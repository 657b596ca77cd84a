"""Series agree with scipy, log1p with mpmath, and interval ends have their probability."""

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from _onnx import run_onnx
from priornet.export.interface import ExportError, check_coverage, normal_quantile
from priornet.export.onnx.functions import (
    evidence_series,
    excess_series,
    log1p,
    mixture_interval,
)
from priornet.export.onnx.graph import Graph

EXCESS = np.concatenate([[1e-6, 1e-3], np.geomspace(0.1, 1e4, 40)])


def functions(k_dim, coverage):
    v = 2 / (EXCESS + 2)
    coefficients = evidence_series(k_dim, coverage)
    found = np.polynomial.chebyshev.chebval(1 - 2 * v, coefficients)
    return found[0] * v, found[1] * v, np.exp(found[2]) * normal_quantile(coverage)


@pytest.mark.parametrize("k_dim", [1, 2, 3, 6, 100])
def test_digamma_and_log_gamma_parts(k_dim):
    df = EXCESS + k_dim + 1
    x = df[:, None] / 2 - np.arange(k_dim) / 2
    digamma = special.digamma(x).sum(-1)
    found, gap, _ = functions(k_dim, 0.9)
    np.testing.assert_allclose(found, digamma - k_dim * np.log(df / 2), rtol=1e-6, atol=1e-10)
    # Entropy of the predictive minus expected entropy, for belief -> infinity.
    t_df = EXCESS + 2
    scale = 0.5 * k_dim * np.log(df / t_df)  # of the T with unit expected precision
    half = (t_df + k_dim) / 2
    constant = (
        special.gammaln(t_df / 2) - special.gammaln(half) + 0.5 * k_dim * np.log(t_df * np.pi)
    )
    total = constant + half * (special.digamma(half) - special.digamma(t_df / 2)) + scale
    data = 0.5 * (k_dim * (np.log(2 * np.pi) + 1) - found)
    np.testing.assert_allclose(gap, total - data, rtol=1e-6, atol=2e-8)


@pytest.mark.parametrize("k_dim", [1, 2, 3, 6])
def test_excess_of_a_gap(k_dim):
    excess = np.geomspace(1, 1e4, 40)
    n = (excess + k_dim + 1) / 2
    gap = k_dim * np.log(n) - special.digamma(n[:, None] - np.arange(k_dim) / 2).sum(-1)
    coefficients, most = excess_series(k_dim, 1.0)
    assert most == pytest.approx(gap[0], rel=1e-12)
    v = gap * np.polynomial.chebyshev.chebval(1 - 2 * gap / most, coefficients[:, 0])
    np.testing.assert_allclose(2 / v - 2, excess, rtol=1e-6)


@pytest.mark.parametrize("coverage", [0.01, 0.5, 0.9, 0.99, 0.99999])
def test_quantile_of_the_student_t(coverage):
    _, _, found = functions(1, coverage)
    expected = stats.t.ppf((1 + coverage) / 2, EXCESS + 2)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert normal_quantile(coverage) == pytest.approx(stats.norm.ppf((1 + coverage) / 2), rel=1e-9)


def test_coverages_next_to_0_and_1_have_a_series_or_are_refused():
    for coverage in (1e-12, 1 - 1e-12):
        check_coverage(coverage)
        assert np.isfinite(evidence_series(2, coverage)).all()
    for coverage in (1e-300, 1 - 1e-16):
        with pytest.raises(ExportError, match="between 0 and 1, 1e-12 away from both; got"):
            check_coverage(coverage)
    for coverage in (0.0, 1.0, -1.0, 90.0, float("nan")):
        with pytest.raises(ExportError, match="between 0 and 1; got"):
            check_coverage(coverage)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log1p_keeps_its_digits(dtype):
    x = np.concatenate([[0.0], np.geomspace(1e-30, 1e10, 200)]).astype(dtype)
    expected = [float(mpmath.log1p(mpmath.mpf(float(value)))) for value in x]
    graph = Graph()
    graph.output("y", log1p(graph.input("x", x.dtype, ["n"])), ["n"])
    found = run_onnx(graph.model(18, {}), {"x": x})["y"]
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)


def interval(means, scales, coverage, dtype):
    graph = Graph()
    m = graph.input("means", dtype, ["members", "rows"])
    s = graph.input("scales", dtype, ["members", "rows"])
    mean = m.reduce("ReduceMean", 0)
    variance = ((m - mean) * (m - mean) + s * s).reduce("ReduceMean", 0)
    for name, end in zip(
        ("lower", "upper"), mixture_interval(m, s, mean, variance, coverage), strict=True
    ):
        graph.output(name, end, ["rows"])
    fed = {"means": means.astype(dtype), "scales": scales.astype(dtype)}
    found = run_onnx(graph.model(18, {}), fed)
    return found["lower"], found["upper"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("coverage", [0.3, 0.9, 0.9999])
def test_ends_have_their_probability(coverage, dtype):
    rng = np.random.default_rng(0)
    means = rng.normal(size=(5, 400)) * np.geomspace(1e-3, 100, 400)
    scales = np.exp(rng.normal(size=(5, 400)))
    lower, upper = interval(means, scales, coverage, dtype)
    p = (1 - coverage) / 2
    tolerance = 1e-6 if dtype == np.float64 else 1e-4
    below = stats.norm.cdf((lower - means) / scales).mean(0)
    above = stats.norm.sf((upper - means) / scales).mean(0)
    np.testing.assert_allclose(below, p, rtol=tolerance)
    np.testing.assert_allclose(above, p, rtol=tolerance)


def test_far_members_and_equal_ones():
    means = np.array([[0.0, 1.0, -1e6], [0.0, 1.0, 1e6]])
    scales = np.array([[1.0, 2.0, 1.0], [1.0, 2.0, 1e-3]])
    lower, upper = interval(means, scales, 0.9, np.float64)
    z = stats.norm.ppf(0.95)
    np.testing.assert_allclose(upper[:2], [z, 1 + 2 * z], rtol=1e-6)
    # The far ones: a tenth of the own mass lies outside.
    assert lower[2] == pytest.approx(-1e6 + stats.norm.ppf(0.1), abs=1e-4)
    assert upper[2] == pytest.approx(1e6 + 1e-3 * stats.norm.ppf(0.9), abs=1e-4)
