"""Pictures and depth decode as their formats define; errors name the file in one line."""

import io
import math
import struct
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from _depth_files import codes, encoded, opened, photograph
from priornet.depth import DepthError
from priornet.depth.images.decoding import (
    KITTI,
    MILLIMETRES,
    NYU_CODES,
    TEN_METRE_CODES,
    Encoding,
    Picture,
    StoredDepth,
    depth_file,
    metres,
    need,
    reading,
    resize_depth,
    resize_picture,
)


def test_package_that_is_there_is_imported():
    assert need("math", "count") is math


@pytest.mark.parametrize(
    ("module", "package"), [("h5py", "h5py"), ("lmdb", "lmdb"), ("PIL.Image", "Pillow")]
)
def test_missing_package_says_what_for_and_how_to_get_it(monkeypatch, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        DepthError, match=rf"{package} is needed to do it.*pip install '\.\[depth\]"
    ):
        need(module, "do it")


def test_library_errors_become_one_line_with_the_file():
    with pytest.raises(DepthError) as caught, reading("a/b.jpg", "a picture"):
        raise OSError("broken\nand more")
    assert str(caught.value) == "a/b.jpg: this cannot be read as a picture: broken"
    with pytest.raises(DepthError, match="as a picture: EOFError"), reading("x", "a picture"):
        raise EOFError


def test_depth_errors_pass_unchanged():
    with pytest.raises(DepthError, match=r"^mine$"), reading("a/b.jpg", "a picture"):
        raise DepthError("mine")


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


def test_metres_pass_and_missing_measurements_become_zero():
    depth = np.array([[1.5, np.nan, np.inf], [-1.0, 0.0, 2.0]])
    assert (metres(depth, None) == [[1.5, 0, 0], [0, 0, 2]]).all()
    assert metres(depth, None).dtype == np.float32


def test_metres_of_codes_follow_their_encoding():
    assert metres(np.array([[4]], np.uint8), Encoding(2.0, 8)) == 1.0


BOTH = {8: NYU_CODES, 16: KITTI}


def in_mode(mode, pixels, form="PNG"):
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, form)
    return file.getvalue()


def test_jpeg_decodes_to_three_colours():
    data = encoded(photograph())
    found = Picture(data, "x").decode()
    assert found.shape == (12, 16, 3)
    assert found.dtype == np.uint8
    assert (found == opened(data)).all()


def test_grey_becomes_three_equal_channels():
    grey = photograph()[..., 0]
    found = Picture(encoded(grey, "PNG"), "x").decode()
    assert (found == grey[..., None]).all()


def test_transparency_is_left_out():
    pixels = np.dstack([photograph(), np.full((12, 16), 9, np.uint8)])
    assert (Picture(encoded(pixels, "PNG"), "x").decode() == pixels[..., :3]).all()


@pytest.mark.parametrize(("mode", "form"), [("P", "PNG"), ("LA", "PNG"), ("1", "PNG")])
def test_other_modes_read_as_pillow_converts_them(mode, form):
    data = in_mode(mode, photograph(), form)
    assert (Picture(data, "x").decode() == opened(data)).all()


def test_palette_with_transparent_colours_reads_without_a_warning():
    file = io.BytesIO()
    indexed = Image.fromarray(photograph()).quantize(4)
    indexed.save(file, "PNG", transparency=bytes([0, 99, 255, 255]))
    found = Picture(file.getvalue(), "x").decode()
    assert (found == np.asarray(indexed.convert("RGB"))).all()


def test_printers_jpeg_reads_as_pillow_converts_it():
    data = in_mode("CMYK", photograph(), "JPEG")
    assert (Picture(data, "x").decode() == opened(data)).all()


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_sixteen_bit_grey_is_no_photograph(dtype):
    data = encoded(codes(dtype=dtype), "PNG" if dtype == np.uint16 else "TIFF")
    with pytest.raises(DepthError, match=r"rgb/7\.png.*is it a depth map"):
        Picture(data, "rgb/7.png").decode()


