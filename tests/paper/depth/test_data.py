"""Digests of images and files, the same wherever they lie."""

import hashlib
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from _depth_files import codes, encoded, photograph, write_pairs
from priornet.depth import DepthError, DepthImages, open_depth
from priornet_paper.depth import data as module
from priornet_paper.depth.config import config_for, variants
from priornet_paper.depth.data import Sets, Sources, digest, digest_of, find_sources


@pytest.fixture
def folder(tmp_path):
    return write_pairs(tmp_path / "roads", ["a", "b", "c"], dtype=np.uint16)


def by_hand(folder, names, n_whole=3, with_depth=True):
    """Compute the expected digest from the files alone."""
    content = "\n".join(names).encode()
    for name in names[:n_whole]:
        content += (folder / "rgb" / f"{name}.jpg").read_bytes()
        if with_depth:
            millimetres = np.asarray(Image.open(folder / "depth" / f"{name}.png"))
            content += (millimetres / 1000).astype(np.float32).tobytes()
    return hashlib.sha256(content).hexdigest()[:12]


def test_names_files_and_metres_count(folder):
    images, names = open_depth(folder), ["a", "b", "c"]
    assert digest_of(images) == by_hand(folder, names)
    assert digest_of(images, check=True) == by_hand(folder, names)
    assert digest_of(images, with_depth=False) == by_hand(folder, names, with_depth=False)
    assert digest_of(images, n_whole=2) == by_hand(folder, names, n_whole=2)
    assert digest_of(images[[2, 0]]) == by_hand(folder, ["c", "a"])


def test_digests_hold_few_images_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_AHEAD", 2)
    names = [f"{n:03d}" for n in range(24)]
    images = open_depth(write_pairs(tmp_path / "many", names, dtype=np.uint16))
    found, alive, most = module._content, [], []

    class Piece(bytearray):
        """Bytes that count themselves."""

        def __del__(self):
            alive.pop()

    def content(*given, **options):
        alive.append(1)
        most.append(len(alive))
        return Piece(found(*given, **options))

    monkeypatch.setattr(module, "_content", content)
    digest_of(images)
    assert len(most) == len(names)
    assert max(most) < len(names) / 2


def test_digests_of_bytes_do_not_see_where_they_were_cut():
    assert digest(b"ab", b"c") == digest(b"abc") == hashlib.sha256(b"abc").hexdigest()[:12]


def test_damaged_photographs_are_found_if_asked(folder):
    path = folder / "rgb" / "b.jpg"
    path.write_bytes(path.read_bytes()[:-40])
    assert digest_of(open_depth(folder)) == by_hand(folder, ["a", "b", "c"])
    with pytest.raises(DepthError, match=r"rgb/b\.jpg: this cannot be read as a picture"):
        digest_of(open_depth(folder), check=True)


def test_depth_of_another_shape_is_found_if_asked(folder, tmp_path):
    other = write_pairs(tmp_path / "other", ["b"], shape=(24, 32), dtype=np.uint16)
    shutil.copy(other / "depth" / "b.png", folder / "depth" / "b.png")
    with pytest.raises(DepthError, match=r"depth/b\.png: depth of 24 x 32 pixels for a picture"):
        digest_of(open_depth(folder), check=True)


CPU = torch.device("cpu")


@pytest.fixture
def sets(plan):
    return Sets(plan.config, plan.sources)


def test_sets_are_found_by_how_their_names_begin(photographs):
    found = find_sources(photographs, "kitti")
    assert found.own == photographs / "kitti_small"
    assert found.ood == {
        "nyu": photographs / "nyu_small",
        "lsun_bedroom": photographs / "lsun_small",
    }
    only = find_sources(photographs / "nyu_small", "nyu", {"church": photographs / "lsun_small"})
    assert only.own == photographs / "nyu_small"
    assert list(only.ood) == ["church"]


def test_what_is_not_there_is_named(photographs, tmp_path):
    with pytest.raises(DepthError, match="nowhere: there is no such file"):
        find_sources(tmp_path / "nowhere", "nyu")
    (tmp_path / "lsun").mkdir()
    with pytest.raises(DepthError, match="nothing in it begins with nyu; found lsun_bedroom"):
        find_sources(tmp_path, "nyu")
    for name in ("nyu_a", "nyu_b"):
        (tmp_path / name).mkdir()
    with pytest.raises(DepthError, match="which of these is nyu"):
        find_sources(tmp_path, "nyu")


