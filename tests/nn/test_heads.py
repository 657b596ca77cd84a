"""Heads: features to distributions, Eq. (3), arXiv:2006.11590v2.

Where they start, what they can reach, the bounded exponential of their parameters; and the dense
and the per-pixel head are one head.
"""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.distributions import kl_divergence
from torch.func import functional_call

from _asserts import assert_close
from _beliefs import random_ensemble, random_normal
from _compile import compiles
from priornet import losses
from priornet.distributions import (
    Gaussian,
    GaussianEnsemble,
    NormalWishart,
    ProductNormalWishart,
)
from priornet.nn import (
    BoundedExp,
    GaussianHead,
    GaussianMixtureHead,
    NormalWishartHead,
    make_head,
    stack_head,
)
from priornet.nn.heads import BoundedExps, Head
from priornet.priors import semi_informative_prior

FEATURES = 6
HEADS = {
    "gaussian": (GaussianHead, {}),
    "gaussian diagonal": (GaussianHead, {"covariance": "diagonal"}),
    "normal-wishart": (NormalWishartHead, {}),
    "normal-wishart tied": (NormalWishartHead, {"tied_evidence": True}),
    "product": (NormalWishartHead, {"covariance": "diagonal"}),
    "product tied": (NormalWishartHead, {"covariance": "diagonal", "tied_evidence": True}),
    "mixture": (GaussianMixtureHead, {"n_members": 3}),
    "mixture diagonal": (GaussianMixtureHead, {"n_members": 3, "covariance": "diagonal"}),
}


def make(name, k_dim, seed=0, **options):
    """A head with weights away from its start."""
    kind, own = HEADS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(FEATURES, k_dim, init_gain=1.0, **own, **options)


def parameters_of(belief) -> dict[str, torch.Tensor]:
    """The tensors that make up a prediction."""
    if isinstance(belief, GaussianEnsemble):
        return {"means": belief.means, "precision_tril": belief.precision_tril}
    names = ["loc", "precision", "precision_tril", "belief", "excess"]
    return {name: getattr(belief, name) for name in names if hasattr(belief, name)}


def loss_of(belief):
    """A loss that feels every output of the head."""
    k_dim, batch = belief.event_shape[-1], tuple(belief.batch_shape)
    dtype = next(iter(parameters_of(belief).values())).dtype
    if isinstance(belief, GaussianEnsemble):
        return losses.md_end(belief, random_ensemble(3, k_dim, batch, seed=2, dtype=dtype))
    if isinstance(belief, Gaussian):
        return losses.gaussian_nll(belief, random_normal((*batch, k_dim), 2, dtype))
    diagonal = isinstance(belief, ProductNormalWishart)
    return losses.endd(belief, random_ensemble(3, k_dim, batch, diagonal, 2, dtype))


# -- where they start -----------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("per_pixel", [False, True])
@pytest.mark.parametrize("k_dim", [1, 2, 3, 5])
def test_first_gaussian_is_standard_whatever_the_features(k_dim, per_pixel, covariance):
    features = random_normal((2, FEATURES, 3, 4) if per_pixel else (2, 3, FEATURES))
    batch = (2, 3, 4) if per_pixel else (2, 3)
    options = {"covariance": covariance, "per_pixel": per_pixel}
    gaussian = GaussianHead(FEATURES, k_dim, **options).double()(100 * features)
    assert gaussian.batch_shape == batch
    assert_close(gaussian.loc, torch.zeros(*batch, k_dim), abs=0.0)
    eye = torch.eye(k_dim).expand(*batch, k_dim, k_dim)
    assert_close(gaussian.covariance_matrix, eye, rel=1e-14)
    mixture = GaussianMixtureHead(FEATURES, k_dim, n_members=4, **options).double()(features)
    assert_close(mixture.covariances, eye.expand(4, *eye.shape), rel=1e-14)
    assert_close(mixture.means, torch.zeros(4, *batch, k_dim), abs=0.0)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("k_dim", [1, 2, 3, 5])
