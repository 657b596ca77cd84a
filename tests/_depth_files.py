"""Small sets of images with depth, as their authors distribute them.

They are written with Pillow, h5py, lmdb and zipfile alone, and nothing of the readers under test.
"""

import io
import zipfile
from typing import Any

import numpy as np
from PIL import Image

# With these the depth experiment learns in a moment.
SETTINGS = ("height=32", "width=64", "n_decoder=16", "epochs=1", "norm=batch")


def photograph(height=12, width=16, seed=0) -> Any:
    """Smooth colours, so that JPEG keeps most of them."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    waves = [np.sin(rng.uniform(1, 4) * x + rng.uniform(1, 4) * y + k) for k in range(3)]
    return (127.5 + 127 * np.stack(waves, axis=-1)).astype(np.uint8)


def encoded(pixels, form="JPEG", **options):
    """The bytes of a picture file; 16-bit arrays become 16-bit PNG."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form, **options)
    return file.getvalue()


def opened(data):
    """What Pillow makes of a picture file."""
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def codes(height=12, width=16, seed=0, dtype: Any = np.uint8, high=255) -> Any:
    """A slope with noise and a few holes."""
    rng = np.random.default_rng(seed)
    slope = np.linspace(0.2 * high, 0.8 * high, height)[:, None] * np.ones(width)
    found = slope + rng.normal(0, 0.02 * high, (height, width))
    found[rng.random((height, width)) < 0.05] = 0
    return np.clip(found, 0, high).astype(dtype)


def write_pairs(
    folder, names, *, shape: tuple[int, int] = (12, 16), dtype: Any = np.uint8, with_depth=True
):
    """A folder with ``rgb/`` and ``depth/``."""
    (folder / "rgb").mkdir(parents=True)
    if with_depth:
        (folder / "depth").mkdir()
    high = 255 if dtype == np.uint8 else 60_000
    for seed, name in enumerate(names):
        (folder / "rgb" / f"{name}.jpg").write_bytes(encoded(photograph(*shape, seed), quality=95))
        if with_depth:
            depth = encoded(codes(*shape, seed, dtype, high), "PNG")
            (folder / "depth" / f"{name}.png").write_bytes(depth)
    return folder


def write_split(folder, parts):
    """The ``split.csv`` of such a folder."""
    lines = ["index,split", *(f"{name},{part}" for name, part in parts.items())]
    (folder / "split.csv").write_text("\n".join(lines) + "\n")


def write_zip(path, files, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return path


def npy(array):
    """The bytes of a ``.npy`` file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def depth_of(images, row) -> Any:
    """Depth of an image of a set that has some."""
    found = images.depth(row)
    assert found is not None
    return found
