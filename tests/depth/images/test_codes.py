"""Compression of depth is lossless."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from _depth_files import codes, encoded
from priornet.depth import open_depth
from priornet.depth.images.codes import (
    compress_codes,
    compress_metres,
    decompress_codes,
    decompress_metres,
)

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))


@given(st.sampled_from(["u1", "u2"]).flatmap(lambda dtype: arrays(dtype, SHAPES)))
def test_any_codes_come_back(values):
    found = decompress_codes(compress_codes(values))
    assert found.dtype == values.dtype
    assert found.shape == values.shape
    assert (found == values).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (240, 320), (37, 129), (192, 640)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_maps_of_any_shape_come_back(shape, dtype):
    values = codes(*shape, dtype=dtype, high=np.iinfo(dtype).max)
    assert (decompress_codes(compress_codes(values)) == values).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_whole_range_comes_back(dtype):
    high = np.iinfo(dtype).max
    chequered = (np.indices((16, 20)).sum(0) % 2 * high).astype(dtype)
    for values in (chequered, high - chequered, np.full((5, 5), high, dtype)):
        assert (decompress_codes(compress_codes(values)) == values).all()


def test_coarse_codes_cost_no_more_than_their_levels():
    fine = codes(60, 80, dtype=np.uint16, high=600)
    assert abs(len(compress_codes(fine * 10)) - len(compress_codes(fine))) <= 2


@given(arrays("f4", SHAPES, elements=st.floats(width=32)))
def test_any_metres_come_back(values):
    assert decompress_metres(compress_metres(values)).tobytes() == values.tobytes()


@pytest.mark.parametrize("kept", [0, 3, 8, -1])
def test_damaged_bytes_are_noticed(kept):
    data = compress_codes(codes(60, 80))
    with pytest.raises(Exception, match=r"."):
        decompress_codes(data[:kept])


def test_map_of_another_size_is_noticed():
    data = bytearray(compress_codes(codes(12, 16)))
    data[1] = 13
    with pytest.raises(ValueError, match="expected 13 x 16 codes, found 192"):
        decompress_codes(bytes(data))


@pytest.mark.parametrize(("name", "most"), [("nyu_v2", 0.8), ("kitti_road", 0.75)])
def test_real_depth_is_smaller_than_as_an_optimised_png(real_depth, name, most):
    images = open_depth(real_depth / name)[::100]
    ours, png = 0, 0
    for row in range(len(images)):
        stored = images.stored_depth(row)
        assert stored is not None
        values, _ = stored.raw()
        data = compress_codes(values)
        assert (decompress_codes(data) == values).all()
        ours, png = ours + len(data), png + len(encoded(values, "PNG", optimize=True))
    assert ours < most * png
