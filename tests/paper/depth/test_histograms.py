"""Histograms of pixels against the pixels themselves."""

import math

import numpy as np
import pytest
import torch

from priornet_paper.depth.histograms import (
    Histogram,
    likelihood_histogram,
    share_histogram,
)


def heavy_tails(n=200_000):
    """Negative log-likelihoods with a tail of very bad ones, as Gaussians have."""
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
