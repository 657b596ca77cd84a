"""The normal over a number against torch and scipy."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.stats
import torch
from torch.distributions import Normal as TorchNormal
from torch.distributions import kl_divergence

from _asserts import assert_close, assert_mean_close
from _beliefs import random_normal, random_uniform
from priornet.distributions import Normal

# Partly typed, partly wrongly: checked by the tests themselves.
stats: Any = scipy.stats


def test_every_answer_matches_torch():
    loc, scale = random_normal((4,)), random_uniform(0.3, 2.0, (4,))
    normal, twin = Normal(loc, scale), TorchNormal(loc, scale)
    y, p = random_normal((7, 4), 9), random_uniform(0.01, 0.99, (7, 4), 8)
    assert_close(normal.log_prob(y), twin.log_prob(y))
    assert_close(normal.cdf(y), twin.cdf(y))
    assert_close(normal.icdf(p), twin.icdf(p), abs=1e-12)
    assert_close(normal.entropy(), twin.entropy())
    for moment in ("mean", "mode", "variance", "stddev"):
        assert_close(getattr(normal, moment), getattr(twin, moment))


def test_torchs_divergence_knows_it():
    p, q = Normal(random_normal((4,)), 1.5), Normal(random_normal((4,), 1), 0.7)
    expected = kl_divergence(TorchNormal(p.loc, p.scale), TorchNormal(q.loc, q.scale))
    assert_close(kl_divergence(p, q), expected)


@pytest.mark.parametrize(("dtype", "rel"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_cdf_keeps_its_digits_in_the_lower_tail(dtype, rel):
    normal = Normal(torch.zeros((), dtype=dtype), 1.0)
    y = torch.tensor([-5.0, -8.0, -12.0], dtype=dtype)
    assert_close(normal.cdf(y), stats.norm.cdf(y.double().numpy(force=True)), rel=rel)


def test_draws_have_the_right_moments(generator):
    normal = Normal(random_normal((3,)), random_uniform(0.3, 2.0, (3,)))
    draws = normal.rsample((40_000,), generator)
    assert_mean_close(draws, normal.mean)
    assert_mean_close((draws - normal.mean).square(), normal.variance)
