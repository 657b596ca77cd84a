"""Measures of images: maps to numbers, out-of-domain detection, agreement of two models."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart
from priornet_paper.depth.measures import (
    Histogram,
    ImageMeasures,
    agreement,
    correlation,
    likelihood_histogram,
    ood_auc,
    pixel_measures,
)
from priornet_paper.depth.protocol import PROTOCOLS

NYU = PROTOCOLS["nyu"]
SIZE = (48, 64)  # the region is rows 2 to 45 and columns 2 to 60


def draw(shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def normal_wishart(n=3, seed=0):
    loc, tril, belief, excess = draw((4, n, *SIZE), seed) + 0.5
    return NormalWishart.from_excess(loc[..., None], tril[..., None, None], belief, 3 * excess)


def ensemble(n=3, members=4, seed=0):
    means, variances = draw((2, members, n, *SIZE, 1), seed) + 0.2
    return GaussianEnsemble(means, variances)


def gaussian(n=3, seed=0):
    loc, variance = draw((2, n, *SIZE, 1), seed) + 0.5
    return Gaussian(loc, variance=variance)


def test_a_normal_wishart_has_every_measure():
    nw = normal_wishart()
    found = pixel_measures(nw)
    assert set(found) == {
        *("total_entropy", "total_variance", "expected_entropy"),
        *("mutual_information", "epkl", "variance_of_mean"),
    }
    torch.testing.assert_close(found["total_variance"], nw.predictive().variance.squeeze(-1))
    torch.testing.assert_close(found["total_entropy"], nw.predictive().entropy())


def test_what_has_no_closed_form_or_no_meaning_is_left_out():
    assert set(pixel_measures(ensemble())) == {
        *("total_variance", "expected_entropy", "epkl", "variance_of_mean"),
    }
    assert set(pixel_measures(gaussian())) == {
        *("total_entropy", "total_variance", "expected_entropy"),
    }


def test_an_image_is_the_mean_over_its_region_of_logarithms_for_variances():
    nw = normal_wishart()
    found = ImageMeasures(NYU)
    found.add(nw)
    maps, images = pixel_measures(nw), found.per_image()
    for i in range(3):
        sums = dict.fromkeys(maps, 0.0)
        for row in range(2, 46):
            for column in range(2, 61):
                for name, value in maps.items():
                    pixel = value[i, row, column].item()
                    sums[name] += math.log(pixel) if "variance" in name else pixel
        for name, total in sums.items():
            assert images[name][i].item() == pytest.approx(total / (44 * 59), rel=1e-10)


def test_what_is_outside_the_region_does_not_count():
    means, variances = draw((2, 4, 3, *SIZE, 1)) + 0.2
    framed = variances.clone()
    framed[..., :2, :, :] *= 1e6  # the first two rows
    plain, other = ImageMeasures(NYU), ImageMeasures(NYU)
    plain.add(GaussianEnsemble(means, variances))
    other.add(GaussianEnsemble(means, framed))
    for name, value in plain.per_image().items():
        assert torch.equal(other.per_image()[name], value)


def test_batches_change_nothing():
    whole, parts = ImageMeasures(NYU), ImageMeasures(NYU)
    means, variances = draw((2, 4, 5, *SIZE, 1)) + 0.2
    whole.add(GaussianEnsemble(means, variances), means.mean(0).squeeze(-1))
    for rows in (slice(0, 2), slice(2, 5)):
        part = GaussianEnsemble(means[:, rows], variances[:, rows])
        parts.add(part, means[:, rows].mean(0).squeeze(-1))
    for found, again in ((whole.per_image(), parts.per_image()), (whole.pixels(), parts.pixels())):
        assert found.keys() == again.keys()
        for name, value in found.items():
            torch.testing.assert_close(again[name], value, rtol=1e-14, atol=0)


def test_kept_pixels_are_a_grid_of_the_region():
    nw = normal_wishart()
    found = ImageMeasures(NYU)
    found.add(nw, nw.loc.squeeze(-1))
    kept = nw.loc[:, 6:46:8, 6:61:8, 0].flatten(1)
    assert torch.equal(found.pixels()["prediction"], kept)
    assert all(value.shape == kept.shape for value in found.pixels().values())


def test_sampled_information_of_an_ensemble_is_that_of_its_mixture():
    """Take two members far apart, which share nothing: one bit of knowledge, ln 2 nats."""
    means = torch.tensor([-50.0, 50.0]).reshape(2, 1, 1, 1, 1).expand(2, 3, *SIZE, 1)
    found = ImageMeasures(NYU, information_draws=2)
    found.add(GaussianEnsemble(means, torch.ones_like(means)))
    images = found.per_image()
    assert images["mutual_information"].tolist() == pytest.approx([math.log(2)] * 3, rel=1e-5)
    gap = images["total_entropy"] - images["expected_entropy"]
    torch.testing.assert_close(gap, images["mutual_information"])
    assert "mutual_information" not in found.pixels()


def test_sampled_information_of_many_pixels_is_close_to_quadrature():
    from priornet.distributions.ensemble import ensemble_information

    given = ensemble(n=1)
    found = ImageMeasures(NYU, information_draws=4)
    found.add(given)
    inside = given.means[:, 0, 2:46, 2:61].flatten(1, 2), given.covariances[:, 0, 2:46, 2:61, :, 0]
    exact = ensemble_information(GaussianEnsemble(inside[0], inside[1].flatten(1, 2))).mean()
    # 4 draws of 4 members at 2596 pixels: the standard error is about 0.5 / sqrt(41536).
    assert found.per_image()["mutual_information"].item() == pytest.approx(exact, abs=0.0125)


def test_ood_auc_is_the_chance_that_an_ood_image_scores_higher():
    inside = {"epkl": torch.tensor([1.0, 2.0, 3.0]), "total_entropy": torch.ones(3)}
    outside = {"epkl": torch.tensor([2.5, torch.inf])}
    assert ood_auc(inside, outside) == {"epkl": pytest.approx(5 / 6)}


def test_a_failed_model_scores_nothing():
    failed = {"epkl": torch.tensor([1.0, torch.nan])}
    assert math.isnan(ood_auc(failed, {"epkl": torch.ones(2)})["epkl"])
    assert math.isnan(correlation(failed["epkl"], torch.arange(2.0)))
    assert math.isnan(correlation(torch.ones(1), torch.ones(1)))


def test_agreement_correlates_maps_within_images_and_over_all():
    generator = torch.Generator().manual_seed(0)
    level = torch.arange(5.0).unsqueeze(1) * 10  # images differ: over all, even noise agrees
    student = {"epkl": torch.rand(5, 50, generator=generator) + level}
    teacher = {"epkl": torch.rand(5, 50, generator=generator) + level}
    found = agreement(student, teacher)["epkl"]
    rows = zip(student["epkl"], teacher["epkl"], strict=True)
    within = np.array([spearmanr(a, b)[0] for a, b in rows])
    assert found["within_images"] == pytest.approx(within.mean())
    over_all = spearmanr(student["epkl"].flatten(), teacher["epkl"].flatten())[0]
    assert found["over_all"] == pytest.approx(over_all)
    assert abs(found["within_images"]) < 0.2 < 0.9 < found["over_all"]


def test_mutual_information_is_compared_with_epkl_where_the_teacher_has_none():
    maps = draw((2, 30))
    student = {"mutual_information": maps, "total_entropy": maps}
    found = agreement(student, {"epkl": maps.exp()})
    assert found == {"mutual_information": {"within_images": 1.0, "over_all": 1.0}}


def test_predictions_are_also_compared_in_metres():
    teacher = draw((2, 30))
    off = torch.tensor([[3.0], [-4.0]])
    found = agreement({"prediction": teacher + off}, {"prediction": teacher})["prediction"]
    assert found["distance"] == pytest.approx(math.sqrt((9 + 16) / 2), rel=1e-6)


def test_maps_of_different_images_are_refused():
    with pytest.raises(ValueError, match=r"same images at the same resolution"):
        agreement({"epkl": torch.ones(2, 3)}, {"epkl": torch.ones(2, 4)})


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


def test_what_is_outside_the_ends_or_no_number_is_not_lost():
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
