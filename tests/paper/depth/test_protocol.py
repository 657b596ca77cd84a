"""The protocol: which pixels count, how predictions are brought to the target's size."""

import json

import numpy as np
import pytest
import torch

from priornet_paper.depth.protocol import PROTOCOLS, Box, nearest

NYU, KITTI = PROTOCOLS["nyu"], PROTOCOLS["kitti"]


def bilinear(image, factor=2):
    """Scale up by whole factors with half-pixel centres, each output pixel by itself."""
    h, w = image.shape
    out = np.zeros((factor * h, factor * w))
    for i in range(factor * h):
        for j in range(factor * w):
            y = min(max((i + 0.5) / factor - 0.5, 0), h - 1)
            x = min(max((j + 0.5) / factor - 0.5, 0), w - 1)
            i0, j0 = int(y), int(x)
            i1, j1 = min(i0 + 1, h - 1), min(j0 + 1, w - 1)
            top = (1 - (x - j0)) * image[i0, j0] + (x - j0) * image[i0, j1]
            bottom = (1 - (x - j0)) * image[i1, j0] + (x - j0) * image[i1, j1]
            out[i, j] = (1 - (y - i0)) * top + (y - i0) * bottom
    return out


@pytest.mark.parametrize(
    ("size", "rows", "columns"),
    [
        ((480, 640), (20, 460), (24, 616)),  # DenseDepth's: 20 to 459 and 24 to 615
        ((240, 320), (10, 230), (12, 308)),
        ((120, 160), (5, 115), (6, 154)),
    ],
)
def test_crop_of_nyu_is_eigens_at_every_size(size, rows, columns):
    assert NYU.crop.slices(*size) == (slice(*rows), slice(*columns))


def test_crop_of_kitti_is_gargs():
    # For images of 375 x 1242, as public code computes it: int(0.40810811 * 375) and so on.
    assert KITTI.crop.slices(375, 1242) == (slice(153, 371), slice(44, 1197))
    assert KITTI.region.slices(192, 640) == (slice(96, 190), slice(23, 616))


def test_crops_are_their_own_mirror_images():
    for protocol in PROTOCOLS.values():
        for height, width in ((480, 640), (240, 320), (192, 640), (96, 320)):
            _, columns = protocol.crop.slices(height, width)
            assert abs(columns.start - (width - columns.stop)) <= 1


def test_pixels_count_inside_the_crop_where_depth_was_measured():
    target = torch.full((1, 96, 320), 20.0)
    target[0, 50, 100], target[0, 50, 101] = 0.0, 80.0
    counts = KITTI.counts(target)
    rows, columns = KITTI.crop.slices(96, 320)
    inside = (rows.stop - rows.start) * (columns.stop - columns.start)
    assert counts.sum() == inside - 2
    assert not counts[0, 50, 100]
    assert not counts[0, 50, 101]
    assert not counts[0, 0].any()


def test_predictions_are_clipped_then_scaled_up_then_averaged_with_the_mirror():
    generator = np.random.default_rng(0)
    plain, mirrored = generator.uniform(-1, 12, (2, 2, 5, 6))
    finished = NYU.finish(torch.tensor(plain), (10, 12), torch.tensor(mirrored))
    for k in range(2):
        own = bilinear(np.clip(plain[k], 0.1, 10))
        twin = bilinear(np.clip(mirrored[k], 0.1, 10))[:, ::-1]
        np.testing.assert_allclose(finished[k].numpy(), (own + twin) / 2, rtol=1e-12)


def test_without_a_mirrored_prediction_there_is_no_average():
    plain = torch.tensor(np.random.default_rng(0).uniform(1, 9, (1, 4, 4)))
    finished = NYU.finish(plain, (8, 8))
    np.testing.assert_allclose(finished[0].numpy(), bilinear(plain[0].numpy()), rtol=1e-12)


def test_targets_at_half_the_size_are_every_second_pixel():
    target = torch.rand(2, 8, 10, dtype=torch.float64)
    assert torch.equal(nearest(target, (4, 5)), target[:, ::2, ::2])


def test_record_is_plain_data_with_its_numbers():
    record = json.loads(json.dumps(KITTI.record(), allow_nan=False))
    assert Box(**record["crop"]) == KITTI.crop
    assert Box(**record["region"]) == KITTI.region
    assert (record["closest_metres"], record["farthest_metres"]) == (0.01, 80.0)
    assert "limit_metres" not in NYU.record()
    assert "resolution" not in record
    assert NYU.record((240, 320))["resolution"] == {
        "targets": [240, 320],
        "predictions": [120, 160],
    }
