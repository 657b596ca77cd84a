"""Pictures of many modes and depth maps of two; damaged ones are named."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from _depth_files import codes, encoded, opened, photograph
from priornet.depth import DepthError
from priornet.depth.images.decoding import Picture, StoredDepth, depth_file
from priornet.depth.images.encoding import KITTI, NYU_CODES

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


def test_a_palette_with_transparent_colours_reads_without_a_warning():
    file = io.BytesIO()
    indexed = Image.fromarray(photograph()).quantize(4)
    indexed.save(file, "PNG", transparency=bytes([0, 99, 255, 255]))
    found = Picture(file.getvalue(), "x").decode()
    assert (found == np.asarray(indexed.convert("RGB"))).all()


def test_a_printers_jpeg_reads_as_pillow_converts_it():
    data = in_mode("CMYK", photograph(), "JPEG")
    assert (Picture(data, "x").decode() == opened(data)).all()


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_sixteen_bit_grey_is_no_photograph(dtype):
    data = encoded(codes(dtype=dtype), "PNG" if dtype == np.uint16 else "TIFF")
    with pytest.raises(DepthError, match=r"rgb/7\.png.*is it a depth map"):
        Picture(data, "rgb/7.png").decode()


def sixteen_bit_png(values):
    """A PNG by the book (W3C, 2003) with three or four colours of 16 bits; Pillow writes none."""
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
def test_of_sixteen_bits_a_colour_the_upper_eight_are_kept(n_colours):
    every = np.random.default_rng(0).permutation(2**16)  # each value that there is
    values = np.resize(every, (256, 256, n_colours))
    found = Picture(sixteen_bit_png(values), "x").decode()
    assert found.dtype == np.uint8
    assert (found == values[..., :3] >> 8).all()


def test_a_camera_that_was_turned_is_turned_back():
    pixels, turned = photograph(), Image.Exif()
    turned[0x0112] = 6  # turn it by 90 degrees, clockwise, to look at it
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", exif=turned)
    assert (Picture(file.getvalue(), "x").decode() == np.rot90(pixels, -1)).all()


def test_a_turned_camera_and_a_depth_map_that_was_not_are_refused():
    pixels, turned = photograph(), Image.Exif()
    turned[0x0112] = 3  # upside down: the shape does not tell
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", exif=turned)
    with pytest.raises(DepthError, match=r"rgb/7\.png: its camera was turned \(EXIF\)"):
        Picture(file.getvalue(), "rgb/7.png").decode(has_depth=True)
    assert (Picture(pixels, "rgb/7.png").decode(has_depth=True) == pixels).all()


def test_pixels_pass_and_stay_as_they_are():
    picture = Picture(photograph(), "x")
    picture.decode()[:] = 0
    assert (picture.decode() == photograph()).all()


@pytest.mark.parametrize("kept", [0, 10, 200, 0.5, 0.9])
def test_a_truncated_jpeg_is_named(kept):
    data = encoded(photograph(48, 64), quality=95)
    data = data[: kept if kept > 1 or kept == 0 else int(kept * len(data))]
    with pytest.raises(DepthError, match=r"rgb/0003\.jpg: this cannot be read as a picture"):
        Picture(data, "rgb/0003.jpg").decode()


def test_what_is_no_picture_is_told_without_places_in_memory():
    with pytest.raises(
        DepthError, match=r"rgb/1\.jpg: .*: it is in no format that is known"
    ) as told:
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


def test_the_number_of_bits_must_be_that_of_the_set():
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


def test_a_depth_map_has_two_axes():
    with pytest.raises(DepthError, match="x: a depth map has two axes; this has 3"):
        StoredDepth("x", lambda: (np.ones((2, 2, 1)), None)).decode()
