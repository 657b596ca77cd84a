"""Exported boosted trees answer as the trees do: no row takes another leaf."""

import io

import numpy as np
import pytest
import torch

from priornet.export.interface import feeds, input_names
from priornet.export.onnx.graph import LEAST_OPSET, Graph
from priornet.export.onnx.table_graph import raw_columns
from priornet.export.onnx.trees_graph import add_trees
from priornet.export.torch_trees import TreesProgram
from priornet.tables import TablePreprocessor, fit_trees

RNG = np.random.default_rng(0)


def make_table(n_rows, rng):
    label = rng.choice([f"label {i}" for i in range(20)], n_rows).astype(object)
    label[rng.random(n_rows) < 0.1] = None
    return {
        "size": rng.choice(["S", "M"], n_rows).tolist(),
        "x": rng.normal(size=n_rows).astype(np.float32).astype(np.float64),
        "label": label.tolist(),
        "near": 1e9 + rng.integers(0, 50, n_rows) * 1e-3,
        "gap": np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows)),
    }


def targets_of(table):
    label = np.array([len(text or "") + hash_of(text) for text in table["label"]])
    first = np.sin(3 * table["x"]) + label + 30 * (table["near"] - 1e9)
    return np.stack([first, np.nan_to_num(table["gap"], nan=2.0) * (label > 8)], 1)


def hash_of(text):
    return 0 if text is None else int(text.split()[1]) * 7 % 5


@pytest.fixture(scope="module")
def case():
    """Return a preprocessor, trees, and rows at and beside thresholds."""
    table = make_table(300, RNG)
    prep = TablePreprocessor().fit(table)
    n_labels = [len(column.categories) for column in prep.columns_]
    y = targets_of(table)
    trees, _ = fit_trees(prep.columns_matrix(table), y, n_labels=n_labels, n_folds=2)
    rows = make_table(600, RNG)
    for name in ("x", "near", "gap"):
        edges = trees.bins.own_edges(list(table).index(name))
        chosen = RNG.choice(edges, 450)
        chosen[:150] = np.nextafter(chosen[:150], -np.inf)
        chosen[150:300] = np.nextafter(chosen[150:300], np.inf)
        rows[name] = np.append(chosen, rows[name][:150])
    rows["x"][-4:] = [np.nan, 1e300, -1e300, 0.0]
    rows["label"][-3:] = ["never seen", "", None]
    rows["size"][-1] = None
    return prep, trees, rows


def run_graph(prep, trees, rows):
    onnxruntime = pytest.importorskip("onnxruntime")
    graph = Graph(taken=input_names(prep) or ())
    found = add_trees(graph, trees, raw_columns(graph, prep), prep.columns_)
    graph.output("trees", found, ["rows", None])
    content = graph.model(LEAST_OPSET, {}).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return session.run(None, feeds(prep, rows))[0]


def test_graph_takes_the_leaves_of_the_trees(case):
    prep, trees, rows = case
    expected = trees.predict(prep.columns_matrix(rows))
    found = run_graph(prep, trees, rows)
    assert found.dtype == np.float64
    assert np.abs(found - expected).max() < 2e-6
    rounded = trees.predict(prep.columns_matrix(rows).clip(-1e30, 1e30).astype(np.float32))
    assert np.median(np.abs(rounded - expected)) > 1e-4, "single precision takes other leaves"


def test_graph_of_one_matrix_and_of_labels_only():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 3))
    x[::5, 1] = np.nan
    prep = TablePreprocessor().fit(x)
    trees, _ = fit_trees(x, x[:, :1] * 2, n_labels=[0, 0, 0], n_folds=2)
    assert np.abs(run_graph(prep, trees, x) - trees.predict(x)).max() < 2e-6
    table = {"label": make_table(200, rng)["label"]}
    prep = TablePreprocessor().fit(table)
    matrix, y = prep.columns_matrix(table), [[hash_of(text)] for text in table["label"]]
    trees, _ = fit_trees(matrix, y, n_labels=[len(prep.columns_[0].categories)], n_folds=2)
    assert np.abs(run_graph(prep, trees, table) - trees.predict(matrix)).max() < 2e-6
    flat, _ = fit_trees(
        matrix, np.zeros((200, 1)), n_labels=trees.bins.n_labels.tolist(), n_folds=2
    )
    assert np.abs(run_graph(prep, flat, table)).max() == 0


def test_program_takes_the_leaves_of_the_trees(case):
    prep, trees, rows = case
    matrix = torch.from_numpy(prep.columns_matrix(rows))
    rows_of = {"columns": {0: torch.export.Dim("rows", min=1)}}
    exported = torch.export.export(TreesProgram(trees), (matrix[:3],), dynamic_shapes=rows_of)
    buffer = io.BytesIO()
    torch.export.save(exported, buffer)
    program = torch.export.load(io.BytesIO(buffer.getvalue())).module()
    found = program(matrix)
    assert np.abs(found.numpy() - trees.predict(matrix.numpy())).max() < 1e-12
    assert program(matrix[:1]).shape == (1, 2)
