"""Graphs agree with their models, for every estimator, also in a process without priornet."""

import json
import subprocess
import sys
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
import torch

from _onnx import run_onnx
from priornet import (
    DeepEnsembleRegressor,
    EvidentialRegressor,
    GaussianRegressor,
    SharedPriorRegressor,
)
from priornet.estimators.held_out import WORDS, Reference
from priornet.export import (
    Comparison,
    ExportError,
    feeds,
    open_exported,
    outputs_of,
    to_onnx,
    to_torch_export,
)
from priornet.export.onnx.graph import LEAST_OPSET, Graph
from priornet.export.onnx.networks import perceptron
from priornet.export.onnx.table_graph import no_number, standing
from priornet.nn import GaussianHead, StackedMLP
from priornet.nn.architecture import RampedMLP

KINDS = ["single", "ensemble", "rkl", "der", "endd", "end", "md-end", "shared", "shared trees"]


def compared(model, rows, coverage=0.9, interval: Any = "predictive"):
    proto = to_onnx(model, coverage=coverage, interval=interval)
    found = run_onnx(proto, feeds(model.fitted_.preprocessor, rows))
    expected = outputs_of(model, rows, {"coverage": coverage, "interval": interval})
    assert set(found) == set(expected)
    comparison = Comparison()
    comparison.add(expected, found)
    return comparison


@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_estimator_agrees_on_every_row(kind, n_targets, model_of, rows):
    comparison = compared(model_of(kind, n_targets), rows)
    assert comparison.n_rows == len(rows)
    assert comparison.holds, comparison.worst
    # With inputs of 1e9 and more, means of 1e8 are what is left of larger ones: digits are lost.
    nearer = compared(model_of(kind, n_targets), rows[~(rows["x"].abs() > 1e6)])
    assert nearer.worst[nearer.output].error < 2e-5, nearer.worst


@pytest.mark.parametrize("kind", ["single", "ensemble", "endd"])
@pytest.mark.parametrize(
    ("coverage", "interval"),
    [(0.01, "predictive"), (0.5, "predictive"), (0.9999, "predictive"), (0.8, "conformal")],
)
def test_any_coverage_and_conformal_intervals(kind, coverage, interval, model_of, rows):
    comparison = compared(model_of(kind, 3), rows, coverage, interval)
    assert comparison.holds, comparison.worst


@pytest.mark.parametrize("kind", ["ensemble", "endd"])
def test_one_graph_takes_any_number_of_rows(kind, model_of, rows):
    model = model_of(kind, 1)
    proto = to_onnx(model)
    whole = run_onnx(proto, feeds(model.fitted_.preprocessor, rows))
    for at in (0, 7):
        one = run_onnx(proto, feeds(model.fitted_.preprocessor, rows.iloc[at : at + 1]))
        assert one.pop("verdict").tolist() == [whole["verdict"][at]]
        for name, values in one.items():
            np.testing.assert_allclose(values, whole[name][at : at + 1], rtol=2e-5, err_msg=name)


def test_only_standard_operators_are_used(model_of):
    known = {schema.name for schema in onnx.defs.get_all_schemas()}
    for kind in KINDS:
        proto = to_onnx(model_of(kind, 3))
        assert {entry.domain for entry in proto.opset_import} <= {"", "ai.onnx.ml"}
        assert {node.op_type for node in proto.graph.node} <= known


def test_arrays_without_names_are_one_input():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    X[::7, 1] = np.nan
    model = EvidentialRegressor(hidden=(8,), epochs=3, random_state=0).fit(X, X[:, [0]])
    proto = to_onnx(model)
    assert [one.name for one in proto.graph.input] == ["X"]
    comparison = compared(model, X)
    assert comparison.holds
    assert run_onnx(proto, {"X": X[:2]})["mean"].shape == (2, 1)  # targets came as a matrix


def test_columns_with_numbers_for_names_are_inputs_too():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({0: rng.normal(size=80), 1: rng.choice(["a", "b"], 80)})
    model = GaussianRegressor(hidden=(8,), epochs=3, random_state=0).fit(frame, frame[0])
    assert [one.name for one in to_onnx(model).graph.input] == ["x0", "x1"]
    assert compared(model, frame).holds


@pytest.mark.parametrize("kind", ["ensemble", "md-end", "endd"])
def test_targets_far_from_zero_agree(kind, model_of, rows):
    model = deepcopy(model_of(kind, 1))
    model.fitted_.targets.scaling.shift[:] = 1e12 * model.fitted_.targets.scaling.scale
    assert compared(model, rows).holds


def test_few_rows_keep_their_double_precision():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    model = GaussianRegressor(hidden=(8,), random_state=0).fit(X, X[:, 0])
    comparison = compared(model, 100 * X)
    assert comparison.worst[comparison.output].error < 1e-10


