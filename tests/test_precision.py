"""float32 is reached in float32: no operation on the way makes a float64 tensor, and none the
other way round, whatever torch's default dtype is.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import kl_divergence
from torch.utils._python_dispatch import TorchDispatchMode

from _asserts import assert_close
from _beliefs import DIMENSIONS, random_normal, random_tril, random_uniform
from _contract import DISTRIBUTIONS, LOSSES, answers, cast, each, every, points, settings
from priornet.distributions import NormalWishart
from priornet.nn import GaussianHead, GaussianMixtureHead, NormalWishartHead
from priornet.priors import semi_informative_prior
from priornet.special import triangular
from priornet.special.student_t import student_t_cdf, student_t_icdf
from priornet.uncertainty import uncertainty

# What decides about the dtype of a result is whether a tensor has axes, not how many.
BATCHES = ((), (2, 3))
EVERY_DISTRIBUTION = every(settings(DISTRIBUTIONS, batches=BATCHES))
EVERY_LOSS = every(settings(LOSSES, batches=BATCHES))
EVERY_K = each("k_dim", DIMENSIONS)
EVERY_BATCH = each("batch", BATCHES)


class Watch(TorchDispatchMode):
    """Sees which operations inside return a tensor of the forbidden dtype."""

    def __init__(self, forbidden: torch.dtype) -> None:
        super().__init__()
        self.forbidden = forbidden
        self.seen: set[str] = set()
        self.operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.operations += 1
        for value in out if isinstance(out, (tuple, list)) else (out,):
            found = isinstance(value, torch.Tensor) and value.dtype == self.forbidden
            if found and self.loses(value):
                self.seen.add(f"{func} -> {tuple(value.shape)}")
        return out

    def loses(self, value: torch.Tensor) -> bool:
        """A whole number, inf or nan is exact in float32, so only fractions count against it."""
        return self.forbidden == torch.float64 or bool((value.frac().abs() > 0).any())

    def offenders(self) -> list[str]:
        """Operations that made one; there must have been some to look at."""
        assert self.operations > 0
        return sorted(self.seen)


@pytest.fixture(params=["float32", "float64"])
def forbidden(request):
    """The dtype that must not appear, while the other one is computed with."""
    return getattr(torch, request.param)


@pytest.fixture
def wanted(forbidden):
    return torch.float32 if forbidden == torch.float64 else torch.float64


@pytest.fixture
def double_default():
    """A program that made float64 its default: float32 inputs must not notice."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def grad_all(value, leaves):
    """Backward to every leaf."""
    torch.autograd.grad(value.sum(), leaves, allow_unused=True)


def test_the_watch_sees_a_float64():
    with Watch(torch.float64) as watch:
        torch.ones(3).double()
    assert watch.offenders() == ["aten._to_copy.default -> (3,)"]
    with pytest.raises(AssertionError):
        Watch(torch.float64).offenders()


@EVERY_DISTRIBUTION
def test_distributions_keep_their_precision(case, k_dim, batch, forbidden, wanted, device):
    parameters, at = (
        cast(t, device, wanted) for t in (case.draw(k_dim, batch), points(k_dim, batch))
    )
    leaves = {name: value.requires_grad_() for name, value in parameters.items()}
    with Watch(forbidden) as watch:
        values = answers(case, case.build(**leaves), at).values()
        total = sum(value.sum() for value in values if value.requires_grad)
        grad_all(total, list(leaves.values()))
    assert watch.offenders() == []


@EVERY_DISTRIBUTION
def test_draws_keep_their_precision(case, k_dim, batch, device):
    leaves = {
        name: value.requires_grad_()
        for name, value in cast(case.draw(k_dim, batch), device, torch.float32).items()
    }
    with Watch(torch.float64) as watch:
        draws = case.sample(case.build(**leaves), (3,))
        for draw in draws if isinstance(draws, tuple) else (draws,):
            if draw.requires_grad:
                torch.autograd.grad(
                    draw.sum(), list(leaves.values()), allow_unused=True, retain_graph=True
                )
    assert watch.offenders() == []


