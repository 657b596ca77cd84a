"""Measures in single precision, per pixel, against the distributions in double."""

import numpy as np
import pytest
import torch

from _onnx import run_onnx
from priornet.distributions import GaussianEnsemble, NormalWishart
from priornet.export.interface import ExportError, Interval
from priornet.export.onnx.beliefs import fitted_measures, measures
from priornet.export.onnx.graph import Graph
from priornet.nn import GaussianHead, GaussianMixtureHead, NormalWishartHead
from priornet.uncertainty import uncertainty

HEADS = {
    "normal-wishart": lambda k: NormalWishartHead(4, k, min_belief=1e-6, max_evidence=1e8),
    "tied": lambda k: NormalWishartHead(4, k, tied_evidence=True),
    "gaussian": lambda k: GaussianHead(4, k),
    "diagonal": lambda k: GaussianHead(4, k, covariance="diagonal"),
    "mixture": lambda k: GaussianMixtureHead(4, k, n_members=3),
    "diagonal mixture": lambda k: GaussianMixtureHead(4, k, n_members=3, covariance="diagonal"),
}


def scored(head, raw, names):
    graph = Graph()
    x = graph.input("raw", np.float32, ["a", "b", "c", raw.shape[-1]])
    found = measures(head, x, 4, Interval(0.9))
    given = [name for name in names if name in found]
    for name in given:
        width = head.n_targets if name.endswith(("variance", "mean", "lower")) else 1
        graph.output(name, found[name], ["a", "b", "c", width])
    return run_onnx(graph.model(18, {}), {"raw": raw})


@pytest.mark.parametrize("k_dim", [1, 2, 4])
@pytest.mark.parametrize("kind", HEADS)
def test_measures_are_those_of_the_distribution(kind, k_dim):
    head = HEADS[kind](k_dim)
    rng = np.random.default_rng(0)
    raw = (4 * rng.normal(size=(2, 5, 7, head.n_outputs))).astype(np.float32)
    belief = head.distribution(torch.from_numpy(raw).double())
    record = vars(uncertainty(belief))
    found = scored(head, raw, ["mean", "lower", *record])
    assert {name for name, value in record.items() if value is not None} == set(found) - {
        "mean",
        "lower",
    }
    deviation = record["total_variance"].sqrt().numpy()
    marginals = belief.predictive().marginals()
    lower = marginals.icdf(torch.full((2, 5, 7, k_dim), 0.05, dtype=torch.float64)).numpy()
    mean = belief.predictive().mean.numpy()
    for name, expected in (("mean", mean), ("lower", lower)):
        error = np.abs(found[name] - expected) / np.maximum(np.abs(expected), deviation)
        assert error.max() < 5e-5, name
    for name in set(found) - {"mean", "lower"}:
        expected = record[name].numpy().reshape(found[name].shape)
        floor = 1.0 if name.endswith("entropy") else 0.0
        error = np.abs(found[name] - expected) / np.maximum(np.abs(expected), floor + 1e-30)
        assert error.max() < 1e-4, name


@pytest.mark.parametrize("k_dim", [1, 2, 4])
def test_members_become_the_normal_wishart_fitted_to_them(k_dim):
    """Members that differ widely, a little, hardly, and not at all."""
    head = GaussianHead(4, k_dim)
    rng = np.random.default_rng(0)
    apart = np.array([3.0, 1.0, 0.1, 1e-3, 0.0])[:, None]
    members = rng.normal(size=(6, 1, head.n_outputs)) * apart + rng.normal(size=head.n_outputs)
    graph = Graph()
    raw = graph.input("raw", np.float64, ["members", "rows", head.n_outputs])
    for name, value in fitted_measures(head, raw, 3, Interval(0.9), 1.0).items():
        graph.output(name, value, ["rows", None])
    found = run_onnx(graph.model(18, {}), {"raw": members})
    given = head.distribution(torch.from_numpy(members))
    fit = NormalWishart.fit(GaussianEnsemble(given.loc, given.covariance_matrix))
    excess = fit.excess.clamp(min=1.0)
    assert (excess[0], excess[-1]) == (1, 1e8)
    assert fit.belief[-1] == 1e8
    belief = NormalWishart.from_excess(fit.loc, fit.precision_tril, fit.belief, excess)
    upper = belief.predictive().marginals().icdf(torch.full((5, k_dim), 0.95).double())
    record = {**vars(uncertainty(belief)), "mean": fit.loc, "upper": upper}
    for name, expected in record.items():
        value = expected.numpy().reshape(found[name].shape)
        np.testing.assert_allclose(found[name], value, rtol=1e-5, err_msg=name)


def test_products_of_several_are_refused():
    head = NormalWishartHead(4, 2, covariance="diagonal")
    graph = Graph()
    raw = graph.input("raw", np.float32, ["rows", head.n_outputs])
    with pytest.raises(ExportError, match="product of several"):
        measures(head, raw, 2, Interval(0.9))
