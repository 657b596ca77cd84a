"""Small sets of images with depth, as their authors distribute them.

They are written with Pillow, h5py, lmdb and zipfile alone, and nothing of the readers under test.
"""

import io
import zipfile
from typing import Any

import h5py
import lmdb
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
    """Read a picture file with Pillow."""
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def codes(height=12, width=16, seed=0, dtype: Any = np.uint8, high=255) -> Any:
    """A slope with noise and a few missing pixels."""
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


def write_sets(folder):
    """Sets that look like NYU, KITTI and LSUN, in the shape of :data:`SETTINGS`."""
    names = [f"{i:04d}" for i in range(8)]
    write_pairs(folder / "nyu", names, shape=(32, 64))
    write_split(folder / "nyu", {n: "test" if i > 4 else "train" for i, n in enumerate(names)})
    roads = [f"um_{i:06d}" for i in (0, 1, 2, 93, 94)]
    write_pairs(folder / "kitti", roads, shape=(32, 64), dtype=np.uint16)
    write_pairs(folder / "lsun", ["a", "b"], shape=(32, 64), with_depth=False)
    return folder


def write_zip(path, files, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return path


SCENES = ("data/nyu2_train/living_room_0038_out/37", "data/nyu2_train/office_0001_out/2")


def data_files():
    """The content of ``nyu_data.zip``: 8-bit depth to train with, 16-bit depth to validate with."""
    files = {}
    for seed, stem in enumerate(SCENES):
        files[f"{stem}.jpg"] = encoded(photograph(seed=seed))
        files[f"{stem}.png"] = encoded(codes(seed=seed), "PNG")
    files["data/nyu2_test/00000_colors.png"] = encoded(photograph(seed=5), "PNG")
    depth = codes(seed=5, dtype=np.uint16, high=9_000)
    files["data/nyu2_test/00000_depth.png"] = encoded(depth, "PNG")
    train = "".join(f"{stem}.jpg,{stem}.png\n" for stem in SCENES)
    files["data/nyu2_train.csv"] = train.encode()
    test = b"data/nyu2_test/00000_colors.png,data/nyu2_test/00000_depth.png\r\n"
    files["data/nyu2_test.csv"] = test
    return files


def eigen_arrays(n=5, shape=(12, 16)):
    """The content of ``nyu_test.zip``."""
    rng = np.random.default_rng(3)
    return {
        "eigen_test_rgb.npy": rng.integers(0, 256, (n, *shape, 3), dtype=np.uint8),
        "eigen_test_depth.npy": rng.uniform(0.7, 9.9, (n, *shape)).astype(np.float32),
        "eigen_test_crop.npy": np.array([1, 10, 2, 13]),
    }


def write_mat(path, n=3, shape: tuple[int, int] = (6, 8), **others):
    """MATLAB has (H, W, 3, N) and (H, W, N), the first axis fastest: HDF5 lists them reversed."""
    images = np.stack([photograph(*shape, seed) for seed in range(n)], axis=-1)
    depths = np.random.default_rng(0).uniform(0.7, 9.9, (*shape, n)).astype(np.float32)
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in {"images": images, "depths": depths, **others}.items():
            if array is not None:
                file.create_dataset(name, data=array.T, compression="gzip")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124))
    return images, depths


def write_frame(
    root, drive, frame, *, seed, raw="", depth: str | None = "train", camera="image_02", form="png"
):
    """A picture and its depth; ``depth=None`` leaves the depth out."""
    shape = (12, 40 + 2 * seed)  # the drives of KITTI differ in size
    picture = root / raw / drive / camera / "data" / f"{frame:010d}.{form}"
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_bytes(encoded(photograph(*shape, seed), "PNG" if form == "png" else "JPEG"))
    if depth is not None:
        name = drive.split("/")[1]
        path = root / depth / name / "proj_depth/groundtruth" / camera / f"{frame:010d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(codes(*shape, seed, np.uint16, 20_000), "PNG"))


def write_lmdb(path, pictures):
    """LSUN's form: pictures by their keys."""
    with lmdb.open(str(path), map_size=1 << 22) as environment, environment.begin(write=True) as t:
        for key, data in pictures.items():
            t.put(key, data)
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
