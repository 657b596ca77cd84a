"""Distillation losses member by member: Eqs. (12), (13) and (15) to (17), arXiv:2006.11590v2.

Eq. (16) tempers the members, Eq. (17) the prediction.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from scipy import integrate
from torch.autograd import forward_ad, gradcheck
from torch.distributions import MultivariateNormal, kl_divergence

from _asserts import assert_close
from _beliefs import (
    DIMENSIONS,
    leaves,
    normal_wishart_of,
    random_ensemble,
    random_gaussian,
    random_normal,
    random_normal_wishart,
    random_product,
    random_tril,
)
from priornet import losses
from priornet.distributions import (
    Gaussian,
    GaussianEnsemble,
    NormalWishart,
    ProductNormalWishart,
    covariance_averages,
    precision_averages,
)
from priornet.nn import NormalWishartHead

TEMPERINGS = ("paper", "mean-preserving", "exact")
M = 4


def build(loc, tril, belief, excess):
    return NormalWishart.from_excess(loc, tril.tril(), belief, excess)


def tempered(nw, temperature, tempering):
    """The prediction at temperature T in the paper's own parameters (m, L, kappa, nu)."""
    t, k_dim = temperature, nw.loc.shape[-1]
    df = k_dim + t * (nw.df - k_dim) if tempering == "exact" else t * nw.df
    shrink = 1.0 if tempering == "paper" else t**-0.5
    return NormalWishart(nw.loc, nw.scale_tril * shrink, t * nw.belief, df)


def member_by_member(nw, ensemble, temperature, tempering):
    """Eq. (17) as it is written: a loop over members through the density."""
    keep = 2 / (temperature + 1)  # Eq. (16)
    means = keep * ensemble.means + (1 - keep) * ensemble.means.mean(0)
    covariances = keep * ensemble.covariances + (1 - keep) * ensemble.covariances.mean(0)
    prediction = tempered(nw, temperature, tempering)
    total = sum(
        prediction.log_prob((mean, torch.linalg.inv(covariance)))
        for mean, covariance in zip(means, covariances, strict=True)
    )
    return -total / (temperature * len(means))


# -- EnD2: values ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tempering", TEMPERINGS)
@pytest.mark.parametrize("temperature", [1.0, 2.0, 10.0])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_endd_is_the_mean_over_tempered_members(k_dim, diagonal, temperature, tempering):
    nw, ensemble = random_normal_wishart(k_dim, (2, 3)), random_ensemble(M, k_dim, (2, 3), diagonal)
    loss = losses.endd(nw, ensemble, temperature, tempering)
    assert_close(loss, member_by_member(nw, ensemble, temperature, tempering), rel=1e-10)


@pytest.mark.parametrize("tempering", TEMPERINGS)
@pytest.mark.parametrize("temperature", [1.0, 10.0])
def test_endd_of_a_product_is_the_sum_over_coordinates(temperature, tempering):
    product, ensemble = random_product(3, (4,)), random_ensemble(M, 3, (4,), diagonal=True)
    variances = ensemble.covariances.diagonal(dim1=-2, dim2=-1)
    parts = [
        member_by_member(
            build(
                product.loc[:, k, None],
                product.precision[:, k, None, None].sqrt(),
                product.belief[:, k],
                product.excess[:, k],
            ),
            GaussianEnsemble(ensemble.means[..., k, None], variances[..., k, None]),
            temperature,
            tempering,
        )
        for k in range(3)
    ]
    loss = losses.endd(product, ensemble, temperature, tempering)
    assert_close(loss, torch.stack(parts).sum(0), rel=1e-10)


@pytest.mark.parametrize("temperature", [2.0, 5.0])
def test_exact_tempering_is_the_density_to_the_power_t_renormalised(temperature):
    # K = 1: integrate p(mu, lambda)^T over the half-plane; the mean's integral is Gaussian.
    nw = random_normal_wishart(1)

    def power(precision):
        # int N(mu | m, 1/(kappa lambda))^T dmu = T^-1/2 (kappa lambda / 2 pi)^((T-1)/2)
        point = (nw.loc, torch.full((1, 1), precision, dtype=torch.float64))
        peak = 0.5 * torch.log(nw.belief * precision / (2 * torch.pi))
        wishart = nw.log_prob(point) - peak
        log_mean = (temperature - 1) * peak - 0.5 * torch.log(torch.tensor(temperature))
        return torch.exp(temperature * wishart + log_mean).item()

    mass, error = integrate.quad(power, 0, torch.inf, epsabs=0, epsrel=1e-10)
    assert error < 1e-8 * mass
    ensemble = random_ensemble(1, 1)  # one member: tempering leaves the target where it is
    point = (ensemble.means[0], 1 / ensemble.covariances[0])
    expected = -(temperature * nw.log_prob(point) - torch.log(torch.tensor(mass))) / temperature
    assert_close(losses.endd(nw, ensemble, temperature, "exact"), expected, rel=1e-7)


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_mean_preserving_and_exact_tempering_differ_from_the_paper_only_in_the_prediction(k_dim):
    nw = random_normal_wishart(k_dim, (4,))
    expected = nw.mean.precision
    assert_close(tempered(nw, 3.0, "mean-preserving").mean.precision, expected, rel=1e-12)
    assert_close(tempered(nw, 3.0, "paper").mean.precision, 3 * expected, rel=1e-12)
    ensemble = random_ensemble(M, k_dim, (4,))
    at_one = [losses.endd(nw, ensemble, 1.0, kind) for kind in TEMPERINGS]
    assert_close(at_one[1], at_one[0], rel=0.0)
    assert_close(at_one[2], at_one[0], rel=0.0)