def test_a_folder_of_drives_is_a_set_whatever_its_parts_are_called(tmp_path):
    (tmp_path / "kitti_raw" / "2011_09_26").mkdir(parents=True)
    assert find_sources(tmp_path, "kitti").own == tmp_path / "kitti_raw"
    for part in ("train", "test"):
        (tmp_path / f"kitti_eigen_{part}.txt").touch()
    assert find_sources(tmp_path, "kitti").own == tmp_path
    (tmp_path / "nyu").mkdir()
    assert find_sources(tmp_path / "nyu", "nyu").own == tmp_path / "nyu"
    with pytest.raises(DepthError, match=r"which of these is kitti\? kitti_eigen_test\.txt, "):
        find_sources(tmp_path, "nyu")


def test_an_ood_set_has_a_name_of_its_own(photographs):
    with pytest.raises(
        DepthError, match="nyu is what is learnt: call the out-of-domain set by another"
    ):
        find_sources(photographs, "nyu", {"nyu": photographs / "lsun_small"})


def test_images_have_the_size_of_the_settings(sets):
    (images, depth), (tests, _) = sets.train, sets.test
    assert images.shape == (6, 3, 32, 64)
    assert depth.shape == (6, 32, 64)
    assert len(tests) == 4
    assert sets.ood("kitti").shape == (7, 3, 32, 64)
    assert sets.ood("lsun_bedroom").shape == (3, 3, 32, 64)
    assert sets.sizes() == {
        "n_train": 6,
        "n_test": 4,
        "foreign": {"kitti": 7, "lsun_bedroom": 3},
    }


def test_few_images_if_asked(plan):
    sets = Sets(replace(plan.config, n_images=2, n_test=1), plan.sources)
    assert len(sets.train[0]) == 2
    assert sets.sizes() == {"n_train": 2, "n_test": 1, "foreign": {"kitti": 1, "lsun_bedroom": 1}}


def test_training_images_held_out_take_the_place_of_the_test_images(sets, plan):
    dev = Sets(replace(plan.config, holdout=1 / 3), plan.sources)
    assert torch.equal(dev.train[0], sets.train[0][:4])
    assert torch.equal(dev.test[1], sets.train[1][4:])
    assert dev.sizes()["n_train"] == 4
    assert dev.set_digest("test") != sets.set_digest("test")


@pytest.mark.parametrize(
    ("share", "left"), [(0.01, "0 to score and 6"), (0.99, "6 to score and 0")]
)
def test_a_holdout_that_leaves_nothing_is_named(plan, share, left):
    sets = Sets(replace(plan.config, holdout=share), plan.sources)
    with pytest.raises(DepthError, match=f"`holdout` = {share} of 6 training images leaves {left}"):
        sets.check(ood=False)


def test_roads_held_out_are_of_every_category(tmp_path):
    names = [f"{kind}_{i:06d}" for kind in ("um", "uu") for i in range(4)]
    sources = Sources(write_pairs(tmp_path / "kitti", names, shape=(32, 64), dtype=np.uint16))
    config = replace(config_for("kitti", "smoke"), height=32, width=64, n_images=None, n_test=None)
    whole, dev = Sets(config, sources).train[0], Sets(replace(config, holdout=0.25), sources)
    assert torch.equal(dev.train[0], whole[[0, 1, 2, 4, 5, 6]])
    assert torch.equal(dev.test[0], whole[[3, 7]])


def test_a_prior_network_learns_the_training_images_of_the_other_set(sets, plan):
    (variant,) = variants(plan.config, ["NWPN"])
    data = sets.training(variant, True, CPU)
    assert data.ood.shape == (5, 3, 32, 64)
    assert sets.training(variant, False, CPU).ood is None


def test_what_is_missing_is_told_before_the_work(photographs):
    lonely = Sets(config_for("nyu", "smoke"), Sources(photographs / "nyu_small"))
    lonely.check(ood=False)
    with pytest.raises(DepthError, match=r"NWPN .* learns kitti images .*--foreign kitti="):
        lonely.check(ood=True)
    whole = Sources(photographs / "nyu_small", {"kitti": photographs / "lsun_small"})
    Sets(config_for("nyu", "smoke"), whole).check(ood=False)
    with pytest.raises(DepthError, match="lsun_small: this set is not divided"):
        Sets(config_for("nyu", "smoke"), whole).check(ood=True)
    undivided = Sources(photographs / "lsun_small")
    with pytest.raises(DepthError, match="not divided into training and test"):
        Sets(config_for("nyu", "smoke"), undivided).check(ood=False)


