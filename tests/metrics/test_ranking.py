"""Rejection, detection and rank correlation: against vectors, brute force and SciPy."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from torch.utils._python_dispatch import TorchDispatchMode

from _vectors import cases, expected, tensors
from priornet.metrics import ood_auroc, prediction_rejection_ratio, rejection_curve, spearman

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["f64", "f32"])
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6}
# Whole numbers: exact in every dtype, rich in ties, and no rounding that could make or break one.
PAIRS = st.integers(2, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-9, 9), min_size=n, max_size=n)] * 2)
)


def vector(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


def area(values, fraction):
    return torch.trapezoid(values, fraction)


def squared_error(case, dtype):
    given = tensors(case["inputs"], dtype)
    return (given["pred"] - given["target"]) ** 2, given["uncertainty"]


def assert_near(actual, reference, tolerance):
    reference = torch.as_tensor(reference, dtype=torch.float64)
    torch.testing.assert_close(actual.double(), reference, rtol=tolerance, atol=tolerance)


# Reference vectors


@DTYPES
@pytest.mark.parametrize("case", cases("prr"))
def test_ratio_matches_vector(case, dtype):
    ratio = prediction_rejection_ratio(*squared_error(case, dtype))
    assert ratio.dtype == dtype
    assert ratio.shape == ()
    assert_near(ratio, expected(case, "prr"), TOLERANCE[dtype])


@DTYPES
@pytest.mark.parametrize("case", cases("prr"))
def test_curve_areas_match_vector(case, dtype):
    curve = rejection_curve(*squared_error(case, dtype))
    assert all(values.dtype == dtype for values in curve)
    for name in ("random", "oracle", "uncertainty"):
        found = area(getattr(curve, name), curve.fraction)
        assert_near(found, expected(case, f"area_{name}"), TOLERANCE[dtype])
        assert_near(getattr(curve, name)[0], expected(case, "base_mse"), TOLERANCE[dtype])


# Brute force


def curve_by_definition(error, score):
    """Average of the retained error over every rejection order the scores allow, in fractions."""
    n = len(error)
    orders = [
        order
        for order in permutations(range(n))
        if all(score[a] >= score[b] for a, b in pairwise(order))
    ]
    curves = [
        [Fraction(sum(error[i] for i in order[k:]), n) for k in range(n + 1)] for order in orders
    ]
    return [sum(column) / len(orders) for column in zip(*curves, strict=True)]


@settings(deadline=None, max_examples=60)
@given(
    st.integers(2, 5).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n)] * 2)
    )
)
def test_curve_is_the_average_over_all_orders_of_tied_examples(pair):
    error, uncertainty = pair
    curve = rejection_curve(vector(error), vector(uncertainty))
    assert_near(curve.uncertainty, list(map(float, curve_by_definition(error, uncertainty))), 1e-14)
    assert_near(curve.oracle, list(map(float, curve_by_definition(error, error))), 1e-14)
    n = len(error)
    assert_near(curve.fraction, [k / n for k in range(n + 1)], 1e-15)
    assert_near(curve.random, [sum(error) / n * (1 - k / n) for k in range(n + 1)], 1e-14)


@pytest.mark.parametrize("levels", [3, 40, None], ids=["many-ties", "few-ties", "no-ties"])
def test_ratio_matches_pairwise_ranks(levels):
    generator = torch.Generator().manual_seed(0)
    error, uncertainty = torch.randn(2, 150, dtype=torch.float64, generator=generator) ** 2
    if levels is not None:
        error, uncertainty = (error * levels).round(), (uncertainty * levels).round()

    def covariance(score):  # with ranks counted pair by pair
        rank = ((score[:, None] > score).double() + 0.5 * (score[:, None] == score)).sum(1)
        return torch.cov(torch.stack([error, rank]))[0, 1]

    ratio = prediction_rejection_ratio(error, uncertainty)
    assert_near(ratio, covariance(uncertainty) / covariance(error), 1e-12)


@settings(deadline=None)
@given(PAIRS)
def test_ratio_is_the_ratio_of_areas(pair):
    error, uncertainty = map(vector, pair)
    ratio = prediction_rejection_ratio(error, uncertainty)
    if len(set(pair[0])) == 1:
        assert ratio.isnan()
        return
    fraction, *curves = rejection_curve(error, uncertainty)
    by_uncertainty, by_chance, by_oracle = (area(values, fraction) for values in curves)
    assert_near(ratio, (by_chance - by_uncertainty) / (by_chance - by_oracle), 1e-11)


# Invariances and bounds


@settings(deadline=None)
@given(PAIRS)
def test_increasing_transform_of_uncertainty_changes_nothing(pair):
    error, uncertainty = map(vector, pair)
    ratio, curve = (
        prediction_rejection_ratio(error, uncertainty),
        rejection_curve(error, uncertainty),
    )
    for transformed in (
        uncertainty.exp(),
        uncertainty**3,
        1e-9 * uncertainty + 7,
        uncertainty.atan(),
    ):
        again = prediction_rejection_ratio(error, transformed)
        torch.testing.assert_close(again, ratio, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(rejection_curve(error, transformed).uncertainty, curve.uncertainty)


@settings(deadline=None)
@given(PAIRS, st.randoms(use_true_random=False))
def test_order_of_examples_changes_nothing(pair, random):
    shuffled = list(zip(*pair, strict=True))
    random.shuffle(shuffled)
    error, uncertainty = map(vector, pair)
    error_, uncertainty_ = map(vector, zip(*shuffled, strict=True))
    torch.testing.assert_close(
        prediction_rejection_ratio(error_, uncertainty_),
        prediction_rejection_ratio(error, uncertainty),
        rtol=0,
        atol=1e-12,
        equal_nan=True,
    )
    for before, after in zip(
        rejection_curve(error, uncertainty), rejection_curve(error_, uncertainty_), strict=True
    ):
        torch.testing.assert_close(after, before, rtol=0, atol=1e-13)


@settings(deadline=None)
@given(PAIRS.filter(lambda pair: len(set(pair[0])) > 1))
def test_perfect_is_one_reversed_is_minus_one_and_all_else_between(pair):
    for dtype in (torch.float32, torch.float64):
        error, uncertainty = (vector(values, dtype) for values in pair)
        assert prediction_rejection_ratio(error, error.exp()) == 1
        assert prediction_rejection_ratio(error, -error) == -1
        assert prediction_rejection_ratio(error, torch.ones_like(error)) == 0
        ratio = prediction_rejection_ratio(error, uncertainty)
        assert -1 <= ratio <= 1
        flipped = prediction_rejection_ratio(error, -uncertainty)
        torch.testing.assert_close(flipped, -ratio, rtol=0, atol=0)


@DTYPES
@pytest.mark.parametrize("power", [-1, 1], ids=["tiny", "huge"])
def test_scale_and_shift_of_error_change_nothing(dtype, power):
    generator = torch.Generator().manual_seed(1)
    error, uncertainty = torch.rand(2, 1000, dtype=dtype, generator=generator)
    error = (error * 1024).round() / 1024  # shifting by 64 is then exact in float32
    ratio = prediction_rejection_ratio(error, uncertainty)
    scale = 2.0 ** (power * (120 if dtype == torch.float32 else 1020))
    assert prediction_rejection_ratio(error * scale, uncertainty) == ratio
    assert_near(prediction_rejection_ratio(error + 64, uncertainty), ratio, TOLERANCE[dtype])


def test_random_uncertainty_scores_zero_within_its_standard_error():
    generator = torch.Generator().manual_seed(2)
    n, repeats = 400, 300
    error = torch.randn(n, dtype=torch.float64, generator=generator) ** 2
    ratios = torch.stack(
        [
            prediction_rejection_ratio(
                error, torch.rand(n, dtype=torch.float64, generator=generator)
            )
            for _ in range(repeats)
        ]
    )
    # Exact variance of e . (random permutation): S_ee S_rr / (n - 1), over (e . rank e) squared.
    deviation = error.sort().values - error.mean()
    rank = torch.arange(n, dtype=torch.float64) - (n - 1) / 2
    sd = (deviation.square().sum() * rank.square().sum() / (n - 1)).sqrt() / (deviation @ rank)
    assert ratios.mean().abs() <= 5 * sd / repeats**0.5
    assert (ratios.var() / sd**2 - 1).abs() <= 5 * (2 / repeats) ** 0.5


def test_curve_runs_from_mean_error_to_zero_above_the_oracle():
    generator = torch.Generator().manual_seed(3)
    error, uncertainty = torch.rand(2, 500, generator=generator)
    curve = rejection_curve(error, uncertainty)
    for values in curve[1:]:
        assert values.shape == (501,)
        assert_near(values[0], error.double().mean(), 1e-6)
        assert values[-1] == 0
        assert (values.diff() <= 0).all()
    assert (curve.uncertainty >= curve.oracle - 1e-6).all()


# float32 at size


class NoDouble(TorchDispatchMode):
    """Fail when an operation makes a float64 tensor."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, (tuple, list)) else (result,):
            assert not (isinstance(value, torch.Tensor) and value.dtype == torch.float64), func
        return result


