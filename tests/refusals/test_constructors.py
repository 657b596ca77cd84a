"""Bad parameters: each mistake raises one clear sentence that names the argument and what came."""

from __future__ import annotations

import math
import re

import pytest
import torch
from torch.distributions import Distribution

from _contract import BATCHES, DISTRIBUTIONS, every, settings, spread
from priornet.distributions import (
    Gaussian,
    GaussianEnsemble,
    GaussianMixture,
    MultivariateStudentT,
    NormalMixture,
    NormalWishart,
    ProductNormalWishart,
    StudentT,
    Wishart,
)

# A check looks at values, dtypes and axes: every K, with one batch shape each.
EVERY = every(spread(DISTRIBUTIONS))
BATCHED = every(settings(DISTRIBUTIONS, batches=BATCHES[1:]))
NUMBERS = {"belief", "df", "excess", "scale"}  # one number per batch element, K = 1 included


def assert_refused(case, parameters, kind, message):
    """Raises ``kind`` with one sentence that matches ``message``."""
    with pytest.raises(kind, match=message) as caught:
        case.build(**parameters)
    text = str(caught.value)
    assert text.endswith("."), text
    assert "\n" not in text, text
    return text


# -- shapes of parameters -------------------------------------------------------------------------


@BATCHED
def test_a_parameter_of_another_batch_is_refused_by_its_own_name(case, k_dim, batch):
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        short = value.narrow(case.lead + len(batch) - 1, 0, batch[-1] - 1)
        text = assert_refused(case, {**parameters, name: short}, ValueError, r"shape")
        for other in parameters:
            assert f"`{other}`" in text or "` must have shape (" in text, text
        assert not re.search(r"`_\w+`", text), text


@every(settings(DISTRIBUTIONS, batches=((4,),)))
def test_a_column_does_not_become_a_square(case, k_dim, batch):
    """One argument (B, 1), the others (B,): never a silent (B, B)."""
    if k_dim == 1 and "Ensemble" in case.name:
        return  # variances (M, B, 1) with one more axis are covariances (M, B, 1, 1)
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        column = value.unsqueeze(case.lead + 1)
        assert_refused(case, {**parameters, name: column}, ValueError, r"shape")
        fewer = {n: v if n == name else v.select(case.lead, 0) for n, v in parameters.items()}
        for other in parameters:  # two with a batch, the rest without
            if other != name and not case.lead:
                pair = {**fewer, name: column, other: parameters[other]}
                assert_refused(case, pair, ValueError, r"shape")


@EVERY
def test_a_parameter_of_another_dimension_is_refused(case, k_dim, batch):
    if case.dimensions == (1,) or case.name.startswith("Wishart"):
        return  # nothing else there that knows K
    parameters, other = case.draw(k_dim, batch), case.draw(k_dim + 1, batch)
    for name, value in parameters.items():
        if value.shape != other[name].shape:
            text = assert_refused(
                case, {**parameters, name: other[name]}, ValueError, r"shape|per coord"
            )
            assert any(
                f"`{n}`" in text and str(tuple(v.shape)) in text
                for n, v in {**parameters, name: other[name]}.items()
            ), text


@EVERY
def test_a_matrix_or_vector_that_is_none_is_refused(case, k_dim, batch):
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        if name not in NUMBERS and case.dimensions != (1,):
            text = assert_refused(
                case, {**parameters, name: value.flatten()[0]}, ValueError, r"shape|per c"
            )
            assert "()" in text, text
        if name.endswith("_tril"):
            assert_refused(case, {**parameters, name: value[..., :-1]}, ValueError, r"shape|square")


def test_numbers_of_members_must_agree():
    with pytest.raises(ValueError, match=r"`means`.*`scales`|`scales`.*`means`"):
        NormalMixture(torch.zeros(3, 4), torch.ones(1, 4))
    with pytest.raises(ValueError, match=r"`precision_tril`"):
        GaussianMixture(torch.zeros(3, 4, 2), torch.eye(2).expand(1, 4, 2, 2))
    with pytest.raises(ValueError, match=r"`covariances` must have shape"):
        GaussianEnsemble(torch.zeros(3, 4, 2), torch.ones(1, 4, 2))


def test_an_ensemble_has_a_member_axis_and_at_least_one_member():
    for means in (torch.zeros(3), torch.zeros(0, 4, 1)):
        with pytest.raises(ValueError, match=r"`means` must have shape \(M, \*batch, K\)"):
            GaussianEnsemble(means, torch.ones_like(means))


def test_one_matrix_of_a_gaussian_is_needed():
    loc, eye = torch.zeros(2), torch.eye(2)
    with pytest.raises(ValueError, match=r"exactly one of `precision_tril`.*got none"):
        Gaussian(loc)
    with pytest.raises(ValueError, match=r"exactly one of .*got precision_tril, scale_tril"):
        Gaussian(loc, precision_tril=eye, scale_tril=eye)


# -- values of parameters -------------------------------------------------------------------------

REAL = {"loc", "means"}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@EVERY
def test_nan_and_inf_are_refused_in_every_argument(case, k_dim, batch, bad):
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        wrong = value.clone()
        wrong.view(-1)[0] = bad
        assert_refused(case, {**parameters, name: wrong}, ValueError, rf"`{name}`")


