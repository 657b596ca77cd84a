"""Settings per network of a stack: a tensor that broadcasts with the batch equals a loop of floats.

Eqs. (8), (11), (16) and (17), arXiv:2006.11590v2.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from _asserts import assert_close
from _beliefs import random_ensemble, random_normal, random_normal_wishart, random_product
from priornet import losses
from priornet.distributions import (
    GaussianEnsemble,
    NormalWishart,
    PrecisionAverages,
    ProductNormalWishart,
    precision_averages,
)

S, B = 3, 4
WEIGHTS = (0.0, 0.5, 20.0)
TEMPERATURES = (1.0, 2.0, 10.0)
TEMPERINGS = ("paper", "mean-preserving", "exact")


def column(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype).unsqueeze(-1)


def student(k_dim, is_product):
    return random_product(k_dim, (S, B)) if is_product else random_normal_wishart(k_dim, (S, B))


def row(d, s) -> Any:
    """The predictions or members of one network."""
    if isinstance(d, GaussianEnsemble):
        return GaussianEnsemble(d.means[:, s], d.covariances[:, s])
    if isinstance(d, ProductNormalWishart):
        return ProductNormalWishart(d.loc[s], d.precision[s], d.belief[s], d.excess[s])
    return NormalWishart.from_excess(d.loc[s], d.precision_tril[s], d.belief[s], d.excess[s])


KINDS = pytest.mark.parametrize(("k_dim", "is_product"), [(1, False), (2, False), (3, True)])


@KINDS
def test_beta_per_network(k_dim, is_product):
    # Eq. (11)
    nw, y = student(k_dim, is_product), random_normal((S, B, k_dim), seed=5)
    prior = row(row(student(k_dim, is_product), 0), 0)
    loss = losses.reverse_kl(nw, y, prior, column(WEIGHTS))
    for s, beta in enumerate(WEIGHTS):
        assert_close(loss[s], losses.reverse_kl(row(nw, s), y[s], prior, beta), rel=1e-12)


def test_a_prior_and_a_beta_per_network():
    # Eq. (11)
    nw, y = random_normal_wishart(2, (S, B)), random_normal((S, B, 2), seed=5)
    priors = random_normal_wishart(2, (S, 1), seed=3)
    loss = losses.reverse_kl(nw, y, priors, column(WEIGHTS))
    for s, beta in enumerate(WEIGHTS):
        prior = row(row(priors, s), 0)
        assert_close(loss[s], losses.reverse_kl(row(nw, s), y[s], prior, beta), rel=1e-12)


@pytest.mark.parametrize("tempering", TEMPERINGS)
@KINDS
def test_temperature_per_network(k_dim, is_product, tempering):
    # Eqs. (16) and (17)
    nw = student(k_dim, is_product)
    teacher = random_ensemble(5, k_dim, (S, B), diagonal=is_product)
    t = column(TEMPERATURES)
    loss = losses.endd(nw, teacher, t, tempering)
    averages = precision_averages(
        teacher.coordinates() if is_product else teacher, t.unsqueeze(-1) if is_product else t
    )
    assert_close(losses.endd(nw, averages, t, tempering), loss, rel=1e-12)
    mask = torch.arange(S * B).reshape(S, B) % 3 != 0
    assert_close(
        losses.endd(nw, teacher, t, tempering, mask=mask), torch.where(mask, loss, 0.0), rel=1e-12
    )
    for s, temperature in enumerate(TEMPERATURES):
        members = GaussianEnsemble(teacher.means[:, s], teacher.covariances[:, s])
        if is_product:
            variances = teacher.covariances.diagonal(dim1=-2, dim2=-1)
            members = GaussianEnsemble(teacher.means[:, s], variances[:, s])
        expected = losses.endd(row(nw, s), members, temperature, tempering)
        assert_close(loss[s], expected, rel=1e-12)


@pytest.mark.parametrize("k_dim", [1, 2, 5])
def test_averages_of_a_temperature_per_network(k_dim):
    # Eq. (16)
    teacher = random_ensemble(5, k_dim, (S, B))
    averages = precision_averages(teacher, column(TEMPERATURES))
    for s, temperature in enumerate(TEMPERATURES):
        expected = precision_averages(row(teacher, s), temperature)
        for name in PrecisionAverages._fields:
            assert_close(getattr(averages, name)[s], getattr(expected, name), rel=1e-12, abs=1e-14)


def test_coefficient_per_network():
    nw, y = random_normal_wishart(1, (S, B)), random_normal((S, B, 1), seed=5)
    loss = losses.evidential(nw, y, column(WEIGHTS))
    for s, coefficient in enumerate(WEIGHTS):
        assert_close(loss[s], losses.evidential(row(nw, s), y[s], coefficient), rel=1e-12)


def test_gamma_per_network_weighs_the_rows_of_its_network():
    # Eq. (8): the mean over the stack of what each network would have alone.
    inside, outside = random_normal((S, B)), random_normal((S, 2 * B), seed=1)
    result = losses.multi_task(inside, outside, column(WEIGHTS))
    alone = [
        losses.multi_task(inside[s], outside[s], gamma).total for s, gamma in enumerate(WEIGHTS)
    ]
    assert_close(result.total, torch.stack(alone).mean(), rel=1e-12)
    assert_close(result.terms["out_domain"], outside.mean(), rel=1e-14)


def _reverse_kl(beta, k_dim=1):
    prior = random_normal_wishart(k_dim)
    y = random_normal((S, B, k_dim))
    return losses.reverse_kl(random_normal_wishart(k_dim, (S, B)), y, prior, beta)


def _evidential(coefficient):
    nw = random_normal_wishart(1, (S, B))
    return losses.evidential(nw, random_normal((S, B, 1)), coefficient)


def _endd(temperature):
    return losses.endd(random_normal_wishart(1, (S, B)), random_ensemble(2, 1, (S, B)), temperature)


def _multi_task(gamma):
    return losses.multi_task(random_normal((S, B)), random_normal((S, B)), gamma)


SETTINGS = {
    "beta": _reverse_kl,
    "coefficient": _evidential,
    "temperature": _endd,
    "gamma": _multi_task,
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_of_the_wrong_shape_or_kind_is_refused(name):
    call = SETTINGS[name]
    for shape in ((S,), (2, S, 1), (S + 1, 1), (S, B, 1)):
        with pytest.raises(ValueError, match=rf"`{name}` must be a number or have one axis"):
            call(torch.full(shape, 2.0, dtype=torch.float64))
    with pytest.raises(TypeError, match=rf"`{name}` is torch\.float32 but"):
        call(torch.full((S, 1), 2.0))
    with pytest.raises(ValueError, match=rf"`{name}` is on meta"):
        call(torch.full((S, 1), 2.0, dtype=torch.float64, device="meta"))


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_of_the_wrong_value_is_refused(name, bad, device):
    if device.type != "cpu":
        pytest.skip("values are looked at on the CPU only")
    expected = "finite and at least 1" if name == "temperature" else "finite and not negative"
    with pytest.raises(ValueError, match=rf"`{name}` must be {expected}; 1 of 3 are not"):
        SETTINGS[name](column((2.0, bad, 3.0)))


def test_a_beta_tensor_needs_a_target():
    nw = random_normal_wishart(1, (S, B))
    with pytest.raises(ValueError, match=r"`y` is needed unless `beta` is 0"):
        losses.reverse_kl(nw, None, random_normal_wishart(1), column(WEIGHTS))


def test_settings_per_network_under_vmap():
    nw, y = random_normal_wishart(1, (S, B)), random_normal((S, B, 1), seed=5)
    teacher, prior = random_ensemble(5, 1, (S, B)), random_normal_wishart(1)
    beta, t = torch.tensor(WEIGHTS).double(), torch.tensor(TEMPERATURES).double()

    def stack(loc, tril, belief, excess, means, covariances, y, beta, t):
        one = NormalWishart.from_excess(loc, tril, belief, excess)
        members = GaussianEnsemble(means, covariances)
        return (
            losses.reverse_kl(one, y, prior, beta),
            losses.evidential(one, y, beta),
            losses.endd(one, members, t, "exact"),
        )

    parts = (nw.loc, nw.precision_tril, nw.belief, nw.excess)
    found = torch.func.vmap(stack, in_dims=(0, 0, 0, 0, 1, 1, 0, 0, 0))(
        *parts, teacher.means, teacher.covariances, y, beta, t
    )
    expected = (
        losses.reverse_kl(nw, y, prior, beta.unsqueeze(-1)),
        losses.evidential(nw, y, beta.unsqueeze(-1)),
        losses.endd(nw, teacher, t.unsqueeze(-1), "exact"),
    )
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, rel=1e-11)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype feature:UserWarning")
def test_settings_per_network_need_no_synchronisation(device):
    """A step that a CUDA graph captures may not wait for the device."""
    if device.type != "cuda":
        pytest.skip("only an accelerator synchronises")
    dtype = torch.float32
    y = random_normal((S, B, 1)).to(device, dtype)
    nw = random_normal_wishart(1, (S, B))
    p = [v.detach().to(device, dtype) for v in (nw.loc, nw.precision_tril, nw.belief, nw.excess)]
    teacher = random_ensemble(5, 1, (S, B))
    means, covariances = teacher.means.to(device, dtype), teacher.covariances.to(device, dtype)
    beta, t = column(WEIGHTS, dtype).to(device), column(TEMPERATURES, dtype).to(device)
    prior = NormalWishart.from_excess(*(v[0, 0] for v in p), validate_args=False)

    def step():
        leaves = [v.clone().requires_grad_() for v in p]
        one = NormalWishart.from_excess(*leaves, validate_args=False)
        members = GaussianEnsemble(means, covariances, validate_args=False)
        total = losses.reverse_kl(one, y, prior, beta) + losses.evidential(one, y, beta)
        total = total + losses.endd(one, members, t, "exact")
        return torch.autograd.grad(losses.multi_task(total, total, beta).total, leaves)

    step()
    try:
        torch.cuda.set_sync_debug_mode("error")
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