def large_sample(shape):
    generator = torch.Generator().manual_seed(4)
    noise, other = torch.randn(2, 10**6, generator=generator)
    error = {
        "gaussian": noise**2,
        "heavy-tail": (3 * noise).exp(),
        "one-outlier": (noise**2).index_fill(0, torch.tensor([7]), 1e8),
        "off-centre": 1e4 + noise**2,
        "tied": (noise**2).round(),
    }[shape]
    return error, (noise.abs() + 2 * other.abs()).mul(1000 if shape != "tied" else 2).round()


@pytest.mark.parametrize("shape", ["gaussian", "heavy-tail", "one-outlier", "off-centre", "tied"])
def test_float32_keeps_its_digits_over_a_million_examples(shape):
    error, uncertainty = large_sample(shape)
    with NoDouble():
        ratio, curve = (
            prediction_rejection_ratio(error, uncertainty),
            rejection_curve(error, uncertainty),
        )
    reference = rejection_curve(error.double(), uncertainty.double())
    exact = prediction_rejection_ratio(error.double(), uncertainty.double())
    assert (ratio.double() - exact).abs() <= 1e-6
    for values, truth in zip(curve, reference, strict=True):
        torch.testing.assert_close(values.double(), truth, rtol=1e-6, atol=0)
        assert_near(area(values, curve.fraction), area(truth, reference.fraction), 1e-6)


