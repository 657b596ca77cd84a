"""DenseDepth: shapes and layouts, any head, early split of members, precision, training."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.nn.functional import interpolate

from _asserts import assert_close
from _compile import compiles
from priornet import losses
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart
from priornet.nn import (
    DenseDepth,
    GaussianHead,
    GaussianMixtureHead,
    NormalWishartHead,
)
from priornet.nn.dense_depth.efficientnet import packaged_weights

HEADS: dict[str, Any] = {
    "plain": None,
    "gaussian": lambda n: GaussianHead(n, per_pixel=True, init_gain=1.0),
    "normal-wishart": lambda n: NormalWishartHead(n, per_pixel=True, init_gain=1.0),
    "mixture": lambda n: GaussianMixtureHead(n, n_members=3, per_pixel=True, init_gain=1.0),
}
OUTPUTS = {"plain": 1, "gaussian": 2, "normal-wishart": 4, "mixture": 6}
KINDS = {
    "plain": torch.Tensor,
    "gaussian": Gaussian,
    "normal-wishart": NormalWishart,
    "mixture": GaussianEnsemble,
}


def make(head="gaussian", encoder: Any = "efficientnet_lite0", seed=0, **options: Any) -> Any:
    options.setdefault("n_decoder", 32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DenseDepth(HEADS[head], encoder, **options)


def pictures(height=64, width=96, batch=2):
    generator = torch.Generator().manual_seed(1)
    return torch.rand(batch, 3, height, width, generator=generator)


@pytest.fixture(scope="module")
def dense():
    """With the original's encoder; quick, though its decoder is slim."""
    return make("normal-wishart", "densenet169")


# -- what comes out -------------------------------------------------------------------------------


@pytest.mark.parametrize("head", HEADS)
def test_a_prediction_per_pixel_at_half_the_resolution(head):
    net, images = make(head).eval(), pictures()
    with torch.no_grad():
        raw, prediction = net.raw(images), net(images)
    assert (raw.shape, raw.dtype) == ((2, 32, 48, OUTPUTS[head]), torch.float32)
    assert isinstance(prediction, KINDS[head])
    if head == "plain":
        assert prediction.shape == (2, 32, 48)
    else:
        assert (prediction.batch_shape, prediction.event_shape) == ((2, 32, 48), (1,))


def test_outputs_of_a_pixel_lie_side_by_side():
    # So that a head takes them apart without copying.
    raw = make("normal-wishart").raw(pictures())
    assert raw.is_contiguous()


def test_raw_outputs_and_the_head_make_the_prediction(dense):
    images = pictures()
    dense.eval()
    with torch.no_grad():
        one, two = dense(images), dense.head.distribution(dense.raw(images))
    assert torch.equal(one.loc, two.loc)
    assert torch.equal(one.belief, two.belief)


def test_decoder_is_dense_depths():
    net = DenseDepth(None)
    shapes = {n: tuple(v.shape) for n, v in net.named_parameters() if not n.startswith("encoder.")}
    # Alhashim & Wonka, 2018, table 5 at full width: channels of each join, then half as many.
    expected = {"bottom.weight": (1664, 1664, 1, 1), "bottom.bias": (1664,)}
    for i, (n_in, skip, n_out) in enumerate(
        [(1664, 256, 832), (832, 128, 416), (416, 64, 208), (208, 64, 104)], start=1
    ):
        expected[f"up{i}.conv_a.weight"] = (n_out, n_in + skip, 3, 3)
        expected[f"up{i}.conv_b.weight"] = (n_out, n_out, 3, 3)
        expected |= {f"up{i}.conv_a.bias": (n_out,), f"up{i}.conv_b.bias": (n_out,)}
    expected |= {"head.projection.weight": (1, 104, 3, 3), "head.projection.bias": (1,)}
    assert shapes == expected


