"""DenseDepth's loss on inverse depth, against NumPy and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter
from torch.autograd import gradcheck, gradgradcheck

from _asserts import assert_close
from _beliefs import random_normal, random_uniform
from priornet.losses.depth import dense_depth, dense_depth_terms, depth_of, inverse_depth

SHAPE = (3, 17, 14)


def maps():
    """A prediction, and depths between 0.5 and 9 m."""
    depth = random_uniform(0.5, 9.0, SHAPE, seed=1)
    prediction = inverse_depth(depth) + 2 * random_normal(SHAPE, seed=2)
    return prediction, depth


def some_missing():
    mask = random_uniform(0.0, 1.0, SHAPE, seed=3) > 0.3
    mask[1, :, :7] = False
    mask[2] = False
    return mask


def by_hand(prediction, depth, mask):
    """The terms of one image, pixel by pixel and window by window."""
    target = 10.0 / depth
    rows, columns = depth.shape
    valid = [(i, j) for i in range(rows) for j in range(columns) if mask[i, j]]
    count = max(len(valid), 1)
    off = prediction - target
    l1 = sum(abs(off[at]) for at in valid) / count
    edges = 0.0
    for i, j in valid:
        for there in ((i + 1, j), (i, j + 1)):
            if there[0] < rows and there[1] < columns and mask[there]:
                edges += abs(off[there] - off[i, j])
    offsets = np.arange(-5, 6)
    kernel = np.exp(-(offsets[:, None] ** 2 + offsets**2) / (2 * 1.5**2))
    similarities = []
    for i, j in valid:
        if not (5 <= i < rows - 5 and 5 <= j < columns - 5):
            continue
        window = np.s_[i - 5 : i + 6, j - 5 : j + 6]
        weight = (kernel * mask[window]).ravel()
        x, y = (m[window].ravel()[weight > 0] for m in (prediction, target))
        weight = weight[weight > 0]
        x_mean, y_mean = np.average(x, weights=weight), np.average(y, weights=weight)
        (xx, xy), (_, yy) = np.cov(x, y, aweights=weight, ddof=0)
        c1, c2 = 1.0, 9.0  # (0.01 * 100)^2, (0.03 * 100)^2
        above = (2 * x_mean * y_mean + c1) * (2 * xy + c2)
        similarities.append(above / ((x_mean**2 + y_mean**2 + c1) * (xx + yy + c2)))
    ssim = (1 - np.mean(similarities)) / 2 if similarities else 0.0
    return {"l1": l1, "gradients": edges / count, "ssim": ssim}


@pytest.mark.parametrize("complete", [True, False])
def test_terms_match_a_loop_over_pixels_and_windows(complete):
    prediction, depth = maps()
    mask = torch.ones(SHAPE, dtype=torch.bool) if complete else some_missing()
    terms = dense_depth_terms(prediction, depth, mask=mask)
    arrays = [m.cpu().numpy() for m in (prediction, depth, mask)]
    expected = [by_hand(*images) for images in zip(*arrays, strict=True)]
    for name, values in terms.items():
        assert_close(values, [one[name] for one in expected], rel=1e-10, abs=1e-12)
    weighted = [0.1 * one["l1"] + one["gradients"] + one["ssim"] for one in expected]
    assert_close(dense_depth(prediction, depth, mask=mask), weighted, rel=1e-10, abs=1e-12)


def test_similarity_matches_scipys_gaussian_filter():
    prediction, depth = maps()
    found = dense_depth_terms(prediction, depth)["ssim"]
    x, y = prediction.cpu().numpy(), 10.0 / depth.cpu().numpy()

    def blur(a):
        return gaussian_filter(a, 1.5, radius=5, axes=(1, 2))[:, 5:-5, 5:-5]

    mean_x, mean_y = blur(x), blur(y)
    spread = blur(x * x) - mean_x**2 + blur(y * y) - mean_y**2
    structure = (2 * (blur(x * y) - mean_x * mean_y) + 9) / (spread + 9)
    ssim = (2 * mean_x * mean_y + 1) / (mean_x**2 + mean_y**2 + 1) * structure
    assert_close(found, (1 - ssim.mean((1, 2))) / 2, rel=1e-10)


def test_constant_maps_differ_in_brightness_only():
    depth = torch.full((1, 20, 15), 4.0, dtype=torch.float64)  # inverse 2.5
    terms = dense_depth_terms(torch.full_like(depth, 5.0), depth)
    assert_close(terms["l1"], [2.5])
    assert_close(terms["gradients"], [0.0])
    assert_close(terms["ssim"], [(1 - (2 * 2.5 * 5 + 1) / (2.5**2 + 5**2 + 1)) / 2], rel=1e-9)


def test_a_slope_counts_once_per_step():
    depth = torch.full((1, 12, 12), 10.0, dtype=torch.float64)  # inverse 1
    ramp = torch.arange(12.0, dtype=torch.float64).expand(1, 12, 12)
    assert_close(dense_depth_terms(ramp, depth)["gradients"], [11 * 12 / 144])


def test_perfect_prediction_costs_nothing():
    _, depth = maps()
    assert_close(dense_depth(inverse_depth(depth), depth), torch.zeros(3), abs=1e-12)


def test_zero_depth_is_missing():
    prediction, depth = maps()
    mask = some_missing()
    holes = torch.where(mask, depth, 0.0)
    assert_close(dense_depth(prediction, holes), dense_depth(prediction, depth, mask=mask), rel=0)


def test_what_is_masked_can_be_anything():
    prediction, depth = maps()
    mask = some_missing()
    expected = dense_depth(prediction, depth, mask=mask)
    prediction = torch.where(mask, prediction, math.nan).requires_grad_()
    loss = dense_depth(prediction, torch.where(mask, depth, math.nan), mask=mask)
    loss.sum().backward()
    assert_close(loss, expected, rel=0)
    assert prediction.grad is not None
    assert (prediction.grad[~mask] == 0).all()
    assert prediction.grad[mask].isfinite().all()


def test_image_without_depth_costs_nothing():
    prediction, depth = maps()
    assert dense_depth(prediction, depth, mask=some_missing())[2] == 0


def test_gradients():
    prediction, depth = maps()
    mask = some_missing()
    leaf = prediction[:2].clone().requires_grad_()
    assert gradcheck(lambda p: dense_depth(p, depth[:2], mask=mask[:2]), leaf)


@pytest.mark.filterwarnings(
    "ignore:`torch.jit.script` is deprecated:DeprecationWarning"
)  # torch's own
def test_blur_is_differentiated_as_often_as_one_likes():
    prediction, depth = maps()
    leaf = prediction[:1].clone().requires_grad_()

    def ssim(p):
        return dense_depth_terms(p, depth[:1])["ssim"]

    assert gradcheck(ssim, leaf, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(ssim, leaf)


def test_compiled_loss_and_gradient_are_the_same():
    prediction, depth = maps()

    def slope(loss):
        leaf = prediction.clone().requires_grad_()
        value = loss(leaf, depth).sum()
        return torch.stack([value.detach(), *torch.autograd.grad(value, leaf)[0].flatten()])

    compiled = torch.compile(dense_depth, backend="aot_eager", fullgraph=True)
    assert_close(slope(compiled), slope(dense_depth), rel=1e-9, abs=1e-12)


def test_half_precision_is_computed_in_float32(device):
    prediction, depth = (m.to(torch.bfloat16) for m in maps())
    with torch.autocast(device.type, dtype=torch.bfloat16):
        loss = dense_depth(prediction, depth)
    assert loss.dtype == torch.float32
    # Variances are differences of squares up to 400: in bfloat16 they would be off by ones.
    assert_close(loss, dense_depth(prediction.double(), depth.double()), rel=1e-5)


def test_depth_and_its_inverse():
    depth = torch.tensor([0.1, 0.25, 2.0, 10.0], dtype=torch.float64)
    assert_close(inverse_depth(depth), [100.0, 40.0, 5.0, 1.0])
    assert_close(depth_of(inverse_depth(depth)), depth)
    assert_close(inverse_depth(torch.tensor([0.01, 100.0])), [100.0, 1.0])
    assert_close(depth_of(torch.tensor([-3.0, 0.0, 0.5, 1e6])), [10.0, 10.0, 10.0, 0.1], rel=1e-6)
    assert_close(depth_of(inverse_depth(depth * 8, 80.0), 80.0), depth * 8)


@pytest.mark.parametrize(
    ("prediction", "depth", "message"),
    [
        ((2, 1, 12, 12), (2, 1, 12, 12), r"maps \(B, H, W\)"),
        ((2, 12, 10), (2, 12, 10), "at least 11 x 11"),
        ((2, 12, 12), (2, 12, 13), r"`depth` must have shape \(2, 12, 12\)"),
    ],
)
def test_wrong_shapes_are_named(prediction, depth, message):
    with pytest.raises(ValueError, match=message):
        dense_depth(torch.ones(prediction), torch.ones(depth))


def test_mask_must_be_boolean():
    prediction, depth = maps()
    with pytest.raises(TypeError, match="`mask` must be boolean"):
        dense_depth(prediction, depth, mask=torch.ones(SHAPE))
