"""The official division of the labelled NYU set."""

import csv

from priornet.depth.images.nyu_split import N_IMAGES, nyu_parts


def test_there_are_as_many_of_each_as_published():
    parts = nyu_parts()
    assert len(parts) == N_IMAGES == 1449
    assert (parts.count("train"), parts.count("test")) == (795, 654)


def test_the_first_test_images_are_those_of_the_release():
    # splits.mat counts from 1: testNdxs begins with 1, 2, 9, 14, 15, 16, 17, 18, 21, 28.
    test = [number + 1 for number, part in enumerate(nyu_parts()) if part == "test"]
    assert test[:10] == [1, 2, 9, 14, 15, 16, 17, 18, 21, 28]


def test_the_real_set_agrees(real_depth):
    with (real_depth / "nyu_v2" / "split.csv").open() as file:
        assert [row["split"] for row in csv.DictReader(file)] == nyu_parts()