def test_first_normal_wishart_is_the_prior_of_standardised_targets(k_dim, tied):
    y = random_normal((100, k_dim))
    centred = y - y.mean(0)
    white = torch.linalg.solve(torch.linalg.cholesky(torch.cov(y.T, correction=0).reshape(
        k_dim, k_dim)), centred.T).T  # fmt: skip
    for evidence in (10.0, 1e-2):  # the default, and the prior of Eq. (10)
        prior = semi_informative_prior(white, belief=evidence, excess=evidence)
        own: dict[str, Any] = {"initial_belief": evidence, "initial_excess": evidence}
        own = {} if evidence == 10 else own
        head = NormalWishartHead(FEATURES, k_dim, tied_evidence=tied, **own).double()
        first = head(random_normal((4, FEATURES)))
        assert_close(kl_divergence(first, prior), torch.zeros(4), abs=1e-13)
        assert_close(losses.reverse_kl(first, None, prior, 0.0), torch.zeros(4), abs=1e-13)


@pytest.mark.parametrize("tied", [False, True])
def test_first_product_is_the_prior_of_each_standardised_coordinate(tied):
    y = random_normal((100, 3))
    y = (y - y.mean(0)) / y.std(0, correction=0)
    head = NormalWishartHead(FEATURES, 3, covariance="diagonal", tied_evidence=tied).double()
    first = head(random_normal((4, FEATURES)))
    assert isinstance(first, ProductNormalWishart)
    for k in range(3):
        prior = semi_informative_prior(y[:, k : k + 1], belief=10.0, excess=10.0)
        one = NormalWishart.from_excess(
            first.loc[:, k, None], first.precision[:, k, None, None].sqrt(), first.belief[:, k],
            first.excess[:, k],
        )  # fmt: skip
        assert_close(kl_divergence(one, prior), torch.zeros(4), abs=1e-13)


def test_initial_evidence_is_an_argument():
    head = NormalWishartHead(FEATURES, initial_belief=3.0, initial_excess=7.0).double()
    first = head(random_normal((2, FEATURES)))
    assert_close(first.belief, torch.full((2,), 3.0), rel=1e-12)
    assert_close(first.excess, torch.full((2,), 7.0), rel=1e-12)


@pytest.mark.parametrize(("name", "k_dim", "n"), [("normal-wishart", 2, 1), ("product", 3, 3)])
def test_beliefs_come_before_excesses(name, k_dim, n):
    """Saved weights and exports rely on it: the last outputs are beliefs, then excesses."""
    head = make(name, k_dim, initial_belief=2.0, initial_excess=3.0)
    raw = torch.zeros(head.n_outputs, dtype=torch.float64)
    raw[-2 * n : -n] = 1.0
    found = head.distribution(raw)
    assert bool((found.belief > 2.1).all())
    assert_close(found.excess, torch.full_like(found.excess, 3.0), rel=1e-12)


def test_weights_receive_gradient_from_the_start():
    # Zero weights are no dead end: the features' own gradient waits only for the first step.
    for name, (kind, own) in HEADS.items():
        head = kind(FEATURES, 2, **own).double()
        loss_of(head(random_normal((5, FEATURES)))).sum().backward()
        rows = head.projection.weight.grad.abs().sum(1)
        assert (rows > 0).all(), f"{name}: some outputs cannot learn"


# -- what they return -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("k_dim", [1, 2, 3, 5])
def test_per_pixel_head_is_the_dense_head_at_every_pixel(name, k_dim):
    dense = make(name, k_dim).double()
    pixels = make(name, k_dim, per_pixel=True).double()
    with torch.no_grad():
        pixels.projection.weight.copy_(dense.projection.weight[:, :, None, None])
        pixels.projection.bias.copy_(dense.projection.bias)
    image = random_normal((2, FEATURES, 3, 4))
    one = parameters_of(pixels(image))
    reference = parameters_of(dense(image.permute(0, 2, 3, 1)))  # (2, 3, 4, features)
    assert one.keys() == reference.keys()
    for key, value in reference.items():
        assert_close(one[key], value, rel=1e-12, abs=1e-13)


def test_diagonal_covariance_gives_independent_coordinates():
    features = random_normal((5, FEATURES))
    assert isinstance(make("product", 3).double()(features), ProductNormalWishart)
    for name in ("gaussian diagonal", "mixture diagonal"):
        belief = make(name, 3).double()(features)
        tril = belief.precision_tril
        assert_close(tril, torch.diag_embed(tril.diagonal(dim1=-2, dim2=-1)), rel=0.0)