def sixteen_bit_png(values):
    """Write a PNG by its standard (W3C, 2003) with 16 bits a colour; Pillow writes none."""
    height, width, n_colours = values.shape
    kind = {3: 2, 4: 6}[n_colours]
    header = struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0)
    lines = b"".join(b"\0" + row.tobytes() for row in values.astype(">u2"))  # no filter
    data = b"\x89PNG\r\n\x1a\n"
    for name, body in ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")):
        check = struct.pack(">I", zlib.crc32(name + body))
        data += struct.pack(">I", len(body)) + name + body + check
    return data


@pytest.mark.parametrize("n_colours", [3, 4])
def test_upper_eight_of_sixteen_bits_a_colour_are_kept(n_colours):
    every = np.random.default_rng(0).permutation(2**16)  # each value that there is
    values = np.resize(every, (256, 256, n_colours))
    found = Picture(sixteen_bit_png(values), "x").decode()
    assert found.dtype == np.uint8
    assert (found == values[..., :3] >> 8).all()


def test_picture_of_a_turned_camera_is_turned_back():
    pixels, turned = photograph(), Image.Exif()
    turned[0x0112] = 6  # turn it by 90 degrees, clockwise, to look at it
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", exif=turned)
    assert (Picture(file.getvalue(), "x").decode() == np.rot90(pixels, -1)).all()


def test_turned_picture_with_a_depth_map_is_refused():
    pixels, turned = photograph(), Image.Exif()
    turned[0x0112] = 3  # upside down: the shape does not tell
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", exif=turned)
    with pytest.raises(DepthError, match=r"rgb/7\.png: the camera marks it as turned \(EXIF\)"):
        Picture(file.getvalue(), "rgb/7.png").decode(has_depth=True)
    assert (Picture(pixels, "rgb/7.png").decode(has_depth=True) == pixels).all()


def test_pixels_pass_and_stay_as_they_are():
    picture = Picture(photograph(), "x")
    picture.decode()[:] = 0
    assert (picture.decode() == photograph()).all()


@pytest.mark.parametrize("kept", [0, 10, 200, 0.5, 0.9])
def test_truncated_jpeg_is_named(kept):
    data = encoded(photograph(48, 64), quality=95)
    data = data[: kept if kept > 1 or kept == 0 else int(kept * len(data))]
    with pytest.raises(DepthError, match=r"rgb/0003\.jpg: this cannot be read as a picture"):
        Picture(data, "rgb/0003.jpg").decode()


def test_message_about_a_broken_picture_has_no_memory_address():
    with pytest.raises(DepthError, match=r"rgb/1\.jpg: .*: its format is unknown") as told:
        Picture(b"hello", "rgb/1.jpg").decode()
    assert "0x" not in str(told.value)


@pytest.mark.parametrize(("dtype", "encoding"), [(np.uint8, NYU_CODES), (np.uint16, KITTI)])
def test_depth_keeps_its_codes_and_finds_their_meaning(dtype, encoding):
    expected = codes(dtype=dtype, high=np.iinfo(dtype).max)
    stored = depth_file(encoded(expected, "PNG"), "x", BOTH)
    values, meaning = stored.raw()
    assert meaning == encoding
    assert values.dtype == dtype
    assert (values == expected).all()
    assert (stored.decode() == encoding.metres(expected)).all()


def test_number_of_bits_must_be_that_of_the_set():
    with pytest.raises(DepthError, match=r"d/3\.png: depth must be a grey PNG of 16 bits.*mode L"):
        depth_file(encoded(codes(), "PNG"), "d/3.png", {16: KITTI}).decode()


def test_depth_in_colours_is_refused():
    with pytest.raises(DepthError, match=r"d/3\.png: depth must be.*8 or 16 bits.*RGB"):
        depth_file(encoded(photograph(), "PNG"), "d/3.png", BOTH).decode()