# -- EnD2: averages, optimum, bounds --------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 10.0])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_endd_sees_the_teacher_only_through_averages_without_a_member_axis(k_dim, temperature):
    nw, ensemble = random_normal_wishart(k_dim, (7,)), random_ensemble(M, k_dim, (7,))
    averages = precision_averages(ensemble, temperature)
    assert [tuple(a.shape) for a in averages] == [
        (7, k_dim), (7, k_dim), (7, k_dim, k_dim), (7,), (7,),
    ]  # fmt: skip
    for kind in TEMPERINGS:
        direct = losses.endd(nw, ensemble, temperature, kind)
        assert_close(losses.endd(nw, averages, temperature, kind), direct, rel=0.0)


def test_endd_costs_the_same_graph_for_five_members_as_for_fifty():
    def nodes(n_members):
        nw = build(*leaves(random_normal_wishart(2, (3,))))
        pending, seen = [losses.endd(nw, random_ensemble(n_members, 2, (3,))).grad_fn], set()
        while pending:
            node = pending.pop()
            if node is not None and node not in seen:
                seen.add(node)
                pending += [parent for parent, _ in node.next_functions]
        return len(seen)

    assert nodes(5) == nodes(50)


def test_endd_does_not_change_when_members_are_repeated_or_reordered():
    nw, ensemble = random_normal_wishart(2, (3,)), random_ensemble(M, 2, (3,))
    order = torch.tensor([2, 0, 3, 1, 1, 0, 2, 3])
    twice = GaussianEnsemble(ensemble.means[order], ensemble.covariances[order])
    assert_close(losses.endd(nw, twice, 5.0), losses.endd(nw, ensemble, 5.0), rel=1e-12)


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_endd_is_smallest_at_the_closed_form_fit(k_dim, generator):
    # Eq. (15) at T = 1: no slope in any parameter, and every step away costs something.
    ensemble = random_ensemble(3 * k_dim + 2, k_dim)
    best = leaves(NormalWishart.fit(ensemble))
    loss = losses.endd(build(*best), ensemble)
    for gradient in torch.autograd.grad(loss, best):
        assert_close(gradient, torch.zeros_like(gradient), abs=1e-10)
    noise = [1e-2 * torch.randn((200, *p.shape), dtype=p.dtype, generator=generator) for p in best]
    loc, tril, belief, excess = (p.detach() for p in best)
    nudged = build(
        loc + noise[0], tril + noise[1], belief * noise[2].exp(), (excess + 2) * noise[3].exp() - 2
    )
    assert (losses.endd(nudged, ensemble.expand((200,))) > loss).all()


@pytest.mark.parametrize("loss", [losses.endd, losses.proxy])
def test_no_gradient_flows_into_the_teacher(loss):
    means = random_normal((M, 3, 2)).requires_grad_()
    tril = random_tril(2, (M, 3))
    covariances = (tril @ tril.mT).requires_grad_()
    parameters = leaves(random_normal_wishart(2, (3,)))
    value = loss(build(*parameters), GaussianEnsemble(means, covariances)).sum()
    assert torch.autograd.grad(value, (means, covariances), allow_unused=True, retain_graph=True) \
        == (None, None)  # fmt: skip
    assert all((g != 0).any() for g in torch.autograd.grad(value, parameters))


