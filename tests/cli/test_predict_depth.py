"""Photographs become maps of depth and uncertainty, and a table with verdicts."""

import json
import zipfile
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from _depth_files import encoded, photograph
from _onnx import short_encoder
from priornet.depth import load_depth, open_depth, pack, save_depth
from priornet.nn import (
    DenseDepth,
    GaussianHead,
    GaussianMixtureHead,
    NormalWishartHead,
)
from priornet.uncertainty import uncertainty

SIZE = (32, 64)
DEVIATIONS = ("total", "data", "knowledge")


def table_of(folder) -> Any:
    return pd.read_csv(folder / "images.csv")


@pytest.fixture(scope="module", autouse=True)
def _short_encoder():
    with short_encoder():
        yield


def saved(path, head):
    torch.manual_seed(0)
    net = DenseDepth(head, "efficientnet_lite0", n_decoder=16)
    save_depth(net, path, size=SIZE, shift=3.0, scale=2.0)
    return path


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Save a network whose outputs differ from pixel to pixel."""

    def head(n):
        return NormalWishartHead(n, per_pixel=True, init_gain=30.0, min_excess=1.0)

    return saved(tmp_path_factory.mktemp("network") / "EnD2.0.safetensors", head)


@pytest.fixture
def photos(tmp_path):
    """Write five photographs of other shapes than the network's, one in a subfolder."""
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    for seed, name in enumerate(["a.jpg", "b.png", "c.jpg", "d.jpg", "more/e.png"]):
        form = "PNG" if name.endswith("png") else "JPEG"
        (folder / name).write_bytes(encoded(photograph(48 + seed, 80, seed), form))
    return folder


@pytest.fixture
def known(tmp_path):
    folder = tmp_path / "known"
    folder.mkdir()
    for seed in range(12):
        (folder / f"{seed}.jpg").write_bytes(encoded(photograph(48, 80, 50 + seed)))
    return folder


def test_maps_equal_the_networks_outputs(call, network, photos, tmp_path):
    done = call("predict", network, photos, "--out", tmp_path / "out", "--coverage", 0.5)
    assert done.exit_code == 0, done.output
    images = open_depth(photos)
    pixels, _ = images.tensors(SIZE, crop=True)
    net = load_depth(network)
    belief = net.belief(pixels / 255)
    record, predictive = uncertainty(belief), belief.predictive()
    expected = {
        "depth": predictive.mean[..., 0],
        "lower": predictive.marginals().icdf(torch.full_like(predictive.mean, 0.25))[..., 0],
        "upper": predictive.marginals().icdf(torch.full_like(predictive.mean, 0.75))[..., 0],
        "mutual_information": record.mutual_information,
        "epkl": record.epkl,
    }
    for name in DEVIATIONS:
        expected[name] = getattr(record, f"{name}_variance")[..., 0].sqrt()
    table = table_of(tmp_path / "out").set_index("image")
    assert list(table.index) == list(images.names)
    for row, image in enumerate(images.names):
        with np.load(tmp_path / "out" / "maps" / f"{image}.npz") as maps:
            assert set(maps) == set(expected)
            for name, values in expected.items():
                assert maps[name].dtype == np.float32
                np.testing.assert_allclose(maps[name], values[row], rtol=1e-5, err_msg=name)
        means = {name: float(values[row].mean()) for name, values in expected.items()}
        for name in DEVIATIONS:
            means[name] = float(expected[name][row].square().mean().sqrt())
        for name in table.columns:
            assert table.loc[image, name] == pytest.approx(means[name], rel=1e-5), name
    assert table["mutual_information"].nunique() == 5
    with Image.open(tmp_path / "out" / "first.png") as figure:
        assert min(figure.size) > 200
    assert (tmp_path / "out" / "first.svg").exists()


def test_verdicts_follow_the_familiar_images(call, network, photos, known, tmp_path):
    done = call("predict", network, known, "--out", tmp_path / "reference")
    assert "give images like those of training as --familiar" in done.output
    reference = table_of(tmp_path / "reference")
    done = call(
        "predict", network, photos, "--out", tmp_path / "out", "--familiar", known, "--json"
    )
    summary = json.loads(done.stdout)
    table = table_of(tmp_path / "out").set_index("image")
    for _, row in table.iterrows():
        as_uncertain = (reference["mutual_information"] >= row["mutual_information"]).sum()
        assert row["in_domain"] == pytest.approx((1 + as_uncertain) / 13, rel=1e-4)
        is_noisy = row["data"] > 1.5 * np.sqrt((reference["data"] ** 2).median())
        word = "unfamiliar" if as_uncertain == 0 else "noisy" if is_noisy else "trust"
        assert row["verdict"] == word
    assert summary["verdicts"] == table["verdict"].value_counts(sort=False).to_dict()
    assert summary["n_images"] == 5


def test_reference_images_are_familiar(call, network, known, tmp_path):
    done = call("predict", network, known, "--out", tmp_path / "out", "--familiar", known)
    assert done.exit_code == 0
    assert "With 12 images to compare with, one in 13 of the same kind" in done.stdout
    own = table_of(tmp_path / "out")
    assert (own["in_domain"] > 1 / 13).all()
    assert sorted(own["in_domain"]) == pytest.approx([(2 + k) / 13 for k in range(12)], rel=1e-4)
    assert "unfamiliar" not in set(own["verdict"])