@pytest.mark.parametrize("name", ["gaussian", "normal-wishart", "mixture"])
@pytest.mark.parametrize("k_dim", [2, 3, 5])
def test_full_covariance_reaches_any_positive_definite_matrix(name, k_dim):
    tril = make(name, k_dim).double()(random_normal((20, FEATURES))).precision_tril
    assert (tril.triu(1) == 0).all()
    assert (tril.diagonal(dim1=-2, dim2=-1) > 0).all()
    below = tril[..., *torch.tril_indices(k_dim, k_dim, -1)]
    assert (below.flatten(0, -2).std(0) > 0).all()


@pytest.mark.parametrize("name", ["normal-wishart tied", "product tied"])
@pytest.mark.parametrize("k_dim", [1, 3])
def test_tied_evidence_makes_belief_and_excess_one_number(name, k_dim):
    belief = make(name, k_dim).double()(10 * random_normal((50, FEATURES)))
    assert_close(belief.excess, belief.belief, rel=0.0)
    assert belief.belief.std() > 0
    free = make(name.removesuffix(" tied"), k_dim).double()(10 * random_normal((50, FEATURES)))
    assert (free.excess != free.belief).any()
    with pytest.raises(ValueError, match="`tied_evidence` uses one number"):
        NormalWishartHead(FEATURES, tied_evidence=True, initial_belief=2.0)


@pytest.mark.parametrize("name", ["gaussian", "normal-wishart", "mixture"])
def test_heads_refuse_unknown_covariances(name):
    with pytest.raises(ValueError, match="choose one of: full, diagonal"):
        make(name, 2, covariance="spherical")


# -- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("sign", [1e6, -1e6])
@pytest.mark.parametrize("k_dim", [1, 2, 3])
def test_runaway_scale_and_evidence_stop_at_their_bounds_with_finite_gradients(name, sign, k_dim):
    # Outputs of a million for everything but the mean and the free entries of the factor.
    low, high = 1e-3, 1e3
    bounds = {"min_scale": low, "max_scale": high}
    if "mixture" not in name and "gaussian" not in name:
        bounds |= {"min_belief": 1e-5, "min_excess": 1e-5, "max_evidence": 1e7}
    kind, own = HEADS[name]
    head = kind(FEATURES, k_dim, **own, **bounds)  # float32
    n_members = own.get("n_members", 1)
    with torch.no_grad():
        bias = head.projection.bias.unflatten(0, (n_members, -1))
        n_factor = k_dim if own.get("covariance") == "diagonal" else k_dim * (k_dim + 1) // 2
        bias[:, k_dim : 2 * k_dim] = sign
        bias[:, k_dim + n_factor :] = sign
    belief = head(torch.ones(2, FEATURES))
    loss = loss_of(belief)
    assert loss.isfinite().all()
    loss.sum().backward()
    assert all(p.grad.isfinite().all() for p in head.parameters())
    values = parameters_of(belief)
    if "precision" in values:
        inverse_scale = values["precision"].sqrt()
    else:
        inverse_scale = values["precision_tril"].diagonal(dim1=-2, dim2=-1)
    assert_close(inverse_scale, torch.full_like(inverse_scale, high if sign > 0 else low), rel=1e-5)
    for key in ("belief", "excess"):
        if key in values:
            edge = 1e7 if sign > 0 else 1e-5
            assert_close(values[key], torch.full_like(values[key], edge), rel=1e-5)


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("k_dim", [1, 3])
def test_huge_features_give_finite_predictions_losses_and_gradients(name, k_dim):
    head = make(name, k_dim)  # float32, weights of order one
    features = 1e4 * random_normal((20, FEATURES), dtype=torch.float32)
    belief = head(features)
    assert all(value.isfinite().all() for value in parameters_of(belief).values())
    loss = loss_of(belief)
    assert loss.isfinite().all()
    loss.mean().backward()
    assert all(p.grad.isfinite().all() for p in head.parameters())


