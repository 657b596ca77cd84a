"""vmap: an axis that is mapped over equals an axis of the batch."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import kl_divergence
from torch.func import vmap

from _asserts import assert_close
from _beliefs import random_uniform
from _contract import DISTRIBUTIONS, answers, cast, every, points, select, settings, spread
from _transforms import EVERY_BATCH, EVERY_K, EVERY_LOSS, EVERY_LOSS_AND_K, MAPPED, tolerance
from priornet.distributions import GaussianEnsemble, NormalWishart
from priornet.priors import semi_informative_prior

EVERY_DISTRIBUTION = every(settings(DISTRIBUTIONS))


@EVERY_DISTRIBUTION
def test_vmap_over_the_parameters_equals_a_batch(case, k_dim, batch, device, dtype):
    batch = (MAPPED, *batch)
    parameters, at = (
        cast(t, device, dtype) for t in (case.draw(k_dim, batch), points(k_dim, batch))
    )

    def ask(parameters, at):
        return answers(case, case.build(**parameters), at)

    found = vmap(ask, in_dims=(case.lead, 0))(parameters, at)
    expected = ask(parameters, at)
    for name, value in expected.items():
        assert_close(found[name], value, **tolerance(dtype))


@every(spread([c for c in DISTRIBUTIONS if not c.lead]))
def test_vmap_over_one_parameter_equals_a_batch(case, k_dim, batch, device, dtype):
    parameters = cast(case.draw(k_dim, (MAPPED, *batch)), device, dtype)
    at = cast(points(k_dim, batch), device, dtype)
    for name, value in parameters.items():
        fixed = {n: v[0] for n, v in parameters.items() if n != name}

        def ask(one, name=name, fixed=fixed):
            return answers(case, case.build(**{name: one}, **fixed), at)

        found = vmap(ask)(value)
        for answer, expected in ask(value[-1]).items():
            assert_close(found[answer][-1], expected, **tolerance(dtype))


@EVERY_LOSS
def test_vmap_of_a_loss_equals_a_batch(case, k_dim, batch, device, dtype):
    batch = (MAPPED, *batch)
    parameters, target = (
        cast(t, device, dtype) for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    mask = (random_uniform(0.0, 1.0, batch, 5) > 0.3).to(device)
    found = vmap(case.call, in_dims=(case.lead, case.target_lead, 0))(parameters, target, mask)
    assert_close(found, case.call(parameters, target, mask), **tolerance(dtype))


@EVERY_LOSS_AND_K
def test_vmap_of_a_loss_over_one_parameter_equals_a_loop(case, k_dim, batch, device, dtype):
    batch = (2, *batch)
    parameters, target = (
        cast(t, device, dtype) for t in (case.draw(k_dim, batch), case.draw_target(k_dim, batch))
    )
    target = select(target, (0,), case.target_lead)
    for name, value in parameters.items():
        fixed = select({n: v for n, v in parameters.items() if n != name}, (0,), case.lead)

        def loss(one, name=name, fixed=fixed):
            return case.call({name: one, **fixed}, target)

        found = vmap(loss, in_dims=case.lead)(value)
        expected = torch.stack([loss(one) for one in value.unbind(case.lead)])
        assert_close(found, expected, **tolerance(dtype))


@EVERY_BATCH
@EVERY_K
@pytest.mark.parametrize("name", ["NormalWishart", "ProductNormalWishart", "Wishart"])
def test_vmap_of_a_divergence_equals_a_batch(name, k_dim, batch, device, dtype):
    case = next(c for c in DISTRIBUTIONS if c.name == name)
    prior = case.make(k_dim, (), device, dtype)
    parameters = cast(case.draw(k_dim, (MAPPED, *batch)), device, dtype)

    def kl(parameters):
        return kl_divergence(case.build(**parameters), prior)

    assert_close(vmap(kl)(parameters), kl(parameters), **tolerance(dtype))


@EVERY_BATCH
@EVERY_K
def test_vmap_of_the_fit_and_the_prior_equals_a_loop(k_dim, batch, device, dtype):
    case = next(c for c in DISTRIBUTIONS if c.name == "GaussianEnsemble(covariances)")
    parameters = cast(case.draw(k_dim, (MAPPED, *batch)), device, dtype)
    y = cast(points(k_dim, (MAPPED, 9)), device, dtype)["y"]

    def fit(parameters, y):
        fitted = NormalWishart.fit(GaussianEnsemble(**parameters))
        prior = semi_informative_prior(y, match="variance")
        return fitted.excess, fitted.precision_tril, prior.loc, prior.precision_tril

    found = vmap(fit, in_dims=(1, 0))(parameters, y)
    for row in range(MAPPED):
        for value, expected in zip(found, fit(select(parameters, (row,), 1), y[row]), strict=True):
            assert_close(value[row], expected, **tolerance(dtype))


@every(settings([c for c in DISTRIBUTIONS if "Ensemble" not in c.name]))
@pytest.mark.filterwarnings(
    "ignore:There is a performance drop because we have not yet implemented"
)
def test_draws_differ_under_vmap(case, k_dim, batch, device, dtype):
    parameters = cast(case.draw(k_dim, batch), device, dtype)
    repeated = {
        n: v.unsqueeze(case.lead).expand(*v.shape[: case.lead], 64, *v.shape[case.lead :])
        for n, v in parameters.items()
    }
    draw = vmap(
        lambda p: case.sample(case.build(**p), (3,)), in_dims=case.lead, randomness="different"
    )
    draws = draw(repeated)
    for value, event in zip(
        draws if isinstance(draws, tuple) else (draws,), case.sample_events(k_dim), strict=True
    ):
        assert value.shape == (64, 3, *batch, *event)
        assert value.isfinite().all()
        assert len(value.reshape(64 * 3, -1)[:, 0].unique()) > 100
