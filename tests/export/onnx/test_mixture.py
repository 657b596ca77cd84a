"""Ends of a mixture's interval have the probability they should."""

import numpy as np
import pytest
from scipy import stats

from _onnx import run_onnx
from priornet.export.onnx.graph import Graph
from priornet.export.onnx.mixture import mixture_interval
from priornet.export.onnx.model import make_model


def interval(means, scales, coverage, dtype):
    graph = Graph()
    m = graph.input("means", dtype, ["members", "rows"])
    s = graph.input("scales", dtype, ["members", "rows"])
    mean = m.reduce("ReduceMean", 0)
    variance = ((m - mean) * (m - mean) + s * s).reduce("ReduceMean", 0)
    for name, end in zip(
        ("lower", "upper"), mixture_interval(graph, m, s, mean, variance, coverage), strict=True
    ):
        graph.output(name, end, ["rows"])
    fed = {"means": means.astype(dtype), "scales": scales.astype(dtype)}
    found = run_onnx(make_model(graph, 18, {}), fed)
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
