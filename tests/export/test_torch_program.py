"""The program of torch.export says what the model says."""

import json

import pytest
import torch

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
