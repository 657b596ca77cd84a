"""Codes become metres by the formulas in which the sets are published."""

import numpy as np
import pytest

from priornet.depth.images.encoding import (
    KITTI,
    MILLIMETRES,
    NYU_CODES,
    TEN_METRE_CODES,
    Encoding,
    metres,
)


@pytest.mark.parametrize(
    ("encoding", "dtype", "formula"),
    [
        (NYU_CODES, np.uint8, lambda c: (c + 0.5) * 9.99547 / 255),
        (TEN_METRE_CODES, np.uint8, lambda c: c / 255 * 10),
        (MILLIMETRES, np.uint16, lambda c: c / 1000),
        (KITTI, np.uint16, lambda c: c / 256),
    ],
)
def test_codes_become_metres(encoding, dtype, formula):
    codes = np.arange(np.iinfo(dtype).max + 1).astype(dtype).reshape(16, -1)
    found = encoding.metres(codes)
    expected = formula(codes.astype(np.float64))
    assert found.dtype == np.float32
    assert found.shape == codes.shape
    assert found[0, 0] == 0
    np.testing.assert_allclose(found.ravel()[1:], expected.ravel()[1:], rtol=6e-8)


def test_metres_pass_and_what_is_no_measurement_becomes_zero():
    depth = np.array([[1.5, np.nan, np.inf], [-1.0, 0.0, 2.0]])
    assert (metres(depth, None) == [[1.5, 0, 0], [0, 0, 2]]).all()
    assert metres(depth, None).dtype == np.float32


def test_metres_of_codes_follow_their_encoding():
    assert metres(np.array([[4]], np.uint8), Encoding(2.0, 8)) == 1.0
