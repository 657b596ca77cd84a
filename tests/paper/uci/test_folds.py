"""Every row is tested once; choosing and training never see it before."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from priornet_paper.uci.folds import FoldStack, k_folds, make_fold


def test_every_row_is_a_test_row_once():
    folds = k_folds(103, 10, seed=3)
    assert_array_equal(np.sort(np.concatenate(folds)), np.arange(103))
    assert {len(fold) for fold in folds} == {10, 11}


def test_folds_follow_the_seed():
    assert_array_equal(k_folds(50, 5, 1)[0], k_folds(50, 5, 1)[0])
    assert not np.array_equal(k_folds(50, 5, 1)[0], k_folds(50, 5, 2)[0])


def test_parts_of_a_fold_are_strangers():
    test = k_folds(200, 10, 0)[4]
    fold = make_fold(4, test, 200, 0.2, seed=0)
    assert len(fold.validation) == 36
    parts = np.concatenate([fold.test, fold.inner, fold.validation])
    assert_array_equal(np.sort(parts), np.arange(200))
    assert_array_equal(np.sort(np.concatenate([fold.inner, fold.validation])), fold.train)


def test_each_fold_has_units_of_its_own(table):
    inputs, targets = table
    folds = [make_fold(i, test, 120, 0.2) for i, test in enumerate(k_folds(120, 10, 0))][:3]
    stack = FoldStack.of(inputs, targets, folds, "cpu")
    assert stack.inputs.shape == (360, 4)
    for place, fold in enumerate(folds):
        rows = stack.rows(place, fold.train)
        assert_allclose(stack.inputs[rows][:, :3].mean(0), 0, atol=1e-6)
        assert_allclose(stack.inputs[rows][:, :3].std(0, correction=0), 1, rtol=1e-6)
        assert_allclose(stack.inputs[rows][:, 3], 0, atol=1e-6)
        back = stack.shift[place] + stack.scale[place] * stack.targets[:, 0]
        assert_allclose(back[stack.rows(place, fold.test)], targets[fold.test], rtol=1e-5)


def test_units_do_not_know_the_test_rows(table):
    inputs, targets = table
    fold = make_fold(0, k_folds(120, 10, 0)[0], 120)
    changed = inputs.copy()
    changed[fold.test] *= 100
    plain, other = (FoldStack.of(x, targets, [fold], "cpu") for x in (inputs, changed))
    rows = plain.rows(0, fold.train)
    assert_array_equal(plain.inputs[rows], other.inputs[rows])
    assert plain.scale == pytest.approx([targets[fold.train].std()])
