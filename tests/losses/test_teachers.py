"""Teachers: ensembles or their averages, and refusals that say what does not fit the student."""

from __future__ import annotations

import math

import pytest
import torch

from _losses import assert_same, ensemble, gaussian, nw, product
from priornet import losses
from priornet.distributions import (
    GaussianEnsemble,
    NormalWishart,
    covariance_averages,
    precision_averages,
)

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