@pytest.mark.parametrize("tempering", TEMPERINGS)
def test_endd_is_unbounded_when_members_coincide_but_finite_through_a_bounded_head(tempering):
    means, variances = torch.zeros(3, 1, 1), torch.ones(3, 1, 1)
    coincide = GaussianEnsemble(means, variances)
    evidence = torch.logspace(0, 8, 9)
    falling = [
        losses.endd(
            build(torch.zeros(1, 1), torch.ones(1, 1, 1), e, e), coincide, 1.0, tempering
        ).item()
        for e in evidence
    ]  # fmt: skip
    assert all(b < a - 1 for a, b in pairwise(falling))
    head = NormalWishartHead(1)
    weights = dict(head.named_parameters())
    with torch.no_grad():
        weights["projection.bias"].copy_(torch.tensor([0.0, 0.0, 1e6, 1e6]))  # asks for infinity
    loss = losses.endd(head(torch.zeros(1, 1)), coincide, 1.0, tempering)
    assert loss.isfinite().all()
    gradients = torch.autograd.grad(loss.sum(), list(weights.values()))
    assert all(gradient.isfinite().all() for gradient in gradients)


# -- proxy targets --------------------------------------------------------------------------------


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_proxy_is_the_divergence_to_the_fit(k_dim):
    nw, ensemble = random_normal_wishart(k_dim, (4,)), random_ensemble(12, k_dim, (4,))
    fitted = NormalWishart.fit(ensemble)
    loss = losses.proxy(nw, ensemble)
    assert_close(loss, kl_divergence(nw, fitted), rel=1e-14)
    assert_close(losses.proxy(nw, fitted), loss, rel=0.0)
    assert (loss > 0).all()
    assert_close(losses.proxy(fitted, ensemble), torch.zeros(4), abs=1e-14)


def test_proxy_of_a_product_is_the_sum_over_coordinates():
    product, ensemble = random_product(3, (4,)), random_ensemble(9, 3, (4,), diagonal=True)
    total = losses.proxy(product.factors, ensemble.coordinates()).sum(-1)
    assert_close(losses.proxy(product, ensemble), total, rel=1e-12)


def test_proxy_of_coinciding_members_stops_at_its_bounds():
    nw = random_normal_wishart(2, (1,))
    means = random_normal((1, 1, 2)).expand(5, 1, 2)
    covariances = torch.eye(2, dtype=torch.float64).expand(5, 1, 2, 2)
    coincide = GaussianEnsemble(means, covariances)
    target = NormalWishart.from_excess(means[0], torch.eye(2, dtype=torch.float64)[None], 1e3, 1e4)
    loss = losses.proxy(nw, coincide, max_belief=1e3, max_excess=1e4)
    assert_close(loss, kl_divergence(nw, target), rel=1e-9)


# -- EnD and MD-EnD -------------------------------------------------------------------------------


def torch_normals(ensemble):
    return [
        MultivariateNormal(mean, covariance)
        for mean, covariance in zip(ensemble.means, ensemble.covariances, strict=True)
    ]


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_end_is_the_mean_of_torchs_divergences(k_dim, diagonal):
    # Eq. (12)
    gaussian = random_gaussian(k_dim, (2, 3), seed=4)
    ensemble = random_ensemble(M, k_dim, (2, 3), diagonal)
    student = MultivariateNormal(gaussian.loc, gaussian.covariance_matrix)
    divergences = [kl_divergence(member, student) for member in torch_normals(ensemble)]
    loss = losses.end(gaussian, ensemble)
    assert_close(loss, torch.stack(divergences).mean(0), rel=1e-10)
    averages = covariance_averages(ensemble)
    assert all(a.shape[:2] == (2, 3) for a in averages)  # no member axis
    assert_close(losses.end(gaussian, averages), loss, rel=0.0)


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_end_is_smallest_at_the_moment_match(k_dim, generator):
    ensemble = random_ensemble(M, k_dim)
    centred = ensemble.means - ensemble.means.mean(0)
    covariance = ensemble.covariances.mean(0) + centred.T @ centred / M
    loc = ensemble.means.mean(0).requires_grad_()
    tril = torch.linalg.cholesky(torch.linalg.inv(covariance)).requires_grad_()
    loss = losses.end(Gaussian(loc, precision_tril=tril), ensemble)
    for gradient in torch.autograd.grad(loss, (loc, tril)):
        assert_close(gradient.tril() if gradient.dim() == 2 else gradient, 0 * gradient, abs=1e-11)
    step = [
        1e-2 * torch.randn((100, *p.shape), dtype=p.dtype, generator=generator) for p in (loc, tril)
    ]
    nudged = Gaussian(loc + step[0], precision_tril=tril + step[1].tril())
    assert (losses.end(nudged, ensemble.expand((100,))) > loss).all()


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_md_end_is_the_mean_of_torchs_divergences_in_order(k_dim, diagonal):
    # Eq. (13)
    heads = random_ensemble(M, k_dim, (3,), diagonal, seed=4)
    teacher = random_ensemble(M, k_dim, (3,), diagonal)
    pairs = zip(torch_normals(teacher), torch_normals(heads), strict=True)
    expected = torch.stack([kl_divergence(p, q) for p, q in pairs]).mean(0)
    assert_close(losses.md_end(heads, teacher), expected, rel=1e-10)
    assert_close(losses.md_end(teacher, teacher), torch.zeros(3), abs=1e-14)
    swapped = GaussianEnsemble(teacher.means.flip(0), teacher.covariances.flip(0))
    assert (losses.md_end(heads, swapped) != losses.md_end(heads, teacher)).all()


