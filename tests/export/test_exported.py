"""Exported files score rows; other files are refused."""

import sys

import numpy as np
import onnx
import pytest

from priornet.export import Comparison, ExportError, open_exported, outputs_of, to_onnx


def compared(expected, found):
    comparison = Comparison()
    comparison.add(expected, found)
    return comparison


def test_exported_file_scores_the_rows(model_of, rows, tmp_path):
    model = model_of("endd", 3)
    to_onnx(model, tmp_path / "m.onnx")
    file = open_exported(tmp_path / "m.onnx")
    assert file.about["coverage"] == 0.9
    assert compared(outputs_of(model, rows, file.about), file.score(model, rows)).holds


def test_graph_of_another_model_is_refused(model_of, rows, tmp_path):
    import priornet

    other = priornet.GaussianRegressor(hidden=(4,), epochs=1).fit(
        rows.assign(x=0.0)[["x"]], rows["id"]
    )
    to_onnx(other, tmp_path / "m.onnx")
    with pytest.raises(ExportError, match='other columns: only the model has "colour"'):
        open_exported(tmp_path / "m.onnx").score(model_of("endd", 1), rows)


def test_column_of_another_kind_is_refused(model_of, rows, tmp_path):
    import priornet

    changed = rows.assign(size=1.0 * np.arange(len(rows)), x=0.0)
    other = priornet.GaussianRegressor(hidden=(4,), epochs=1).fit(changed, rows["id"])
    to_onnx(other, tmp_path / "m.onnx")
    with pytest.raises(ExportError, match='column "size" is a tensor\\(double\\)'):
        open_exported(tmp_path / "m.onnx").score(model_of("endd", 1), rows)


def changed(path, change):
    model = onnx.load(path)
    change(model)
    onnx.save(model, path)


def make_old(model):
    model.opset_import[0].version = 9


def forget(model):
    del model.metadata_props[:]


def empty(model):
    del model.graph.node[:]


def unknown_operator(model):
    model.graph.node[0].op_type = "NoSuchThing"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (make_old, "its opset 9 is too old; export the model again, with opset 18 or newer"),
        (forget, "`priornet export` did not write it"),
        (empty, "it is no ONNX model"),
        (unknown_operator, "onnxruntime cannot load it"),
    ],
)
def test_files_that_cannot_be_run_are_refused(change, message, model_of, tmp_path):
    to_onnx(model_of("single", 1), tmp_path / "m.onnx")
    changed(tmp_path / "m.onnx", change)
    with pytest.raises(ExportError, match=message):
        open_exported(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"a,b\n1,2\n", "no ONNX model"), (b"", "no ONNX model"), (b"PK\3\4", "no program of torch")],
)
def test_files_of_another_kind_are_refused(content, message, tmp_path):
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(ExportError, match=message):
        open_exported(tmp_path / "m.onnx")


def from_the_future(model):
    model.ir_version = 99


def test_format_newer_than_the_runtime_is_named(model_of, tmp_path):
    to_onnx(model_of("single", 1), tmp_path / "m.onnx", opset=20)
    changed(tmp_path / "m.onnx", from_the_future)
    with pytest.raises(ExportError, match="its opset 20 is too new for the installed onnxruntime"):
        open_exported(tmp_path / "m.onnx")


def test_missing_runtime_names_its_extra(model_of, tmp_path, monkeypatch):
    to_onnx(model_of("single", 1), tmp_path / "m.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ExportError, match=r"onnxruntime is needed .*pip install '\.\[onnx\]'"):
        open_exported(tmp_path / "m.onnx")
