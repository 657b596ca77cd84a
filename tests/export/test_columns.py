"""The nodes that prepare raw columns give the preprocessor's matrix."""

import numpy as np
import pytest

from _onnx import run_onnx
from priornet.data.preprocessing import TablePreprocessor
from priornet.export.columns import preprocess
from priornet.export.feeds import feeds
from priornet.export.graph import Graph
from priornet.export.onnx_model import make_model


def matrix(preprocessor, rows):
    graph = Graph()
    made = preprocess(graph, preprocessor, np.float64)
    graph.output("matrix", made, ["rows", len(preprocessor.source_)])
    return run_onnx(make_model(graph, 18, {}), feeds(preprocessor, rows))["matrix"]


def assert_same_matrix(training, rows, **options):
    preprocessor = TablePreprocessor(**options).fit(training)
    expected = preprocessor.transform(rows)
    np.testing.assert_allclose(matrix(preprocessor, rows), expected, rtol=1e-12, atol=1e-12)
    return expected


def test_a_table_with_everything(table, rows):
    names = list(rows.columns)
    assert assert_same_matrix(table[names], rows).shape[1] > len(names)


def test_columns_in_another_order(table, rows):
    names = list(rows.columns)
    assert_same_matrix(table[names], rows[names[::-1]])


@pytest.mark.parametrize("holes", [True, False])
def test_rare_labels_are_pooled_with_unknown_ones(holes):
    labels = [f"label {i}" for i in range(9)] * 3 + ([None] if holes else [])
    rows = {"a": ["label 3", "label 8", "unheard of", None, "  label 3 "]}
    expected = assert_same_matrix({"a": labels}, rows, max_categories=4)
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


def test_numbers_where_training_had_labels():
    assert_same_matrix({"a": ["1", "2", "x"]}, {"a": np.array([1.0, 2.0, 7.0, np.nan])})


def test_only_labels():
    assert_same_matrix({"a": ["u", "v"], "b": ["s", "s"]}, {"a": ["v", "w"], "b": ["s", "t"]})
