"""What every loss promises: shape, dtype, masks, batches, and refusals that say what is wrong."""

from __future__ import annotations

import contextlib
import itertools
import math

import pytest
import torch

from _asserts import assert_close
from _beliefs import random_normal
from _contract import LOSSES, cast, select, settings, spread
from priornet import losses
from priornet.distributions import (
    Gaussian,
    GaussianEnsemble,
    GaussianMixture,
    NormalWishart,
    ProductNormalWishart,
    covariance_averages,
    precision_averages,
)

CASES = [pytest.param(case, id=case.name) for case in LOSSES]
WITH_TARGETS = [case for case in LOSSES if case.has_y]
FROM_TEACHERS = [case for case in LOSSES if case.target_lead]
EVERY = settings(LOSSES)
EVERY_K = spread(LOSSES)  # about dtypes, whatever the shapes


def draw(case, k_dim, batch, *to):
    return cast(case.draw(k_dim, batch), *to), cast(case.draw_target(k_dim, batch), *to)


def assert_same(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


def loss_and_gradients(case, parameters, target, mask=None):
    leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    loss = case.call(leaves, target, mask=mask)
    return loss, dict(
        zip(leaves, torch.autograd.grad(loss.sum(), list(leaves.values())), strict=True)
    )


def nw(k_dim=2, batch=(4,), dtype=torch.float32):
    one = torch.ones(batch, dtype=dtype)
    eye = torch.eye(k_dim, dtype=dtype).expand(*batch, k_dim, k_dim)
    return NormalWishart.from_excess(torch.zeros(*batch, k_dim, dtype=dtype), eye, one, one)


def product(k_dim=2, batch=(4,)):
    one = torch.ones(*batch, k_dim)
    return ProductNormalWishart(torch.zeros_like(one), one, one, one)


def gaussian(k_dim=2, batch=(4,), dtype=torch.float32):
    one = torch.ones(*batch, k_dim, dtype=dtype)
    return Gaussian(torch.zeros_like(one), variance=one)


def ensemble(k_dim=2, batch=(4,), members=3, dtype=torch.float32):
    means = random_normal((members, *batch, k_dim), dtype=dtype)
    return GaussianEnsemble(means, torch.ones_like(means))


def test_every_public_loss_has_a_case():
    functions = {name for name in losses.__all__ if name.islower()} - {"multi_task"}
    assert functions == {case.name.split("(")[0] for case in LOSSES}


# -- shapes and dtypes ----------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "k_dim", "batch"), EVERY)
def test_one_loss_per_element_with_finite_gradients(case, k_dim, batch, device, dtype):
    parameters, target = draw(case, k_dim, batch, device, dtype)
    loss, gradients = loss_and_gradients(case, parameters, target)
    assert (loss.shape, loss.dtype, loss.device.type) == (batch, dtype, device.type)
    assert loss.isfinite().all()
    for name, gradient in gradients.items():
        assert (gradient.shape, gradient.dtype) == (parameters[name].shape, dtype)
        assert gradient.isfinite().all(), name
        assert (gradient != 0).any(), name


@pytest.mark.parametrize(("case", "k_dim", "batch"), settings(LOSSES, batches=((2, 3),)))
def test_a_batch_is_a_loop_over_its_elements(case, k_dim, batch, device, dtype):
    parameters, target = draw(case, k_dim, batch, device, dtype)
    together = case.call(parameters, target)
    for index in itertools.product(*map(range, batch)):
        one = case.call(
            select(parameters, index, case.lead), select(target, index, case.target_lead)
        )
        rel = 1e-10 if dtype == torch.float64 else 1e-4
        assert_close(together[index], one, rel=rel, abs=rel)


@pytest.mark.parametrize(("case", "k_dim", "batch"), settings(LOSSES, (1, 3, 5), ((0,),)))
def test_an_empty_batch_gives_an_empty_loss(case, k_dim, batch, device, dtype):
    parameters, target = draw(case, k_dim, batch, device, dtype)
    loss, gradients = loss_and_gradients(case, parameters, target)
    assert loss.shape == (0,)
    assert all(gradient.numel() == 0 for gradient in gradients.values())


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(("case", "k_dim", "batch"), EVERY_K)
def test_half_precision_is_computed_in_float32(case, k_dim, batch, half, device):
    parameters, target = draw(case, k_dim, batch, device, half)
    loss = case.call(parameters, target)
    assert loss.dtype == torch.float32
    assert_same(loss, case.call(cast(parameters, torch.float32), cast(target, torch.float32)))


@pytest.mark.parametrize(("case", "k_dim", "batch"), EVERY_K)
@pytest.mark.parametrize("backward", ["outside", "inside"])
def test_autocast_rounds_nothing(case, k_dim, batch, backward, device):
    parameters, target = draw(case, k_dim, batch, device, torch.float32)
    expected, gradients = loss_and_gradients(case, parameters, target)
    leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    autocast = torch.autocast(device.type, dtype=torch.bfloat16)
    with autocast:
        loss = case.call(leaves, target)
    with autocast if backward == "inside" else contextlib.nullcontext():
        found = torch.autograd.grad(loss.sum(), list(leaves.values()))
    assert_same(loss, expected)
    for gradient, name in zip(found, leaves, strict=True):
        assert_same(gradient, gradients[name])


# -- masks ----------------------------------------------------------------------------------------


def holes(batch, device):
    """Masks to try: a pattern with both values, or either value where there is one element."""
    if not batch:
        return [torch.tensor(kept, device=device) for kept in (True, False)]
    return [(torch.arange(math.prod(batch), device=device) % 2 == 0).reshape(batch)]


def masked_out(mask, value, lead=0):
    """What a tensor of leading axes, batch and event holds where the mask is false."""
    return value.movedim(0, -1)[~mask] if lead else value[~mask]


@pytest.mark.parametrize(("case", "k_dim", "batch"), EVERY)
def test_a_masked_element_is_exactly_zero_and_the_others_do_not_change(
    case, k_dim, batch, device, dtype
):
    parameters, target = draw(case, k_dim, batch, device, dtype)
    loss, gradients = loss_and_gradients(case, parameters, target)
    for mask in holes(batch, device):
        found, found_gradients = loss_and_gradients(case, parameters, target, mask)
        assert_same(found, torch.where(mask, loss, 0.0))
        for name, gradient in gradients.items():
            event = gradient.dim() - case.lead - len(batch)
            keep = mask.reshape((1,) * case.lead + batch + (1,) * event)
            expected = torch.where(keep, gradient, 0.0)
            assert_close(found_gradients[name], expected, rel=1e-5, abs=1e-6)
            assert (masked_out(mask, found_gradients[name], case.lead) == 0).all()


@pytest.mark.parametrize("missing", [math.nan, math.inf])
@pytest.mark.parametrize(("case", "k_dim", "batch"), settings(WITH_TARGETS))
def test_a_masked_missing_target_gives_zero_loss_and_zero_gradient(
    case, k_dim, batch, missing, device, dtype
):
    for mask in holes(batch, device):
        parameters, target = draw(case, k_dim, batch, device, dtype)
        target["y"][~mask] = missing
        loss, gradients = loss_and_gradients(case, parameters, target, mask)
        assert (loss[~mask] == 0).all()
        assert loss.isfinite().all()
        for name, gradient in gradients.items():
            assert gradient.isfinite().all(), name
            assert (gradient[~mask] == 0).all(), name
            assert (gradient[mask] != 0).any() or not mask.any(), name


@pytest.mark.parametrize(("case", "k_dim", "batch"), settings(FROM_TEACHERS))
def test_a_masked_missing_teacher_gives_zero_loss_and_zero_gradient(
    case, k_dim, batch, device, dtype
):
    """Built with values unseen, as on an accelerator: the mask alone keeps the nan out."""
    for mask in holes(batch, device):
        parameters, target = draw(case, k_dim, batch, device, dtype)
        target["means"][:, ~mask] = math.nan
        unchecked = {**target, "validate_args": False}
        loss, gradients = loss_and_gradients(case, parameters, unchecked, mask)
        assert (loss[~mask] == 0).all()
        assert loss.isfinite().all()
        for name, gradient in gradients.items():
            assert gradient.isfinite().all(), name
            assert (masked_out(mask, gradient, case.lead) == 0).all(), name


@pytest.mark.parametrize(("case", "k_dim", "batch"), settings(LOSSES, (1, 2), ((4,),)))
@pytest.mark.parametrize(
    ("mask", "kind", "message"),
    [
        (torch.ones(4), TypeError, r"`mask` must be boolean.*got torch\.float32"),
        (torch.ones(4, dtype=torch.int64), TypeError, r"`mask` must be boolean.*got torch\.int64"),
        (
            torch.ones(4, 1, dtype=torch.bool),
            ValueError,
            r"`mask` must have shape \(4,\); got \(4, 1\)",
        ),
        (torch.ones((), dtype=torch.bool), ValueError, r"`mask` must have shape \(4,\); got \(\)"),
        (torch.ones(3, dtype=torch.bool), ValueError, r"`mask` must have shape \(4,\); got \(3,\)"),
    ],
    ids=["float", "integer", "column", "scalar", "short"],
)
def test_a_mask_of_the_wrong_kind_is_refused(case, k_dim, batch, mask, kind, message):
    parameters, target = draw(case, k_dim, batch)
    with pytest.raises(kind, match=message):
        case.call(parameters, target, mask=mask.to(torch.get_default_device()))


# -- targets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "k_dim", "batch"), settings(WITH_TARGETS, (1, 2), ((4,),)))
def test_a_target_of_another_shape_is_refused(case, k_dim, batch):
    parameters, target = draw(case, k_dim, batch)
    y = target["y"]
    wrong = {
        "no event axis": y[:, 0],
        "one event axis too many": y.unsqueeze(-1),
        "an axis within the batch": y.unsqueeze(1),
        "an axis before the batch": y.unsqueeze(0),
        "no batch": y[0],
        "one too many": torch.cat([y, y[:1]]),
        "another K": torch.cat([y, y], -1),
        "column for a row of predictions": y[:, :1].expand(4, k_dim).unsqueeze(1),
    }
    for what, bad in wrong.items():
        with pytest.raises(ValueError, match=r"`y` must have shape \(4, \d\)") as caught:
            case.call(parameters, {"y": bad})
        assert f"got {tuple(bad.shape)}" in str(caught.value), what


@pytest.mark.parametrize("case", WITH_TARGETS, ids=lambda c: c.name)
def test_a_flat_target_is_told_how_to_become_a_column(case):
    parameters, target = draw(case, 1, (4,))
    with pytest.raises(ValueError, match=r"pass `y\.unsqueeze\(-1\)`"):
        case.call(parameters, {"y": target["y"][:, 0]})


@pytest.mark.parametrize("case", WITH_TARGETS, ids=lambda c: c.name)
def test_a_target_of_another_kind_is_refused(case):
    parameters, target = draw(case, 1, (4,))
    y = target["y"]
    for bad, kind, message in (
        (y.float(), TypeError, r"`y` is torch\.float32 but `?the prediction`? is torch\.float64"),
        (y.long(), TypeError, r"`y` is torch\.int64 but `?the prediction`? is torch\.float64"),
        (y.to("meta"), ValueError, rf"`y` is on meta but `?the prediction`? is on {y.device}"),
        (y.tolist(), TypeError, r"`y` must be a tensor; got list"),
        (None, (TypeError, ValueError), r"`y` (must be a tensor; got NoneType|is needed)"),
    ):
        with pytest.raises(kind, match=message):
            case.call(parameters, {"y": bad})


@pytest.mark.parametrize("missing", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("case", WITH_TARGETS, ids=lambda c: c.name)
def test_an_unmasked_missing_target_is_refused(case, missing, device):
    if device.type != "cpu":
        pytest.skip("values are looked at on the CPU only")
    parameters, target = draw(case, 1, (4,))
    target["y"][2] = missing
    message = r"`y` must be finite; 1 of 4 values are nan or inf.*Pass `mask`"
    with pytest.raises(ValueError, match=message):
        case.call(parameters, target)
    still_seen = torch.tensor([True, False, True, True])
    with pytest.raises(ValueError, match=message):
        case.call(parameters, target, mask=still_seen)


# -- teachers -------------------------------------------------------------------------------------

STUDENTS = [
    pytest.param(losses.endd, nw, id="endd"),
    pytest.param(losses.endd, product, id="endd(product)"),
    pytest.param(losses.proxy, nw, id="proxy"),
    pytest.param(losses.proxy, product, id="proxy(product)"),
    pytest.param(losses.end, gaussian, id="end"),
    pytest.param(losses.md_end, ensemble, id="md_end"),
]


@pytest.mark.parametrize(("loss", "student"), STUDENTS)
@pytest.mark.parametrize("batch", [(), (3,), (4, 1), (1, 4), (1,)])
def test_a_teacher_of_another_batch_is_refused(loss, student, batch):
    with pytest.raises(
        ValueError, match=r"`teacher` must have members of shape \(4, 2\)"
    ) as caught:
        loss(student(), ensemble(batch=batch))
    assert f"got {(*batch, 2)}" in str(caught.value)


@pytest.mark.parametrize(("loss", "student"), STUDENTS)
def test_a_teacher_of_another_dimension_is_refused(loss, student):
    for k_dim in (1, 3):
        message = rf"`teacher` must have members of shape \(4, 2\).*got \(4, {k_dim}\)"
        with pytest.raises(ValueError, match=message):
            loss(student(), ensemble(k_dim=k_dim))


@pytest.mark.parametrize(("loss", "student"), STUDENTS)
def test_a_teacher_of_another_dtype_or_device_is_refused(loss, student):
    teacher = ensemble(dtype=torch.float64)
    message = r"`teacher` is torch\.float64 but `?the prediction`? is torch\.float32"
    with pytest.raises(TypeError, match=message):
        loss(student(), teacher)
    far = GaussianEnsemble(*(torch.ones(3, 4, 2, device="meta"),) * 2, validate_args=False)
    message = rf"`teacher` is on meta but `?the prediction`? is on {teacher.means.device}"
    with pytest.raises(ValueError, match=message):
        loss(student(), far)


@pytest.mark.parametrize(("loss", "student"), STUDENTS)
def test_a_teacher_that_is_no_ensemble_is_refused(loss, student):
    for bad, kind in ((torch.zeros(3, 4, 2), "Tensor"), (gaussian(), "Gaussian"), (None, "None")):
        with pytest.raises(TypeError, match=rf"`teacher` must be a .*got {kind}"):
            loss(student(), bad)


def test_md_end_needs_one_head_per_member():
    with pytest.raises(ValueError, match=r"`mixture` has 3 heads but `teacher` has 5 members"):
        losses.md_end(ensemble(members=3), ensemble(members=5))


@pytest.mark.parametrize("batch", [(), (3,), (4, 1)])
def test_averages_of_another_batch_are_refused(batch):
    averages = precision_averages(ensemble(batch=batch))
    with pytest.raises(ValueError, match=r"`teacher`"):
        losses.endd(nw(), averages)
    with pytest.raises(ValueError, match=r"`teacher`"):
        losses.end(gaussian(), covariance_averages(ensemble(batch=batch)))


def test_a_product_needs_the_averages_of_each_coordinate():
    teacher = ensemble(k_dim=2, batch=(4,))
    with pytest.raises(ValueError, match=r"`teacher`"):
        losses.endd(product(), precision_averages(teacher))
    expected = losses.endd(product(), teacher)
    assert_same(losses.endd(product(), precision_averages(teacher.coordinates())), expected)


def test_averages_equal_the_ensemble_they_come_from():
    teacher = ensemble()
    assert_same(
        losses.endd(nw(), precision_averages(teacher, 3.0), 3.0), losses.endd(nw(), teacher, 3.0)
    )
    assert_same(
        losses.end(gaussian(), covariance_averages(teacher)), losses.end(gaussian(), teacher)
    )
    assert_same(losses.proxy(nw(), NormalWishart.fit(teacher)), losses.proxy(nw(), teacher))


def test_full_members_have_no_diagonal_student():
    teacher = GaussianEnsemble(torch.zeros(3, 4, 2), torch.eye(2).expand(3, 4, 2, 2))
    for loss in (losses.endd, losses.proxy):
        with pytest.raises(ValueError, match=r"full covariances.*pass variances"):
            loss(product(), teacher)


@pytest.mark.parametrize("temperature", [0.5, 0.0, -1.0, math.nan])
def test_a_temperature_below_one_is_refused(temperature):
    message = rf"`temperature` must be finite and at least 1; got {temperature:g}"
    with pytest.raises(ValueError, match=message):
        losses.endd(nw(), ensemble(), temperature=temperature)
    with pytest.raises(ValueError, match=message):
        losses.endd(nw(), precision_averages(ensemble()), temperature=temperature)


def test_an_unknown_tempering_lists_the_known_ones():
    message = r'unknown tempering "power"; choose one of: paper, mean-preserving, exact\.'
    with pytest.raises(ValueError, match=message):
        losses.endd(nw(), ensemble(), tempering="power")  # pyright: ignore[reportArgumentType] (on purpose)


# -- priors and weights ---------------------------------------------------------------------------

PRIOR_LOSSES = [losses.reverse_kl, losses.forward_kl]


@pytest.mark.parametrize("loss", PRIOR_LOSSES)
@pytest.mark.parametrize("beta", [-1.0, math.nan])
def test_a_negative_beta_is_refused(loss, beta):
    with pytest.raises(ValueError, match=rf"`beta` must not be negative, nan or inf; got {beta:g}"):
        loss(nw(), torch.zeros(4, 2), nw(batch=()), beta=beta)


def test_a_target_may_be_left_out_only_for_the_out_of_domain_term():
    assert losses.reverse_kl(nw(), None, nw(batch=()), beta=0.0).shape == (4,)
    with pytest.raises(ValueError, match=r"`y` is needed unless `beta` is 0"):
        losses.reverse_kl(nw(), None, nw(batch=()), beta=1.0)
    with pytest.raises(TypeError, match=r"`y` must be a tensor; got NoneType"):
        losses.forward_kl(nw(), None, nw(batch=()), beta=1.0)  # pyright: ignore[reportArgumentType] (on purpose)


@pytest.mark.parametrize("loss", PRIOR_LOSSES)
@pytest.mark.parametrize("batch", [(4, 1), (3,), (2, 4)])
def test_a_prior_with_more_than_the_batch_of_the_prediction_is_refused(loss, batch):
    with pytest.raises(ValueError, match=r"batch"):
        loss(nw(), torch.zeros(4, 2), nw(batch=batch), beta=1.0)


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_a_batch_of_priors_does_not_multiply_one_prediction(beta):
    with pytest.raises(ValueError, match=r"batch"):
        losses.reverse_kl(nw(batch=()), torch.zeros(2), nw(batch=(4,)), beta=beta)


@pytest.mark.parametrize("loss", PRIOR_LOSSES)
def test_a_prior_of_another_dimension_is_refused(loss):
    for prediction, prior in ((nw(2), nw(3, ())), (product(2), product(1, ()))):
        with pytest.raises(ValueError, match=r"event shape"):
            loss(prediction, torch.zeros(4, 2), prior, beta=1.0)


@pytest.mark.parametrize("loss", PRIOR_LOSSES)
def test_a_prior_of_another_dtype_is_refused(loss):
    with pytest.raises(TypeError, match=r"torch\.float64.*torch\.float32|float32.*float64"):
        loss(nw(), torch.zeros(4, 2), nw(batch=(), dtype=torch.float64), beta=1.0)


@pytest.mark.parametrize("loss", PRIOR_LOSSES)
def test_a_prior_of_another_kind_is_refused(loss):
    message = r"`prior` must be a NormalWishart, like the prediction; got ProductNormalWishart"
    with pytest.raises(TypeError, match=message):
        loss(nw(), torch.zeros(4, 2), product(batch=()), beta=1.0)
    with pytest.raises(TypeError, match=r"`prior` must be a NormalWishart.*got Tensor"):
        loss(nw(), torch.zeros(4, 2), torch.zeros(2), beta=1.0)


def test_beta_nll_takes_a_beta_between_zero_and_one():
    for beta in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"`beta` must lie in \[0, 1\]; got"):
            losses.beta_nll(gaussian(), torch.zeros(4, 2), beta=beta)


@pytest.mark.parametrize("coefficient", [-0.1, math.nan])
def test_evidential_refuses_a_negative_coefficient(coefficient):
    message = rf"`coefficient` must not be negative, nan or inf; got {coefficient:g}"
    with pytest.raises(ValueError, match=message):
        losses.evidential(nw(1), torch.zeros(4, 1), coefficient=coefficient)


@pytest.mark.parametrize("gamma", [-0.1, math.nan])
def test_multi_task_refuses_a_negative_gamma(gamma):
    with pytest.raises(
        ValueError, match=rf"`gamma` must not be negative, nan or inf; got {gamma:g}"
    ):
        losses.multi_task(torch.ones(3), torch.ones(2), gamma=gamma)


def test_multi_task_returns_the_total_and_detached_terms():
    inside, outside = torch.tensor([1.0, 3.0], requires_grad=True), torch.tensor([4.0])
    total, terms = losses.multi_task(inside, outside, gamma=0.5)
    assert total.requires_grad
    assert {name: value.item() for name, value in terms.items()} == {
        "in_domain": 2.0,
        "out_domain": 4.0,
    }
    assert not any(value.requires_grad for value in terms.values())


# -- the wrong kind of prediction -----------------------------------------------------------------


def test_gaussian_nll_of_a_belief_names_its_predictive():
    for belief in (nw(), product(), ensemble()):
        with pytest.raises(TypeError, match=r"`distribution`.*predictive\(\)"):
            losses.gaussian_nll(belief, torch.zeros(4, 2))


def test_gaussian_nll_takes_any_predictive():
    y = torch.zeros(4, 2)
    for predictive in (nw().predictive(), product().predictive(), ensemble().predictive()):
        assert_same(losses.gaussian_nll(predictive, y), -predictive.log_prob(y))
    assert isinstance(ensemble().predictive(), GaussianMixture)