@pytest.fixture
def damaged(plan, photographs, tmp_path):
    """Sets of which one photograph is cut off, at its very end."""

    def make(file, **changes):
        copy = tmp_path / "damaged"
        shutil.copytree(photographs, copy)
        path = copy / file
        path.write_bytes(path.read_bytes()[:-40])
        return Sets(replace(plan.config, **changes), find_sources(copy, "nyu"))

    return make


@pytest.mark.parametrize("ood", [False, True])
@pytest.mark.parametrize(
    "file",
    ["nyu_small/rgb/0009.jpg", "kitti_small/rgb/um_000002.jpg", "lsun_small/rgb/c.jpg"],
)
def test_damaged_images_to_score_are_told_before_the_work(damaged, file, ood):
    with pytest.raises(DepthError, match=f"{file}: this cannot be read as a picture"):
        damaged(file).check(ood)


def test_damaged_images_to_learn_as_ood_ones_are_told_before_the_work(damaged):
    sets = damaged("kitti_small/rgb/um_000002.jpg", n_test=1)  # it is learnt, and not scored
    sets.check(ood=False)
    with pytest.raises(DepthError, match=r"um_000002\.jpg: this cannot be read as a picture"):
        sets.check(ood=True)


def test_undivided_images_to_learn_as_ood_ones_are_refused_before_images_are_read(damaged):
    sets = damaged("nyu_small/rgb/0009.jpg")
    whole = sets.sources.ood["lsun_bedroom"]
    undivided = Sets(sets.config, replace(sets.sources, ood={"kitti": whole}))
    with pytest.raises(DepthError, match="lsun_small: this set is not divided"):
        undivided.check(ood=True)
    with pytest.raises(DepthError, match=r"0009\.jpg: this cannot be read as a picture"):
        undivided.check(ood=False)


def test_nothing_is_kept_of_what_was_looked_at(sets):
    sets.check(ood=True)
    assert not sets.__dict__.keys() & {"train", "test", "_learnt_ood"}
    assert not sets._ood


def test_that_it_takes_long_is_told(sets, monkeypatch):
    told = []
    sets.check(True, told.append)
    assert told == []
    monkeypatch.setattr(module, "_MANY", 19)
    sets.check(True, told.append)
    assert told == ["Looking at 20 images, for damaged ones among them."]


def test_roads_are_not_taken_for_rooms(plan, photographs):
    roads = find_sources(photographs / "kitti_small", "nyu")
    with pytest.raises(DepthError, match=r"kitti_small: these are KITTI's roads, which nyu's sett"):
        Sets(plan.config, roads).check(ood=False)
    Sets(replace(plan.config, dataset="kitti"), roads).check(ood=False)


def test_what_was_learnt_is_not_tested(tmp_path):
    """One list serves one part: as both, it would test what it taught."""
    drive, root = "2011_09_26/2011_09_26_drive_0002_sync", tmp_path / "kitti"
    for frame in (1, 2, 3):
        picture = root / drive / f"image_02/data/{frame:010d}.png"
        depth = root / f"train/{drive[11:]}/proj_depth/groundtruth/image_02/{frame:010d}.png"
        for path, pixels in ((picture, photograph()), (depth, codes(dtype=np.uint16))):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(pixels, "PNG"))
    (root / "train_files.txt").write_text(f"{drive} 1 l\n{drive} 3 l\n")
    (root / "test_files.txt").write_text(f"{drive} 2 l\n")
    config = config_for("kitti", "smoke")
    Sets(config, find_sources(root, "kitti")).check(ood=False)
    one_list = find_sources(root, "kitti", split=root / "train_files.txt")
    reason = r"kitti: 2 images are to be learnt and to be tested, .*/0000000001 among them"
    with pytest.raises(DepthError, match=reason):
        Sets(config, one_list).check(ood=False)
    Sets(replace(config, holdout=0.5), find_sources(root, "kitti")).check(ood=False)


def test_lists_and_gaps_of_raw_drives_are_passed_on(tmp_path):
    drive, root = "2011_09_26/2011_09_26_drive_0002_sync", tmp_path / "kitti"
    pictures = root / drive / "image_02" / "data"
    depths = root / "train" / drive.split("/")[1] / "proj_depth/groundtruth/image_02"
    for folder in (pictures, depths):
        folder.mkdir(parents=True)
    for frame in ("0000000001", "0000000002"):
        (pictures / f"{frame}.png").write_bytes(encoded(photograph(), "PNG"))
    (depths / "0000000001.png").write_bytes(encoded(codes(dtype=np.uint16), "PNG"))
    split = tmp_path / "train_files.txt"
    split.write_text(f"{drive} 1 l\n{drive} 2 l\n")
    with pytest.raises(DepthError, match=r"0000000002.png: this depth file .* is missing"):
        find_sources(root, "kitti", split=split).open(root, "train")
    lenient = find_sources(root, "kitti", split=split, missing="skip")
    assert len(lenient.open(root, "train")) == 1