def test_runs_where_priornet_cannot_be_imported(model_of, rows, tmp_path):
    model = model_of("endd", 1)
    to_onnx(model, tmp_path / "model.onnx")
    fed = feeds(model.fitted_.preprocessor, rows)
    texts = {name: v.ravel().tolist() for name, v in fed.items() if v.dtype == object}
    numbers = {name: v for name, v in fed.items() if v.dtype != object}
    np.savez(tmp_path / "numbers.npz", allow_pickle=False, **numbers)
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    code = """
import json, sys
for name in ("priornet", "torch", "sklearn", "pandas"):
    sys.modules[name] = None  # an import of it fails
try:
    import priornet
except ImportError:
    pass
else:
    raise AssertionError
import numpy as np, onnxruntime
fed = dict(np.load("numbers.npz"))
for name, values in json.load(open("texts.json")).items():
    fed[name] = np.array(values, object).reshape(-1, 1)
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
names = [output.name for output in session.get_outputs()]
found = [v.astype(str) if v.dtype == object else v for v in session.run(None, fed)]
np.savez("found.npz", **dict(zip(names, found)))
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    comparison = Comparison()
    about = {"coverage": 0.9, "interval": "predictive"}
    comparison.add(outputs_of(model, rows, about), dict(np.load(tmp_path / "found.npz")))
    assert comparison.holds, comparison.worst


def test_file_names_its_origin(model_of, tmp_path):
    to_onnx(model_of("der", 3), tmp_path / "model.onnx", coverage=0.8)
    loaded = onnx.load(tmp_path / "model.onnx")
    (about,) = [json.loads(p.value) for p in loaded.metadata_props if p.key == "priornet"]
    assert about["estimator"] == "EvidentialRegressor"
    assert about["coverage"] == 0.8
    assert about["targets"] == ["price", "weight", "length"]
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.parametrize("opset", [18, 21, onnx.defs.onnx_opset_version()])
def test_newer_opset_is_written_on_request(opset, model_of):
    proto = to_onnx(model_of("endd", 1), opset=opset)
    assert {entry.domain: entry.version for entry in proto.opset_import}[""] == opset


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opset": 17}, "opset 17 is too old; choose one from 18"),
        ({"opset": 999}, "not known to the installed onnx"),
        ({"coverage": 1.0}, "between 0 and 1"),
        ({"interval": "best"}, 'unknown interval "best"'),
    ],
)
def test_settings_that_cannot_be_written_are_refused(options, message, model_of):
    with pytest.raises(ExportError, match=message):
        to_onnx(model_of("single", 1), **options)


def test_missing_package_names_its_extra(model_of, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ExportError, match=r"pip install '\.\[onnx\]'"):
        to_onnx(model_of("single", 1))


NAMES_OF_OURS = {
    "priornet_mean": ["mean", "epkl", "add_12", "constant_0", "gemm_3"],
    "priornet_priornet_priornet_mean": ["mean", "verdict", "priornet_priornet_", "rows", "x"],
    "priornet_priornet_mean": [
        "mean",
        "priornet_mean",
        "/priornet/constant_0",
        "/priornet/add_3",
        "rows",
    ],
}


@pytest.mark.parametrize("kind", [EvidentialRegressor, DeepEnsembleRegressor])
@pytest.mark.parametrize("output", NAMES_OF_OURS)
def test_columns_may_have_the_names_of_outputs_and_of_nodes(kind, output, tmp_path):
    rng, names = np.random.default_rng(0), NAMES_OF_OURS[output]
    X = pd.DataFrame(rng.normal(size=(60, 5)), columns=names)
    model = kind(hidden=(8,), epochs=2, random_state=0).fit(X, X["mean"])
    proto = to_onnx(model, tmp_path / "m.onnx")
    assert [one.name for one in proto.graph.input] == names
    assert proto.graph.output[0].name == output
    file = open_exported(tmp_path / "m.onnx")
    comparison = Comparison()
    comparison.add(outputs_of(model, X, file.about), file.score(model, X))
    assert comparison.holds


def test_column_without_a_name_is_refused():
    X = pd.DataFrame({"": np.arange(20.0), "b": np.arange(20.0) % 7})
    model = GaussianRegressor(hidden=(4,), epochs=1).fit(X, X["b"])
    with pytest.raises(ExportError, match="empty name"):
        to_onnx(model)


@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_give_no_scores(kind, n_targets, model_of, rows):
    model = model_of(kind, n_targets)
    empty, some = (feeds(model.fitted_.preprocessor, rows.iloc[:n]) for n in (0, 2))
    proto = to_onnx(model)
    found, expected = run_onnx(proto, empty), run_onnx(proto, some)
    shapes = {name: (0, *values.shape[1:]) for name, values in expected.items()}
    assert {name: values.shape for name, values in found.items()} == shapes


@pytest.mark.parametrize("kind", [GaussianRegressor, EvidentialRegressor])
@pytest.mark.filterwarnings("ignore:10 rows to learn from")
def test_model_of_few_rows_is_not_trusted_either(kind, tmp_path):
    X = np.random.default_rng(0).normal(size=(10, 2))
    model = kind(hidden=(4,), epochs=2, random_state=0).fit(X, X[:, 0])
    assert compared(model, X).holds
    to_onnx(model, tmp_path / "m.onnx")
    to_torch_export(model, tmp_path / "m.pt2")
    for name in ("m.onnx", "m.pt2"):
        found = open_exported(tmp_path / name).score(model, X)
        assert set(found["verdict"]) == {"unfamiliar"}


def outputs(stack, x):
    graph = Graph()
    given = graph.input("x", np.float32, ["rows", x.shape[1]])
    several = [] if stack.n_networks == 1 else [stack.n_networks]
    graph.output("raw", perceptron(stack, given), [*several, "rows", 2])
    return run_onnx(graph.model(LEAST_OPSET, {}), {"x": x.numpy()})["raw"]


def assert_same(stack, x):
    with torch.no_grad():
        raw = stack.raw(x.expand(stack.n_networks, *x.shape))
    assert raw.std() > 0.01  # it says something
    expected = raw[0] if stack.n_networks == 1 else raw
    torch.testing.assert_close(torch.from_numpy(outputs(stack, x)), expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2]])
def test_plain_numbers(seeds, generator):
    assert_same(
        StackedMLP(3, (8, 8), GaussianHead(8, init_gain=1.0), seeds),
        torch.randn(20, 3, generator=generator),
    )


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2]])
def test_numbers_as_ramps(seeds, generator):
    edges = [(-1.0, 0.0, 0.5, 2.0), (), (-0.5, 0.25)]
    stack = RampedMLP(edges, (8, 8), GaussianHead(8, init_gain=1.0), seeds)
    x = torch.randn(20, 3, generator=generator)
    x[0] = torch.tensor([-1e12, 1e12, 1e12])
    x[1] = torch.tensor([0.5, 1.0, -0.5])  # on the edges
    assert_same(stack, x[1:])
    assert np.isfinite(outputs(stack, x[:1])).all()


def test_labels_alone_and_constant_numbers_reach_shared_members():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(list("abcdefghijkl"), 100)})
    settings: dict[str, Any] = {"trees": False, "hidden": (8,), "epochs": 2, "random_state": 0}
    y = table["a"].map(ord) + rng.normal(size=100)
    assert compared(SharedPriorRegressor(4, **settings).fit(table, y), table).holds
    table["b"] = 5.0
    model = SharedPriorRegressor(4, **settings).fit(table, y)
    assert compared(model, table.assign(b=np.arange(100.0))).holds


def stands(reference, knowledge, data, mean=None):
    """Compute score and verdict; a mean that is no number marks an odd row."""
    graph = Graph()
    mean = np.zeros_like(knowledge) if mean is None else mean
    n_targets = knowledge.shape[1]
    first, second = (
        graph.input(name, np.float64, ["rows", n_targets]) for name in ("knowledge", "data")
    )
    third = graph.input("mean", np.float64, ["rows", n_targets])
    found = standing(reference, WORDS, first, second, n_targets, no_number(third))
    for name, value in found.items():
        if value is not None:
            graph.output(name, value, ["rows"])
    fed = {"knowledge": knowledge, "data": data, "mean": mean}
    return run_onnx(graph.model(LEAST_OPSET, {}), fed)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 99, 100, 150, 199, 1936, 2000])
def test_scores_and_words_are_those_of_the_reference(n):
    rng = np.random.default_rng(n)
    reference = Reference.of(rng.exponential(size=n).round(2) + 0.01, rng.exponential(size=n))
    known = reference.knowledge  # with ties
    knowledge = np.concatenate([known, known * (1 + 1e-12), known * (1 - 1e-12), [0.0, 1e300]])
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


def test_model_without_knowledge_has_a_verdict_but_no_score():
    reference = Reference.of(np.zeros(200), np.ones(200))
    found = stands(reference, np.zeros((2, 1)), np.array([[1.0], [9.0]]))
    assert found.keys() == {"verdict"}
    assert found["verdict"].tolist() == ["trust", "noisy"]


@pytest.mark.parametrize("has_knowledge", [True, False])
def test_overflowing_predictions_are_unfamiliar(has_knowledge):
    rng = np.random.default_rng(0)
    reference = Reference.of(rng.exponential(size=300) * has_knowledge, np.ones(300))
    mean = np.array([[0.0, 1.0], [0.0, np.nan], [np.inf, 0.0], [-1e300, 0.0]])
    found = stands(reference, np.zeros((4, 2)), np.ones((4, 2)), mean)
    assert found["verdict"].tolist() == ["trust", "unfamiliar", "unfamiliar", "trust"]
    if has_knowledge:
        found = stands(reference, np.full((1, 1), np.nan), np.ones((1, 1)))
        assert found["verdict"].tolist() == ["unfamiliar"]
