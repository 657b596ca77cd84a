"""A depth network's graph agrees with the network at every pixel."""

from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from _onnx import run_onnx, short_encoder
from priornet import GaussianRegressor
from priornet.depth import DepthGraph, SavedDepth, depth_outputs, depth_to_onnx
from priornet.export import Comparison, ExportError, to_onnx
from priornet.nn import DenseDepth, GaussianMixtureHead, NormalWishartHead
from priornet.uncertainty import uncertainty

SIZE = (50, 70)  # 32 divides neither


def network(make_head):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return DenseDepth(make_head, "efficientnet_lite0", n_decoder=32)


def normal_wishart(n):
    return NormalWishartHead(n, per_pixel=True, init_gain=30.0)


def mixture(n, init_gain=30.0):
    return GaussianMixtureHead(n, n_members=3, per_pixel=True, init_gain=init_gain)


@pytest.mark.parametrize(
    ("make_head", "encoder"), [(normal_wishart, nullcontext), (mixture, short_encoder)]
)
def test_every_pixel_agrees(make_head, encoder, tmp_path):
    with encoder():
        net = network(make_head).train()
    proto = depth_to_onnx(net, SIZE, tmp_path / "depth.onnx", shift=3.0, scale=2.0)
    assert net.training  # as it was
    content = (tmp_path / "depth.onnx").read_bytes()
    assert b"site-packages" not in content  # no path of this machine
    assert b"dense_depth.py" not in content
    images = torch.rand(3, 3, *SIZE, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        raw = net.eval().raw(images)
    assert raw.std() > 0.1  # a network that says something
    head: Any = net.head
    belief = head.distribution(raw.double()).affine(3.0, 2.0)
    predictive = belief.predictive()
    expected = {name: v for name, v in vars(uncertainty(belief)).items() if v is not None}
    edge = torch.full_like(predictive.mean, 0.95)
    expected |= {"mean": predictive.mean, "upper": predictive.marginals().icdf(edge)}
    found = run_onnx(proto, {"images": images.numpy()})
    assert found["mean"].shape == (3, 25, 35)
    comparison = Comparison()
    comparison.add(
        {name: value.numpy().reshape(-1) for name, value in expected.items()},
        {name: value.reshape(-1) for name, value in found.items()},
    )
    assert comparison.holds, comparison.worst
    assert np.ptp(found["knowledge_variance"]) > 0


def test_network_without_uncertainty_is_refused():
    with pytest.raises(ExportError, match="without uncertainty"):
        depth_to_onnx(network(None), (32, 32))


def test_bad_settings_are_refused():
    with pytest.raises(ExportError, match="opset 11 is too old"):
        depth_to_onnx(network(normal_wishart), (32, 32), opset=11)
    with pytest.raises(ExportError, match="between 0 and 1"):
        depth_to_onnx(network(normal_wishart), (32, 32), coverage=90)


@pytest.mark.parametrize(
    ("size", "units", "message"),
    [
        ((0, 32), {}, r"height and a width in pixels; got \(0, 32\)"),
        ((32,), {}, "height and a width in pixels"),
        ((32, 32.5), {}, "height and a width in pixels"),
        ((32, 32), {"scale": -1.0}, "`scale` positive; got 0 and -1"),
        ((32, 32), {"scale": float("inf")}, "`scale` positive"),
        ((32, 32), {"shift": float("nan")}, "`shift` must be finite"),
    ],
)
def test_impossible_sizes_and_units_are_refused(size: Any, units, message):
    with pytest.raises(ExportError, match=message):
        depth_to_onnx(network(normal_wishart), size, **units)


SMALL = (34, 50)  # of a photograph


def saved(make_head):
    torch.manual_seed(0)
    net = DenseDepth(make_head, "efficientnet_lite0", n_decoder=16).eval()
    return SavedDepth(net, SMALL, shift=3.0, scale=2.0)


def test_outputs_have_a_number_per_pixel(generator):
    images = torch.rand(2, 3, *SMALL, generator=generator)
    found = depth_outputs(saved(partial(mixture, init_gain=20.0)), images, 0.8)
    assert {value.shape for value in found.values()} == {(2, 17, 25)}
    assert (found["lower"] < found["mean"]).all()
    assert (found["mean"] < found["upper"]).all()
    predictive = saved(partial(mixture, init_gain=20.0)).belief(images).predictive().marginals()
    inside = predictive.cdf(torch.from_numpy(found["upper"]).unsqueeze(-1))
    inside -= predictive.cdf(torch.from_numpy(found["lower"]).unsqueeze(-1))
    torch.testing.assert_close(inside, torch.full_like(inside, 0.8), rtol=1e-6, atol=0)


def test_network_without_uncertainty_has_no_outputs(generator):
    with pytest.raises(ExportError, match="the network: this network has no uncertainty"):
        depth_outputs(saved(None), torch.rand(1, 3, *SMALL, generator=generator), 0.9)


def test_graphs_of_tables_are_refused(tmp_path):
    X = np.arange(60.0).reshape(30, 2)
    to_onnx(GaussianRegressor(hidden=(4,), epochs=1).fit(X, X[:, 0]), tmp_path / "table.onnx")
    with pytest.raises(ExportError, match=r"table\.onnx: it is of a table's model"):
        DepthGraph(tmp_path / "table.onnx")