def test_a_set_without_depth_cannot_be_learnt(plan, photographs):
    sources = Sources(photographs / "nyu_small", test=photographs / "lsun_small")
    for use in (lambda sets: sets.test, lambda sets: sets.check(ood=False)):
        with pytest.raises(DepthError, match="lsun_small: its images have no depth"):
            use(Sets(plan.config, sources))


def test_images_that_do_not_fit_on_a_gpu_are_counted(sets, plan, monkeypatch):
    """A GPU with too little room, played by the set; other failures stay what they are."""

    def fails(error):
        def full(*arguments):
            raise error

        monkeypatch.setattr(module, "TrainingSet", full)
        sets.training(variants(plan.config, ["Single"])[0], False, CPU)

    with pytest.raises(DepthError, match=r"nyu_small: 6 training images of 32 x 64 .* not fit"):
        fails(torch.OutOfMemoryError("CUDA out of memory."))
    with pytest.raises(RuntimeError, match="another"):
        fails(RuntimeError("another"))
    with pytest.raises(DepthError, match=r"nyu_small: 6 images of 32 x 64 pixels take .* memory"):
        fails(MemoryError())


@pytest.mark.parametrize("library", [torch, np])
@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda sets: sets.train, r"nyu_small: 6 images .* take 86\.0 GB .* \(`n_images`\)"),
        (lambda sets: sets.test, r"nyu_small: 4 images .* take 57\.3 GB .* \(`n_test`\)"),
        (lambda sets: sets.ood("kitti"), r"kitti_small: 7 images .* 43\.0 GB .* \(`n_test`\)"),
        (lambda sets: sets._learnt_ood, r"kitti_small: 5 images .* 30\.7 GB .* \(`n_images`\)"),
    ],
)
def test_images_that_do_not_fit_into_memory_are_counted(plan, monkeypatch, library, use, told):
    """The failures are those of the libraries, with more than any machine has."""
    sets = Sets(replace(plan.config, height=32_000, width=64_000), plan.sources)

    def too_much(*_, **__):
        return library.empty(2**60, dtype=library.uint8)

    monkeypatch.setattr(DepthImages, "tensors", too_much)
    with pytest.raises(DepthError, match=told) as error:
        use(sets)
    assert "of 32000 x 64000 pixels" in str(error.value)
    assert str(error.value).endswith("What is finished is kept.")


def test_other_failures_than_of_memory_stay_what_they_are(sets, monkeypatch):
    monkeypatch.setattr(DepthImages, "tensors", lambda *_, **__: torch.ones(2) @ torch.ones(3))
    with pytest.raises(RuntimeError, match="inconsistent tensor size"):
        _ = sets.train


@pytest.mark.skipif(os.name != "posix", reason="file names are bytes on POSIX systems")
def test_names_may_hold_bytes_that_are_no_text(plan, photographs, tmp_path):
    folder = tmp_path / os.fsdecode(b"b\xfcro")
    try:
        shutil.copytree(photographs / "lsun_small", folder)
    except OSError:
        pytest.skip("this file system wants names in UTF-8")
    picture = next(file for file in folder.rglob("*.*") if file.is_file())
    picture.rename(picture.with_name(os.fsdecode(b"f\xf6to") + picture.suffix))
    sources = replace(plan.sources, ood={"office": folder})
    record = Sets(plan.config, sources).record()
    assert record["sources"]["office"] == "b?ro"
    assert len(record["digests"]["office"]) == 12


def test_the_fingerprint_sees_images_depth_and_weights(plan, photographs, tmp_path):
    def fingerprint(sources, uses_ood=False):
        return Sets(plan.config, sources).fingerprint(uses_ood=uses_ood)

    copy = tmp_path / "sets"
    shutil.copytree(photographs, copy)
    before = fingerprint(find_sources(copy, "nyu"))
    assert before == fingerprint(plan.sources)
    assert before != fingerprint(replace(plan.sources, weights="imagenet"))
    assert before != fingerprint(plan.sources, uses_ood=True)
    depth = copy / "nyu_small" / "depth"
    os.replace(depth / "0001.png", depth / "0002.png")
    shutil.copy(photographs / "nyu_small" / "depth" / "0001.png", depth / "0001.png")
    assert fingerprint(find_sources(copy, "nyu")) != before