@pytest.mark.parametrize("data", [b"", b"not a picture", encoded(codes(), "PNG")[:100]])
def test_damaged_depth_is_named(data):
    with pytest.raises(DepthError, match=r"d/3\.png: this cannot be read as a depth map"):
        depth_file(data, "d/3.png", BOTH).decode()


def test_depth_without_a_measurement_is_named():
    empty = encoded(np.zeros((4, 5), np.uint16), "PNG")
    with pytest.raises(DepthError, match=r"d/3\.png: no pixel .* holds a measurement"):
        depth_file(empty, "d/3.png", BOTH).decode()


def test_metres_without_a_measurement_are_named():
    stored = StoredDepth("x [3]", lambda: (np.array([[np.nan, -1.0, np.inf]]), None))
    with pytest.raises(DepthError, match=r"x \[3\]: no pixel"):
        stored.decode()


def test_depth_map_has_two_axes():
    with pytest.raises(DepthError, match="x: a depth map has two axes; this has 3"):
        StoredDepth("x", lambda: (np.ones((2, 2, 1)), None)).decode()


def ramp(height, width):
    """Make a picture whose red grows to the right, green downwards, by one a pixel."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x, y, np.zeros_like(x)], axis=-1).astype(np.uint8)


@pytest.mark.parametrize("shape", [(60, 80), (30, 200), (200, 30), (7, 5), (48, 64)])
def test_picture_of_another_set_takes_the_size(shape):
    found = resize_picture(photograph(*shape), (24, 32), crop=True)
    assert found.shape == (24, 32, 3)
    assert found.dtype == np.uint8


def test_middle_of_a_wide_picture_is_kept_and_not_stretched():
    found = resize_picture(ramp(60, 200), (30, 40), crop=True).astype(float)  # keeps 60 x 80 of it
    middle = slice(5, -5)
    assert found[15, middle, 0].mean() == pytest.approx(99.5, abs=0.5)
    assert np.diff(found[15, middle, 0]) == pytest.approx(2.0, abs=1.01)
    assert found[15, -6, 0] - found[15, 5, 0] == pytest.approx(2 * 29, abs=1)
    assert found[-6, 20, 1] - found[5, 20, 1] == pytest.approx(2 * 19, abs=1)


def test_middle_of_a_high_picture_is_kept():
    found = resize_picture(ramp(200, 60), (40, 30), crop=True).astype(float)  # keeps 80 x 60 of it
    assert found[5:-5, 15, 1].mean() == pytest.approx(99.5, abs=0.5)


def test_picture_of_the_right_size_stays():
    image = photograph()
    assert (resize_picture(image, (12, 16), crop=True) == image).all()


def test_shrinking_averages():
    stripes = np.zeros((32, 32, 3), np.uint8)
    stripes[:, ::2] = 200
    found = resize_picture(stripes, (8, 8), crop=False)
    assert np.abs(found[2:-2, 2:-2].astype(int) - 100).max() <= 2


def test_resized_depth_has_only_measured_values():
    depth = np.random.default_rng(0).uniform(1, 9, (31, 47)).astype(np.float32)
    depth[:15] = 0
    for size in ((10, 20), (62, 94), (7, 100)):
        found = resize_depth(depth, size, crop=False)
        assert found.shape == size
        assert np.isin(found, depth).all()
    assert (resize_depth(depth, (62, 94), crop=False)[::2, ::2] == depth).all()


def test_depth_is_cut_as_its_picture_is():
    pixels = ramp(60, 200)
    depth = pixels[..., 0].astype(np.float32)
    found = resize_depth(depth, (30, 40), crop=True)
    picture = resize_picture(pixels, (30, 40), crop=True)[..., 0]
    inner = np.s_[2:-2, 2:-2]
    assert np.abs(found[inner] - picture[inner]).max() <= 1.01
