"""The short series against scipy's functions."""

import numpy as np
import pytest
from scipy import special, stats

from priornet.export.errors import ExportError
from priornet.export.onnx.series import check_coverage, evidence_series, normal_quantile

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
