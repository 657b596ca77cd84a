"""Scores of a depth model: against arithmetic on all pixels; histograms against the pixels."""

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart
from priornet.metrics import depth_metrics
from priornet_paper.depth.protocol import PROTOCOLS
from priornet_paper.depth.scores import (
    QUANTILES,
    Histogram,
    Scorer,
    likelihood_histogram,
    over_seeds,
    point,
)

NYU = PROTOCOLS["nyu"]
N, H, W = 4, 48, 64  # targets; predictions have half of it


def rand(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def scene(seed=0):
    """Make targets, some missing, and a prediction of each second pixel, about 0.5 m off."""
    target = 1 + 6 * rand(N, H, W, seed=seed)
    target[rand(N, H, W, seed=seed + 1) < 0.2] = 0
    noise = torch.randn(N, H // 2, W // 2, generator=torch.Generator().manual_seed(seed + 2))
    return target, (target[:, ::2, ::2] + 0.5 * noise).clamp(min=0.3)


def beliefs(loc, seed=5):
    """Make the same prediction by each kind of belief, with predictive and moments by SciPy."""
    shape = loc.shape
    precision, kappa, excess = (
        2 + 4 * rand(*shape, seed=seed),
        2 + 9 * rand(*shape),
        1 + rand(*shape),
    )
    nw = NormalWishart.from_excess(loc[..., None], precision.sqrt()[..., None, None], kappa, excess)
    df = (excess + 2).numpy()
    t: Any = stats.t(df, loc.numpy(), ((1 + 1 / kappa) / precision).sqrt().numpy())
    offsets = 0.6 * rand(3, *shape, seed=seed) - 0.3
    means, scales = loc + offsets, 0.3 + 0.4 * rand(3, *shape, seed=seed + 1)
    ensemble = GaussianEnsemble(means[..., None], scales.square()[..., None])
    one = Gaussian(loc[..., None], variance=scales[0].square()[..., None])
    return {
        "normal-wishart": (nw, t.logpdf, t.cdf, loc.numpy(), t.std()),
        "ensemble": (
            ensemble,
            lambda y: np.log(stats.norm.pdf(y, means.numpy(), scales.numpy()).mean(0)),
            lambda y: stats.norm.cdf(y, means.numpy(), scales.numpy()).mean(0),
            means.mean(0).numpy(),
            (scales.square().mean(0) + means.var(0, correction=0)).sqrt().numpy(),
        ),
        "gaussian": (
            one,
            lambda y: stats.norm.logpdf(y, loc.numpy(), scales[0].numpy()),
            lambda y: stats.norm.cdf(y, loc.numpy(), scales[0].numpy()),
            loc.numpy(),
            scales[0].numpy(),
        ),
    }


KINDS = pytest.mark.parametrize("kind", ["normal-wishart", "ensemble", "gaussian"])


def scored(kind):
    """Return the scorer's results, and SciPy's numbers for the pixels that count."""
    target, loc = scene()
    belief, log_density, cdf, mean, std = beliefs(loc)[kind]
    scorer = Scorer(NYU)
    scorer.add(belief, target)
    y = target[:, ::2, ::2].numpy()
    counts = np.zeros_like(y, dtype=bool)
    counts[:, 1:23, 1:30] = True  # Eigen's crop of 24 x 32
    counts &= y > 0
    safe = np.where(counts, y, 1.0)
    pixels = {
        "nll": -log_density(safe),
        "nll_moment_matched": -stats.norm.logpdf(safe, mean, std),
        "predictive_quantiles": cdf(safe),
        "predictive_intervals": np.abs(2 * cdf(safe) - 1),
        "normal_intervals": np.abs(2 * stats.norm.cdf(safe, mean, std) - 1),
    }
    return scorer.result(), pixels, counts, scorer


@KINDS
@pytest.mark.parametrize("name", ["nll", "nll_moment_matched"])
def test_likelihood_is_the_mean_over_images_with_constants(kind, name):
    result, pixels, counts, scorer = scored(kind)
    images = [pixels[name][i][counts[i]].mean() for i in range(N)]
    assert result[name] == pytest.approx(np.mean(images), rel=1e-9)
    assert result[f"{name}_over_pixels"] == pytest.approx(pixels[name][counts].mean(), rel=1e-9)
    assert scorer.per_image()[name].tolist() == pytest.approx(images, rel=1e-9)


@KINDS
@pytest.mark.parametrize("name", ["nll", "nll_moment_matched"])
def test_quantiles_of_the_likelihood_are_those_of_the_pixels(kind, name):
    result, pixels, counts, _ = scored(kind)
    values = np.sort(pixels[name][counts])
    assert list(result[f"{name}_quantiles"]) == ["50", "90", "99", "99.9"]
    for q, found in zip(QUANTILES, result[f"{name}_quantiles"].values(), strict=True):
        # Anywhere between the neighbours is a quantile; a bin is 4e-4 nats wide and more far off.
        low, high = values[math.floor(q * len(values)) - 1], values[math.ceil(q * len(values)) - 1]
        assert low - 4e-4 * (1 + abs(low)) <= found <= high + 4e-4 * (1 + abs(high))


@KINDS
def test_histogram_of_the_likelihood_holds_every_pixel(kind):
    result, pixels, counts, _ = scored(kind)
    drawn = result["nll_histogram"]
    edges = np.linspace(drawn["from"], drawn["to"], len(drawn["shares"]) + 1)
    counted = np.histogram(pixels["nll"][counts], edges)[0] / counts.sum()
    assert np.cumsum(drawn["shares"]) == pytest.approx(np.cumsum(counted), abs=2e-3)
    total = sum(drawn["shares"]) + drawn["below"] + drawn["above"]
    assert total == pytest.approx(1, abs=1e-5)


@KINDS
@pytest.mark.parametrize(
    "name", ["predictive_quantiles", "predictive_intervals", "normal_intervals"]
)
def test_calibration_counts_targets(kind, name):
    result, pixels, counts, _ = scored(kind)
    places = pixels[name][counts]
    levels = result["calibration"]["expected"]
    assert levels == pytest.approx(np.linspace(0, 1, 51))
    counted = [(places <= level).mean() for level in levels]
    assert result["calibration"][name] == pytest.approx(counted, abs=1e-7)
    grid = np.linspace(0, 1, 20_001)
    curve = np.searchsorted(np.sort(places), grid, side="right") / len(places)
    area = np.trapezoid(np.abs(curve - grid), grid)
    assert result["c_auc"][name] == pytest.approx(area, abs=1e-3)


def test_a_model_that_means_what_it_says_has_no_area():
    generator = torch.Generator().manual_seed(0)
    loc = 2 + 6 * rand(8, 60, 80)
    scale = 0.1 + 0.3 * rand(8, 60, 80, seed=1)
    target = (loc + scale * torch.randn(8, 60, 80, generator=generator)).clamp(0.1, 9.9)
    scorer = Scorer(NYU)
    scorer.add(Gaussian(loc[..., None], variance=scale.square()[..., None]), target)
    # About 0.31 / sqrt(N) for N right predictions, here of 30 thousand pixels.
    assert max(scorer.result()["c_auc"].values()) < 0.006


@KINDS
def test_depth_scores_follow_the_protocol_with_and_without_the_mirror(kind):
    target, loc = scene()
    belief, *_ = beliefs(loc)[kind]
    twin, *_ = beliefs(loc.flip(-1) + 0.3)[kind]
    scorer = Scorer(NYU)
    scorer.add(belief, target, mirrored=twin)
    result, valid = scorer.result(), NYU.counts(target)
    mirrored = NYU.finish(point(belief), (H, W), point(twin))
    for name, value in depth_metrics(mirrored, target, valid=valid).items():
        assert result[name] == pytest.approx(value.item(), rel=1e-12)
    for name, value in depth_metrics(mirrored, target, valid=valid, over="pixels").items():
        assert result["over_pixels"][name] == pytest.approx(value.item(), rel=1e-12)
    plain = NYU.finish(point(belief), (H, W))
    for name, value in depth_metrics(plain, target, valid=valid).items():
        assert result["not_mirrored"][name] == pytest.approx(value.item(), rel=1e-12)
    assert result["rmse"] != result["not_mirrored"]["rmse"]


def test_plain_depths_have_depth_scores_only():
    target, loc = scene()
    scorer = Scorer(NYU)
    scorer.add(loc, target)
    result = scorer.result()
    assert result["rmse"] == pytest.approx(
        depth_metrics(NYU.finish(loc, (H, W)), target, valid=NYU.counts(target))["rmse"].item()
    )
    assert not {"nll", "c_auc", "not_mirrored", "spearman_depth"} & result.keys()


def test_correlations_with_depth_are_over_pixels_and_with_errors_over_images():
    target, loc = scene()
    belief, *_ = beliefs(loc)["normal-wishart"]
    scorer = Scorer(NYU)
    scorer.add(belief, target)
    result, pixels, images = scorer.result(), scorer.measures.pixels(), scorer.per_image()
    for name in ("total_variance", "mutual_information"):
        expected = stats.spearmanr(pixels[name].flatten(), pixels["prediction"].flatten())
        assert result["spearman_depth"][name] == pytest.approx(expected[0])
        for error in ("rmse", "rel"):
            expected = stats.spearmanr(images[name], images[error])
            assert result["spearman_error"][name][error] == pytest.approx(expected[0])


@KINDS
def test_batches_change_nothing(kind):
    target, loc = scene()
    whole, parts = Scorer(NYU), Scorer(NYU)
    whole.add(beliefs(loc)[kind][0], target, mirrored=loc.flip(-1))
    belief = beliefs(loc)[kind][0]
    for rows in (slice(0, 1), slice(1, N)):
        parts.add(_rows(belief, rows), target[rows], mirrored=loc[rows].flip(-1))
    flat, again = _flat(whole.result()), _flat(parts.result())
    assert flat.keys() == again.keys()
    assert again == pytest.approx(flat, rel=1e-10, abs=1e-12)


def _rows(belief, rows):
    if isinstance(belief, GaussianEnsemble):
        return GaussianEnsemble(belief.means[:, rows], belief.covariances[:, rows])
    if isinstance(belief, Gaussian):
        return Gaussian(belief.loc[rows], scale_tril=belief.scale_tril[rows])
    parts = (belief.loc, belief.precision_tril, belief.belief, belief.excess)
    return NormalWishart.from_excess(*(part[rows] for part in parts))


def _flat(value, path=""):
    """Return every number of nested results, by its path."""
    if isinstance(value, dict):
        return {
            p: v for name, part in value.items() for p, v in _flat(part, f"{path}/{name}").items()
        }
    if isinstance(value, list):
        return {f"{path}/{i}": v for i, v in enumerate(value)}
    return {path: value}


def test_an_image_without_depth_counts_for_nothing_but_its_uncertainty():
    target, loc = scene()
    empty = torch.cat([target, torch.zeros_like(target[:1])])
    more = torch.cat([loc, loc[:1]])
    scorer, other = Scorer(NYU), Scorer(NYU)
    variance = torch.ones_like(more)[..., None]
    scorer.add(Gaussian(more[..., None], variance=variance), empty)
    other.add(Gaussian(loc[..., None], variance=variance[:N]), target)
    result, expected = scorer.result(), other.result()
    assert (result["n_images"], result["n_images_without_depth"]) == (N + 1, 1)
    for name in ("rmse", "delta1", "nll", "nll_over_pixels"):
        assert result[name] == pytest.approx(expected[name], rel=1e-12)


def test_half_precision_targets_and_single_precision_beliefs_are_fine():
    target, loc = scene()
    scorer, exact = Scorer(NYU), Scorer(NYU)
    belief, *_ = beliefs(loc)["normal-wishart"]
    exact.add(belief, target.half().double())
    parts = (belief.loc, belief.precision_tril, belief.belief, belief.excess)
    scorer.add(NormalWishart.from_excess(*(part.float() for part in parts)), target.half())
    for name in ("rmse", "rel", "nll", "nll_moment_matched"):
        assert scorer.result()[name] == pytest.approx(exact.result()[name], rel=1e-5)


def test_results_are_plain_data_even_of_a_model_that_failed():
    target, loc = scene()
    loc[1] = torch.nan
    scorer = Scorer(NYU)
    scorer.add(
        Gaussian(loc[..., None], variance=torch.ones_like(loc)[..., None], validate_args=False),
        target,
    )
    result = json.loads(json.dumps(scorer.result(), allow_nan=False))
    assert result["nll"] is None
    assert result["rmse"] is None
    assert result["nll_not_numbers"] == int(NYU.counts(target[1:2, ::2, ::2]).sum())


def test_seeds_are_joined_number_by_number():
    target, loc = scene()
    results = []
    for shift in (0.0, 0.2):
        scorer = Scorer(NYU)
        scorer.add(beliefs(loc + shift)["gaussian"][0], target)
        results.append(scorer.result())
    joined = json.loads(json.dumps(over_seeds(results), allow_nan=False))
    values = [result["rmse"] for result in results]
    assert joined["rmse"]["values"] == values
    assert joined["rmse"]["mean"] == pytest.approx(sum(values) / 2)
    assert joined["over_pixels"]["rel"]["values"] == [r["over_pixels"]["rel"] for r in results]
    assert joined["n_pixels"] == results[0]["n_pixels"]
    assert joined["calibration"]["expected"] == results[0]["calibration"]["expected"]
    curves = [r["calibration"]["normal_intervals"] for r in results]
    assert joined["calibration"]["normal_intervals"]["values"] == curves
    assert joined["calibration"]["normal_intervals"]["mean"] == pytest.approx(np.mean(curves, 0))
    with pytest.raises(ValueError, match="same scores"):
        over_seeds([results[0], {"rmse": 1.0}])


def test_a_failed_seed_takes_the_mean_with_it():
    joined = over_seeds([{"nll": 1.0}, {"nll": None}])
    assert joined["nll"]["mean"] is None
    assert joined["nll"]["values"] == [1.0, None]


@pytest.mark.parametrize("shape", [(N + 1, H, W), (H, W)])
def test_targets_that_do_not_fit_are_refused(shape):
    _, loc = scene()
    with pytest.raises(ValueError, match=r"needs one of targets \(B, H, W\)"):
        Scorer(NYU).add(loc, torch.ones(shape, dtype=torch.float64))


def test_nothing_scored_is_an_error():
    with pytest.raises(ValueError, match="nothing has been scored"):
        Scorer(NYU).result()


def share_histogram():
    """Return a thousand bins for probabilities."""
    return Histogram(0.0, 1.0, 1000)


def heavy_tails(n=200_000):
    """Draw negative log-likelihoods with a heavy tail, as Gaussians have."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, generator=generator)
    return 0.5 * z.square() - 1 + torch.exp(3 * torch.randn(n, generator=generator)) * 0.01


@pytest.mark.parametrize("share", [0.001, 0.5, 0.9, 0.99, 0.999])
def test_quantiles_are_those_of_the_values_to_the_width_of_a_bin(share):
    values, bins = heavy_tails(), likelihood_histogram()
    bins.add(values, torch.ones_like(values, dtype=torch.bool))
    ordered = np.sort(values.double().numpy())
    around = ordered[[math.floor(share * len(ordered)) - 1, math.ceil(share * len(ordered))]]
    width = 4e-4 * np.sqrt(1 + around**2)
    assert around[0] - width[0] <= bins.quantile(share) <= around[1] + width[1]


def test_share_up_to_a_value_is_counted():
    values, bins = heavy_tails(), likelihood_histogram()
    bins.add(values, torch.ones_like(values, dtype=torch.bool))
    levels = torch.tensor([-2.0, -0.9, 0.0, 1.0, 8.0])
    counted = [(values <= level).double().mean().item() for level in levels]
    # The density is at most 6 per nat and a bin 4e-4 nats wide, so at most 2.4e-3 share it.
    assert bins.share_up_to(levels).tolist() == pytest.approx(counted, abs=2.5e-3)
    assert bins.share_up_to(torch.tensor([-math.inf, math.inf])).tolist() == [0, 1]


def test_edges_belong_to_the_bin_below():
    bins = Histogram(0.0, 1.0, 4)
    values = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])
    bins.add(values, torch.ones(5, dtype=torch.bool))
    assert bins.shares().tolist() == [0, 0.4, 0.6, 0.8, 1.0]
    assert bins.edges().tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_only_what_counts_is_counted_in_any_order():
    values = heavy_tails(1000)
    counts = torch.arange(1000) % 3 == 0
    whole, parts = likelihood_histogram(), likelihood_histogram()
    whole.add(values[counts], torch.ones(int(counts.sum()), dtype=torch.bool))
    for rows in (slice(600, 1000), slice(0, 600)):
        parts.add(values[rows].reshape(20, -1), counts[rows].reshape(20, -1))
    assert torch.equal(whole.shares(), parts.shares())


def test_what_is_beyond_the_ends_or_no_number_is_not_lost():
    bins = share_histogram()
    values = torch.tensor([-1.0, 2.0, math.inf, -math.inf, math.nan, math.nan])
    bins.add(values, torch.tensor([True] * 5 + [False]))
    assert bins.shares()[[1, -2]].tolist() == [0.5, 0.5]
    assert bins.n_not_numbers == 1


def test_nothing_counted_is_an_error():
    with pytest.raises(ValueError, match="nothing has been counted"):
        share_histogram().shares()
    bins = share_histogram()
    bins.add(torch.ones(3), torch.zeros(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="nothing has been counted"):
        bins.quantile(0.5)
