"""Exported files score rows, other files are refused, and differences are found at their place."""

import math
import sys

import numpy as np
import onnx
import pytest

from priornet.export import Comparison, ExportError, open_exported, outputs_of, to_onnx
from priornet.export.agreement import TOLERANCE, Jumping

ABOUT = {"coverage": 0.9, "interval": "predictive"}


@pytest.fixture(scope="module")
def outputs(model_of, rows):
    found = outputs_of(model_of("endd", 3), rows, ABOUT)
    return {name: value for name, value in found.items() if not isinstance(value, Jumping)}


@pytest.fixture(scope="module")
def jumping(model_of, rows):
    found = outputs_of(model_of("endd", 3), rows, ABOUT)
    return {name: value for name, value in found.items() if isinstance(value, Jumping)}


def compared(expected, found):
    comparison = Comparison()
    comparison.add(expected, found)
    return comparison


def test_same_numbers_agree(outputs):
    comparison = compared(outputs, outputs)
    assert comparison.holds
    assert comparison.worst[comparison.output].error == 0


@pytest.mark.parametrize("name", ["mean", "upper", "data_variance", "mutual_information", "epkl"])
def test_planted_difference_is_found_at_its_place(outputs, name):
    spoiled = {key: value.copy() for key, value in outputs.items()}
    place = (17, 1) if spoiled[name].ndim == 2 else (17,)
    spoiled[name][place] *= 1 + 1e-3
    comparison = Comparison()
    comparison.add(outputs, outputs)  # rows are counted over several pieces
    comparison.add(outputs, spoiled)
    assert not comparison.holds
    assert comparison.output == name
    worst = comparison.worst[name]
    assert worst.row == len(outputs["mean"]) + 17
    assert worst.target == (1 if len(place) == 2 else 0)
    assert worst.error == pytest.approx(1e-3, rel=1e-6)


def test_entropy_near_zero_is_measured_in_nats(outputs):
    expected = outputs | {"data_entropy": np.full(len(outputs["epkl"]), 1e-9)}
    assert compared(expected, expected | {"data_entropy": expected["data_entropy"] + 5e-5}).holds
    off = expected | {"data_entropy": expected["data_entropy"] + 2 * TOLERANCE}
    assert not compared(expected, off).holds


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_and_infinity_equal_only_themselves(outputs, value):
    odd = outputs | {"epkl": np.where(np.arange(len(outputs["epkl"])) == 3, value, outputs["epkl"])}
    assert compared(odd, odd).holds
    assert compared(outputs, odd).worst["epkl"].error == math.inf


def test_another_shape_is_refused(outputs):
    with pytest.raises(ExportError, match='output "mean" has shape'):
        compared(outputs, outputs | {"mean": outputs["mean"][:, :1]})


def test_scores_and_words_are_compared(outputs, jumping):
    assert jumping.keys() == {"in_domain", "verdict"}
    same = {name: value.value for name, value in jumping.items()}
    comparison = compared(outputs | jumping, outputs | same)
    assert comparison.holds
    assert comparison.worst["verdict"].expected in ("trust", "noisy", "unfamiliar")
    words = same["verdict"].copy()
    words[5] = "unfamiliar" if words[5] == "trust" else "trust"
    comparison = compared(outputs | jumping, outputs | same | {"verdict": words})
    worst = comparison.worst["verdict"]
    assert not comparison.holds
    assert (worst.row, worst.found, worst.error) == (5, words[5], 1.0)


def test_row_at_a_limit_may_fall_on_either_side():
    score = Jumping(
        np.array([0.5, 0.5, 0.5]), (np.array([0.6, 0.5, 0.5]), np.array([0.4, 0.5, 0.5]))
    )
    found = score.errors(np.array([0.55, 0.55, math.nan]))
    assert found[0] == 0
    assert found[1] == pytest.approx(0.1)
    assert found[2] == math.inf
    word = Jumping(np.array(["a", "a"], object), (np.array(["b", "a"], object),))
    assert word.errors(np.array(["b", "b"], object)).tolist() == [0.0, 1.0]


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
