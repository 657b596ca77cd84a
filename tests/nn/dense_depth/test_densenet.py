"""DenseNet-169: names, counts and numbers of torchvision's, without torchvision."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from _asserts import assert_close
from priornet.nn.dense_depth.densenet import DenseNet169
from priornet.nn.dense_depth.efficientnet import EfficientNetLite0

# The published file, densenet169-b2777c0a.pth, as table 1 of its paper lays it out: features into
# each block, and its layers; transitions halve what comes out.
BLOCKS = {1: (64, 6), 2: (128, 12), 3: (256, 32), 4: (640, 32)}


def published_shapes():
    """Every tensor of the published file but the classifier, by name."""
    shapes: dict[str, tuple[int, ...]] = {"features.conv0.weight": (64, 3, 7, 7)}

    def norm(name, n):
        for part in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"features.{name}.{part}"] = (n,)

    norm("norm0", 64)
    for block, (start, layers) in BLOCKS.items():
        for layer in range(1, layers + 1):
            seen, at = start + 32 * (layer - 1), f"denseblock{block}.denselayer{layer}"
            norm(f"{at}.norm1", seen)
            shapes[f"features.{at}.conv1.weight"] = (128, seen, 1, 1)
            norm(f"{at}.norm2", 128)
            shapes[f"features.{at}.conv2.weight"] = (32, 128, 3, 3)
        end = start + 32 * layers
        if block < 4:
            norm(f"transition{block}.norm", end)
            shapes[f"features.transition{block}.conv.weight"] = (end // 2, end, 1, 1)
    norm("norm5", 1664)
    return shapes


def random_state(dtype=torch.float32):
    """Weights as after training: positive variances, activations that stay of order one."""
    generator = torch.Generator().manual_seed(0)
    state = {}
    for name, shape in published_shapes().items():
        value = torch.randn(shape, generator=generator)
        if name.endswith("running_var") or ("norm" in name and name.endswith("weight")):
            value = 0.5 + torch.rand(shape, generator=generator)
        elif len(shape) == 4:
            value = value * (2 / (shape[1] * shape[2] * shape[3])) ** 0.5
        else:
            value = 0.1 * value
        state[name] = value.to(dtype)
    return state


@pytest.fixture(scope="module")
def net():
    net = DenseNet169()
    net.load_state_dict(random_state(), strict=False)
    return net.eval()


def test_names_and_shapes_are_torchvisions(net):
    state = net.state_dict()
    found = {n: tuple(v.shape) for n, v in state.items() if not n.endswith("num_batches_tracked")}
    assert found == published_shapes()


def test_parameter_count_is_torchvisions(net):
    count = sum(p.numel() for p in net.parameters())
    assert count == 12_484_480
    assert count + 1664 * 1000 + 1000 == 14_149_480  # with the classifier


def reference(state, images):
    """The five maps, written once more from the paper, with a list of features and plain calls."""
    mean, std = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]).view(2, 3, 1, 1)
    state = {name.removeprefix("features."): value for name, value in state.items()}

    def norm_relu(name, x):
        scale = state[f"{name}.weight"] / torch.sqrt(state[f"{name}.running_var"] + 1e-5)
        shift = state[f"{name}.bias"] - state[f"{name}.running_mean"] * scale
        return torch.relu(x * scale.view(-1, 1, 1) + shift.view(-1, 1, 1))

    x = F.conv2d((images - mean) / std, state["conv0.weight"], stride=2, padding=3)
    maps = [norm_relu("norm0", x)]
    x = F.max_pool2d(maps[0], 3, 2, 1)
    maps.append(x)
    for block, (_, layers) in BLOCKS.items():
        features = [x]
        for layer in range(1, layers + 1):
            at = f"denseblock{block}.denselayer{layer}"
            inside = norm_relu(f"{at}.norm1", torch.cat(features, 1))
            inside = F.conv2d(inside, state[f"{at}.conv1.weight"])
            inside = norm_relu(f"{at}.norm2", inside)
            features.append(F.conv2d(inside, state[f"{at}.conv2.weight"], padding=1))
        x = torch.cat(features, 1)
        if block < 4:
            x = norm_relu(f"transition{block}.norm", x)
            x = F.avg_pool2d(F.conv2d(x, state[f"transition{block}.conv.weight"]), 2)
            maps.append(x)
    del maps[4]  # transition 3: 1/32 already, and no skip
    return [*maps, norm_relu("norm5", x)]


def test_features_match_a_second_writing(net):
    images = torch.rand(2, 3, 64, 96, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found, expected = net(images), reference(random_state(), images)
    assert [m.shape[1] for m in found] == list(net.channels)
    for one, two in zip(found, expected, strict=True):
        assert_close(one, two, rel=1e-3, abs=1e-4 * two.abs().max().item())


def wide_network() -> Any:
    """In double precision, with statistics, weights and biases of no round number."""
    net = DenseNet169()
    net.load_state_dict(random_state(torch.float64), strict=False)
    return net.double().eval()


def assert_same_maps(found, expected):
    for one, two in zip(found, expected, strict=True):
        assert_close(one, two, rel=1e-10, abs=1e-10 * two.abs().max().item())


def test_averages_before_convolutions_are_averages_after_them():
    generator = torch.Generator().manual_seed(3)
    step = wide_network().features.transition2
    x = torch.randn(2, 512, 6, 8, dtype=torch.float64, generator=generator)
    with torch.no_grad():
        paper = step.pool(step.conv(torch.relu(step.norm(x))))  # Huang et al., 2017: table 1
        assert_same_maps([step(x)], [paper])


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_folded_norms_leave_the_features_as_they_are(layout):
    whole, folded = wide_network(), wide_network().to(memory_format=layout)
    folded.fold_norms()
    images = torch.rand(2, 3, 64, 96, generator=torch.Generator().manual_seed(4)).double()
    with torch.no_grad():
        expected = whole(images)
        assert_same_maps(folded(images), expected)
        folded.fold_norms()  # there is nothing left to fold
        assert_same_maps(folded(images), expected)


def test_folded_norms_are_those_behind_a_convolution(net):
    folded = deepcopy(net).requires_grad_(False)
    assert not folded.norms_folded
    folded.fold_norms()
    assert folded.norms_folded
    before, after = (set(n.state_dict()) for n in (net, folded))
    behind = re.compile(r"features\.(norm0|denseblock\d\.denselayer\d+\.norm2)\.")
    assert before - after == {name for name in before if behind.match(name)}
    biases = {re.sub(r"norm0\.", "conv0.", re.sub(r"norm2\.", "conv1.", n)) for n in before - after}
    assert after - before == {name for name in biases if name.endswith(".bias")}
    assert not any(p.requires_grad for p in folded.parameters())  # frozen ones stay frozen


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_features_are_the_same_with_and_without_a_graph(net, layout):
    # Without one, features are written into memory that is kept, not joined layer by layer.
    images = torch.rand(2, 3, 32, 64, generator=torch.Generator().manual_seed(2))
    images = images.to(memory_format=layout)
    with torch.no_grad():
        found = net(images)
    for one, two in zip(found, net(images), strict=True):
        assert_close(one, two, rel=1e-4, abs=1e-5)
        assert one.stride() == two.stride()


@pytest.mark.parametrize("old", [False, True], ids=["names of today", "old names"])
@pytest.mark.parametrize("name", ["weights.pth", "weights.safetensors"])
def test_published_files_load(tmp_path, name, old):
    state = random_state(torch.float16) | {"classifier.weight": torch.ones(1000, 1664).half()}
    if old:
        # norm1.weight was norm.1.weight in the file that torchvision publishes.
        state = {re.sub(r"(norm|conv)([12])\.(?=\w+$)", r"\1.\2.", n): v for n, v in state.items()}
        assert "features.denseblock1.denselayer1.norm.1.running_mean" in state
    (torch.save if name.endswith("pth") else save_file)(state, tmp_path / name)
    net = DenseNet169()
    net.load(tmp_path / name)
    loaded = net.state_dict()
    for key, value in random_state(torch.float16).items():
        assert torch.equal(loaded[key], value.float()), key


def test_other_weights_are_refused(tmp_path, net):
    torch.save(EfficientNetLite0().state_dict(), tmp_path / "lite.pth")
    with pytest.raises(ValueError, match=r"lite.pth does not hold the weights of DenseNet169") as e:
        net.load(tmp_path / "lite.pth")
    assert f"{len(published_shapes())} missing (features.conv0.weight, " in str(e.value)


def test_a_slimmer_network_is_refused(tmp_path, net):
    state = random_state()
    state["features.conv0.weight"] = torch.ones(48, 3, 7, 7)
    torch.save(state, tmp_path / "slim.pth")
    with pytest.raises(ValueError, match=r"conv0.weight is \(48, 3, 7, 7\) instead of \(64, 3"):
        net.load(tmp_path / "slim.pth")
