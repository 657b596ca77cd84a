"""Weights of the depth experiment become ONNX files that agree at every pixel."""

import json

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from safetensors.torch import save
from typer.testing import CliRunner

from _depth_files import SETTINGS, encoded, photograph
from _onnx import short_encoder
from priornet.cli import app
from priornet.depth import DepthGraph, load_depth, save_depth
from priornet.nn import DenseDepth, GaussianHead, NormalWishartHead
from priornet.nn.weights import write_tensors

SIZE = (32, 64)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module", autouse=True)
def _short_encoder():
    with short_encoder():
        yield


@pytest.fixture(scope="module")
def weights(sets, tmp_path_factory, fabric_alone):
    """Run the smallest preset of `priornet reproduce depth`; return the folder of its weights."""
    out = tmp_path_factory.mktemp("depth")
    chosen = [part for setting in SETTINGS for part in ("--set", setting)]
    common = ("--data", sets, "--preset", "smoke", "--weights", "none", "--out", out)
    done = run("reproduce", "depth", *common, *chosen, "--quiet", "--methods", "dd,endd,md-end")
    assert done.exit_code == 0, done.output
    return out / ".parts" / "nyu.smoke" / "weights"


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Save a network with outputs that differ from pixel to pixel.

    Its head is that of EnD2, and the experiment's below that of MD-EnD: tracing takes long.
    """
    torch.manual_seed(0)
    net = DenseDepth(
        lambda n: NormalWishartHead(n, per_pixel=True, init_gain=30.0, min_excess=1.0),
        "efficientnet_lite0",
        n_decoder=16,
    )
    path = tmp_path_factory.mktemp("own") / "net.safetensors"
    save_depth(net, path, size=SIZE, shift=3.0, scale=2.0)
    return path


@pytest.fixture(scope="module")
def graph(own):
    """Export the network for images of another size; tests must not change the file."""
    path = own.with_name("depth.onnx")
    done = run("export", own, "--onnx", path, "--size", "50x70", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["size"] == [50, 70]
    assert (summary["shift"], summary["scale"]) == (3.0, 2.0)
    assert summary["inputs"] == ["images"]
    return path


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    for seed, name in enumerate(["a.jpg", "more/b.png"]):
        form = "PNG" if name.endswith("png") else "JPEG"
        (folder / name).write_bytes(encoded(photograph(48, 80, seed), form))
    return folder


def test_weights_of_the_experiment_agree(call, weights, sets, tmp_path):
    path = weights / "MD-EnD.0.safetensors"
    done = call("export", path, "--onnx", tmp_path / "depth.onnx", "--coverage", 0.8)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == "Height and width: 32, 64"
    assert "Outputs: mean, lower, upper, total_variance" in done.stdout
    done = call("verify", path, tmp_path / "depth.onnx", sets / "nyu", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["n_images"] == 8
    assert summary["holds"] is True
    columns = {one["column"] for one in summary["outputs"]}
    assert {"mean", "lower", "upper", "knowledge_variance", "epkl"} <= columns
    saved = load_depth(path)  # in metres
    assert 0 < saved.scale < saved.shift < 10
    found = DepthGraph(tmp_path / "depth.onnx").score(np.full((1, 3, *SIZE), 0.5, np.float32))
    assert abs(found["mean"] - saved.shift).max() < 3 * saved.scale


def test_weights_of_endd_give_the_same_network_as_save_depth(weights, own):
    saved, trained = load_depth(own), load_depth(weights / "EnD2.0.safetensors")
    assert str(trained.net) == str(saved.net)  # every module with its settings
    assert trained.size == saved.size
    assert 0 < trained.scale < trained.shift < 10


def test_any_images_are_resized_for_verify(call, own, graph, photos):
    done = call("verify", own, graph, photos)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("2 images agree: the largest relative difference is ")
    done = call("verify", own, graph, photos / "a.jpg")
    assert done.stdout.startswith("1 image agrees: ")
    assert "a.jpg, pixel (" in done.stdout


def test_difference_is_reported_with_image_and_pixel(call, own, graph, photos, tmp_path):
    model, spoiled = onnx.load(graph), tmp_path / "spoiled.onnx"
    (weight,) = (c for c in model.graph.initializer if c.name == "body/net.head.projection.weight")
    weight.CopyFrom(numpy_helper.from_array(1.01 * numpy_helper.to_array(weight), weight.name))
    onnx.save(model, spoiled)
    done = call("verify", own, spoiled, photos, "--json")
    assert done.exit_code == 1
    worst = json.loads(done.stdout)["worst"]
    assert worst["error"] > 1e-4
    assert worst["image"] in ("a.jpg", "more/b.png")
    row, column = worst["pixel"]
    assert 0 <= row < 25
    assert 0 <= column < 35
    assert "2 images differ" in call("verify", own, spoiled, photos).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--torch-export", "{}.pt2"], "a depth network is written with --onnx FILE alone."),
        (["--onnx", "{}", "--interval", "conformal"], "no held-out rows for --interval conformal"),
        (["--onnx", "{}", "--opset", "9"], "opset 9 is too old; choose one from 18 to "),
        (["--onnx", "{}", "--coverage", "1"], "`coverage` must lie between 0 and 1; got 1."),
        (
            ["--onnx", "{}", "--size", "big"],
            "--size must be HEIGHTxWIDTH in pixels, as in 240x320; ",
        ),
        (["--onnx", "{}", "--size", "0x32"], "--size must be HEIGHTxWIDTH"),
    ],
)
def test_wrong_export_settings_are_refused(refused, own, tmp_path, options, message):
    path = tmp_path / "m.onnx"
    assert message in refused("export", own, *(o.format(path) for o in options))
    assert not path.exists()


def test_network_without_uncertainty_is_refused(refused, weights, tmp_path):
    message = refused("export", weights / "DD.0.safetensors", "--onnx", tmp_path / "m.onnx")
    assert "without uncertainty" in message


def test_files_of_other_kinds_are_refused(refused, call, own, graph, models, csv, photos, tmp_path):
    new = tmp_path / "new.onnx"
    assert "no file of weights of a depth network" in refused("export", csv, "--onnx", new)
    message = refused("export", models / "one", "--onnx", new, "--size", "32x32")
    assert "--size is for depth networks" in message
    assert call("export", models / "one", "--onnx", tmp_path / "table.onnx").exit_code == 0
    message = refused("verify", own, tmp_path / "table.onnx", photos)
    assert message.endswith("table.onnx: it is of a table's model, not of a depth network.")
    assert "it has other columns" in refused("verify", models / "one", graph, csv)
    assert "name a file or a folder" in refused("verify", own, graph, "-")
    assert "no such file or folder" in refused("verify", own, graph, tmp_path / "none")
    message = refused("verify", own, graph, csv)
    assert message.startswith(f"{csv}: this is no set of images, or damaged; expected a picture (")
    assert "zip of DenseDepth" in message
    (photos / "a.jpg").write_bytes(b"no picture")
    assert "a.jpg: this cannot be read as a picture" in refused("verify", own, graph, photos)


DAMAGED = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "a changed number": lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
    "another safetensors": lambda _: save({"weights": torch.zeros(2)}),
    "a list": lambda _: save({"weights": torch.zeros(2)}, {"state": "[1]"}),
}


@pytest.mark.parametrize("change", DAMAGED.values(), ids=DAMAGED)
def test_damaged_weights_are_recognised_whatever_the_path(refused, own, change, tmp_path):
    path = tmp_path / "a: damaged (it is not one of our files).safetensors"
    path.write_bytes(change(own.read_bytes()))
    message = refused("export", path, "--onnx", tmp_path / "new.onnx")
    assert message.startswith(
        f"{path}: it is a file, but no file of weights of a depth network, or damaged; "
    )
    write_tensors(path, load_depth(own).net.state_dict(), {})
    message = refused("export", path, "--onnx", tmp_path / "new.onnx")
    assert message.startswith(f"{path}: it does not describe its network")


def test_graph_of_another_network_differs(call, graph, photos, tmp_path):
    torch.manual_seed(1)
    net = DenseDepth(
        lambda n: GaussianHead(n, per_pixel=True, init_gain=30.0),
        "efficientnet_lite0",
        n_decoder=16,
    )
    save_depth(net, tmp_path / "other.safetensors", size=SIZE)
    done = call("verify", tmp_path / "other.safetensors", graph, photos)
    assert done.exit_code == 1, done.output


def test_weights_that_are_not_there(tmp_path):
    missing = tmp_path / "missing.safetensors"
    for command in (("export", missing, "--onnx", tmp_path / "o"), ("verify", missing, "o", "x")):
        done = run(*command)
        assert done.exit_code == 2
        assert done.output.startswith(f"Error: {missing}: no such file; `priornet reproduce depth`")
