"""Scores of depth maps: a plain loop over pixels, both readings, masks, edges, errors."""

import math

import numpy as np
import pytest
import torch

from priornet.metrics import DEPTH_METRICS, DepthErrors, depth_errors, depth_metrics


def maps(seed=0, shape=(4, 6, 7), missing=0.3):
    """Predictions and targets between 0.5 and 10 m, some targets missing."""
    generator = np.random.default_rng(seed)
    target = generator.uniform(0.5, 10, shape)
    prediction = target * np.exp(0.4 * generator.standard_normal(shape))
    target[generator.uniform(size=shape) < missing] = 0
    return prediction, target


def score_of_pixels(pairs):
    """Every score of a list of (prediction, target), pixel by pixel, as the formulas read."""
    n = len(pairs)
    sums = dict.fromkeys(DEPTH_METRICS, 0.0)
    for p, t in pairs:
        for k in (1, 2, 3):
            sums[f"delta{k}"] += max(p / t, t / p) < 1.25**k
        sums["rel"] += abs(p - t) / t
        sums["rmse"] += (p - t) ** 2
        sums["log10"] += abs(math.log10(p) - math.log10(t))
        sums["rmse_log10"] += (math.log10(p) - math.log10(t)) ** 2
        sums["rel_to_prediction"] += abs(p - t) / p
    scores = {name: total / n for name, total in sums.items()}
    return scores | {name: math.sqrt(scores[name]) for name in ("rmse", "rmse_log10")}


def looped(prediction, target, over):
    """The scores of a set by loops over images, rows and columns."""
    images = []
    for image_p, image_t in zip(prediction, target, strict=True):
        pairs = []
        for row_p, row_t in zip(image_p, image_t, strict=True):
            pairs += [(p, t) for p, t in zip(row_p, row_t, strict=True) if t > 0]
        images.append(pairs)
    if over == "pixels":
        return score_of_pixels([pair for pairs in images for pair in pairs])
    scores = [score_of_pixels(pairs) for pairs in images]
    return {name: sum(score[name] for score in scores) / len(scores) for name in DEPTH_METRICS}