@EVERY_LOSS
@pytest.mark.parametrize("is_masked", [False, True])
def test_losses_keep_their_precision(case, k_dim, batch, is_masked, forbidden, wanted, device):
    parameters, target = (
        cast(t, device, wanted) for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    leaves = {name: value.requires_grad_() for name, value in parameters.items()}
    mask = (random_uniform(0, 1, batch, 5) > 0.3).to(device) if is_masked else None
    with Watch(forbidden) as watch:
        grad_all(case.call(leaves, target, mask=mask), list(leaves.values()))
    assert watch.offenders() == []


@EVERY_BATCH
@EVERY_K
@pytest.mark.parametrize("pair", ["NormalWishart", "ProductNormalWishart", "Wishart"])
def test_divergences_keep_their_precision(pair, k_dim, batch, forbidden, wanted, device):
    case = next(c for c in DISTRIBUTIONS if c.name == pair)
    parameters = cast(case.draw(k_dim, batch), device, wanted)
    leaves = {name: value.requires_grad_() for name, value in parameters.items()}
    prior = case.make(k_dim, (), device, wanted)
    with Watch(forbidden) as watch:
        grad_all(kl_divergence(case.build(**leaves), prior), list(leaves.values()))
    assert watch.offenders() == []


@EVERY_BATCH
@EVERY_K
def test_fit_prior_and_measures_keep_their_precision(k_dim, batch, forbidden, wanted, device):
    case = next(c for c in DISTRIBUTIONS if c.name == "GaussianEnsemble(covariances)")
    ensemble = case.make(k_dim, batch, device, wanted)
    y = points(k_dim, (12,))["y"].to(device, wanted)
    generator = torch.Generator(device).manual_seed(0)
    with Watch(forbidden) as watch:
        uncertainty(NormalWishart.fit(ensemble))
        uncertainty(ensemble)
        ensemble.predictive_entropy_mc(2, generator)
        ensemble.predictive().sample((3,))
        for match in ("precision", "variance"):
            semi_informative_prior(y, match=match)
    assert watch.offenders() == []


@EVERY_BATCH
@EVERY_K
@pytest.mark.parametrize("per_pixel", [False, True])
@pytest.mark.parametrize(
    ("head", "options"),
    [
        (GaussianHead, {}),
        (GaussianHead, {"covariance": "diagonal"}),
        (NormalWishartHead, {}),
        (NormalWishartHead, {"covariance": "diagonal"}),
        (NormalWishartHead, {"tied_evidence": True}),
        (GaussianMixtureHead, {"n_members": 3}),
    ],
)
def test_heads_keep_their_precision(
    head, options, per_pixel, k_dim, batch, forbidden, wanted, device
):
    module = head(4, k_dim, per_pixel=per_pixel, init_gain=1.0, **options).to(device, wanted)
    shape = (math.prod(batch), 4, 3, 3) if per_pixel else (*batch, 4)  # images have one batch axis
    features = random_normal(shape).to(device, wanted)
    with Watch(forbidden) as watch:
        out = module(features)
        grad_all(out.expected_entropy() + out.covariance_trace().total, list(module.parameters()))
    assert watch.offenders() == []


@pytest.mark.parametrize("df", [0.5, 3.0, 1e4])
def test_quantiles_keep_their_precision(df, forbidden, wanted, device):
    t = torch.linspace(-8, 8, 9, dtype=wanted, device=device, requires_grad=True)
    nu = torch.full_like(t, df).detach().requires_grad_()
    with Watch(forbidden) as watch:
        p = student_t_cdf(t, nu)
        grad_all(p, [t, nu])
        grad_all(student_t_icdf(p.detach().requires_grad_(), nu), [nu])
    assert watch.offenders() == []


@pytest.mark.usefixtures("double_default")
@EVERY_DISTRIBUTION
def test_the_default_dtype_does_not_matter(case, k_dim, batch, device):
    parameters, at = (
        cast(t, device, torch.float32) for t in (case.draw(k_dim, batch), points(k_dim, batch))
    )
    d = case.build(**parameters)
    for name, value in answers(case, d, at).items():
        assert value.dtype == torch.float32, name
    draws = case.sample(d, (2,))
    for draw in draws if isinstance(draws, tuple) else (draws,):
        assert draw.dtype == torch.float32


@pytest.mark.usefixtures("double_default")
@EVERY_LOSS
def test_the_default_dtype_does_not_matter_to_a_loss(case, k_dim, batch, device):
    parameters, target = (
        cast(t, device, torch.float32)
        for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    with Watch(torch.float64) as watch:
        assert case.call(parameters, target).dtype == torch.float32
    assert watch.offenders() == []


@pytest.mark.parametrize("k_dim", [2, 3, 5, 12])  # unrolled, by coordinate, by matrices
def test_autocast_rounds_no_gradient_of_a_solve(k_dim, device):
    """Forward and backward inside autocast, where a product of matrices would be bfloat16."""
    tril = random_tril(k_dim, (4,), 1, torch.float32).to(device).requires_grad_()
    v = random_normal((4, k_dim), 2, torch.float32).to(device).requires_grad_()
    functions = (
        triangular.solve,
        triangular.transpose_solve,
        lambda c, v: triangular.inverse_outer(c) * v.unsqueeze(-1),
        lambda c, v: triangular.logdet_divergence(c, c.detach() + torch.diag_embed(v.square())),
    )
    for function in functions:
        expected = torch.autograd.grad(function(tril, v).square().sum(), (tril, v))
        with torch.autocast(device.type, dtype=torch.bfloat16):
            found = torch.autograd.grad(function(tril, v).square().sum(), (tril, v))
        for one, two in zip(found, expected, strict=True):
            scale = two.abs().max().item()
            assert one.dtype == torch.float32
            assert_close(one, two, rel=0, abs=1e-6 * scale)  # bfloat16 has an error of 4e-3
