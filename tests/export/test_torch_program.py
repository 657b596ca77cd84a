"""The program of torch.export says what the model says."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from priornet import GaussianRegressor
from priornet.export import Comparison, open_exported, outputs_of, to_torch_export
from priornet.export.torch_program import METADATA


@pytest.mark.parametrize(
    ("kind", "n_targets", "interval"),
    [
        ("single", 1, "predictive"),
        ("ensemble", 3, "predictive"),
        ("md-end", 1, "conformal"),
        ("endd", 1, "predictive"),
    ],
)
def test_a_written_program_agrees_on_every_row(kind, n_targets, interval, model_of, rows, tmp_path):
    model, path = model_of(kind, n_targets), tmp_path / "model.pt2"
    to_torch_export(model, path, coverage=0.8, interval=interval)
    texts = {METADATA: ""}
    program = torch.export.load(path, extra_files=texts).module()
    inputs = torch.from_numpy(model.fitted_.preprocessor.transform(rows))
    expected = outputs_of(model, rows, {"coverage": 0.8, "interval": interval})
    found = open_exported(path).score(model, rows)
    assert set(found) == set(expected)
    comparison = Comparison()
    comparison.add(expected, found)
    assert comparison.worst[comparison.output].error < 1e-6, comparison.worst
    assert {len(value) for value in program(inputs[:1]).values()} == {1}
    assert json.loads(texts[METADATA])["inputs"] == list(
        model.fitted_.preprocessor.feature_names_out_
    )
    assert model.fitted_.stack.weights.requires_grad  # the model itself is as it was


def prepared(about, table):
    """The inputs of a program, by its own description of them and nothing else."""
    inputs = np.zeros((len(table), len(about["features"])))
    shown = {f["label"] for f in about["features"] if f["role"] == "category"}
    for i, feature in enumerate(about["features"]):
        raw = table[feature["column"]]
        if feature["role"] == "missing":
            inputs[:, i] = raw.isna()
        elif feature["role"] == "value":
            if raw.dtype.kind == "M":
                raw = (raw - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
            number = raw.astype(float).fillna(feature["median"])
            standard = (number - feature["mean"]) / feature["scale"]
            inputs[:, i] = standard.clip(-1e12, 1e12)
        elif feature["label"] is None:
            inputs[:, i] = ~raw.isin(shown) & raw.notna()
        else:
            inputs[:, i] = raw == feature["label"]
    return inputs


def test_the_file_says_how_its_inputs_are_made(model_of, rows, tmp_path):
    model, texts = model_of("single", 1), {METADATA: ""}
    to_torch_export(model, tmp_path / "model.pt2")
    program = torch.export.load(tmp_path / "model.pt2", extra_files=texts).module()
    inputs = torch.from_numpy(prepared(json.loads(texts[METADATA]), rows))
    np.testing.assert_allclose(program(inputs)["mean"].detach(), model.predict(rows), rtol=1e-9)


def test_pooled_labels_are_described(tmp_path):
    table = pd.DataFrame({"shop": [f"s{i % 60:02}" for i in range(240)], "x": np.arange(240.0)})
    model, texts = GaussianRegressor(hidden=(4,), epochs=1, random_state=0), {METADATA: ""}
    model.fit(table, table["x"])
    to_torch_export(model, tmp_path / "model.pt2")
    torch.export.load(tmp_path / "model.pt2", extra_files=texts)
    inputs = prepared(json.loads(texts[METADATA]), table)
    np.testing.assert_allclose(inputs, model.fitted_.preprocessor.transform(table), atol=1e-12)
    assert inputs[:, -2].sum() > 0  # of the pooled ones
