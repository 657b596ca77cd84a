"""The nodes that prepare raw columns give the preprocessor's matrix."""

import numpy as np
import pandas as pd
import pytest
import torch

from _onnx import run_onnx
from priornet.export.interface import feeds, numbers
from priornet.export.onnx.graph import Graph
from priornet.export.onnx.table_graph import preprocess
from priornet.export.torch_export import RawColumns
from priornet.tables.encoding import Unseen
from priornet.tables.preprocessing import TablePreprocessor


def prepared(preprocessor, rows):
    """Return the matrix, and the rows with values that training never had."""
    graph = Graph()
    made = preprocess(graph, preprocessor, np.float64)
    graph.output("matrix", made.matrix, ["rows", len(preprocessor.source_)])
    graph.output("unseen", made.unseen, ["rows", 1])
    return run_onnx(graph.model(18, {}), feeds(preprocessor, rows))


def assert_same_matrix(training, rows, **options):
    preprocessor, unseen = TablePreprocessor(**options).fit(training), Unseen()
    expected = preprocessor.transform(rows, unseen=unseen)
    found = prepared(preprocessor, rows)
    np.testing.assert_allclose(found["matrix"], expected, rtol=1e-12, atol=1e-12)
    assert found["unseen"].tolist() == unseen.rows[:, None].tolist()
    program, given = RawColumns(preprocessor), numbers(preprocessor, rows)
    assert program.unseen(torch.from_numpy(given)).tolist() == unseen.rows.tolist()
    return expected


def test_table_with_everything(table, rows):
    names = list(rows.columns)
    assert assert_same_matrix(table[names], rows).shape[1] > len(names)


def test_columns_in_another_order(table, rows):
    names = list(rows.columns)
    assert_same_matrix(table[names], rows[names[::-1]])


@pytest.mark.parametrize("with_missing", [True, False])
@pytest.mark.parametrize("times", [1, 3], ids=["new labels are ordinary", "new labels are unseen"])
def test_rare_labels_are_pooled_with_unknown_ones(with_missing, times):
    labels = [f"label {i}" for i in range(9)] * times + ([None] if with_missing else [])
    rows = {"a": ["label 3", "label 8", "unheard of", None, "  label 3 ", "NA"]}
    expected = assert_same_matrix({"a": labels}, rows, max_labels=4)
    assert expected[2].sum() == 1  # the pooled column


@pytest.mark.parametrize(
    "words",
    [
        ["1,5", "2,25", "n/a", "3"],
        ["true", "FALSE", "true", ""],
        ["2020-01-01", "2021-05-06T12:00", "2020-03-04", "?"],
        ["1e3", "-4", "nan", "12"],
    ],
    ids=["comma", "boolean", "date", "number"],
)
def test_text_that_spells_numbers(words):
    assert_same_matrix({"a": words, "b": list("wxyz")}, {"a": words[::-1], "b": list("zzxq")})


def test_numbers_that_are_neither_zero_nor_one():
    rows = {"a": [0.0, 1.0, 2.0, -1.0, 0.5, np.nan], "b": [1.0] * 6}
    assert_same_matrix({"a": [0.0, 1.0, 1.0, np.nan], "b": [1.0, 2.0, 3.0, 4.0]}, rows)


def test_numbers_where_training_had_labels():
    assert_same_matrix({"a": ["1", "2", "x"]}, {"a": np.array([1.0, 2.0, 7.0, np.nan])})


def test_only_labels():
    assert_same_matrix({"a": ["u", "v"], "b": ["s", "s"]}, {"a": ["v", "w"], "b": ["s", "t"]})


@pytest.mark.parametrize("n_bare", [0, 1])
def test_rows_with_too_many_missing_values_are_unseen(n_bare):
    """Check that an empty training row does not make empty rows ordinary."""
    training = {
        "a": [1.0, np.nan, 2.0, 3.0],
        "b": ["u", "v", None, "u"],
        "c": [np.nan, 1.0, 2.0, 4.0],
    }
    rows = {"a": [np.nan, 1.0, np.nan], "b": [None, None, None], "c": [1.0, 2.0, np.nan]}
    if n_bare:
        training = {name: [*values, None] for name, values in training.items()}
    frame = pd.DataFrame(training)
    preprocessor = TablePreprocessor().fit(frame)
    assert prepared(preprocessor, rows)["unseen"][:, 0].tolist() == [not n_bare, False, True]
    assert_same_matrix(frame, rows)


def test_infinite_number_is_far():
    preprocessor = TablePreprocessor().fit(np.array([[0.0], [2.0]]))
    graph = Graph()
    graph.output("unseen", preprocess(graph, preprocessor, np.float64).unseen, ["rows", 1])
    fed = {"X": np.array([[np.inf], [-np.inf], [3.5], [np.nan]])}
    found = run_onnx(graph.model(18, {}), fed)["unseen"]
    assert found[:, 0].tolist() == [True, True, False, True]


@pytest.mark.parametrize("with_missing", [True, False])
def test_words_for_missing_values_among_labels(with_missing):
    words = ["NA", "n/a", "<NA>", "?", "None", "nULL", "-", "#N/A", "x"]
    training = {"a": ["x", "y", "-", None if with_missing else "x"], "b": [1.0, 2.0, 4.0, 3.0]}
    preprocessor = TablePreprocessor().fit(training)
    rows = {"a": words, "b": np.arange(1.0, 10.0) / 4}
    assert_same_matrix(training, rows)
    graph, unseen = Graph(), Unseen()
    made = preprocess(graph, preprocessor, np.float64)
    graph.output("matrix", made.matrix, ["rows", len(preprocessor.source_)])
    graph.output("unseen", made.unseen, ["rows", 1])
    raw = {"a": np.array(words, object)[:, None], "b": rows["b"][:, None]}  # as others feed it
    found = run_onnx(graph.model(18, {}), raw)
    np.testing.assert_allclose(found["matrix"], preprocessor.transform(rows, unseen=unseen))
    assert found["unseen"].ravel().tolist() == unseen.rows.tolist()