# What comes in


@DTYPES
@pytest.mark.parametrize("value", [0.0, 0.1, -3.7, 1e30])
def test_equal_errors_leave_the_ratio_undefined(value, dtype):
    error, uncertainty = torch.full((7,), value, dtype=dtype), torch.arange(7, dtype=dtype)
    assert prediction_rejection_ratio(error, uncertainty).isnan()


def test_rounding_does_not_turn_equal_errors_into_an_infinite_ratio():
    # In float32 the mean of so many equal numbers is not their value, and the sums leave a rest.
    error, uncertainty = torch.full((1_000_003,), 1.7), torch.arange(1_000_003.0)
    assert prediction_rejection_ratio(error, uncertainty).isnan()


def test_infinite_uncertainty_ranks_last_and_ties_with_itself():
    error = vector([1.0, 2.0, 3.0, 9.0])
    infinite = vector([-torch.inf, 0.0, torch.inf, torch.inf])
    finite = vector([-1.0, 0.0, 5.0, 5.0])
    assert prediction_rejection_ratio(error, infinite) == prediction_rejection_ratio(error, finite)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    error, uncertainty = torch.arange(300).to(dtype), torch.arange(300).flip(0).to(dtype)
    ratio = prediction_rejection_ratio(error, uncertainty)
    assert ratio.dtype == torch.float32
    assert ratio == prediction_rejection_ratio(error.float(), uncertainty.float())


def test_inputs_with_stride_and_gradient_are_welcome():
    generator = torch.Generator().manual_seed(5)
    table = torch.rand(50, 2, generator=generator, requires_grad=True)
    ratio = prediction_rejection_ratio(table[:, 0], table[:, 1])
    assert ratio == prediction_rejection_ratio(*table.detach().T.contiguous())
    assert not ratio.requires_grad
    assert not rejection_curve(table[:, 0], table[:, 1]).oracle.requires_grad


