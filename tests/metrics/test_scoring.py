"""Proper scores: against quadrature, closed forms and 50 digits."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import integrate, stats
from torch.distributions import Independent, MultivariateNormal, Normal
from torch.distributions import StudentT as TorchStudentT

from _asserts import assert_close, assert_mean_close
from _beliefs import (
    random_ensemble,
    random_normal,
    random_normal_wishart,
    random_product,
    random_uniform,
)
from priornet.distributions import (
    Gaussian,
    MultivariateStudentT,
    NormalMixture,
    StudentT,
)
from priornet.metrics import crps, interval_score, nll, rmse
from priornet.metrics.scoring import standard_student_t_crps

DOUBLE = torch.float64


def double(*values):
    return torch.tensor(values, dtype=DOUBLE)


def by_quadrature(cdf, y: float) -> float:
    """The definition of the CRPS, with a cut at the target where the integrand jumps."""
    below = integrate.quad(lambda x: cdf(x) ** 2, y - 60, y, limit=500, epsabs=1e-12)[0]
    above = integrate.quad(lambda x: (1 - cdf(x)) ** 2, y, y + 60, limit=500, epsabs=1e-12)[0]
    return below + above


def single_predictives() -> dict:
    """Event (), batch (5,)."""
    loc, scale = random_normal((5,), 1), random_uniform(0.5, 2.0, (5,), 2)
    means, scales = 2 * random_normal((4, 5), 3), random_uniform(0.3, 1.5, (4, 5), 4)
    return {
        "normal": Normal(loc, scale),
        "student": StudentT(random_uniform(3.0, 20.0, (5,), 5), loc, scale),
        "torch student": TorchStudentT(random_uniform(3.0, 20.0, (5,), 5), loc, scale),
        "mixture": NormalMixture(means, scales),
    }


def vector_predictives(k_dim: int) -> dict:
    """Event (K,), batch (5,)."""
    belief = random_normal_wishart(k_dim, (5,), seed=6)
    ensemble = random_ensemble(4, k_dim, (5,), seed=7)
    loc, variance = random_normal((5, k_dim), 8), random_uniform(0.5, 2.0, (5, k_dim), 9)
    gaussian = Gaussian(loc, variance=variance)
    return {
        "gaussian": gaussian,
        "student": belief.predictive(),
        "mixture": ensemble.predictive(),
        "product of students": random_product(k_dim, (5,), seed=10).predictive(),
        "independent normals": Independent(Normal(loc, variance.sqrt()), 1),
        "torch gaussian": MultivariateNormal(loc, torch.diag_embed(variance)),
    }


def draw(predictive, shape, generator):
    """Draws from a generator; torch's own distributions take none."""
    if isinstance(predictive, Normal):
        noise = torch.randn(*shape, *predictive.batch_shape, dtype=DOUBLE, generator=generator)
        return predictive.loc + predictive.scale * noise
    return predictive.sample(shape, generator)


SINGLE = ("normal", "student", "mixture")
VECTOR = tuple(vector_predictives(1))


@pytest.mark.parametrize("name", SINGLE)
def test_crps_matches_its_definition(name):
    predictive, y = single_predictives()[name], random_normal((5,), 20) * 2
    for i, score in enumerate(crps(predictive, y)):

        def cdf(x, i=i):
            return predictive.cdf(torch.full((5,), x, dtype=DOUBLE))[i].item()

        # What 60 units away are left of a Student-T's squared tail is below 1e-9.
        assert_close(score, by_quadrature(cdf, y[i].item()), rel=1e-7)


@pytest.mark.parametrize("name", SINGLE)
def test_crps_matches_expected_distances_of_draws(name, generator):
    predictive, y = single_predictives()[name], random_normal((5,), 21)
    first, second = draw(predictive, (2, 200_000), generator)
    draws = (first - y).abs() - 0.5 * (first - second).abs()
    assert_mean_close(draws, crps(predictive, y))


def test_crps_of_torchs_student_is_that_of_ours():
    predictives, y = single_predictives(), random_normal((5,), 22)
    assert_close(crps(predictives["torch student"], y), crps(predictives["student"], y), rel=1e-14)


def test_gaussian_crps_matches_gneiting_and_raftery():
    loc, scale, y = 0.3, 1.7, 2.1
    z = (y - loc) / scale
    expected = scale * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - math.pi**-0.5)
    assert_close(crps(Normal(double(loc), double(scale)), double(y)), [expected], rel=1e-14)


def test_mixture_of_equals_scores_as_one_gaussian():
    loc, scale, y = random_normal((6,), 1), random_uniform(0.5, 2.0, (6,), 2), random_normal((6,))
    mixture = NormalMixture(loc.expand(5, 6), scale.expand(5, 6))
    assert_close(crps(mixture, y), crps(Normal(loc, scale), y), rel=1e-13)