# -- masks ----------------------------------------------------------------------------------------


def _belief_loss(loss):
    return lambda p, teacher, mask: loss(build(*p), teacher, mask=mask)


def _end(p, teacher, mask):
    return losses.end(Gaussian(p[0], precision_tril=p[1].tril()), teacher, mask=mask)


def _md_end(p, teacher, mask):
    shape = (teacher.n_members, *p[0].shape)
    heads = GaussianEnsemble.from_precision_tril(
        p[0].expand(shape), p[1].tril().expand((*shape, shape[-1]))
    )
    return losses.md_end(heads, teacher, mask=mask)


WITH_TEACHER = {
    "endd": _belief_loss(losses.endd),
    "proxy": _belief_loss(losses.proxy),
    "end": _end,
    "md_end": _md_end,
}


@pytest.mark.parametrize("name", WITH_TEACHER)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("k_dim", [1, 2, 5])
def test_masked_inputs_count_nothing_even_when_the_teacher_is_nan(name, diagonal, k_dim):
    loss = WITH_TEACHER[name]
    mask = torch.tensor([True, False, True])
    parameters = leaves(random_normal_wishart(k_dim, (3,)))
    if name in ("end", "md_end"):
        parameters = parameters[:2]
    whole = random_ensemble(M, k_dim, (3,), diagonal)
    full = loss(parameters, whole, None)
    holed = GaussianEnsemble(
        torch.where(mask.unsqueeze(-1), whole.means, torch.nan),
        torch.where(mask[:, None, None], whole.covariances, torch.nan),
        validate_args=False,
    )
    value = loss(parameters, holed, mask)
    assert_close(value, torch.where(mask, full, 0.0), rel=1e-14)
    ours = torch.autograd.grad(value.sum(), parameters)
    theirs = torch.autograd.grad(full[mask].sum(), parameters)
    for a, b in zip(ours, theirs, strict=True):
        assert (a[~mask] == 0).all()
        assert_close(a, b, rel=1e-14)


# -- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tempering", TEMPERINGS)
@pytest.mark.parametrize("temperature", [1.0, 5.0])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_gradcheck_endd_in_every_parameter(k_dim, temperature, tempering):
    ensemble = random_ensemble(M, k_dim, (2,))
    inputs = leaves(random_normal_wishart(k_dim, (2,)))

    def loss(*p):
        return losses.endd(build(*p), ensemble, temperature, tempering)

    assert gradcheck(loss, inputs, fast_mode=k_dim > 2)


@pytest.mark.parametrize("name", ["proxy", "end", "md_end"])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_gradcheck_other_losses_in_every_parameter(name, k_dim):
    ensemble = random_ensemble(M, k_dim, (2,))
    inputs = leaves(random_normal_wishart(k_dim, (2,)))
    inputs = inputs if name == "proxy" else inputs[:2]
    loss = WITH_TEACHER[name]
    assert gradcheck(lambda *p: loss(p, ensemble, None), inputs, fast_mode=k_dim > 2)


@pytest.mark.parametrize("loss", [losses.endd, losses.proxy])
def test_gradcheck_for_a_product(loss):
    ensemble, product = random_ensemble(M, 3, (2,), diagonal=True), random_product(3, (2,))
    parts = (product.loc, product.precision, product.belief, product.excess)
    inputs = tuple(p.detach().clone().requires_grad_() for p in parts)
    assert gradcheck(lambda *p: loss(ProductNormalWishart(*p), ensemble), inputs, fast_mode=True)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own forward mode
def test_endd_has_a_directional_derivative_in_forward_mode():
    """Dual tensors take the composed formula: the fused one knows reverse mode only."""
    ensemble = random_ensemble(4, 1, (6,), seed=3)
    parameters = leaves(random_normal_wishart(1, (6,), seed=4))
    tangents = [torch.ones_like(p) for p in parameters]
    loss = losses.endd(normal_wishart_of(*parameters), ensemble)
    grads = torch.autograd.grad(loss.sum(), parameters)
    expected = sum((g * t).sum() for g, t in zip(grads, tangents, strict=True))
    with forward_ad.dual_level():
        duals = [
            forward_ad.make_dual(p.detach(), t) for p, t in zip(parameters, tangents, strict=True)
        ]
        value = losses.endd(normal_wishart_of(*duals), ensemble)
        slope = forward_ad.unpack_dual(value).tangent
    assert slope is not None
    assert_close(slope.sum(), expected, rel=1e-10)