@pytest.mark.parametrize("over", ["images", "pixels"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_scores_match_a_loop_over_pixels(over, dtype, tolerance):
    prediction, target = maps()
    given = [torch.tensor(value, dtype=dtype) for value in (prediction, target)]
    scores = depth_metrics(given[0], given[1], over=over)
    assert tuple(scores) == DEPTH_METRICS
    expected = looped(prediction, target, over)
    assert {n: s.item() for n, s in scores.items()} == pytest.approx(expected, rel=tolerance)


def test_scores_of_two_images_by_hand():
    """Eq. (45): the scores of each image, averaged over the images."""
    target = torch.tensor([[[1.0, 10.0, 100.0, 1.0]], [[1.0, 2.0, 4.0, 3.0]]], dtype=torch.float64)
    ratio = torch.tensor([[[10.0, 1.0, 0.1, 1.0]], [[1.2, 1.5, 1 / 1.9, 2.0]]], dtype=torch.float64)
    scores = depth_metrics(ratio * target, target)
    # Limits 1.25, 1.5625 and 1.953...: two of the first image's four pixels are below all of them,
    # and of the second image's one, two and three.
    assert [scores[f"delta{k}"].item() for k in (1, 2, 3)] == [3 / 8, 4 / 8, 5 / 8]
    # |ratio - 1|: 9, 0, 0.9, 0 and 0.2, 0.5, 0.9/1.9, 1.
    rel = (9.9 / 4 + (1.7 + 9 / 19) / 4) / 2
    assert scores["rel"].item() == pytest.approx(rel, rel=1e-12)
    # Logarithms of the ratios: 1, 0, -1, 0 in the first image.
    other = [math.log10(1.2), math.log10(1.5), math.log10(1.9), math.log10(2)]
    root = (math.sqrt(2 / 4) + math.sqrt(sum(x * x for x in other) / 4)) / 2
    assert scores["rmse_log10"].item() == pytest.approx(root, rel=1e-12)
    assert scores["log10"].item() == pytest.approx((2 / 4 + sum(other) / 4) / 2, rel=1e-12)


def test_the_two_readings_differ_where_images_do():
    prediction, target = map(torch.tensor, maps())
    images, pixels = (depth_metrics(prediction, target, over=over) for over in ("images", "pixels"))
    assert all(images[name] != pixels[name] for name in DEPTH_METRICS)


def test_with_equally_many_pixels_only_the_roots_differ():
    prediction, target = map(torch.tensor, maps(missing=0.0))
    images, pixels = (depth_metrics(prediction, target, over=over) for over in ("images", "pixels"))
    for name in DEPTH_METRICS:
        same = math.isclose(images[name], pixels[name], rel_tol=1e-12)
        assert same == (name not in ("rmse", "rmse_log10"))


def test_a_ratio_of_exactly_a_quarter_more_is_past_the_first_threshold():
    target = torch.tensor([[[4.0, 5.0, 4.0]]])
    prediction = torch.tensor([[[5.0, 4.0, 4.99]]])
    scores = depth_metrics(prediction, target)
    assert scores["delta1"].item() == pytest.approx(1 / 3)
    assert scores["delta2"] == 1


def test_a_mask_says_what_counts():
    prediction, target = map(torch.tensor, maps(missing=0.0))
    valid = torch.zeros_like(target, dtype=torch.bool)
    valid[:, 1:4, 2:5] = True
    masked = depth_metrics(prediction, target, valid=valid)
    cut = depth_metrics(prediction[:, 1:4, 2:5], target[:, 1:4, 2:5])
    for name in DEPTH_METRICS:
        torch.testing.assert_close(masked[name], cut[name], rtol=1e-12, atol=0)


def test_what_does_not_count_may_be_anything():
    prediction, target = map(torch.tensor, maps())
    wild = prediction.masked_fill(target == 0, torch.nan)
    for name, score in depth_metrics(wild, target).items():
        torch.testing.assert_close(score, depth_metrics(prediction, target)[name], rtol=0, atol=0)


@pytest.mark.parametrize("over", ["images", "pixels"])
def test_an_image_without_depth_does_not_count(over):
    prediction, target = map(torch.tensor, maps())
    empty = torch.cat([target, torch.zeros_like(target[:1])])
    more = torch.cat([prediction, prediction[:1]])
    scores, expected = depth_metrics(more, empty, over=over), looped(*maps(), over)
    assert {n: s.item() for n, s in scores.items()} == pytest.approx(expected, rel=1e-12)


def test_parts_joined_are_the_whole():
    prediction, target = map(torch.tensor, maps())
    parts = [
        depth_errors(prediction[s], target[s], target[s] > 0) for s in (slice(0, 1), slice(1, 4))
    ]
    joined = DepthErrors.cat(parts)
    assert joined.n_pixels.tolist() == (target > 0).sum((1, 2)).tolist()
    for over in ("images", "pixels"):
        expected = looped(*maps(), over)
        scores = {name: score.item() for name, score in joined.over(over).items()}
        assert scores == pytest.approx(expected, rel=1e-12)
    first = score_of_pixels(
        [(p, t) for p, t in zip(*(m[0].flat for m in maps()), strict=True) if t]
    )
    assert joined.per_image()["rmse"][0].item() == pytest.approx(first["rmse"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prediction": torch.zeros(1, 2, 2)}, "`prediction` must be positive and finite where"),
        ({"prediction": torch.full((1, 2, 2), torch.inf)}, "positive and finite where it counts"),
        ({"target": torch.ones(1, 2, 3)}, r"`target` must have shape \(1, 2, 2\)"),
        ({"target": torch.zeros(1, 2, 2)}, "no image has a valid pixel"),
        ({"prediction": torch.ones(2, 2), "target": torch.ones(2, 2)}, r"shape \(N, H, W\)"),
        ({"over": "rows"}, '"images" or "pixels"; got \'rows\''),
    ],
)
def test_bad_input_is_named(change, message):
    given = {"prediction": torch.ones(1, 2, 2), "target": torch.ones(1, 2, 2)} | change
    with pytest.raises(ValueError, match=message):
        depth_metrics(**given)


def test_a_prediction_that_is_no_number_counts_as_wrong():
    target = torch.ones(1, 2, 2)
    prediction = torch.tensor([[[1.0, torch.nan], [1.0, 1.0]]])
    means = depth_errors(prediction, target, torch.ones_like(target, dtype=torch.bool)).per_image()
    assert means["delta1"].tolist() == [0.75]