@pytest.mark.parametrize("bad", [0.0, -1.0])
@EVERY
def test_non_positive_parameters_are_refused(case, k_dim, batch, bad):
    parameters = case.draw(k_dim, batch)
    for name in parameters.keys() - REAL - {"df", "excess"}:
        wrong = parameters[name].clone()
        wrong.view(-1)[0] = bad  # a diagonal entry of a matrix
        text = assert_refused(case, {**parameters, name: wrong}, ValueError, rf"`{name}`")
        assert re.search(r"positive|exceed 0", text), text


@pytest.mark.parametrize(
    ("build", "k_dim", "df"),
    [
        (lambda df: NormalWishart(torch.zeros(3), torch.eye(3), 1.0, df), 3, 2.0),
        (lambda df: NormalWishart(torch.zeros(3), torch.eye(3), 1.0, df), 3, 1.5),
        (lambda df: NormalWishart(torch.zeros(1), torch.eye(1), 1.0, df), 1, 0.0),
        (lambda df: NormalWishart(torch.zeros(1), torch.eye(1), 1.0, df), 1, -1.0),
        (lambda df: Wishart(torch.eye(3), df), 3, 2.0),
        (lambda df: Wishart(torch.eye(3), df), 3, 0.0),
        (lambda df: Wishart(torch.eye(3), df), 3, -1.0),
    ],
)
def test_degrees_of_freedom_below_the_dimension_are_refused(build, k_dim, df):
    message = (
        rf"`df` must exceed K - 1 = {k_dim - 1} so that .* smallest value given is .*{df:g}\.$"
    )
    with pytest.raises(ValueError, match=message):
        build(df)
    with pytest.raises(ValueError, match=message):
        build(torch.tensor([9.0, df]))


@pytest.mark.parametrize(
    "build",
    [
        lambda d: NormalWishart.from_excess(torch.zeros(3), torch.eye(3), 1.0, d),
        lambda d: Wishart.from_excess(torch.eye(3), d),
        lambda d: ProductNormalWishart(torch.zeros(1), torch.ones(1), torch.ones(1), d.reshape(1)),
    ],
)
def test_an_excess_of_minus_two_is_refused(build):
    for excess in (-2.0, -3.0):
        with pytest.raises(ValueError, match=r"`excess`"):
            build(torch.tensor(excess))


@pytest.mark.parametrize("df", [0.0, -1.0])
def test_a_student_t_needs_positive_degrees_of_freedom(df):
    for build in (
        lambda: StudentT(torch.tensor(df)),
        lambda: MultivariateStudentT(df, torch.zeros(2), torch.eye(2)),
    ):
        with pytest.raises(
            ValueError, match=rf"`df` must exceed 0; smallest value given is {df:g}"
        ):
            build()


@every(settings(DISTRIBUTIONS, (2, 3, 5)))
def test_a_factor_that_is_not_lower_triangular_is_refused(case, k_dim, batch):
    parameters = case.draw(k_dim, batch)
    for name in parameters:
        if name.endswith("_tril"):
            wrong = parameters[name].clone()
            wrong[..., 0, 1] = 0.5
            text = assert_refused(case, {**parameters, name: wrong}, ValueError, rf"`{name}`")
            assert "lower triangular" in text, text


def test_covariances_that_are_not_positive_definite_are_refused():
    wrong = torch.tensor([[1.0, 2.0], [2.0, 1.0]]).expand(3, 4, 2, 2)
    with pytest.raises(ValueError, match=r"`covariances` must be positive definite") as caught:
        GaussianEnsemble(torch.zeros(3, 4, 2), wrong)
    assert "value 1" not in str(caught.value), "1 is not what is wrong with it"


def test_covariances_that_are_not_symmetric_are_refused():
    wrong = torch.tensor([[1.0, 0.5], [0.0, 1.0]]).expand(3, 4, 2, 2)
    with pytest.raises(ValueError, match=r"`covariances` must be symmetric"):
        GaussianEnsemble(torch.zeros(3, 4, 2), wrong)


def test_checks_can_be_turned_off_and_follow_torch():
    NormalWishart(torch.zeros(1), torch.eye(1), -1.0, 3.0, validate_args=False)
    Distribution.set_default_validate_args(False)
    try:
        NormalWishart(torch.zeros(1), torch.eye(1), -1.0, 3.0)
        with pytest.raises(ValueError, match=r"`belief`"):
            NormalWishart(torch.zeros(1), torch.eye(1), -1.0, 3.0, validate_args=True)
    finally:
        Distribution.set_default_validate_args(True)


# -- kinds of parameters --------------------------------------------------------------------------


@EVERY
def test_integer_boolean_and_other_things_are_refused(case, k_dim, batch):
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        for bad in (value.abs().ceil().long(), value > 0):
            assert_refused(
                case,
                {**parameters, name: bad},
                TypeError,
                rf"`{name}` must hold floating-point numbers; got {re.escape(str(bad.dtype))}",
            )
        for bad in ([value.tolist()], "one"):
            message = rf"`{name}` must be a tensor.*; got {type(bad).__name__}"
            assert_refused(case, {**parameters, name: bad}, TypeError, message)


@EVERY
def test_mixed_precision_is_refused(case, k_dim, batch):
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        message = r"is torch\.float\d+ but `\w+` is torch\.float\d+; convert one of them"
        text = assert_refused(case, {**parameters, name: value.float()}, TypeError, message)
        assert f"`{name}`" in text, text


@EVERY
def test_two_devices_are_refused(case, k_dim, batch):
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        message = r"is on \w+ but `\w+` is on \w+; move one of them"
        text = assert_refused(case, {**parameters, name: value.to("meta")}, ValueError, message)
        assert f"`{name}`" in text, text