@pytest.mark.parametrize(("height", "width"), [(33, 40), (50, 64), (64, 71), (240, 32)])
def test_any_size_will_do(height, width):
    with torch.no_grad():
        prediction = make().eval()(pictures(height, width))
    assert prediction.batch_shape == (2, (height + 1) // 2, (width + 1) // 2)


def test_odd_sizes_are_continued_by_their_last_pixels():
    net, images = make().eval(), pictures(50, 70)
    rows, columns = torch.arange(64).clamp_max(49), torch.arange(96).clamp_max(69)
    with torch.no_grad():
        assert_close(net.raw(images), net.raw(images[:, :, rows][..., columns])[:, :25, :35], rel=0)


def test_layout_of_the_input_does_not_matter():
    net, images = make().eval(), pictures()
    with torch.no_grad():
        one = net.raw(images)
        two = net.to(memory_format=torch.channels_last).raw(
            images.to(memory_format=torch.channels_last)
        )
    assert_close(one, two, rel=1e-4, abs=1e-5)


# -- members that split early ---------------------------------------------------------------------


def test_dropout_acts_in_training_only():
    torch.manual_seed(0)
    net = DenseDepth(None, "efficientnet_lite0", n_decoder=32, dropout=0.5).eval()
    images = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(net(images), net(images))
        net.drop.train()
        assert not torch.equal(net(images), net(images))


def test_early_split_separates_the_members():
    net, images = make("mixture", early_split=True).eval(), pictures()
    with torch.no_grad():
        before = net(images).means
        net.up4.conv_a.weight[2:4].add_(0.5)  # two features of the second of three members
        net.up4.conv_b.weight[2:4].add_(0.5)
        net.head.projection.weight[2:4].add_(0.5)
        after = net(images).means
    changed = [(before[m] != after[m]).any().item() for m in range(3)]
    assert changed == [False, True, False]


def test_early_split_costs_a_block_and_a_head_per_member():
    def last_sizes(net):
        parts = (net.up4.conv_a, net.up4.conv_b, net.head.projection)
        return [sum(p.numel() for p in part.parameters()) for part in parts]

    one = last_sizes(make("gaussian"))
    assert last_sizes(make("mixture", early_split=True)) == [3 * n for n in one]


def test_early_split_needs_a_mixture():
    with pytest.raises(ValueError, match=r"GaussianMixtureHead, whose members .* got GaussianHead"):
        make("gaussian", early_split=True)


def test_early_split_starts_at_the_heads_prior():
    net = DenseDepth(
        lambda n: GaussianMixtureHead(n, n_members=2, per_pixel=True),
        "efficientnet_lite0",
        early_split=True,
    )
    with torch.no_grad():
        assert (net.eval().raw(pictures()) == 0).all()


# -- precision, gradients, training ---------------------------------------------------------------


def test_autocast_gives_float32_outputs_close_to_the_truth():
    net, images = make("normal-wishart").eval(), pictures()
    with torch.no_grad():
        expected = net.raw(images)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            raw = net.raw(images)
    assert raw.dtype == torch.float32
    assert (raw - expected).norm() < 0.03 * expected.norm()
    # Not rounded to bfloat16 at the very end: most values need more than its eight bits.
    assert (raw != raw.bfloat16().float()).float().mean() > 0.9


@pytest.mark.parametrize("encoder", ["densenet169", "efficientnet_lite0"])
def test_a_narrowed_network_answers_as_autocast_would(encoder):
    net, images = make("normal-wishart", encoder).eval(), pictures()
    narrow = copy.deepcopy(net)
    narrow.narrow()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert_close(narrow.raw(images), net.raw(images), rel=0)
    precisions = {name: p.dtype for name, p in narrow.named_parameters()}
    assert precisions["up1.conv_a.weight"] == torch.bfloat16
    assert precisions["head.projection.weight"] == torch.float32
    kept = [n for n, dtype in precisions.items() if dtype != torch.bfloat16]
    assert all("norm" in n or "bn" in n or n.startswith("head.") for n in kept)


@pytest.mark.parametrize("encoder", ["densenet169", "efficientnet_lite0"])
def test_every_parameter_gets_a_gradient(encoder, dense):
    net = dense if encoder == "densenet169" else make("normal-wishart")
    net.train()
    images = pictures()
    belief = net(images)
    ensemble = GaussianEnsemble(torch.randn(3, 2, 32, 48, 1), torch.rand(3, 2, 32, 48, 1) + 0.5)
    losses.endd(belief, ensemble).mean().backward()
    silent = [n for n, p in net.named_parameters() if p.grad is None or not (p.grad != 0).any()]
    assert silent == []
    assert all(bool(p.grad.isfinite().all()) for p in net.parameters())
    net.zero_grad(set_to_none=True)


def steps(net, count):
    """Losses of a few steps on two soft pictures whose depth is their brightness."""
    images = interpolate(pictures(4, 8), scale_factor=8, mode="bilinear")
    y = interpolate(images.mean(1, keepdim=True), scale_factor=0.5, mode="area").squeeze(1)
    y = ((y - y.mean()) / y.std()).unsqueeze(-1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    found = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = losses.gaussian_nll(net(images), y).mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def test_training_learns():
    curve = steps(make(n_decoder=128), 20)
    assert curve[-1] < 1.2  # the mean and the variance of all pixels would cost 1.419


def test_the_same_seed_gives_the_same_training_bit_for_bit():
    one, two = make(), make()
    assert steps(one, 2) == steps(two, 2)
    for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True):
        assert torch.equal(a, b)


@compiles
def test_compiles_in_one_piece_inside_autocast():
    # Traced only: what the compiler makes of it is the compiler's business, and takes a minute.
    net, images = make("gaussian").train(), pictures(32, 32)
    alone = copy.deepcopy(net)

    @torch.compile(backend="eager", fullgraph=True, dynamic=False)
    def run(images):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return net.raw(images)

    found = run(images)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        # Traced, the head adds up channels itself: float32, in an order of its own.
        assert_close(found, alone.raw(images), rel=0, abs=1e-6)
    found.square().mean().backward()
    assert all(p.grad is not None for p in net.parameters())


# -- weights and wrong use ------------------------------------------------------------------------


def test_pretrained_weights_reach_the_encoder():
    packaged, from_file = make(pretrained="imagenet"), make(pretrained=packaged_weights(), seed=1)
    for name, value in packaged.encoder.state_dict().items():
        assert torch.equal(value, from_file.encoder.state_dict()[name]), name
    published = torch.load(packaged_weights(), weights_only=True)["_blocks.3._bn1.running_mean"]
    assert torch.equal(packaged.encoder.state_dict()["_blocks.3._bn1.running_mean"], published)
    assert not torch.equal(packaged.up1.conv_a.weight, from_file.up1.conv_a.weight)


def test_weights_of_the_other_encoder_are_refused():
    with pytest.raises(ValueError, match="does not hold the weights of DenseNet169"):
        make(encoder="densenet169", pretrained=packaged_weights())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": "resnet50"}, 'unknown encoder "resnet50"; choose one of: densenet169, eff'),
        ({"n_decoder": 8}, "`n_decoder` must be at least 16"),
        ({"encoder": "densenet169", "pretrained": "imagenet"}, "no package brings"),
    ],
)
def test_wrong_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_a_head_for_rows_is_refused():
    with pytest.raises(ValueError, match="`per_pixel=True`"):
        DenseDepth(GaussianHead, "efficientnet_lite0")


@pytest.mark.parametrize(
    "images",
    [torch.rand(3, 64, 64), torch.rand(1, 1, 64, 64), torch.zeros(1, 3, 64, 64, dtype=torch.uint8)],
    ids=["no batch", "grey", "bytes"],
)
def test_wrong_images_are_named(images):
    with pytest.raises(ValueError, match=r"`images` must be floating-point RGB in \[0, 1\]"):
        make().raw(images)
