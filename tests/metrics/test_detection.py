"""AUROC of out-of-domain detection: vectors, brute force over pairs, symmetries, errors."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from _vectors import cases, expected, tensors
from priornet.metrics import ood_auroc

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["f64", "f32"])
TOLERANCE = {torch.float64: 1e-15, torch.float32: 1e-7}
# Few levels, so that ties are common; infinities of both signs among them.
SCORES = st.lists(
    st.one_of(st.integers(-5, 5).map(float), st.sampled_from([-torch.inf, torch.inf])),
    min_size=1,
    max_size=30,
)


def vector(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


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


def test_inputs_with_stride_and_gradient_are_welcome():
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
def test_bad_input_is_refused_in_one_sentence(score_in, score_out, kind, message):
    with pytest.raises(kind, match=message):
        ood_auroc(score_in, score_out)