def test_mixture_without_spread_is_the_empirical_score():
    members, y = random_normal((7,), 3), double(0.4)
    mixture = NormalMixture(members[:, None], torch.full((7, 1), 1e-9, dtype=DOUBLE))
    pairs = (members[:, None] - members).abs().mean()
    assert_close(crps(mixture, y), ((members - y).abs().mean() - 0.5 * pairs)[None], rel=1e-7)


@pytest.mark.parametrize("k_dim", [1, 3])
@pytest.mark.parametrize("name", VECTOR)
def test_crps_of_a_vector_sums_over_its_coordinates(name, k_dim):
    predictive, y = vector_predictives(k_dim)[name], random_normal((5, k_dim), 23)
    scores = crps(predictive, y)
    assert scores.shape == (5,)
    if name in ("independent normals", "torch gaussian"):
        single = Normal(predictive.mean, predictive.variance.sqrt())
    else:
        single = predictive.marginals()
    by_hand = sum(crps_at(single, y, k) for k in range(k_dim))
    assert_close(scores, by_hand, rel=1e-12)


def crps_at(single, y, k):
    """Score of one coordinate by itself, from scalars that are cut out by hand."""
    if isinstance(single, Normal):
        part = Normal(single.loc[:, k], single.scale[:, k])
    elif isinstance(single, StudentT):
        part = StudentT(single.df[:, k], single.loc[:, k], single.scale[:, k])
    else:
        part = NormalMixture(single._means[:, k].T, single._scales[:, k].T)
    return crps(part, y[:, k])


def test_infinite_variance_and_missing_mean_have_finite_scores():
    predictive = MultivariateStudentT(
        double(2.0, 1.5, 1.0), torch.zeros(3, 1).double(), torch.eye(1).double()
    )
    scores = crps(predictive, torch.zeros(3, 1, dtype=DOUBLE))
    assert scores.isfinite().all()
    assert scores.diff().gt(0).all()  # heavier tails cost more


@pytest.mark.parametrize("name", SINGLE)
def test_true_predictive_scores_best(name, generator):
    predictive = single_predictives()[name]
    y = draw(predictive, (20_000,), generator)
    many = predictive.expand(y.shape)
    own = crps(many, y).mean(0)
    # A target moved up is a prediction moved down; a target doubled is a prediction halved.
    assert (crps(many, y + 0.3).mean(0) > own).all()
    assert (0.5 * crps(many, 2 * y).mean(0) > own).all()


def parameters(name):
    loc = random_normal((3,), 1).requires_grad_()
    scale = random_uniform(0.5, 2.0, (3,), 2).requires_grad_()
    df = random_uniform(1.2, 9.0, (3,), 3).requires_grad_()
    means = random_normal((4, 3), 4).requires_grad_()
    scales = random_uniform(0.5, 2.0, (4, 3), 5).requires_grad_()
    return {
        "normal": (Normal, (loc, scale)),
        "student": (StudentT, (df, loc, scale)),
        "mixture": (NormalMixture, (means, scales)),
    }[name]


@pytest.mark.parametrize("name", SINGLE)
def test_crps_has_the_right_gradients(name):
    kind, leaves = parameters(name)
    y = random_normal((3,), 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda y, *p: crps(kind(*p), y), (y, *leaves))


@pytest.mark.parametrize("name", SINGLE)
def test_float32_agrees_with_float64(name):
    kind, leaves = parameters(name)
    y = random_normal((3,), 7)
    exact = crps(kind(*leaves), y)
    single = crps(kind(*(leaf.float() for leaf in leaves)), y.float())
    assert single.dtype == torch.float32
    assert_close(single, exact, rel=3e-6)


@given(shift=st.floats(-50, 50), scale=st.floats(0.01, 100))
def test_crps_moves_and_scales_with_the_target(shift, scale):
    loc, spread, y = random_normal((4,), 1), random_uniform(0.5, 2.0, (4,), 2), random_normal((4,))
    moved = crps(StudentT(double(3.0), shift + scale * loc, scale * spread), shift + scale * y)
    assert_close(moved, scale * crps(StudentT(double(3.0), loc, spread), y), rel=1e-8)


def test_nll_matches_scipy():
    y = random_normal((5,), 24)
    predictives = single_predictives()
    normal, student = predictives["normal"], predictives["student"]
    assert_close(nll(normal, y), -stats.norm.logpdf(y, normal.loc, normal.scale), rel=1e-12)
    expected = -stats.t.logpdf(y, student.df, student.loc, student.scale)
    assert_close(nll(student, y), expected, rel=1e-12)


