"""Training learns medians, scales, labels and outliers of a column; weights are repetitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priornet.tables.learning import find_dominant, learn_column
from priornet.tables.values import Numbers, Texts


def learn(values, weight=None):
    weight = None if weight is None else np.asarray(weight, float)
    return learn_column(0, Numbers(np.asarray(values, float)), weight, 50).column


numbers = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(numbers, st.integers(1, 5)), min_size=1, max_size=8))
def test_weighted_statistics_are_those_of_repeated_rows(pairs):
    values, repeats = (np.array(part) for part in zip(*pairs, strict=True))
    repeated = np.repeat(values, repeats)
    column = learn(values, repeats)
    assert column.median == np.median(repeated)
    assert column.mean == pytest.approx(repeated.mean(), abs=1e-9)
    if column.scale != 1:
        assert column.scale == pytest.approx(repeated.std(), rel=1e-6)
    assert (column.minimum, column.maximum) == (repeated.min(), repeated.max())


def test_weights_need_not_be_whole():
    column = learn([0.0, 10.0], [0.25, 0.75])
    assert column.mean == 7.5
    assert column.median == 10
    assert column.scale == pytest.approx(np.sqrt(0.25 * 7.5**2 + 0.75 * 2.5**2))


@pytest.mark.parametrize("values", [[3.0], [0.1] * 7, [1e9, 1e9 + 1e-7], [0.0, 5e-324]])
def test_constant_columns_keep_a_scale_of_one(values):
    assert learn(values).scale == 1


def test_moments_survive_a_large_offset():
    values = 1e9 + np.random.default_rng(0).normal(size=1000)
    column = learn(values)
    assert column.scale == pytest.approx(np.std(values - 1e9), rel=1e-6)


def test_labels_keep_their_most_frequent_by_weight():
    texts = Texts(np.array([0, 1, 1, 2, 3]), ("a", "b", "c", "d"))
    by_count = learn_column("x", texts, None, 2).column
    assert (by_count.categories, by_count.has_other) == (("b",), True)
    by_weight = learn_column("x", texts, np.array([1.0, 0, 0, 9, 1]), 2).column
    assert (by_weight.categories, by_weight.has_other) == (("c",), True)
    all_kept = learn_column("x", texts, np.array([1.0, 0, 0, 9, 0]), 2).column
    assert (all_kept.categories, all_kept.has_other) == (("a", "c"), False)


RNG = np.random.default_rng(0)


def with_one(values, value, row=3):
    found = np.array(values, float)
    found[row] = value
    return found


@pytest.mark.parametrize("value", [1e3, -1e4, 1e12, 1e300])
def test_a_typing_error_is_found_with_its_row(value):
    column = with_one(RNG.normal(size=500), value)
    found = find_dominant(column)
    assert found is not None
    assert (found.rows, found.values) == ((3,), (value,))
    others = np.delete(column, 3)
    assert (found.low, found.high) == (others.min(), others.max())
    assert found.is_clipped
    assert found.share > 0.99
    taken = found.taken(column)
    assert taken[3] == (found.high if value > 0 else found.low)
    assert (np.delete(taken, 3) == others).all()


def test_distance_and_share_follow_their_definition():
    column = with_one(np.linspace(-1, 1, 501), 40.0, row=250)  # the median is 0 without and with
    found = find_dominant(column)
    assert found is not None
    assert found.times == pytest.approx(40 / 1, rel=0.01)
    squares = (column - column.mean()) ** 2
    assert found.share == pytest.approx(squares[250] / squares.sum())
    assert not found.is_clipped
    assert found.taken(column) is column


def test_a_few_outliers_are_found_in_any_order():
    column = RNG.normal(size=500)
    column[[7, 400]] = [1e9, 1e4]
    found = find_dominant(column)
    assert found is not None
    assert found.rows == (7, 400)
    assert abs(found.high) < 5


@pytest.mark.parametrize(("n", "typos"), [(20, 2), (60, 3), (150, 2), (199, 3)])
def test_two_or_three_far_typing_errors_in_few_rows_are_clipped(n, typos):
    column = np.random.default_rng(n).normal(size=n)
    column[:typos] = [1e5, -2e4, 1e7][:typos]
    found = find_dominant(column)
    assert found is not None
    assert found.rows == tuple(range(typos))
    assert found.is_clipped
    assert np.abs(found.taken(column)).max() < 5


def test_two_values_less_far_in_few_rows_are_kept_without_a_note():
    column = np.append(np.random.default_rng(0).normal(size=98), [50.0, 60.0])
    assert find_dominant(column) is None


@pytest.mark.parametrize("ones", [2, 20, 38])
def test_one_cell_far_from_zeros_and_ones_is_clipped(ones):
    column = np.append(np.zeros(40), [*np.ones(ones), 1e4])
    found = find_dominant(column)
    assert found is not None
    assert (found.values, found.low, found.high) == ((1e4,), 0, 1)
    assert found.is_clipped
    assert find_dominant(np.append(column, 1e4)) is None  # a third value, not a mistake
    assert find_dominant(np.where(column == 1e4, 99, column)) is None


def test_many_far_values_are_no_outliers():
    column = RNG.normal(size=500)
    column[:6] = 9999
    assert find_dominant(column) is None


@pytest.mark.parametrize(
    "column",
    [
        with_one(np.zeros(500), 1),
        with_one(np.zeros(500), 1e6),
        np.append(np.zeros(499), [1.0, 1e9]),
        np.append(np.zeros(60), [1.0, 1e9]),
        np.append(np.zeros(60), [1e9, 1e9]),
        np.full(500, 7.0),
        RNG.poisson(0.02, 500).astype(float),
        np.array([1, 2, 3, 4, 1e9]),
    ],
    ids=[
        "indicator",
        "amount",
        "indicator and amount",
        "few",
        "indicator of few",
        "constant",
        "counts",
        "five rows",
    ],
)
def test_rare_values_among_equal_ones_are_no_outliers(column):
    assert find_dominant(column) is None


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.normal(size=500),
        lambda rng: rng.uniform(size=500),
        lambda rng: rng.lognormal(0, 1, 500),
        lambda rng: rng.exponential(size=500),
        lambda rng: rng.standard_t(3, size=500),
        lambda rng: rng.negative_binomial(0.3, 0.05, 500).astype(float),
    ],
    ids=["normal", "uniform", "lognormal", "exponential", "t3", "counts"],
)
def test_ordinary_columns_have_no_outliers(draw):
    rng = np.random.default_rng(1)
    assert [find_dominant(draw(rng)) for _ in range(300)] == [None] * 300


def test_heavy_tails_are_rarely_clipped():
    rng = np.random.default_rng(2)
    found = [find_dominant(rng.standard_cauchy(500)) for _ in range(300)]
    assert sum(one is not None and one.is_clipped for one in found) <= 12
