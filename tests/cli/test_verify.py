"""Agreement is exit code 0, a difference 1 with its place, anything wrong 2 with one line."""

import json
import math

import numpy as np
import onnx
import pytest
from onnx import numpy_helper


@pytest.fixture
def exported(call, models, tmp_path):
    path = tmp_path / "m.onnx"
    assert call("export", models / "one", "--onnx", path).exit_code == 0
    return path


def spoil(path, factor=1.01):
    """Write a copy of a graph with other weights in its first layer."""
    model = onnx.load(path)
    for constant in model.graph.initializer:
        values = numpy_helper.to_array(constant)
        if values.dtype == np.float32 and values.ndim == 2:
            constant.CopyFrom(numpy_helper.from_array(factor * values, constant.name))
            break
    onnx.save(model, path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_export_agrees_with_its_model(call, models, exported, table, tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    rows = table.drop(columns=["strength", "weight"]).assign(another="column")
    rows.to_parquet(path) if ending == "parquet" else rows.to_csv(path, index=False)
    done = call("verify", models / "one", exported, path)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("120 rows agree: the largest relative difference is ")
    assert "(at most 0.0001), in " in done.stdout


def test_program_of_torch_agrees_too(call, models, csv, tmp_path):
    assert call("export", models / "two", "--torch-export", tmp_path / "m.pt2").exit_code == 0
    done = call("verify", models / "two", tmp_path / "m.pt2", csv, "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["n_rows"] == 120
    assert summary["holds"] is True
    assert summary["worst"]["error"] < 1e-6
    targets = {(one["column"], one["target"]) for one in summary["outputs"]}
    assert ("data_entropy", None) in targets


def test_difference_is_reported_with_its_place(call, models, exported, csv):
    spoil(exported)
    done = call("verify", models / "one", exported, csv)
    assert done.exit_code == 1
    assert "120 rows differ" in done.stdout
    summary = json.loads(call("verify", models / "one", exported, csv, "--json").stdout)
    assert summary["holds"] is False
    worst = summary["worst"]
    assert worst["error"] > 1e-4
    assert f"in {worst['column']}" in done.stdout
    assert f"row {worst['row']}:" in done.stdout
    assert 1 <= worst["row"] <= 120


def test_nan_and_infinity_are_null_in_json(call, models, exported, csv):
    spoil(exported, math.nan)
    done = call("verify", models / "one", exported, csv, "--json")
    assert done.exit_code == 1
    summary = json.loads(done.stdout, parse_constant=pytest.fail)
    assert summary["holds"] is False
    assert summary["worst"]["error"] is None
    assert "differ: the largest relative difference is inf" in (
        call("verify", models / "one", exported, csv).stdout
    )


def test_wrong_verdict_is_reported(call, models, exported, csv):
    model = onnx.load(exported)
    for constant in model.graph.initializer:
        if constant.data_type == onnx.TensorProto.STRING:
            constant.string_data[0] = b"believe"
    onnx.save(model, exported)
    done = call("verify", models / "one", exported, csv)
    assert done.exit_code == 1
    assert "in verdict, row " in done.stdout
    assert '"believe" instead of "trust".' in done.stdout


def test_files_that_cannot_be_compared_are_refused(refused, models, exported, csv, tmp_path):
    assert refused("verify", models / "one", csv, csv) == f"{csv}: it is no ONNX model."
    missing = tmp_path / "none.onnx"
    assert "No such file" in refused("verify", models / "one", missing, csv)
    old = onnx.load(exported)
    old.opset_import[0].version = 11
    onnx.save(old, tmp_path / "old.onnx")
    assert "opset 11 is too old" in refused("verify", models / "one", tmp_path / "old.onnx", csv)


def test_export_of_another_model_is_refused(refused, call, models, table, csv, tmp_path):
    from priornet import GaussianRegressor

    other = GaussianRegressor(hidden=(4,), epochs=1).fit(table[["x", "weight"]], table["strength"])
    other.save(tmp_path / "other")
    assert call("export", tmp_path / "other", "--onnx", tmp_path / "o.onnx").exit_code == 0
    message = refused("verify", models / "one", tmp_path / "o.onnx", csv)
    assert message == f'{tmp_path}/o.onnx: it has other columns: only the model has "colour".'


def test_table_without_the_columns_is_refused(refused, models, exported, tmp_path):
    (tmp_path / "rows.csv").write_text("x,color,hole\n1,red,2\n")
    message = refused("verify", models / "one", exported, tmp_path / "rows.csv")
    assert 'did you mean "color"' in message


def test_wrong_cell_is_named(refused, models, exported, tmp_path):
    (tmp_path / "rows.csv").write_text("x,colour,hole\n1,red,2\nmuch,red,2\n")
    message = refused("verify", models / "one", exported, tmp_path / "rows.csv")
    assert 'column "x", row 2' in message


def test_broken_program_gives_one_line(refused, call, models, csv, tmp_path, caplog):
    path = tmp_path / "m.pt2"
    assert call("export", models / "single", "--torch-export", path).exit_code == 0  # soon traced
    path.write_bytes(path.read_bytes()[:3000])
    message = refused("verify", models / "single", path, csv)
    assert message == f"{path}: it is no program of torch.export."
    logged = [record for record in caplog.records if record.name == "torch.export"]
    assert not logged  # torch has a traceback to tell


def test_one_row_agrees(call, models, exported, tmp_path):
    (tmp_path / "row.csv").write_text("x,colour,hole\n1,red,2\n")
    done = call("verify", models / "one", exported, tmp_path / "row.csv")
    assert done.stdout.startswith("1 row agrees: the largest ")


def test_conformal_export_of_another_model_is_refused(refused, call, models, table, csv, tmp_path):
    from priornet import GaussianRegressor

    X, y = table[["x", "colour", "hole"]], table["strength"]
    plain = GaussianRegressor(hidden=(4,), epochs=1, calibration_fraction=0.0).fit(X, y)
    plain.save(tmp_path / "plain")
    path = tmp_path / "m.onnx"
    options = ("--interval", "conformal", "--coverage", 0.5)
    assert call("export", models / "single", "--onnx", path, *options).exit_code == 0
    message = refused("verify", tmp_path / "plain", path, csv)
    assert message == (
        f"{path}: it is of another model: its intervals are conformal with coverage 0.5, and this "
        "model held out too few rows for that (0); export the model again."
    )