GOOD = torch.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize("metric", [prediction_rejection_ratio, rejection_curve])
@pytest.mark.parametrize(
    ("error", "uncertainty", "kind", "message"),
    [
        (GOOD, torch.ones(4), ValueError, r"`uncertainty` must have shape \(3,\); got \(4,\)"),
        (GOOD, torch.ones(3, 1), ValueError, r"`uncertainty` must have one axis.*\(3, 1\)"),
        (torch.ones(3, 1), GOOD, ValueError, r"`error` must have one axis.*\(3, 1\)"),
        (torch.ones(1), torch.ones(1), ValueError, r"two examples or more.*holds 1"),
        (torch.ones(0), torch.ones(0), ValueError, r"two examples or more.*holds 0"),
        (GOOD, GOOD * torch.nan, ValueError, r"`uncertainty` must be free of NaN.*3 of 3"),
        (GOOD.log() / 0, GOOD, ValueError, r"`error` must be free of NaN.*1 of 3"),
        (GOOD / 0, GOOD, ValueError, r"`error` must be finite.*3 of 3"),
        (GOOD, GOOD.double(), TypeError, r"`uncertainty` is torch.float64 but `error` is"),
        (GOOD, GOOD.to("meta"), ValueError, r"`uncertainty` is on meta but `error` is on cpu"),
        (GOOD.long(), GOOD, TypeError, r"`error` must hold floating-point numbers.*int64"),
        (GOOD, GOOD.numpy(), TypeError, r"`uncertainty` must be a tensor.*ndarray"),
        (GOOD, 1.0, ValueError, r"`uncertainty` must have one axis.*\(\)"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(metric, error, uncertainty, kind, message):
    with pytest.raises(kind, match=message):
        metric(error, uncertainty)


@pytest.mark.parametrize("case", cases("prr"))
def test_other_definitions_in_use_follow_from_the_curve(case):
    """Two forms found in public code differ from the ratio only in which points they average."""
    given = tensors(case["inputs"])
    error = (given["pred"] - given["target"]).square()
    reference = expected(case, "prr_drop_last_point")
    if reference is None:  # ties: those forms then depend on the order of the rows
        assert expected(case, "prr_mse_of_retained") is None
        return
    curve = rejection_curve(error, given["uncertainty"])

    def ratio(found, oracle, chance):
        areas = [torch.trapezoid(c, dx=1.0) for c in (found, oracle, chance)]
        return (areas[2] - areas[0]) / (areas[2] - areas[1])

    dropped = [c[:-1] for c in (curve.uncertainty, curve.oracle, curve.random)]
    assert_near(ratio(*dropped), reference, 1e-9)
    kept = (1 - curve.fraction)[:-1]  # retained share: sums over N become means over the retained
    means = [c / kept for c in dropped]
    assert_near(ratio(*means), expected(case, "prr_mse_of_retained"), 1e-9)


DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["f64", "f32"])
TOLERANCE = {torch.float64: 1e-15, torch.float32: 1e-7}
# Few levels, so that ties are common; infinities of both signs among them.
SCORES = st.lists(
    st.one_of(st.integers(-5, 5).map(float), st.sampled_from([-torch.inf, torch.inf])),
    min_size=1,
    max_size=30,
)


def pair_count(score_in, score_out):
    """AUROC as its definition reads: every pair, a tie counting half."""
    wins = sum((out > in_) + 0.5 * (out == in_) for in_ in score_in for out in score_out)
    return wins / (len(score_in) * len(score_out))


@DTYPES
@pytest.mark.parametrize("case", cases("auc"))
def test_auroc_matches_vector(case, dtype):
    given = tensors(case["inputs"], dtype)
    auroc = ood_auroc(given["score_in"], given["score_ood"])
    assert auroc.dtype == dtype
    assert auroc.shape == ()
    assert abs(auroc.item() - expected(case, "auc_roc").item()) <= TOLERANCE[dtype]


@settings(deadline=None)
@given(SCORES, SCORES)
def test_auroc_counts_pairs_with_ties_and_infinities(score_in, score_out):
    auroc = ood_auroc(vector(score_in), vector(score_out))
    assert abs(auroc.item() - pair_count(score_in, score_out)) <= 1e-15


@settings(deadline=None)
@given(SCORES, SCORES)
def test_exchanging_the_sets_or_the_sign_mirrors_the_auroc(score_in, score_out):
    score_in, score_out = vector(score_in), vector(score_out)
    auroc = ood_auroc(score_in, score_out)
    for mirrored in (ood_auroc(score_out, score_in), ood_auroc(-score_in, -score_out)):
        torch.testing.assert_close(mirrored, 1 - auroc, rtol=0, atol=1e-15)


@settings(deadline=None)
@given(SCORES, SCORES, st.randoms(use_true_random=False))
def test_order_of_inputs_and_increasing_transforms_change_nothing(score_in, score_out, random):
    auroc = ood_auroc(vector(score_in), vector(score_out))
    random.shuffle(score_in)
    random.shuffle(score_out)
    score_in, score_out = vector(score_in), vector(score_out)
    assert ood_auroc(score_in.exp(), score_out.exp()) == auroc
    assert ood_auroc(score_in.atan(), score_out.atan()) == auroc


@DTYPES
@pytest.mark.parametrize(("n_in", "n_out"), [(1, 1), (7, 1000), (100_003, 99_991)])
def test_separated_sets_score_exactly_one_and_zero(n_in, n_out, dtype):
    low = torch.linspace(0, 1, n_in, dtype=dtype)
    high = torch.linspace(2, 3, n_out, dtype=dtype)
    assert ood_auroc(low, high) == 1
    assert ood_auroc(-low, -high) == 0
    assert ood_auroc(torch.ones_like(low), torch.ones_like(high)) == 0.5


def test_unrelated_scores_are_half_within_their_standard_error():
    generator = torch.Generator().manual_seed(0)
    n_in, n_out, repeats = 300, 200, 300
    aurocs = torch.stack(
        [
            ood_auroc(
                torch.rand(n_in, dtype=torch.float64, generator=generator),
                torch.rand(n_out, dtype=torch.float64, generator=generator),
            )
            for _ in range(repeats)
        ]
    )
    variance = (n_in + n_out + 1) / (12 * n_in * n_out)  # Mann and Whitney, without ties
    assert (aurocs.mean() - 0.5).abs() <= 5 * (variance / repeats) ** 0.5
    assert (aurocs.var() / variance - 1).abs() <= 5 * (2 / repeats) ** 0.5


def test_gaussian_shift_gives_the_closed_form():
    generator = torch.Generator().manual_seed(1)
    n, shift = 20_000, 1.0
    score_in = torch.randn(n, dtype=torch.float64, generator=generator)
    score_out = torch.randn(n, dtype=torch.float64, generator=generator) + shift
    closed_form = torch.special.ndtr(torch.tensor(shift / 2**0.5, dtype=torch.float64))
    # The variance of an AUROC is below A (1 - A) / min(n_in, n_out) for any two continuous scores.
    bound = (closed_form * (1 - closed_form) / n).sqrt()
    assert (ood_auroc(score_in, score_out) - closed_form).abs() <= 5 * bound


def test_float32_loses_no_pair_among_a_million_scores():
    generator = torch.Generator().manual_seed(2)
    score_in, score_out = torch.randn(2, 10**6, generator=generator)
    score_in, score_out = (score_in * 100).round(), (score_out * 100).round() + 30
    auroc = ood_auroc(score_in, score_out)
    assert auroc.dtype == torch.float32
    # Counted level by level, in Python integers.
    levels = torch.cat([score_in, score_out]).unique()
    index_in, index_out = (
        torch.searchsorted(levels, score_in),
        torch.searchsorted(levels, score_out),
    )
    count_in = torch.bincount(index_in, minlength=len(levels)).tolist()
    count_out = torch.bincount(index_out, minlength=len(levels)).tolist()
    twice, below = 0, 0
    for here, there in zip(count_in, count_out, strict=True):
        twice += there * (2 * below + here)
        below += here
    assert abs(auroc.item() - twice / (2 * 10**12)) <= 1e-7


def test_negative_zero_ties_with_zero():
    assert ood_auroc(torch.tensor([0.0]), torch.tensor([-0.0])) == 0.5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_counted_without_overflow(dtype):
    score_in, score_out = torch.zeros(400).to(dtype), torch.ones(400).to(dtype)
    auroc = ood_auroc(score_in, score_out)
    assert auroc.dtype == torch.float32
    assert auroc == 1


def test_scores_with_stride_and_gradient_are_welcome():
    generator = torch.Generator().manual_seed(3)
    table = torch.rand(50, 2, generator=generator, requires_grad=True)
    auroc = ood_auroc(table[:, 0], table[:, 1])
    assert auroc == ood_auroc(*table.detach().T.contiguous())
    assert not auroc.requires_grad


GOOD = torch.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("score_in", "score_out", "kind", "message"),
    [
        (GOOD * torch.nan, GOOD, ValueError, r"`score_in` must be free of NaN.*3 of 3"),
        (GOOD, GOOD.log() / 0, ValueError, r"`score_out` must be free of NaN.*1 of 3"),
        (torch.ones(0), GOOD, ValueError, r"`score_in` must hold at least one score"),
        (GOOD, torch.ones(0), ValueError, r"`score_out` must hold at least one score"),
        (torch.ones(3, 1), GOOD, ValueError, r"`score_in` must have one axis.*\(3, 1\)"),
        (GOOD, torch.ones(2, 3), ValueError, r"`score_out` must have one axis.*\(2, 3\)"),
        (GOOD, GOOD.double(), TypeError, r"`score_out` is torch.float64 but `score_in` is"),
        (GOOD, GOOD.to("meta"), ValueError, r"`score_out` is on meta but `score_in` is on cpu"),
        (GOOD, GOOD.long(), TypeError, r"`score_out` must hold floating-point numbers.*int64"),
        (GOOD.tolist(), GOOD, TypeError, r"`score_in` must be a tensor.*list"),
    ],
)
def test_bad_scores_are_refused_in_one_sentence(score_in, score_out, kind, message):
    with pytest.raises(kind, match=message):
        ood_auroc(score_in, score_out)


PAIRS = st.lists(
    st.tuples(st.integers(-4, 4).map(float), st.integers(-4, 4).map(float)), min_size=2, max_size=30
).filter(lambda pairs: all(len(set(side)) > 1 for side in zip(*pairs, strict=True)))


@given(PAIRS)
def test_matches_scipy_with_ties(pairs):
    a, b = torch.tensor(pairs, dtype=torch.float64).T
    assert spearman(a, b).item() == pytest.approx(spearmanr(a, b)[0], abs=1e-12)


def test_rows_of_a_batch_are_correlated_each_by_itself():
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(3, 5, 40, generator=generator)
    b = a + torch.randn(3, 5, 40, generator=generator)
    found = spearman(a, b)
    assert found.shape == (3, 5)
    for i in range(3):
        for j in range(5):
            expected = spearmanr(a[i, j], b[i, j])[0]
            assert found[i, j].item() == pytest.approx(expected, abs=1e-12)


def test_increasing_maps_change_nothing_and_a_sign_mirrors():
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 100, generator=generator)
    assert spearman(a.exp(), b) == spearman(a, b)
    assert spearman(-a, b) == -spearman(a, b)


def test_infinite_values_are_the_largest():
    a = torch.tensor([1.0, 2.0, torch.inf, torch.inf])
    assert spearman(a, a) == 1
    assert spearman(a, torch.tensor([1.0, 2.0, 9.0, 9.0])) == 1


def test_a_constant_has_no_correlation():
    assert spearman(torch.ones(3), torch.arange(3.0)).isnan()


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (torch.ones(3), torch.ones(4), r"`b` must have shape \(3,\)"),
        (torch.ones(1), torch.ones(1), "two values or more"),
        (torch.tensor([1.0, torch.nan]), torch.ones(2), "`a` must be free of NaN"),
    ],
)
def test_bad_input_is_named(a, b, message):
    with pytest.raises(ValueError, match=message):
        spearman(a, b)
