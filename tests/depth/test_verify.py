"""What a network says of images, in the form of its graph's outputs."""

import pytest
import torch

from priornet.depth import DepthGraph, SavedDepth, depth_outputs
from priornet.export import ExportError, to_onnx
from priornet.nn import DenseDepth, GaussianMixtureHead

SIZE = (34, 50)


def saved(make_head):
    torch.manual_seed(0)
    net = DenseDepth(make_head, "efficientnet_lite0", n_decoder=16).eval()
    return SavedDepth(net, SIZE, shift=3.0, scale=2.0)


def mixture(n):
    return GaussianMixtureHead(n, n_members=3, per_pixel=True, init_gain=20.0)


def test_outputs_have_a_number_per_pixel(generator):
    images = torch.rand(2, 3, *SIZE, generator=generator)
    found = depth_outputs(saved(mixture), images, 0.8)
    assert {value.shape for value in found.values()} == {(2, 17, 25)}
    assert (found["lower"] < found["mean"]).all()
    assert (found["mean"] < found["upper"]).all()
    predictive = saved(mixture).belief(images).predictive().marginals()
    inside = predictive.cdf(torch.from_numpy(found["upper"]).unsqueeze(-1))
    inside -= predictive.cdf(torch.from_numpy(found["lower"]).unsqueeze(-1))
    torch.testing.assert_close(inside, torch.full_like(inside, 0.8), rtol=1e-6, atol=0)


def test_a_network_without_uncertainty_is_refused(generator):
    with pytest.raises(ExportError, match="says no uncertainty"):
        depth_outputs(saved(None), torch.rand(1, 3, *SIZE, generator=generator), 0.9)


def test_graphs_of_tables_are_refused(model_of, tmp_path):
    to_onnx(model_of("single", 1), tmp_path / "table.onnx")
    with pytest.raises(ExportError, match=r"table\.onnx: it is of a table's model"):
        DepthGraph(tmp_path / "table.onnx")
