"""Spearman's correlation against SciPy, with ties and infinities, and its invariances."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from priornet.metrics import spearman

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
