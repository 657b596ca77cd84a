"""Calibration: right predictives lie on the diagonal, wrong ones where arithmetic puts them."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch.distributions import Normal

from _asserts import assert_close
from _beliefs import random_ensemble, random_normal, random_normal_wishart, random_uniform
from priornet.distributions import NormalMixture, StudentT
from priornet.metrics import (
    LEVELS,
    calibration_curve,
    coverage,
    miscalibration_area,
    pit,
)

DOUBLE = torch.float64
N = 4000


def standard(n: int = N) -> Normal:
    return Normal(torch.zeros(n, dtype=DOUBLE), 1.0)


def right_predictives() -> dict:
    """Predictives with targets drawn from them, batch (N,), event () or (K,)."""
    generator = torch.Generator().manual_seed(0)
    student = StudentT(
        random_uniform(1.5, 9.0, (N,), 1), random_normal((N,), 2), random_uniform(0.5, 2.0, (N,), 3)
    )
    mixture = NormalMixture(random_normal((3, N), 4), random_uniform(0.5, 2.0, (3, N), 5))
    vector = random_normal_wishart(3, (N,), seed=6).predictive()
    ensemble = random_ensemble(4, 2, (N,), seed=7).predictive()
    predictives = {
        "student": student,
        "mixture": mixture,
        "vector student": vector,
        "vector mixture": ensemble,
    }
    drawn = {name: (p, p.sample((), generator)) for name, p in predictives.items()}
    return {"normal": (standard(), random_normal((N,), 8)), **drawn}


@pytest.mark.parametrize("name", list(right_predictives()))
def test_right_predictives_are_uniform(name):
    predictive, y = right_predictives()[name]
    values = pit(predictive, y)
    assert values.shape == y.shape
    for column in values.reshape(N, -1).T:
        assert stats.kstest(column.numpy(), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("name", list(right_predictives()))
def test_right_predictives_lie_on_the_diagonal(name):
    predictive, y = right_predictives()[name]
    expected, observed = calibration_curve(predictive, y)
    assert observed.shape == (101, *y.shape[1:])
    p = expected.reshape(-1, *(1 for _ in y.shape[1:]))
    assert ((observed - p).abs() <= 5 * (p * (1 - p) / N).sqrt() + 1e-12).all()
    # The expected area is that under a Brownian bridge; five times it is far outside its spread.
    area = miscalibration_area(predictive, y)
    assert area.shape == y.shape[1:]
    assert (area <= 5 * math.sqrt(2 / math.pi) * math.pi / 8 / math.sqrt(N)).all()


def test_overconfident_curve_follows_its_closed_form():
    """Targets twice as wide as claimed: observed = Phi(quantile(p) / 2)."""
    y = 2 * random_normal((N,), 9)
    levels = torch.tensor([0.05, 0.25, 0.5, 0.9], dtype=DOUBLE)
    observed = calibration_curve(standard(), y, levels).observed.numpy()
    exact = stats.norm.cdf(stats.norm.ppf(levels.numpy()) / 2)
    assert (np.abs(observed - exact) <= 5 * np.sqrt(exact * (1 - exact) / N)).all()


def test_curve_counts_targets_at_or_below():
    y = torch.tensor([-1.0, 0.0, 0.0, 1.0], dtype=DOUBLE)
    levels = torch.tensor([0.0, 0.2, 0.5, 1.0], dtype=DOUBLE)
    expected, observed = calibration_curve(standard(4), y, levels)
    assert torch.equal(expected, levels)
    assert observed.tolist() == [0.0, 0.25, 0.75, 1.0]


def test_area_matches_a_fine_grid():
    y = 0.7 + 1.8 * random_normal((37, 2), 10)
    predictive = random_normal_wishart(2, (37,), seed=11).predictive()
    grid = (torch.arange(400_000, dtype=DOUBLE) + 0.5) / 400_000
    curve = calibration_curve(predictive, y, grid)
    by_grid = (curve.observed - grid[:, None]).abs().mean(0)
    assert_close(miscalibration_area(predictive, y), by_grid, abs=3e-6, rel=0)


@pytest.mark.parametrize(("y", "area"), [(60.0, 0.5), (-60.0, 0.5), (0.0, 0.25)])
def test_area_of_the_worst_and_of_a_constant(y, area):
    y = torch.full((9,), y, dtype=DOUBLE)
    assert_close(miscalibration_area(standard(9), y), area, rel=1e-12)


def test_evenly_spread_targets_score_almost_zero():
    p = (torch.arange(1000, dtype=DOUBLE) + 0.5) / 1000
    area = miscalibration_area(standard(1000), torch.special.ndtri(p))
    assert_close(area, 1 / 4000, rel=1e-9)  # the saw-teeth that a staircase leaves on the diagonal


@pytest.mark.parametrize("level", LEVELS)
def test_coverage_of_true_quantiles_is_nominal(level):
    y = random_normal((N,), 12)
    end = torch.full_like(y, float(stats.norm.ppf(0.5 + level / 2)))
    share, standard_error = coverage(-end, end, y)
    assert (share - level).abs() <= 5 * math.sqrt(level * (1 - level) / N)
    assert_close(standard_error, math.sqrt(share * (1 - share) / N), rel=1e-12)


def test_coverage_includes_the_ends_and_goes_by_coordinate():
    lower = torch.zeros(4, 2, dtype=DOUBLE)
    y = torch.tensor([[0.0, 2.0], [1.0, 0.5], [0.5, -1.0], [1.5, 3.0]], dtype=DOUBLE)
    share, standard_error = coverage(lower, lower + 1, y)
    assert share.tolist() == [0.75, 0.25]
    assert_close(standard_error, [math.sqrt(0.75 * 0.25 / 4)] * 2, rel=1e-12)


def test_standard_error_is_the_spread_over_repeats():
    y = random_normal((2000, 200), 13)  # 200 samples of 2000
    end = torch.full_like(y, 1.0)
    share, standard_error = coverage(-end, end, y)
    ratio = share.std() / standard_error.mean()
    assert abs(ratio - 1) <= 5 / math.sqrt(2 * 200)


def test_float32_is_kept():
    y = random_normal((50,), 14, torch.float32)
    predictive = Normal(torch.zeros(50), 1.0)
    exact = miscalibration_area(standard(50), y.double())
    area = miscalibration_area(predictive, y)
    assert area.dtype == calibration_curve(predictive, y).observed.dtype == torch.float32
    assert_close(area, exact, rel=1e-5)


Y = torch.zeros(3)
NORMAL = Normal(torch.zeros(3), 1.0)


@pytest.mark.parametrize("metric", [calibration_curve, miscalibration_area])
@pytest.mark.parametrize(
    ("predictive", "y", "message"),
    [
        (NORMAL, Y * torch.nan, r"`y` must be free of NaN.*3 of 3"),
        (NORMAL, torch.zeros(2), r"`y` must have shape \(3,\)"),
        (Normal(torch.zeros(2, 2), 1.0), torch.zeros(2, 2), r"one batch axis.*got batch \(2, 2\)"),
        (Normal(torch.zeros(0), 1.0), torch.zeros(0), r"got batch \(0,\)"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(metric, predictive, y, message):
    with pytest.raises(ValueError, match=message):
        metric(predictive, y)


def test_levels_outside_0_and_1_are_refused():
    with pytest.raises(ValueError, match=r"`levels` must be in \[0, 1\]; 1 of 2"):
        calibration_curve(NORMAL, Y, torch.tensor([0.5, 1.5]))


@pytest.mark.parametrize(
    ("lower", "upper", "y", "message"),
    [
        (Y + 1, Y, Y, r"`upper` must be no smaller than `lower`; 3 of 3"),
        (Y, torch.zeros(2), Y, r"`upper` must have shape \(3,\)"),
        (Y, Y, torch.zeros(3, 1), r"`y` must have shape \(3,\)"),
        (torch.zeros(0), torch.zeros(0), torch.zeros(0), r"`lower` must hold one or more rows"),
    ],
)
def test_coverage_refuses_nonsense(lower, upper, y, message):
    with pytest.raises(ValueError, match=message):
        coverage(lower, upper, y)
