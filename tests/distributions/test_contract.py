"""The promises of every distribution: shapes, broadcasting, expand, dtypes, copies, sampling."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest
import torch
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal, kl_divergence

from _asserts import assert_close
from _contract import (
    BATCHES,
    DISTRIBUTIONS,
    MAPPED,
    MEMBERS,
    answers,
    cast,
    each,
    every,
    points,
    select,
    settings,
    spread,
)
from priornet import distributions
from priornet.distributions import (
    GaussianEnsemble,
    MultivariateStudentT,
    NormalWishart,
    StudentT,
    Wishart,
)
from priornet.uncertainty import uncertainty

EVERY = settings(DISTRIBUTIONS)
ALL = [*EVERY, *settings(MAPPED)]  # about values and shapes, not derivatives
EVERY_K = spread([*DISTRIBUTIONS, *MAPPED])  # about dtypes and copies, whatever the shapes
LIFTED = (torch.bfloat16, torch.float16)


def assert_same(actual, expected, name=""):
    """Equal to the last bit, dtypes and shapes included."""
    torch.testing.assert_close(
        actual, expected, rtol=0, atol=0, equal_nan=True, msg=lambda text: f"{name}: {text}"
    )


def as_tuple(draws):
    return draws if isinstance(draws, tuple) else (draws,)


def test_every_public_distribution_has_a_case():
    public = [getattr(distributions, name) for name in distributions.__all__]
    classes = {c for c in public if isinstance(c, type) and issubclass(c, Distribution)}
    assert classes == {type(case.make(1, ())) for case in (*DISTRIBUTIONS, *MAPPED)}


# -- shapes ---------------------------------------------------------------------------------------


@every(ALL)
def test_every_answer_has_its_shape_dtype_and_device(case, k_dim, batch, device, dtype):
    d = case.make(k_dim, batch, device, dtype)
    assert (d.batch_shape, d.event_shape) == (batch, case.event(k_dim))
    for name, value in answers(case, d, cast(points(k_dim, batch), device, dtype)).items():
        _, event = case.queries[name]
        assert value.shape == (*batch, *event(k_dim)), name
        assert value.dtype == dtype, name
        assert value.device.type == device.type, name
        assert not value.isnan().any(), name


@pytest.mark.parametrize("sample_shape", [(), (5, 2)])
@every(ALL)
def test_draws_have_their_shape_and_a_finite_density(
    case, k_dim, batch, sample_shape, device, dtype
):
    d = case.make(k_dim, batch, device, dtype)
    draws = case.sample(d, sample_shape)
    for draw, event in zip(as_tuple(draws), case.sample_events(k_dim), strict=True):
        assert draw.shape == (*sample_shape, *batch, *event)
        assert (draw.dtype, draw.device.type) == (dtype, device.type)
    if not isinstance(d, GaussianEnsemble):  # its members have no density over Gaussians
        log_prob = d.log_prob(draws)
        assert log_prob.shape == (*sample_shape, *batch)
        assert log_prob.isfinite().all()


@every(EVERY)
def test_sample_has_no_gradient_and_takes_a_generator(case, k_dim, batch, device, dtype):
    parameters = {
        name: value.requires_grad_()
        for name, value in cast(case.draw(k_dim, batch), device, dtype).items()
    }
    d = case.build(**parameters)
    one, two = (
        as_tuple(d.sample((3,), generator=torch.Generator(device).manual_seed(1))) for _ in range(2)
    )
    assert_same(one, two)
    assert not any(draw.requires_grad for draw in one)


@every(EVERY)
def test_rsample_has_a_gradient_in_every_parameter_and_takes_a_generator(
    case, k_dim, batch, device, dtype
):
    parameters = {
        name: value.requires_grad_()
        for name, value in cast(case.draw(k_dim, batch), device, dtype).items()
    }
    d = case.build(**parameters)
    if not d.has_rsample:
        with pytest.raises(NotImplementedError):
            d.rsample()
        return
    one, two = (
        as_tuple(d.rsample((3,), generator=torch.Generator(device).manual_seed(1)))
        for _ in range(2)
    )
    assert_same(one, two)
    grads = torch.autograd.grad([draw.square().sum() for draw in one], list(parameters.values()))
    for name, grad in zip(parameters, grads, strict=True):
        assert grad.isfinite().all(), name
        assert (grad != 0).any(), name


@every(ALL)
def test_log_prob_accepts_sample_axes_in_front_of_the_batch(case, k_dim, batch, device, dtype):
    d = case.make(k_dim, batch, device, dtype)
    if isinstance(d, GaussianEnsemble):
        return
    at = cast(points(k_dim, (5, *batch)), device, dtype)
    log_prob = case.queries["log_prob"][0]
    rows = [log_prob(d, select(at, (i,))) for i in range(5)]
    assert_close(log_prob(d, at), torch.stack(rows), rel=1e-5 if dtype == torch.float32 else 1e-12)


@every(ALL)
def test_one_point_may_be_asked_of_a_whole_batch(case, k_dim, batch, device, dtype):
    d = case.make(k_dim, batch, device, dtype)
    if isinstance(d, GaussianEnsemble):
        return
    log_prob = case.queries["log_prob"][0]
    one = cast(points(k_dim, ()), device, dtype)
    many = {name: value.expand((*batch, *value.shape)) for name, value in one.items()}
    if device.type == "cpu":
        assert_same(log_prob(d, one), log_prob(d, many))
        return
    # An accelerator picks its kernels by shape and stride, and so may round differently.
    rel = 1e-12 if dtype == torch.float64 else 1e-5
    assert_close(log_prob(d, one), log_prob(d, many), rel=rel, abs=rel)


# -- batches --------------------------------------------------------------------------------------


@every(settings([*DISTRIBUTIONS, *MAPPED], batches=((4,), (2, 3))))
def test_a_batch_is_a_loop_over_its_elements(case, k_dim, batch, device, dtype):
    parameters, at = (
        cast(t, device, dtype) for t in (case.draw(k_dim, batch), points(k_dim, batch))
    )
    together = answers(case, case.build(**parameters), at)
    for index in (tuple(n - 1 for n in batch), (1,) + (0,) * (len(batch) - 1)):
        one = case.build(**select(parameters, index, case.lead))
        for name, value in answers(case, one, select(at, index)).items():
            rel = 1e-9 if dtype == torch.float64 else 1e-4
            assert_close(together[name][index], value, rel=rel, abs=rel)


@every(settings([*DISTRIBUTIONS, *MAPPED], batches=((0,),)))
def test_an_empty_batch_gives_empty_answers(case, k_dim, batch, device, dtype):
    d = case.make(k_dim, batch, device, dtype)
    for name, value in answers(case, d, cast(points(k_dim, batch), device, dtype)).items():
        assert value.shape == (0, *case.queries[name][1](k_dim)), name
    for draw in as_tuple(case.sample(d, (2,))):
        assert draw.shape[:2] == (2, 0)


@pytest.mark.parametrize("more", [(), (2, 1)])
@every(ALL)
def test_expand_repeats_the_answers(case, k_dim, batch, more, device, dtype):
    target = (*more, *batch) or (4,)
    d = case.make(k_dim, batch, device, dtype)
    wide = d.expand(torch.Size(target))
    assert type(wide) is type(d)
    assert (wide.batch_shape, wide.event_shape) == (target, d.event_shape)
    at = cast(points(k_dim, batch), device, dtype)
    wide_at = {
        name: value.expand((*target, *value.shape[len(batch) :])) for name, value in at.items()
    }
    narrow = answers(case, d, at)
    for name, value in answers(case, wide, wide_at).items():
        _, event = case.queries[name]
        rel = 1e-9 if dtype == torch.float64 else 1e-4
        assert_close(value, narrow[name].expand((*target, *event(k_dim))), rel=rel, abs=rel)


@every(EVERY)
def test_gradients_flow_through_expand(case, k_dim, batch, device):
    """The gradient of a sum over three copies is three times the gradient."""
    parameters, at = (
        cast(t, device, torch.float64) for t in (case.draw(k_dim, batch), points(k_dim, batch))
    )
    parameters = {name: value.requires_grad_() for name, value in parameters.items()}
    names = [n for n in case.queries if n.startswith(("log_prob", "expected", "entropy", "cdf"))]
    at_wide = {n: v.expand((3, *v.shape)) for n, v in at.items()}
    grads = []
    for shape, where in ((batch, at), ((3, *batch), at_wide)):
        d = case.build(**parameters).expand(shape)
        values = [case.queries[name][0](d, where).sum() for name in names]
        moved = [value for value in values if value.requires_grad]
        grads.append(torch.autograd.grad(moved, list(parameters.values())))
    for name, one, three in zip(parameters, *grads, strict=True):
        assert (one != 0).any(), name
        assert_close(three, 3 * one, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("build", "names"),
    [
        pytest.param(NormalWishart, ("belief", "df"), id="NormalWishart"),
        pytest.param(NormalWishart.from_excess, ("belief", "excess"), id="from_excess"),
        pytest.param(Wishart, ("df",), id="Wishart"),
        pytest.param(Wishart.from_excess, ("excess",), id="Wishart.from_excess"),
        pytest.param(MultivariateStudentT, ("df",), id="MultivariateStudentT"),
        pytest.param(StudentT, ("df", "loc"), id="StudentT"),
    ],
)
def test_numbers_stand_for_tensors(build, names, device, dtype):
    case = next(c for c in DISTRIBUTIONS if c.build == build)
    parameters = cast(case.draw(1, (4,)), device, dtype)
    at = cast(points(1, (4,)), device, dtype)
    plain = build(**{**parameters, **dict.fromkeys(names, 3.5)})
    full = build(**{**parameters, **{n: torch.full_like(parameters[n], 3.5) for n in names}})
    assert plain.batch_shape == (4,)
    for name, value in answers(case, plain, at).items():
        assert value.dtype == dtype, name
        assert_close(value, case.queries[name][0](full, at), rel=1e-6, abs=1e-6)


@every(settings([c for c in DISTRIBUTIONS if not c.lead], batches=((4,), (2, 3))))
def test_each_parameter_broadcasts_over_the_batch_of_the_others(case, k_dim, batch, device, dtype):
    parameters = cast(case.draw(k_dim, batch), device, dtype)
    at = cast(points(k_dim, batch), device, dtype)
    for name, value in parameters.items():
        one = value[(0,) * len(batch)]
        broadcast = case.build(**{**parameters, name: one})
        expected = case.build(**{**parameters, name: one.expand_as(value)})
        assert broadcast.batch_shape == batch
        for answer, found in answers(case, broadcast, at).items():
            assert_close(found, case.queries[answer][0](expected, at), rel=1e-5, abs=1e-5)


@each("batch", BATCHES)
@each("k_dim", [1, 2, 3, 5])
@pytest.mark.parametrize("product", [False, True])
def test_kl_broadcasts_a_prior_without_batch(k_dim, batch, product, device, dtype):
    name = "ProductNormalWishart" if product else "NormalWishart"
    case = next(c for c in DISTRIBUTIONS if c.name == name)
    nw, prior = case.make(k_dim, batch, device, dtype), case.make(k_dim, (), device, dtype)
    for p, q in ((nw, prior), (prior, nw)):
        kl = kl_divergence(p, q)
        assert (kl.shape, kl.dtype) == (batch, dtype)
        assert_same(kl, kl_divergence(p.expand(batch), q.expand(batch)))


def _torch_gaussians(gaussian):
    diagonal = Independent(Normal(gaussian.loc, gaussian.variance.sqrt()), 1)
    return MultivariateNormal(gaussian.loc, scale_tril=gaussian.scale_tril), diagonal


@each("batch", BATCHES)
@each("k_dim", [1, 2, 3, 5])
def test_kl_between_every_kind_of_gaussian_has_the_batch_shape(k_dim, batch, device, dtype):
    case = next(c for c in DISTRIBUTIONS if c.name == "Gaussian(scale_tril)")
    ours = case.make(k_dim, batch, device, dtype)
    kinds = (ours, *_torch_gaussians(ours))
    for p, q in itertools.product(kinds, kinds):
        kl = kl_divergence(p, q)
        assert (kl.shape, kl.dtype) == (batch, dtype)


@each("batch", BATCHES)
@each("k_dim", [1, 2, 3, 5])
@pytest.mark.parametrize("name", ["NormalWishart", "ProductNormalWishart", "Gaussian(variance)"])
def test_uncertainty_record_has_the_shapes_it_documents(name, k_dim, batch, device, dtype):
    case = next(c for c in DISTRIBUTIONS if c.name == name)
    record = uncertainty(case.make(k_dim, batch, device, dtype))
    for field in ("total_entropy", "data_entropy", "mutual_information", "epkl"):
        value = getattr(record, field)
        assert (value.shape, value.dtype) == (batch, dtype)
    for field in ("total_variance", "data_variance", "knowledge_variance"):
        assert getattr(record, field).shape == (*batch, k_dim)


@each("batch", BATCHES)
@each("k_dim", [1, 2, 3, 5])
def test_uncertainty_record_of_an_ensemble_leaves_out_what_has_no_closed_form(
    k_dim, batch, device, dtype
):
    case = next(c for c in DISTRIBUTIONS if c.name == "GaussianEnsemble(covariances)")
    record = uncertainty(case.make(k_dim, batch, device, dtype))
    assert record.total_entropy is None
    assert record.mutual_information is None
    assert record.epkl.shape == record.data_entropy.shape == batch


@each("k_dim", [1, 2, 3, 5])
@each("batch", BATCHES)
def test_ensemble_estimates_and_fit_have_the_batch_shape(k_dim, batch, device, dtype, generator):
    case = next(c for c in DISTRIBUTIONS if c.name == "GaussianEnsemble(covariances)")
    ensemble = case.make(k_dim, batch, device, dtype)
    assert ensemble.n_members == MEMBERS
    for measure in (ensemble.mutual_information_mc, ensemble.predictive_entropy_mc):
        value = measure(2, generator)
        assert (value.shape, value.dtype) == (batch, dtype)
    fitted = NormalWishart.fit(ensemble)
    assert (fitted.batch_shape, fitted.event_shape) == (batch, (k_dim,))
    assert fitted.dtype == dtype
    members = ensemble.members
    assert members.batch_shape == (MEMBERS, *batch)


# -- dtypes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", LIFTED, ids=str)
@every(EVERY_K)
def test_half_precision_is_computed_in_float32(case, k_dim, batch, half, device):
    parameters, at = (
        cast(t, device, half) for t in (case.draw(k_dim, batch), points(k_dim, batch))
    )
    lifted = case.build(**cast(parameters, torch.float32))
    expected = answers(case, lifted, cast(at, torch.float32))
    for name, value in answers(case, case.build(**parameters), at).items():
        assert value.dtype == torch.float32, name
        assert_same(value, expected[name], name)


@every(EVERY_K)
def test_autocast_rounds_nothing(case, k_dim, batch, device):
    parameters, at = (
        cast(t, device, torch.float32) for t in (case.draw(k_dim, batch), points(k_dim, batch))
    )
    expected = answers(case, case.build(**parameters), at)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        found = answers(case, case.build(**parameters), at)
    for name, value in found.items():
        assert_same(value, expected[name], name)


@pytest.mark.parametrize("pair", ["NormalWishart", "ProductNormalWishart", "Wishart"])
@each("batch", BATCHES)
@each("k_dim", [1, 2, 3, 5])
def test_autocast_rounds_no_divergence(pair, k_dim, batch, device):
    case = next(c for c in DISTRIBUTIONS if c.name == pair)
    p, q = (case.make(k_dim, b, device, torch.float32) for b in (batch, ()))
    expected = kl_divergence(p, q)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        assert_same(kl_divergence(p, q), expected)


@every(ALL)
def test_draws_are_the_same_under_autocast(case, k_dim, batch, device):
    d = case.make(k_dim, batch, device, torch.float32)
    draw = d.rsample if d.has_rsample else d.sample
    expected = draw((3,), generator=torch.Generator(device).manual_seed(0))
    with torch.autocast(device.type, dtype=torch.bfloat16):
        found = draw((3,), generator=torch.Generator(device).manual_seed(0))
    assert_same(found, expected)


# -- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
@every(EVERY_K)
def test_copies_and_pickles_answer_alike(case, k_dim, batch, duplicate, device, dtype):
    at = cast(points(k_dim, batch), device, dtype)
    d = case.make(k_dim, batch, device, dtype)
    expected = answers(case, d, at)
    twin = duplicate(d)
    assert type(twin) is type(d)
    assert (twin.batch_shape, twin.event_shape) == (d.batch_shape, d.event_shape)
    for name, value in answers(case, twin, at).items():
        assert_same(value, expected[name], name)


@every(ALL)
def test_repr_names_the_class(case, k_dim, batch, device, dtype):
    d = case.make(k_dim, batch, device, dtype)
    assert repr(d).startswith(type(d).__name__)
