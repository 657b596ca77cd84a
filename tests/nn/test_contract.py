"""The contract of every head: a valid distribution per row or pixel, in at least float32."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch import nn

from _asserts import assert_close
from _beliefs import random_normal
from _contract import each
from priornet.distributions import (
    Gaussian,
    GaussianEnsemble,
    NormalWishart,
    ProductNormalWishart,
)
from priornet.nn import (
    MLP,
    BoundedExp,
    GaussianHead,
    GaussianMixtureHead,
    NormalWishartHead,
)

FEATURES = 6
MEMBERS = 3


def head(name, k_dim, **options):
    kind, returned, given = HEADS[name]
    return kind(FEATURES, k_dim, **given, **options), returned


HEADS = {
    "gaussian": (GaussianHead, Gaussian, {}),
    "gaussian-diagonal": (GaussianHead, Gaussian, {"covariance": "diagonal"}),
    "nw": (NormalWishartHead, NormalWishart, {}),
    "nw-tied": (NormalWishartHead, NormalWishart, {"tied_evidence": True}),
    "nw-diagonal": (NormalWishartHead, ProductNormalWishart, {"covariance": "diagonal"}),
    "nw-diagonal-tied": (
        NormalWishartHead,
        ProductNormalWishart,
        {"covariance": "diagonal", "tied_evidence": True},
    ),
    "mixture": (GaussianMixtureHead, GaussianEnsemble, {"n_members": MEMBERS}),
    "mixture-diagonal": (
        GaussianMixtureHead,
        GaussianEnsemble,
        {"n_members": MEMBERS, "covariance": "diagonal"},
    ),
}
NAMES = list(HEADS)
DIMENSIONS = (1, 2, 3, 5)


def parameters(distribution):
    """The stored tensors, by name."""
    if isinstance(distribution, GaussianEnsemble):
        return {"means": distribution.means, "precision_tril": distribution.precision_tril}
    names = ("loc", "_tril", "precision_tril", "precision", "belief", "excess")
    return {n: getattr(distribution, n) for n in names if n in vars(distribution)}


def assert_same(actual, expected):
    found, wanted = parameters(actual), parameters(expected)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0)


def features(*shape, seed=0):
    return random_normal(shape, seed, torch.float32)


def rebuilt(distribution):
    """The same distribution through a constructor that looks at every value."""
    if isinstance(distribution, NormalWishart):
        return NormalWishart.from_excess(**parameters(distribution), validate_args=True)
    if isinstance(distribution, ProductNormalWishart):
        return ProductNormalWishart(**parameters(distribution), validate_args=True)
    if isinstance(distribution, Gaussian):
        factor = distribution.precision_tril
        return Gaussian(distribution.loc, precision_tril=factor, validate_args=True)
    factor = distribution.precision_tril
    return Gaussian(distribution.means, precision_tril=factor, validate_args=True)


@each("batch", [(), (4,), (2, 3), (0,)])
@each("k_dim", DIMENSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_dense_head_returns_a_valid_distribution_per_row(name, k_dim, batch, device, dtype):
    module, returned = head(name, k_dim, init_gain=1.0)
    out = module.to(device, dtype)(features(*batch, FEATURES).to(device, dtype))
    assert type(out) is returned
    assert (out.batch_shape, out.event_shape) == (batch, (k_dim,))
    for value in parameters(out).values():
        assert (value.dtype, value.device.type) == (dtype, device.type)
    rebuilt(out)


@each("k_dim", DIMENSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_per_pixel_head_is_the_dense_head_at_each_pixel(name, k_dim, device, dtype):
    dense, _ = head(name, k_dim, init_gain=1.0)
    pixel, _ = head(name, k_dim, init_gain=1.0, per_pixel=True)
    weight, bias = dense.projection.weight, dense.projection.bias
    pixel.projection.load_state_dict({"weight": weight[..., None, None], "bias": bias})
    dense, pixel = dense.to(device, dtype), pixel.to(device, dtype)
    image = features(2, FEATURES, 3, 4).to(device, dtype)
    out, expected = pixel(image), dense(image.movedim(1, -1))
    assert (out.batch_shape, out.event_shape) == ((2, 3, 4), (k_dim,))
    for key, value in parameters(expected).items():
        assert_close(parameters(out)[key], value, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_per_pixel_head_takes_one_image_without_batch(name, device):
    pixel, _ = head(name, 1, init_gain=1.0, per_pixel=True)
    pixel = pixel.to(device)
    n_outputs = pixel.projection.out_channels
    image = features(1, FEATURES, n_outputs, 5).to(device)  # as high as there are outputs
    out = pixel(image[0])
    assert out.batch_shape == (n_outputs, 5)
    for key, value in parameters(pixel(image)).items():
        axis = 1 if isinstance(out, GaussianEnsemble) else 0
        assert_close(parameters(out)[key], value.select(axis, 0), rel=1e-5, abs=1e-6)


@each("k_dim", DIMENSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_first_prediction_is_the_prior_of_standardised_targets(name, k_dim, device, dtype):
    module, _ = head(name, k_dim)
    out = module.to(device, dtype)(features(4, FEATURES).to(device, dtype))
    loc = out.means if isinstance(out, GaussianEnsemble) else out.loc
    assert (loc == 0).all()
    eye = torch.eye(k_dim).expand(4, k_dim, k_dim)
    if isinstance(out, (NormalWishart, ProductNormalWishart)):
        assert_close(out.mean.precision, eye, rel=1e-5, abs=1e-6)
        assert_close(out.belief, torch.full(out.belief.shape, 10.0), rel=1e-5)
        assert_close(out.excess, torch.full(out.excess.shape, 10.0), rel=1e-5)
    else:
        assert_close(out.data_covariance(), eye, rel=1e-5, abs=1e-6)
        knowledge = out.knowledge_covariance()
        assert (knowledge == 0).all()


@pytest.mark.parametrize("per_pixel", [False, True])
@each("k_dim", DIMENSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_every_output_of_the_projection_is_used(name, k_dim, per_pixel, device):
    module, _ = head(name, k_dim, init_gain=1.0, per_pixel=per_pixel)
    shape = (4, FEATURES, 2, 2) if per_pixel else (4, FEATURES)
    out = module.to(device)(features(*shape).to(device))
    totals = [(value * (1 + value)).sum() for value in parameters(out).values()]
    torch.autograd.backward(totals)
    for parameter in module.parameters():
        assert (parameter.grad.flatten(1).sum(-1) if parameter.dim() > 1 else parameter.grad).all()


@pytest.mark.parametrize("name", ["nw-tied", "nw-diagonal-tied"])
def test_tied_evidence_is_one_number(name, device):
    module, _ = head(name, 2, init_gain=1.0)
    out = module.to(device)(features(4, FEATURES).to(device))
    torch.testing.assert_close(out.belief, out.excess, rtol=0, atol=0)
    untied, _ = head(name.removesuffix("-tied"), 2)
    assert module.projection.out_features < untied.projection.out_features


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_half_modules_return_float32_parameters(name, half, device):
    module, _ = head(name, 3, init_gain=1.0)
    out = module.to(device, half)(features(4, FEATURES).to(device, half))
    assert {value.dtype for value in parameters(out).values()} == {torch.float32}
    rebuilt(out)


@pytest.mark.parametrize("name", NAMES)
def test_autocast_rounds_the_projection_only(name, device):
    module, _ = head(name, 3, init_gain=1.0)
    module, x = module.to(device), features(4, FEATURES).to(device)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        out = module(x)
        raw = module.projection(x)
    assert raw.dtype == torch.bfloat16
    assert {value.dtype for value in parameters(out).values()} == {torch.float32}

    class Given(nn.Module):
        def forward(self, x):
            return raw.float()

    module.projection = Given()
    assert_same(out, module(x))


@pytest.mark.parametrize("size", [1e3, 1e30])
@pytest.mark.parametrize("name", NAMES)
def test_extreme_outputs_stay_within_the_bounds(name, size, device):
    """A network that runs away saturates: positive, finite evidence and scales."""
    module, _ = head(name, 2)
    bias = module.projection.bias.detach()
    bias.copy_(size * torch.tensor([1.0, -1.0]).repeat(len(bias))[: len(bias)])
    if "diagonal" not in name:  # the entry below the diagonal has no bound
        bias.view(MEMBERS if name == "mixture" else 1, -1)[:, 4] = 0
    out = rebuilt(module.to(device)(features(4, FEATURES).to(device)))
    assert all(value.isfinite().all() for value in parameters(out).values())


@pytest.mark.parametrize("name", NAMES)
def test_heads_copy_pickle_and_reload(name):
    module, _ = head(name, 2, init_gain=1.0)
    x = features(4, FEATURES)
    assert_same(copy.deepcopy(module)(x), module(x))
    assert_same(pickle.loads(pickle.dumps(module))(x), module(x))
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other, _ = head(name, 2, init_gain=1.0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert_same(other(x), module(x))


@pytest.mark.parametrize("name", NAMES)
def test_a_head_after_an_mlp_is_a_model(name, device):
    body = MLP(2, 8, FEATURES)
    module, returned = head(name, 2)
    out = nn.Sequential(body, module).to(device)(features(5, 2).to(device))
    assert isinstance(out, returned)
    assert body.out_features == FEATURES


# -- refusals -------------------------------------------------------------------------------------

KINDS = [
    pytest.param(GaussianHead, {}, id="gaussian"),
    pytest.param(NormalWishartHead, {}, id="nw"),
    pytest.param(GaussianMixtureHead, {"n_members": 2}, id="mixture"),
]


@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_an_unknown_covariance_lists_the_known_ones(kind, given):
    message = r'unknown covariance "diag"; choose one of: full, diagonal\.'
    with pytest.raises(ValueError, match=message):
        kind(4, 2, covariance="diag", **given)


@pytest.mark.parametrize(("kind", "given"), KINDS)
@pytest.mark.parametrize("n_targets", [0, -1])
def test_a_head_needs_a_target(kind, given, n_targets):
    with pytest.raises(ValueError, match=rf"`n_targets` must be at least 1; got {n_targets}"):
        kind(4, n_targets, **given)


@pytest.mark.parametrize("n_members", [0, -1])
def test_a_mixture_needs_a_member(n_members):
    with pytest.raises(ValueError, match=rf"`n_members` must be at least 1; got {n_members}"):
        GaussianMixtureHead(4, 1, n_members=n_members)


@pytest.mark.parametrize(("kind", "given"), KINDS)
@pytest.mark.parametrize(
    "bounds",
    [{"min_scale": 2.0}, {"max_scale": 0.5}, {"min_scale": 0.0}, {"min_scale": -1.0}],
    ids=str,
)
def test_bounds_of_the_scale_lie_around_one(kind, given, bounds):
    (name,) = bounds
    with pytest.raises(ValueError, match=rf"`{name}`"):
        kind(4, 1, **given, **bounds)


@pytest.mark.parametrize(
    "bounds",
    [
        {"initial_belief": 0.0},
        {"initial_belief": 1e7},
        {"initial_excess": 1e-5},
        {"min_belief": 100.0},
        {"max_evidence": 1e-3},
        {"min_excess": 0.0},
    ],
    ids=str,
)
def test_the_initial_evidence_lies_between_its_bounds(bounds):
    (name,) = bounds
    with pytest.raises(ValueError, match=rf"`{name}`"):
        NormalWishartHead(4, 1, **bounds)


def test_tied_evidence_starts_from_one_number():
    with pytest.raises(ValueError, match=r"`tied_evidence`.*must agree, got 1 and 2"):
        NormalWishartHead(4, 1, tied_evidence=True, initial_belief=1.0, initial_excess=2.0)


def test_a_bounded_exponential_needs_ordered_bounds():
    for low, high, initial in ((0.0, 1.0, 0.5), (1.0, 2.0, 3.0), (1.0, 2.0, 1.0), (2.0, 1.0, 1.5)):
        with pytest.raises(ValueError, match=r"0 < low < initial < high; got low = "):
            BoundedExp(low, high, initial)


def test_a_body_needs_a_layer():
    with pytest.raises(ValueError, match=r"`widths` must name at least one hidden layer"):
        MLP(3)
