"""Bad arguments of functions: divergences, the prior and the record say what is wrong."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch.distributions import kl_divergence

from _contract import DISTRIBUTIONS
from priornet.distributions import Gaussian, StudentT
from priornet.priors import semi_informative_prior
from priornet.uncertainty import uncertainty

# -- divergences ----------------------------------------------------------------------------------

PAIRS = ["NormalWishart", "ProductNormalWishart", "Wishart", "Gaussian(scale_tril)"]


@pytest.mark.parametrize("name", PAIRS)
def test_a_divergence_does_not_become_a_square(name):
    case = next(c for c in DISTRIBUTIONS if c.name == name)
    for k_dim in (1, 2):
        for left, right in (((4,), (4, 1)), ((4, 1), (4,)), ((4,), (3,))):
            message = r"batch shapes do not fit together: `p` \(.*\), `q` \("
            with pytest.raises(ValueError, match=message) as caught:
                kl_divergence(case.make(k_dim, left), case.make(k_dim, right))
            assert f"`p` {left}, `q` {right}" in str(caught.value)


@pytest.mark.parametrize("name", PAIRS)
def test_a_divergence_between_dimensions_is_refused(name):
    case = next(c for c in DISTRIBUTIONS if c.name == name)
    for one, two in itertools.permutations((1, 2, 3), 2):
        with pytest.raises(ValueError, match=r"event shape; got \(.*\) and \("):
            kl_divergence(case.make(one, (4,)), case.make(two, (4,)))
        with pytest.raises(ValueError, match=r"event shape; got \(.*\) and \("):
            kl_divergence(case.make(one, ()), case.make(two, ()))


@pytest.mark.parametrize("name", PAIRS)
def test_a_divergence_between_kinds_of_tensor_is_refused(name):
    case = next(c for c in DISTRIBUTIONS if c.name == name)
    with pytest.raises(TypeError, match=r"`p` is torch\.float64 but `q` is torch\.float32"):
        kl_divergence(case.make(2, (4,)), case.make(2, (4,), torch.float32))


def test_a_divergence_from_what_is_no_gaussian_names_what_is():
    ours = Gaussian(torch.zeros(1), variance=torch.ones(1))
    laplace = torch.distributions.Laplace(torch.zeros(1), torch.ones(1))
    other = torch.distributions.Independent(laplace, 1)
    with pytest.raises(NotImplementedError, match=r"is not a Gaussian over vectors; use Gaussian"):
        kl_divergence(ours, other)


# -- the prior and the record ---------------------------------------------------------------------


def test_a_prior_needs_targets():
    good = torch.randn(9, 2, generator=torch.Generator().manual_seed(0))
    for y, kind, message in (
        (good[:, 0], ValueError, r"`y` must have shape \(N, K\).*got \(9,\)"),
        (
            good[:1],
            ValueError,
            r"`y` must have shape \(N, K\) with N >= 2 and K >= 1; got \(1, 2\)",
        ),
        (good[None], ValueError, r"`y` must have shape \(N, K\).*got \(1, 9, 2\)"),
        (good[:, :0], ValueError, r"`y` must have shape \(N, K\).*got \(9, 0\)"),
        (good.long(), TypeError, r"`y` must hold floating-point numbers; got torch\.int64"),
        (good.tolist(), TypeError, r"`y` must be a tensor.*; got list"),
        (good * math.nan, ValueError, r"`y` must be finite"),
        (torch.ones(9, 2), ValueError, r"`y` must vary in every direction.*singular"),
        (good[:, :1].expand(9, 2), ValueError, r"`y` must vary in every direction.*singular"),
        (good[:2], ValueError, r"`y` must vary in every direction.*fewer rows"),
    ):
        with pytest.raises(kind, match=message):
            semi_informative_prior(y)  # pyright: ignore[reportArgumentType] (on purpose)


@pytest.mark.parametrize("match", ["precision", "variance"])
def test_a_prior_needs_positive_evidence(match):
    y = torch.randn(9, 2, generator=torch.Generator().manual_seed(0))
    for belief in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=r"`belief`"):
            semi_informative_prior(y, belief=belief, match=match)
    for excess in (-2.0, -3.0, math.nan):
        with pytest.raises(ValueError, match=r"`excess`"):
            semi_informative_prior(y, excess=excess, match=match)


@pytest.mark.parametrize("excess", [0.0, -0.5])
def test_a_prior_that_matches_the_variance_needs_one(excess):
    y = torch.randn(9, 2, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match=r'`excess` must exceed 0 .*match="variance".*given'):
        semi_informative_prior(y, excess=excess, match="variance")


def test_an_unknown_match_lists_the_known_ones():
    with pytest.raises(ValueError, match=r'unknown match "mean"; choose one of: precision, varian'):
        semi_informative_prior(torch.randn(9, 2), match="mean")  # pyright: ignore[reportArgumentType] (on purpose)


def test_a_record_is_made_of_a_belief():
    t = StudentT(torch.tensor(3.0))
    for bad, kind in ((t, "StudentT"), (torch.zeros(3), "Tensor")):
        with pytest.raises(TypeError, match=rf"`belief` must be .*NormalWishart.*; got {kind}"):
            uncertainty(bad)  # pyright: ignore[reportArgumentType] (on purpose)
