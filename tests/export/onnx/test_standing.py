"""The graph counts reference rows and finds words as the model does."""

import numpy as np
import pytest

from _onnx import run_onnx
from priornet.estimators.verdict import Reference
from priornet.export.onnx.graph import Graph
from priornet.export.onnx.model import LEAST_OPSET, make_model
from priornet.export.onnx.standing import no_number, standing


def stands(reference, knowledge, data, mean=None):
    """The mean is an odd row's where it is no number."""
    graph = Graph()
    mean = np.zeros_like(knowledge) if mean is None else mean
    n_targets = knowledge.shape[1]
    first, second = (
        graph.input(name, np.float64, ["rows", n_targets]) for name in ("knowledge", "data")
    )
    third = graph.input("mean", np.float64, ["rows", n_targets])
    found = standing(graph, reference, first, second, n_targets, no_number(graph, third))
    for name, value in found._asdict().items():
        if value is not None:
            graph.output(name, value, ["rows"])
    fed = {"knowledge": knowledge, "data": data, "mean": mean}
    return run_onnx(make_model(graph, LEAST_OPSET, {}), fed)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 99, 100, 150, 199, 1936, 2000])
def test_scores_and_words_are_those_of_the_reference(n):
    rng = np.random.default_rng(n)
    reference = Reference.of(rng.exponential(size=n).round(2) + 0.01, rng.exponential(size=n))
    usual = reference.knowledge  # with ties
    knowledge = np.concatenate([usual, usual * (1 + 1e-12), usual * (1 - 1e-12), [0.0, 1e300]])
    data = rng.exponential(3.0, len(knowledge))
    found = stands(reference, knowledge[:, None], data[:, None])
    np.testing.assert_allclose(
        found["in_domain"], reference.familiarity(knowledge), rtol=1e-14, atol=0
    )
    assert found["verdict"].tolist() == reference.words(knowledge, data).tolist()
    assert len(set(found["verdict"])) == 3


def test_several_targets_are_averaged():
    rng = np.random.default_rng(0)
    reference = Reference.of(rng.exponential(size=300), rng.exponential(size=300))
    knowledge, data = rng.exponential(2.0, (2, 50, 3))
    found = stands(reference, knowledge, data)
    means = knowledge.mean(-1), data.mean(-1)
    np.testing.assert_allclose(found["in_domain"], reference.familiarity(means[0]))
    assert found["verdict"].tolist() == reference.words(*means).tolist()


def test_a_model_without_knowledge_has_a_word_alone():
    reference = Reference.of(np.zeros(200), np.ones(200))
    found = stands(reference, np.zeros((2, 1)), np.array([[1.0], [9.0]]))
    assert found.keys() == {"verdict"}
    assert found["verdict"].tolist() == ["trust", "noisy"]


@pytest.mark.parametrize("has_knowledge", [True, False])
def test_what_is_no_number_is_unfamiliar(has_knowledge):
    rng = np.random.default_rng(0)
    reference = Reference.of(rng.exponential(size=300) * has_knowledge, np.ones(300))
    mean = np.array([[0.0, 1.0], [0.0, np.nan], [np.inf, 0.0], [-1e300, 0.0]])
    found = stands(reference, np.zeros((4, 2)), np.ones((4, 2)), mean)
    assert found["verdict"].tolist() == ["trust", "unfamiliar", "unfamiliar", "trust"]
    if has_knowledge:
        found = stands(reference, np.full((1, 1), np.nan), np.ones((1, 1)))
        assert found["verdict"].tolist() == ["unfamiliar"]
