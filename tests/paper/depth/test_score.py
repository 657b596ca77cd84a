"""Scores of a depth model: against arithmetic on all pixels, in parts of any size."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart
from priornet.metrics import depth_metrics
from priornet_paper.depth import score
from priornet_paper.depth.measures import QUANTILES
from priornet_paper.depth.protocol import PROTOCOLS
from priornet_paper.depth.score import (
    Scorer,
    Scoring,
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


def ensemble(images):
    """Predict bright pixels far; two members disagree where there is much red."""
    far = 1 + 4 * images.mean(1)[..., ::2, ::2]
    red = images[:, 0, ::2, ::2]
    loc = torch.stack([far - red, far + red]).unsqueeze(-1)
    tril = torch.ones(*loc.shape, 1)
    return GaussianEnsemble.from_precision_tril(loc, tril, validate_args=False)


@pytest.fixture
def scoring(generator):
    def pictures(n):
        return torch.randint(0, 256, (n, 3, 24, 32), generator=generator, dtype=torch.uint8)

    own, ood = pictures(9), pictures(7)
    depth = 1 + own.float().mean(1) / 60
    sets = SimpleNamespace(test=(own, depth), ood={"lsun_bedroom": ood}.__getitem__)
    messages = []
    cpu = torch.device("cpu")
    made = Scoring(sets, PROTOCOLS["nyu"], ["lsun_bedroom"], cpu, 0, messages.append)  # pyright: ignore[reportArgumentType] (what it needs of sets)
    return made, messages


def small(n_most):
    """Make the same model on a GPU with room for so many images."""

    def predict(images):
        if len(images) > n_most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return ensemble(images)

    return predict


def test_little_memory_changes_no_score(scoring):
    scoring, messages = scoring
    whole = scoring.result(ensemble, teacher=ensemble)
    assert messages == []
    parts = scoring.result(small(4), teacher=small(4))
    assert messages[0] == "16 images at a time do not fit in memory; going on with 8."
    assert parts["rmse"] == pytest.approx(whole["rmse"], rel=1e-5)
    assert parts["ood_auc"]["lsun_bedroom"] == pytest.approx(whole["ood_auc"]["lsun_bedroom"])
    assert parts["agreement"].keys() == whole["agreement"].keys()
    assert "epkl" in parts["agreement"]


def test_maps_are_of_the_first_images(scoring):
    scoring, _ = scoring
    maps = scoring.maps(small(4), "nyu")
    names = ("prediction", "total_variance", "epkl")
    assert maps.keys() == {f"{s}/{name}" for s in ("nyu", "lsun_bedroom") for name in names}
    whole = replace(scoring).maps(ensemble, "nyu")
    for name, values in maps.items():
        assert values.shape == (6, 12, 16)
        assert values.dtype == torch.float32
        torch.testing.assert_close(values, whole[name])


def test_members_are_scored_by_themselves(scoring):
    scoring, messages = scoring

    def member(place, n_most=16):
        def predict(images):
            both = small(n_most)(images)
            loc, tril = both.means[place], both.precision_tril[place]
            return Gaussian(loc, precision_tril=tril, validate_args=False)

        return predict

    first, second = (scoring.result(member(place)) for place in (0, 1))
    found = scoring.members([member(0), member(1, n_most=4)])
    assert messages[0].endswith("going on with 8.")
    assert set(found) == {f"delta{i}" for i in (1, 2, 3)} | {
        "rel",
        "rmse",
        "log10",
        "rmse_log10",
        "nll",
    }
    for name, value in found.items():
        assert value == pytest.approx((first[name] + second[name]) / 2, rel=1e-5), name
    assert first["rmse"] != second["rmse"]


def images(n=5):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (n, 3, 48, 64), dtype=torch.uint8, generator=generator)


def scoring_of(depth) -> Any:
    """Score on five images of this depth."""
    sets: Any = SimpleNamespace(test=(images(), depth))
    return Scoring(sets, NYU, [], torch.device("cpu"), 0, print)


def bright_is_far(some):
    """Predict depth from the red channel, more certain where it is green."""
    assert some.dtype == torch.float32
    assert 0 <= some.min() <= some.max() <= 1
    loc, variance = 1 + 5 * some[:, 0, ::2, ::2], 0.1 + some[:, 1, ::2, ::2]
    return Gaussian(loc[..., None], variance=variance[..., None])


@pytest.mark.parametrize("batch", [1, 2, 5, 8])
def test_the_size_of_batches_changes_nothing(batch, monkeypatch):
    scoring = scoring_of(1 + torch.rand(5, 48, 64, generator=torch.Generator().manual_seed(1)))
    whole = scoring.scored(bright_is_far).result()
    monkeypatch.setattr(score, "_BATCH", batch)
    result = scoring.scored(bright_is_far).result()
    assert result["n_images"] == 5
    for name in ("rmse", "nll"):
        assert result[name] == pytest.approx(whole[name], rel=1e-6)


def test_mirrored_images_are_shown_mirrored():
    """Use a model of single pixels: it predicts the same of both, once mirrored back."""

    def symmetric(some):
        return 1 + 5 * some[:, 0].unfold(-1, 2, 2).mean(-1).unfold(-2, 2, 2).mean(-1)

    result = scoring_of(torch.ones(5, 48, 64)).scored(symmetric).result()
    assert result["rmse"] == pytest.approx(result["not_mirrored"]["rmse"], rel=1e-6)
    alone = Scorer(NYU)
    alone.add(symmetric(images().float() / 255), torch.ones(5, 48, 64))
    assert "not_mirrored" not in alone.result()


def test_ood_images_are_measured_as_own_ones_are(monkeypatch):
    scoring = scoring_of(torch.ones(5, 48, 64))
    own = scoring.scored(bright_is_far).per_image()
    monkeypatch.setattr(score, "_BATCH", 2)
    for name, value in scoring.measured(bright_is_far, images()).per_image().items():
        torch.testing.assert_close(value, own[name])


def test_images_need_as_many_depth_maps():
    with pytest.raises(ValueError, match=r"needs one of targets .*; got \(5, 24, 32\) and \(4, "):
        scoring_of(torch.ones(4, 48, 64)).scored(bright_is_far)