# -- plumbing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_half_precision_features_are_lifted_to_float32_before_the_maps(name, half):
    head = make(name, 2).to(half)
    features = random_normal((5, FEATURES)).to(half)
    belief = head(features)
    assert {value.dtype for value in parameters_of(belief).values()} == {torch.float32}
    raw = head.projection(features).float()
    reference = make(name, 2)
    with torch.no_grad():
        reference.projection = nn.Identity()
    for key, value in parameters_of(reference(raw)).items():
        assert_close(parameters_of(belief)[key], value, rel=1e-6)
    loss_of(belief).mean().backward()
    assert all(p.grad.isfinite().all() for p in head.parameters())


@pytest.mark.parametrize("name", HEADS)
def test_autocast_gives_float32_predictions(name):
    head, features = make(name, 2), random_normal((5, FEATURES), dtype=torch.float32)
    with torch.autocast(features.device.type, torch.bfloat16):
        belief = head(features)
        loss = loss_of(belief)
    assert {value.dtype for value in parameters_of(belief).values()} == {torch.float32}
    assert loss.dtype == torch.float32
    assert loss.isfinite().all()


@pytest.mark.parametrize("name", HEADS)
def test_state_dict_round_trip_gives_the_same_prediction(name, tmp_path):
    head, other = make(name, 3, seed=1), make(name, 3, seed=2)
    features = random_normal((5, FEATURES), dtype=torch.float32)
    torch.save(head.state_dict(), tmp_path / "head.pt")
    state = torch.load(tmp_path / "head.pt", weights_only=True)
    assert sorted(state) == ["projection.bias", "projection.weight"]
    other.load_state_dict(state)
    one, reference = parameters_of(other(features)), parameters_of(head(features))
    assert all(torch.equal(one[key], value) for key, value in reference.items())


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("per_pixel", [False, True])
@pytest.mark.parametrize("k_dim", [1, 2, 3])
def test_gradcheck_through_the_head_in_features_and_weights(name, per_pixel, k_dim):
    head = make(name, k_dim, per_pixel=per_pixel).double()
    features = random_normal((1, FEATURES, 1, 2) if per_pixel else (2, FEATURES)).requires_grad_()
    names, weights = zip(*head.named_parameters(), strict=True)

    def loss(x, *values):
        return loss_of(functional_call(head, dict(zip(names, values, strict=True)), (x,)))

    leaves = tuple(w.detach().clone().requires_grad_() for w in weights)
    # A convolution's backward pass on an accelerator may add up in another order each time.
    assert gradcheck(loss, (features, *leaves), fast_mode=True, nondet_tol=1e-12)


# -- compiled -------------------------------------------------------------------------------------


def traced(head: Head, features: Tensor) -> tuple[Tensor, list[str]]:
    """Outputs of a head as the compiler sees it, and what it calls."""
    called: list[str] = []

    def backend(graph: Any, _: Any) -> Any:
        called.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    torch.compiler.reset()
    return torch.compile(head.raw, backend=backend, fullgraph=True)(features), called


@compiles
@pytest.mark.parametrize("n_members", [1, 4, 5])
def test_a_compiler_sees_few_outputs_as_sums(n_members):
    """Two for each member; more than eight stay a convolution."""
    torch.manual_seed(0)
    head = GaussianMixtureHead(7, n_members=n_members, per_pixel=True, init_gain=1.0).double()
    torch.nn.init.normal_(head.projection.get_parameter("bias"))
    features = random_normal((2, 7, 3, 5), 1).requires_grad_()
    wanted = [features, *head.parameters()]
    plain = head.raw(features)
    found, called = traced(head, features)
    weights = random_normal(plain.shape, 2)
    assert any("conv" in name for name in called) == (n_members > 4)
    assert_close(found, plain, rel=1e-12, abs=1e-12)
    for one, other in zip(
        torch.autograd.grad((found * weights).sum(), wanted),
        torch.autograd.grad((plain * weights).sum(), wanted),
        strict=True,
    ):
        assert_close(one, other, rel=1e-12, abs=1e-12)


