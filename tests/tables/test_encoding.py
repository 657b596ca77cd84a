"""Training learns medians, scales and labels of a column; weights count as repetitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priornet.tables.encoding import learn_column
from priornet.tables.values import Numbers, Texts


def learn(values, weight=None):
    weight = None if weight is None else np.asarray(weight, float)
    return learn_column(0, Numbers(np.asarray(values, float)), weight, 50)[0]


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
    by_count, _, _ = learn_column("x", texts, None, 2)
    assert (by_count.categories, by_count.has_other) == (("b",), True)
    by_weight, _, _ = learn_column("x", texts, np.array([1.0, 0, 0, 9, 1]), 2)
    assert (by_weight.categories, by_weight.has_other) == (("c",), True)
    all_kept, _, _ = learn_column("x", texts, np.array([1.0, 0, 0, 9, 0]), 2)
    assert (all_kept.categories, all_kept.has_other) == (("a", "c"), False)