def test_nll_of_a_vector_is_joint():
    mean, covariance = np.array([0.2, -1.0]), np.array([[1.0, 0.6], [0.6, 2.0]])
    gaussian = Gaussian(
        torch.tensor(mean)[None], scale_tril=torch.linalg.cholesky(torch.tensor(covariance))[None]
    )
    # scipy's annotations take the covariance for an int.
    joint = stats.multivariate_normal(mean, covariance)  # pyright: ignore[reportArgumentType]
    expected = -joint.logpdf([1.0, 1.0])
    assert_close(nll(gaussian, torch.ones(1, 2, dtype=DOUBLE)), [expected], rel=1e-12)


def test_rmse_is_per_coordinate():
    prediction, y = random_normal((50, 2), 1), random_normal((50, 2), 2)
    assert_close(rmse(prediction, y), np.sqrt(((prediction - y).numpy() ** 2).mean(0)), rel=1e-13)
    assert_close(rmse(prediction[:, 0], y[:, 0]), rmse(prediction, y)[0], rel=0)


def test_interval_score_charges_width_and_misses():
    lower, upper = torch.zeros(4, dtype=DOUBLE), torch.full((4,), 2.0, dtype=DOUBLE)
    scores = interval_score(lower, upper, double(1.0, 0.0, -1.0, 5.0), coverage=0.8)
    assert_close(scores, [2.0, 2.0, 12.0, 32.0], rel=1e-12)


def test_true_quantiles_have_the_best_interval_score():
    y = random_normal((100_000,), 3)
    scores = {}
    for half_width in (1.0, 1.645, 2.3):
        ends = torch.full_like(y, half_width)
        scores[half_width] = interval_score(-ends, ends, y, coverage=0.9).mean()
    assert scores[1.645] == min(scores.values())


NORMAL, Y = Normal(torch.zeros(3), 1.0), torch.zeros(3)
BELIEF = random_normal_wishart(1, (3,))


@pytest.mark.parametrize("score", [crps, nll])
@pytest.mark.parametrize(
    ("predictive", "y", "kind", "message"),
    [
        (NORMAL, Y.double(), TypeError, r"`y` is torch.float64 but the distribution is"),
        (NORMAL, torch.zeros(3, 1), ValueError, r"`y` must have shape \(3,\).*got \(3, 1\)"),
        (NORMAL, [0.0], TypeError, r"`y` must be a tensor; got list"),
        (3.0, Y, TypeError, r"`distribution` must be one; got float"),
        (BELIEF, Y.double(), TypeError, r"over Gaussians: pass its `.predictive\(\)`"),
        (BELIEF.predictive(), Y.double(), ValueError, r"pass `y.unsqueeze\(-1\)`"),
    ],
)
def test_bad_target_is_refused_in_one_sentence(score, predictive, y, kind, message):
    with pytest.raises(kind, match=message):
        score(predictive, y)


def test_unknown_family_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="no closed-form CRPS for Laplace"):
        crps(torch.distributions.Laplace(torch.zeros(3), 1.0), Y)


@pytest.mark.parametrize(
    ("prediction", "y", "message"),
    [
        (Y, torch.zeros(2), r"`y` must have shape \(3,\).*one target per prediction"),
        (torch.zeros(0), torch.zeros(0), r"`prediction` must hold one or more rows"),
    ],
)
def test_rmse_refuses_rows_that_do_not_pair(prediction, y, message):
    with pytest.raises(ValueError, match=message):
        rmse(prediction, y)


@pytest.mark.parametrize(
    ("lower", "upper", "y", "coverage", "message"),
    [
        (Y + 1, Y, Y, 0.9, r"`upper` must be no smaller than `lower`; 3 of 3"),
        (Y, Y, Y, 1.0, r"`coverage` must lie between 0 and 1; got 1"),
        (Y, torch.zeros(2), Y, 0.9, r"`upper` must have shape \(3,\)"),
        (Y, Y, torch.zeros(2), 0.9, r"`y` must have shape \(3,\)"),
    ],
)
def test_interval_score_refuses_nonsense(lower, upper, y, coverage, message):
    with pytest.raises(ValueError, match=message):
        interval_score(lower, upper, y, coverage)


DF = (0.6, 0.9, 0.99, 1.0, 1 + 1e-9, 1.0624, 1.0626, 1.5, 2.0, 3.0, 30.0, 1e6)


