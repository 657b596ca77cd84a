"""Bad input: each mistake raises one clear sentence that names the argument and what came."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import pytest
import torch
from torch.distributions import Distribution, kl_divergence

from _contract import BATCHES, DISTRIBUTIONS, points, settings
from priornet import checks
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
from priornet.priors import semi_informative_prior
from priornet.uncertainty import uncertainty

CASES = [pytest.param(case, id=case.name) for case in DISTRIBUTIONS]
EVERY = pytest.mark.parametrize(("case", "k_dim", "batch"), settings(DISTRIBUTIONS))
BATCHED = pytest.mark.parametrize(
    ("case", "k_dim", "batch"), settings(DISTRIBUTIONS, batches=BATCHES[1:])
)
NUMBERS = {"belief", "df", "excess", "scale"}  # one number per batch element, K = 1 included


def refused(case, parameters, kind, message):
    """Raises ``kind`` with one sentence that matches ``message``."""
    with pytest.raises(kind, match=message) as caught:
        case.build(**parameters)
    text = str(caught.value)
    assert text.endswith("."), text
    assert "\n" not in text, text
    return text


# -- the checks themselves ------------------------------------------------------------------------


def test_common_tensors_lifts_half_precision_and_numbers_follow():
    a, b = checks.common_tensors(a=torch.ones(2, dtype=torch.bfloat16), b=3.0)
    assert (a.dtype, b.dtype, b.shape) == (torch.float32, torch.float32, ())
    a, b = checks.common_tensors(a=2, b=torch.ones(2, dtype=torch.float64))
    assert (a.dtype, a.item()) == (torch.float64, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": torch.ones(1), "b": torch.ones(1).double()}, r"^`b` is torch\.float64 but `a` is "),
        (
            {"a": torch.ones(1, dtype=torch.int32)},
            r"^`a` must hold floating-point numbers; got tor",
        ),
        (
            {"a": torch.ones(1, dtype=torch.bool)},
            r"^`a` must hold floating-point .* torch\.bool\.$",
        ),
        ({"a": torch.ones(1, dtype=torch.complex64)}, r"^`a` must hold floating-point numbers"),
        ({"a": [1.0]}, r"^`a` must be a tensor or a number; got list\.$"),
        ({"a": None}, r"^`a` must be a tensor or a number; got NoneType\.$"),
        ({"a": 1.0, "b": 2.0}, r"at least one of `a`, `b` must be a tensor\.$"),
    ],
)
def test_common_tensors_refuses_mixtures(given, message):
    with pytest.raises(TypeError, match=message):
        checks.common_tensors(**given)


def test_common_tensors_refuses_two_devices():
    with pytest.raises(ValueError, match=r"^`b` is on meta but `a` is on cpu; move one of them"):
        checks.common_tensors(a=torch.ones(1), b=torch.ones(1, device="meta"))


@pytest.mark.parametrize(
    "shapes", [((), (4,)), ((4,), (1,)), ((2, 3), (3,)), ((2, 3), (1, 3)), ((0,), ()), ((4,),)]
)
def test_batches_stretch_to_a_shape_that_is_given(shapes):
    common = checks.broadcast_batch(**{f"p{i}": torch.Size(s) for i, s in enumerate(shapes)})
    assert common == shapes[0] or common == shapes[-1]


@pytest.mark.parametrize("shapes", [((4,), (4, 1)), ((4, 1), (1, 3)), ((4,), (3,)), ((2,), (3, 1))])
def test_batches_do_not_become_outer_products(shapes):
    given = dict(zip("ab", map(torch.Size, shapes), strict=True))
    text = rf"batch shapes do not fit together: `a` {re.escape(str(shapes[0]))}, `b` "
    with pytest.raises(ValueError, match=text):
        checks.broadcast_batch(**given)


def test_values_are_looked_at_only_where_they_can_be_seen():
    x = torch.ones(3)
    assert checks.values_visible(x)
    seen = []
    torch.func.vmap(lambda v: (seen.append(checks.values_visible(v)), v)[1])(x)
    torch.func.grad(lambda v: (seen.append(checks.values_visible(v)), v.sum())[1])(x)
    assert seen == [False, False]


def test_check_values_counts_and_shows_the_offenders():
    value = torch.tensor([1.0, -2.0, -3.0])
    with pytest.raises(ValueError, match=r"^`x` must be positive; 2 of 3 are not.*-2\.$"):
        checks.check_values("x", value, value > 0, "positive")


def test_check_greater_names_bound_and_smallest_value():
    with pytest.raises(ValueError, match=r"^`x` must exceed 0; smallest value given is -2\.$"):
        checks.check_greater("x", torch.tensor([1.0, -2.0]), 0.0)
    with pytest.raises(ValueError, match=r"^`x` .*nan"):
        checks.check_greater("x", torch.tensor([1.0, math.nan]), 0.0)
    with pytest.raises(ValueError, match=r"^`x` must be finite.*inf"):
        checks.check_greater("x", torch.tensor([1.0, math.inf]), 0.0)


# -- shapes of parameters -------------------------------------------------------------------------


@BATCHED
def test_a_parameter_of_another_batch_is_refused_by_its_own_name(case, k_dim, batch):
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        short = value.narrow(case.lead + len(batch) - 1, 0, batch[-1] - 1)
        text = refused(case, {**parameters, name: short}, ValueError, r"shape")
        for other in parameters:
            assert f"`{other}`" in text or "` must have shape (" in text, text
        assert not re.search(r"`_\w+`", text), text


@pytest.mark.parametrize(("case", "k_dim", "batch"), settings(DISTRIBUTIONS, batches=((4,),)))
def test_a_column_does_not_become_a_square(case, k_dim, batch):
    """One argument (B, 1), the others (B,): never a silent (B, B)."""
    if k_dim == 1 and "Ensemble" in case.name:
        return  # variances (M, B, 1) with one more axis are covariances (M, B, 1, 1)
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        column = value.unsqueeze(case.lead + 1)
        refused(case, {**parameters, name: column}, ValueError, r"shape")
        fewer = {n: v if n == name else v.select(case.lead, 0) for n, v in parameters.items()}
        for other in parameters:  # two with a batch, the rest without
            if other != name and not case.lead:
                pair = {**fewer, name: column, other: parameters[other]}
                refused(case, pair, ValueError, r"shape")


@EVERY
def test_a_parameter_of_another_dimension_is_refused(case, k_dim, batch):
    if case.dimensions == (1,) or case.name.startswith("Wishart"):
        return  # nothing else there that knows K
    parameters, other = case.draw(k_dim, batch), case.draw(k_dim + 1, batch)
    for name, value in parameters.items():
        if value.shape != other[name].shape:
            text = refused(case, {**parameters, name: other[name]}, ValueError, r"shape|per coord")
            assert any(
                f"`{n}`" in text and str(tuple(v.shape)) in text
                for n, v in {**parameters, name: other[name]}.items()
            ), text


@EVERY
def test_a_matrix_or_vector_that_is_none_is_refused(case, k_dim, batch):
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        if name not in NUMBERS and case.dimensions != (1,):
            text = refused(
                case, {**parameters, name: value.flatten()[0]}, ValueError, r"shape|per c"
            )
            assert "()" in text, text
        if name.endswith("_tril"):
            refused(case, {**parameters, name: value[..., :-1]}, ValueError, r"shape|square")


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
        refused(case, {**parameters, name: wrong}, ValueError, rf"`{name}`")


@pytest.mark.parametrize("bad", [0.0, -1.0])
@EVERY
def test_non_positive_parameters_are_refused(case, k_dim, batch, bad):
    parameters = case.draw(k_dim, batch)
    for name in parameters.keys() - REAL - {"df", "excess"}:
        wrong = parameters[name].clone()
        wrong.view(-1)[0] = bad  # a diagonal entry of a matrix
        text = refused(case, {**parameters, name: wrong}, ValueError, rf"`{name}`")
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


@pytest.mark.parametrize(("case", "k_dim", "batch"), settings(DISTRIBUTIONS, (2, 3, 5)))
def test_a_factor_that_is_not_lower_triangular_is_refused(case, k_dim, batch):
    parameters = case.draw(k_dim, batch)
    for name in parameters:
        if name.endswith("_tril"):
            wrong = parameters[name].clone()
            wrong[..., 0, 1] = 0.5
            text = refused(case, {**parameters, name: wrong}, ValueError, rf"`{name}`")
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
            refused(
                case,
                {**parameters, name: bad},
                TypeError,
                rf"`{name}` must hold floating-point numbers; got {re.escape(str(bad.dtype))}",
            )
        for bad in ([value.tolist()], "one"):
            message = rf"`{name}` must be a tensor.*; got {type(bad).__name__}"
            refused(case, {**parameters, name: bad}, TypeError, message)


@EVERY
def test_mixed_precision_is_refused(case, k_dim, batch):
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        message = r"is torch\.float\d+ but `\w+` is torch\.float\d+; convert one of them"
        text = refused(case, {**parameters, name: value.float()}, TypeError, message)
        assert f"`{name}`" in text, text


@EVERY
def test_two_devices_are_refused(case, k_dim, batch):
    parameters = case.draw(k_dim, batch)
    for name, value in parameters.items():
        message = r"is on \w+ but `\w+` is on \w+; move one of them"
        text = refused(case, {**parameters, name: value.to("meta")}, ValueError, message)
        assert f"`{name}`" in text, text


# -- values to evaluate at ------------------------------------------------------------------------

EVALUATED = {
    "log_prob": "value",
    "log_prob_covariance": "value",
    "expected_log_prob": "y",
    "posterior.loc": "y",
    "log_evidence": "y",
    "cdf": "value",
    "icdf": "value",
    "moment_matched_log_prob": "y",
    "predictive.log_prob": "value",
}
QUESTIONS = [
    pytest.param(case, query, id=f"{case.name}-{query}")
    for case in DISTRIBUTIONS
    for query in EVALUATED
    if query in case.queries
]


@pytest.mark.parametrize(("case", "query"), QUESTIONS)
def test_a_value_does_not_become_a_square(case, query):
    """A value (B, 1, ...) against a batch (B,), and (B, ...) against (B, 1): never (B, B)."""
    ask = case.queries[query][0]
    for k_dim in case.dimensions:
        column = {n: v.unsqueeze(1) for n, v in points(k_dim, (4,)).items()}
        with pytest.raises(ValueError, match=r"shape"):
            ask(case.make(k_dim, (4,)), column)
        with pytest.raises(ValueError, match=r"shape"):
            ask(case.make(k_dim, (4, 1)), points(k_dim, (4,)))
        with pytest.raises(ValueError, match=r"shape"):
            ask(case.make(k_dim, (4,)), points(k_dim, (3,)))


@pytest.mark.parametrize(("case", "query"), QUESTIONS)
def test_a_value_of_another_dimension_is_refused(case, query):
    if case.dimensions == (1,):
        return
    with pytest.raises(ValueError, match=r"`(value|y|mean|precision|covariance)` must .*shape"):
        case.queries[query][0](case.make(2, (4,)), points(3, (4,)))


@pytest.mark.parametrize(("case", "query"), QUESTIONS)
def test_a_value_of_another_kind_is_refused(case, query):
    ask, d = case.queries[query][0], case.make(1, (4,))
    at = points(1, (4,))
    for bad, kind, message in (
        ({n: v.float() for n, v in at.items()}, TypeError, r"is torch\.float32 but .* is torch"),
        ({n: v.long() for n, v in at.items()}, TypeError, r"torch\.int64"),
        ({n: v.to("meta") for n, v in at.items()}, ValueError, r"is on meta but .* is on cpu"),
    ):
        with pytest.raises(kind, match=message) as caught:
            ask(d, bad)
        assert not re.search(r"`_\w+`", str(caught.value)), str(caught.value)
    if case.dimensions != (1,):  # of numbers: the query itself takes the coordinate
        with pytest.raises(TypeError, match=r"must be a tensor; got list"):
            ask(d, {n: v.tolist() for n, v in at.items()})


def test_a_belief_is_evaluated_at_a_pair():
    one = torch.ones(2)
    pairs: dict[str, Any] = {
        "(mean, precision)": NormalWishart(torch.zeros(2), torch.eye(2), 1.0, 4.0),
        "(mean, precisions)": ProductNormalWishart(one, one, one, one),
    }
    for expected, belief in pairs.items():
        for bad in (torch.zeros(2), torch.zeros(2, 2), (torch.zeros(2),), None):
            with pytest.raises(TypeError, match=rf"`value` must be a pair {re.escape(expected)}"):
                belief.log_prob(bad)
    with pytest.raises(TypeError, match=r"`value` must be a pair \(mean, covariance\)"):
        pairs["(mean, precision)"].log_prob_covariance(torch.zeros(2))


def test_a_pair_whose_halves_do_not_fit_is_refused():
    """Each fits the distribution, but together they would make an outer product."""
    belief = NormalWishart(torch.zeros(2), torch.eye(2), 1.0, 4.0)
    mean, precision = torch.zeros(4, 2), torch.eye(2).expand(4, 1, 2, 2)
    for ask in (belief.log_prob, belief.log_prob_covariance):
        with pytest.raises(ValueError, match=r"`mean` \(4,\), `\w+` \(4, 1\)"):
            ask((mean, precision))
    one = torch.ones(2)
    product = ProductNormalWishart(one, one, one, one)
    with pytest.raises(ValueError, match=r"`mean` \(4,\), `precisions` \(4, 1\)"):
        product.log_prob((mean, torch.ones(4, 1, 2)))


@pytest.mark.parametrize("name", ["NormalWishart", "ProductNormalWishart"])
def test_a_bad_beta_of_the_posterior_is_refused(name):
    case = next(c for c in DISTRIBUTIONS if c.name == name)
    nw, y = case.make(2, (4,)), points(2, (4,))["y"]
    for beta, kind, message in (
        (torch.ones(4, 1, dtype=torch.float64), ValueError, r"`beta` .*\(4, 1\)"),
        (torch.ones(3, dtype=torch.float64), ValueError, r"`beta` .*\(3,\)"),
        (torch.ones(4), TypeError, r"`beta` is torch\.float32"),
        (torch.ones(4, dtype=torch.int64), TypeError, r"`beta` must hold floating-point numbers"),
        (torch.ones(4, device="meta", dtype=torch.float64), ValueError, r"`beta` is on meta"),
        (-1.0, ValueError, r"`beta` must not be negative"),
        (math.nan, ValueError, r"`beta`"),
        ("1", TypeError, r"`beta` must be a tensor or a number; got str"),
    ):
        with pytest.raises(kind, match=message):
            nw.posterior(y, beta)


@pytest.mark.parametrize("case", CASES)
def test_quantiles_of_vectors_point_to_the_marginals(case):
    if case.dimensions == (1,) or not hasattr(case.make(2, ()), "marginals"):
        return
    d = case.make(2, (4,))
    if isinstance(d, ProductNormalWishart):
        return  # a belief about Gaussians, not a distribution of targets
    for what, value in (("cdf", torch.zeros(4, 2).double()), ("icdf", torch.ones(4).double() / 2)):
        message = rf"`{what}` .*K = 2; use `marginals\(\)\.{what}`"
        with pytest.raises(NotImplementedError, match=message):
            getattr(d, what)(value)


def test_probabilities_outside_the_unit_interval_have_no_quantile():
    for d in (
        StudentT(torch.tensor(3.0)),
        NormalMixture(torch.tensor([0.0, 1.0]), torch.ones(2)),
    ):
        assert d.icdf(torch.tensor([-0.1, 1.1])).isnan().all()
        assert d.icdf(torch.tensor([0.0, 1.0])).tolist() == [-math.inf, math.inf]


# -- ensembles ------------------------------------------------------------------------------------


def test_measures_without_closed_form_name_the_way_out():
    ensemble = GaussianEnsemble(torch.zeros(2, 1), torch.ones(2, 1))
    with pytest.raises(NotImplementedError, match=r"`expected_pairwise_kl\(\)`, or `mutual_inf"):
        ensemble.mutual_information()
    with pytest.raises(NotImplementedError, match=r"use `predictive_entropy_mc\(n, generator\)`"):
        ensemble.predictive_entropy()


@pytest.mark.parametrize("n", [0, -1])
def test_an_estimate_needs_a_draw(n):
    ensemble = GaussianEnsemble(torch.zeros(2, 1), torch.ones(2, 1))
    for measure in (ensemble.mutual_information_mc, ensemble.predictive_entropy_mc):
        with pytest.raises(ValueError, match=rf"`n` must be at least 1; got {n}\."):
            measure(n)


def test_full_covariances_have_no_independent_coordinates():
    ensemble = GaussianEnsemble(torch.zeros(3, 2), torch.eye(2).expand(3, 2, 2))
    with pytest.raises(ValueError, match=r"full covariances.*pass variances"):
        ensemble.coordinates()


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
