"""Programs of torch.export agree with their models."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from priornet import GaussianRegressor
from priornet.export import (
    Comparison,
    ExportError,
    open_exported,
    outputs_of,
    to_torch_export,
)
from priornet.export.interface import describe_columns, numbers
from priornet.export.torch_export import METADATA, RawColumns
from priornet.tables.preprocessing import TablePreprocessor


@pytest.mark.parametrize(
    ("kind", "n_targets", "interval"),
    [
        ("single", 1, "predictive"),
        ("ensemble", 3, "predictive"),
        ("md-end", 1, "conformal"),
        ("endd", 1, "predictive"),
        ("mapped single", 1, "conformal"),
        ("shared trees", 1, "predictive"),
    ],
)
def test_written_program_agrees_on_every_row(kind, n_targets, interval, model_of, rows, tmp_path):
    model, path = model_of(kind, n_targets), tmp_path / "model.pt2"
    to_torch_export(model, path, coverage=0.8, interval=interval)
    texts = {METADATA: ""}
    program = torch.export.load(path, extra_files=texts).module()
    inputs = torch.from_numpy(numbers(model.fitted_.preprocessor, rows))
    expected = outputs_of(model, rows, {"coverage": 0.8, "interval": interval})
    found = open_exported(path).score(model, rows)
    assert set(found) == set(expected)
    comparison = Comparison()
    comparison.add(expected, found)
    assert comparison.worst[comparison.output].error < 1e-6, comparison.worst
    assert {len(value) for value in program(inputs[:1]).values()} == {1}
    assert [c["name"] for c in json.loads(texts[METADATA])["columns"]] == list(rows.columns)
    stack = model.fitted_.stack
    assert stack.weights.requires_grad  # the model itself is as it was
    assert getattr(stack, "folded", None) is None


def columns_of(about, table):
    """Make the input of a program from its own description alone."""
    made = []
    for column in about["columns"]:
        raw = table[column["name"]]
        if column["kind"] == "label":
            places = {label: place for place, label in enumerate(column["labels"])}
            number = raw.map(lambda text, places=places: places.get(text, -1)).where(raw.notna())
        elif column["kind"] == "date":
            number = (raw - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
        else:
            number = raw
        made.append(number.astype(float).to_numpy())
    return np.column_stack(made)


def test_file_describes_its_inputs(model_of, rows, tmp_path):
    model, texts = model_of("single", 1), {METADATA: ""}
    to_torch_export(model, tmp_path / "model.pt2")
    program = torch.export.load(tmp_path / "model.pt2", extra_files=texts).module()
    inputs = torch.from_numpy(columns_of(json.loads(texts[METADATA]), rows))
    np.testing.assert_allclose(program(inputs)["mean"].detach(), model.predict(rows), rtol=1e-9)


def test_columns_become_the_preprocessors_matrix():
    """Compare missing values and labels: known, pooled, unknown."""
    table = pd.DataFrame(
        {
            "shop": [f"s{i % 60:02}" for i in range(240)],
            "size": ["small", "large", None, "large"] * 60,
            "x": np.where(np.arange(240) % 7 == 0, np.nan, np.arange(240.0)),
            "day": pd.date_range("2024-01-01", periods=240),
            "open": [True, False] * 120,
        }
    )
    new = table.copy()
    new.loc[:2, ["shop", "size"]] = "unheard of"
    new.loc[3, ["shop", "size"]] = None
    new.loc[4, "x"] = 1e300
    prep = TablePreprocessor().fit(table)
    for rows in (table, new):
        found = RawColumns(prep)(torch.from_numpy(numbers(prep, rows)))
        np.testing.assert_allclose(found, prep.transform(rows), rtol=1e-12, atol=1e-12)
        described = columns_of({"columns": describe_columns(prep)}, rows)
        np.testing.assert_array_equal(described, numbers(prep, rows))


def test_another_models_program_is_refused(tmp_path):
    colours = pd.DataFrame({"colour": ["red", "green"] * 30, "x": np.arange(60.0)})
    others = colours.replace("green", "blue")
    one, other = (
        GaussianRegressor(hidden=(4,), epochs=1, random_state=0).fit(t, t["x"])
        for t in (colours, others)
    )
    to_torch_export(one, tmp_path / "one.pt2")
    with pytest.raises(ExportError, match='the column "colour" differs between file and model'):
        open_exported(tmp_path / "one.pt2").score(other, others)
