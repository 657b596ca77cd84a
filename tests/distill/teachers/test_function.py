"""A function is a teacher."""

from __future__ import annotations

import numpy as np
import pytest

from priornet.distill import FunctionTeacher


def lines(X):
    return np.stack([X[:, 0], -X[:, 0]]), np.ones((2, len(X)))


def test_it_is_called_with_the_table():
    means, variances = FunctionTeacher(lines).gaussians(np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(means, [[0, 2, 4], [0, -2, -4]])
    assert variances.shape == (2, 3)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="must be callable; got int"):
        FunctionTeacher(3)  # pyright: ignore


def test_the_size_of_a_function_is_unknown():
    assert FunctionTeacher(lines).n_bytes() is None