def test_one_gaussian_gives_no_verdicts(call, photos, known, tmp_path):
    weights = saved(tmp_path / "single.safetensors", lambda n: GaussianHead(n, per_pixel=True))
    done = call("predict", weights, photos, "--out", tmp_path / "out", "--familiar", known)
    assert done.exit_code == 2
    assert "single.safetensors: it has no knowledge uncertainty" in done.stderr
    done = call("predict", weights, photos, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "one Gaussian has no knowledge uncertainty" in done.stdout
    assert "--familiar" not in done.stdout


@pytest.mark.parametrize("name", ["cost$1_$.jpg", "$b$_x.jpg"])
def test_names_are_not_mathematics(call, network, tmp_path, name):
    (tmp_path / "bills").mkdir()
    (tmp_path / "bills" / name).write_bytes(encoded(photograph(48, 80)))
    done = call("predict", network, tmp_path / "bills", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert list(table_of(tmp_path / "out")["image"]) == [name]
    assert f"<!-- {name} -->" in (tmp_path / "out" / "first.svg").read_text()


@pytest.mark.parametrize("below", ["", "more/maps"])
def test_output_folder_among_the_photographs_is_refused(call, network, photos, known, below):
    for options in (("--out", photos / below), ("--out", known / below, "--familiar", known)):
        done = call("predict", network, photos, *options)
        assert done.exit_code == 2
        assert "it lies among the images of" in done.stderr


def test_one_photograph_is_enough(call, network, photos, tmp_path):
    done = call("predict", network, photos / "a.jpg", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("1 image in ")
    assert (tmp_path / "out" / "maps" / "a.jpg.npz").exists()


def test_verdicts_of_a_network_without_closed_form_use_epkl(call, photos, known, tmp_path):
    def head(n):
        return GaussianMixtureHead(n, per_pixel=True, n_members=3, init_gain=10.0)

    weights = saved(tmp_path / "md.safetensors", head)
    done = call("predict", weights, photos, "--out", tmp_path / "out", "--familiar", known)
    assert done.exit_code == 0, done.output
    table = table_of(tmp_path / "out")
    assert list(table)[5:] == ["epkl", "in_domain", "verdict"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "a depth network writes maps: name a folder as --out."),
        (["--out", "{}", "--interval", "conformal"], "no held-out rows for --interval conformal"),
        (["--out", "{}", "--entropies"], "--entropies is for tables"),
        (["--out", "{}", "--coverage", "1"], "--coverage must lie between 0 and 1; got 1."),
        (["--out", "{}", "--familiar", "nowhere"], "nowhere: there is no such file or folder"),
    ],
)
def test_options_of_tables_are_refused(call, network, photos, tmp_path, options, message):
    out = tmp_path / "out"
    done = call("predict", network, photos, *(option.format(out) for option in options))
    assert done.exit_code == 2
    assert message in done.stderr
    assert not out.exists()


def test_photographs_do_not_come_from_standard_input(call, network, tmp_path):
    done = call("predict", network, "-", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "name a file or a folder" in done.stderr


def test_table_has_no_familiar_images(call, models, csv, photos, tmp_path):
    done = call("predict", models / "one", csv, "--out", tmp_path / "o.csv", "--familiar", photos)
    assert done.exit_code == 2
    assert "--familiar is for depth networks" in done.stderr


def test_weights_without_uncertainty_are_refused(call, photos, tmp_path):
    weights = saved(tmp_path / "dd.safetensors", None)
    done = call("predict", weights, photos, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "this network has no uncertainty" in done.stderr
    assert str(weights) in done.stderr


def test_weights_that_are_not_there_are_named(call, photos, tmp_path):
    done = call("predict", tmp_path / "none.safetensors", photos, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "none.safetensors: no such file" in done.stderr


def test_damaged_photograph_is_named_and_what_was_written_stays(call, network, photos, tmp_path):
    whole = (photos / "d.jpg").read_bytes()
    (photos / "d.jpg").write_bytes(whole[: len(whole) // 2])
    for k in range(8):  # more than are looked at together
        (photos / f"0{k}.jpg").write_bytes(encoded(photograph(48, 80, k)))
    done = call("predict", network, photos, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "d.jpg" in done.stderr
    assert (tmp_path / "out" / "maps" / "00.jpg.npz").exists()
    assert not (tmp_path / "out" / "images.csv").exists()


def test_folder_without_photographs_is_refused(call, network, tmp_path):
    (tmp_path / "empty").mkdir()
    done = call("predict", network, tmp_path / "empty", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "empty" in done.stderr


def test_no_name_leads_out_of_the_folder(call, network, photos, tmp_path):
    pack(open_depth(photos), tmp_path / "whole.pack")
    with (
        zipfile.ZipFile(tmp_path / "whole.pack") as whole,
        zipfile.ZipFile(tmp_path / "evil.pack", "w") as evil,
    ):
        for name in whole.namelist():
            content = whole.read(name)
            if name == "set.json":
                content = content.replace(b'"a.jpg"', b'"../../a.jpg"')
            evil.writestr(name, content)
    done = call("predict", network, tmp_path / "evil.pack", "--out", tmp_path / "deep" / "out")
    assert done.exit_code == 2
    assert "an image is called ../../a.jpg" in done.stderr
    assert not (tmp_path / "deep").exists()