def standard_by_quadrature(z: float, df: float) -> float:
    """The definition; sinh spreads the nodes over tails that fall slowly."""
    t = stats.t(df)

    def below(s: float) -> float:
        return t.cdf(-np.sinh(s)) ** 2 * np.cosh(s)

    edges = [(at, 6.0) for at in np.arcsinh([-z, z])] + 2 * [(6.0, 300.0)]
    return sum(integrate.quad(below, *edge, limit=2000)[0] for edge in edges)


@pytest.mark.parametrize("df", DF)
@pytest.mark.parametrize("z", [0.0, 0.4, -3.0, 25.0])
def test_matches_its_definition(z, df):
    excess = torch.tensor(df - 2, dtype=torch.float64)
    crps = standard_student_t_crps(torch.tensor(z, dtype=torch.float64), excess)
    assert_close(crps, standard_by_quadrature(z, df), rel=1e-9)


@pytest.mark.parametrize("df", [1.2, 2.5, 7.0, 80.0])
@pytest.mark.parametrize("z", [0.0, 1.3, -6.0])
def test_matches_the_textbook_form_at_high_precision(z, df):
    with mpmath.workdps(40):
        nu, x = mpmath.mpf(df), mpmath.mpf(z)
        half = mpmath.mpf("0.5")
        beta = mpmath.beta(half, nu / 2)
        density = (1 + x * x / nu) ** (-(nu + 1) / 2) / (mpmath.sqrt(nu) * beta)
        inside = mpmath.betainc(half, nu / 2, 0, x * x / (nu + x * x), regularized=True)
        expected = (
            abs(x) * inside
            + 2 * density * (nu + x * x) / (nu - 1)
            - 2 * mpmath.sqrt(nu) / (nu - 1) * mpmath.beta(half, nu - half) / beta**2
        )
    excess = torch.tensor(df, dtype=torch.float64) - 2
    crps = standard_student_t_crps(torch.tensor(z, dtype=torch.float64), excess)
    assert_close(crps, float(expected), rel=1e-13)


def test_cauchy_at_its_centre_is_two_ln_two_over_pi():
    crps = standard_student_t_crps(
        torch.zeros((), dtype=torch.float64), torch.tensor(-1.0).double()
    )
    assert_close(crps, 2 * np.log(2) / np.pi, rel=1e-15)


def test_is_infinite_from_one_half_down_only():
    excess = torch.tensor([-1.49999, -1.5, -1.7, -1.999], dtype=torch.float64)
    crps = standard_student_t_crps(torch.ones(4, dtype=torch.float64), excess)
    assert crps.isinf().tolist() == [False, True, True, True]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_degrees_of_freedom_are_a_gaussian(dtype):
    z = torch.linspace(-8, 8, 33, dtype=dtype)
    gaussian = z.double() * torch.erf(z.double() / 2**0.5) - np.pi**-0.5
    gaussian += (2 / np.pi) ** 0.5 * torch.exp(-0.5 * z.double() ** 2)
    for excess in (1e12, 1e30, torch.inf):
        crps = standard_student_t_crps(z, torch.tensor(excess, dtype=dtype))
        assert_close(crps, gaussian, rel=3e-6 if dtype == torch.float32 else 1e-10)


def test_standard_crps_in_float32_agrees_with_float64():
    z = torch.linspace(-50, 50, 41)
    excess = torch.tensor(DF)[:, None] - 2
    exact = standard_student_t_crps(z.double(), excess.double())
    assert_close(standard_student_t_crps(z, excess), exact, rel=2e-6)


@pytest.mark.parametrize("z", [1e25, -1e25])
@pytest.mark.parametrize("excess", [-1.2, -1.0, 1.0, 1e8])
def test_far_targets_cost_their_distance_in_float32(z, excess):
    crps = standard_student_t_crps(torch.tensor(z), torch.tensor(excess))
    assert_close(crps, 1e25, rel=2e-2 if excess < -1 else 1e-6)


@pytest.mark.parametrize("df", [0.7, 1.0, 1.03, 1.0624, 1.0626, 2.0, 5.0, 1e3])
def test_gradients_in_both_arguments(df):
    z = torch.tensor([-2.0, 0.0, 0.1, 7.0], dtype=torch.float64, requires_grad=True)
    excess = torch.full((4,), df - 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(standard_student_t_crps, (z, excess))


def test_impossible_degrees_of_freedom_leave_no_nan_in_the_gradient():
    z = torch.ones(2, dtype=torch.float64, requires_grad=True)
    excess = torch.tensor([-1.8, 1.0], dtype=torch.float64, requires_grad=True)
    standard_student_t_crps(z, excess)[1].backward()
    assert z.grad is not None
    assert excess.grad is not None
    assert z.grad.isfinite().all()
    assert excess.grad.isfinite().all()