@compiles
def test_an_exported_head_keeps_its_convolution():
    head = GaussianMixtureHead(7, n_members=1, per_pixel=True)

    class Raw(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = head

        def forward(self, features):
            return self.head.raw(features)

    for strict in (False, True):
        program = torch.export.export(Raw(), (torch.zeros(2, 7, 3, 5),), strict=strict)
        assert any("conv" in str(node.target) for node in program.graph.nodes)


KINDS = {
    "gaussian": GaussianHead,
    "normal-wishart": NormalWishartHead,
    "mixture": GaussianMixtureHead,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per_pixel", [False, True])
def test_a_head_is_of_its_class_with_its_settings(kind, per_pixel):
    head = make_head(kind, 8, 2, n_members=5, per_pixel=per_pixel, init_gain=1.0)
    assert type(head) is KINDS[kind]
    assert (head.per_pixel, head.init_gain) == (per_pixel, 1.0)
    assert getattr(head, "n_members", 5) == 5


def test_the_head_of_a_stack_draws_no_random_numbers():
    state = torch.get_rng_state()
    head = stack_head("gaussian", 8)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(weight.is_meta for weight in head.parameters())


BOUNDS = [(1e-4, 1e6, 1e-2), (1e-4, 1e4, 1.0), (0.5, 2.0, 1.5), (1e-6, 1e8, 1.0)]


@pytest.mark.parametrize(("low", "high", "initial"), BOUNDS)
def test_zero_maps_to_the_initial_value(low, high, initial):
    value = BoundedExp(low, high, initial)(torch.zeros((), dtype=torch.float64))
    assert_close(value, torch.tensor(initial, dtype=torch.float64), rel=1e-12)


@pytest.mark.parametrize(("low", "high", "initial"), BOUNDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_output_stays_within_the_bounds_with_a_finite_gradient(low, high, initial, dtype):
    z = torch.cat([torch.linspace(-50, 50, 1001), torch.tensor([-1e30, -1e6, 1e6, 1e30])]).to(dtype)
    z.requires_grad_()
    value = BoundedExp(low, high, initial)(z)
    rounding = 1 + 8 * torch.finfo(dtype).eps * (1 + math.log(high / low))
    assert (value >= low / rounding).all()
    assert (value <= high * rounding).all()
    (slope,) = torch.autograd.grad(value.sum(), z)
    assert slope.isfinite().all()
    assert (slope >= 0).all()


@given(
    st.floats(-8, 2).map(lambda e: 10.0**e),
    st.floats(0.1, 8),
    st.floats(0.05, 0.95),
)
def test_map_is_increasing_from_low_to_high_through_initial(low, decades, share):
    high = low * 10.0**decades
    initial = low * (high / low) ** share
    f = BoundedExp(low, high, initial)
    z = torch.linspace(-1, 1, 301, dtype=torch.float64) * math.log(high / low)
    assert (f(z).diff() > 0).all()
    assert_close(f(z.new_tensor(0.0)), z.new_tensor(initial), rel=1e-9)
    assert_close(f(z.new_tensor([-1e4, 1e4])), z.new_tensor([low, high]), rel=1e-9)


def test_one_unit_is_one_e_fold_halfway_between_the_bounds():
    f = BoundedExp(1e-4, 1e4, 1.0)
    z = torch.tensor([-1e-4, 1e-4], dtype=torch.float64)
    assert_close(f.log(z).diff(), torch.full((1,), 2e-4, dtype=torch.float64), rel=1e-6)
    assert_close(f(z), torch.exp(f.log(z)), rel=1e-14)


def test_gradcheck():
    z = torch.linspace(-20, 20, 9, dtype=torch.float64, requires_grad=True)
    assert gradcheck(BoundedExp(1e-4, 1e2, 1.0), (z,))


@pytest.mark.parametrize(
    ("low", "high", "initial"),
    [(0.0, 1.0, 0.5), (1.0, 2.0, 2.0), (1.0, 2.0, 1.0), (2.0, 1.0, 1.5), (1.0, math.inf, 2.0)],
)
def test_bounds_out_of_order_are_refused(low, high, initial):
    with pytest.raises(ValueError, match="0 < low < initial < high"):
        BoundedExp(low, high, initial)


def test_columns_in_place_give_the_values_and_autograds_derivatives():
    maps = BoundedExps(*(BoundedExp(*bounds) for bounds in BOUNDS))
    z = torch.linspace(-60, 60, 4 * 25, dtype=torch.float64).view(25, 4).requires_grad_()
    values = maps(z)
    (expected,) = torch.autograd.grad(values.sum(), z)
    written = z.detach().clone()
    slopes = maps.apply_(written)
    assert_close(written, values.detach(), rel=1e-14)
    assert_close(slopes, expected, rel=1e-13)
