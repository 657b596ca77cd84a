"""The semi-informative prior against NumPy's moments, Eq. (10), arXiv:2006.11590v2."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import kl_divergence

from _asserts import assert_close
from _beliefs import DIMENSIONS, random_normal, random_tril
from priornet.priors import semi_informative_prior


def targets(k_dim, n=200):
    """Draw correlated targets away from zero."""
    return random_normal((n, k_dim)) @ random_tril(k_dim).T * 3.0 + 7.0


@pytest.mark.parametrize("eps", [1e-2, 1.0])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_prior_has_the_papers_parameters(k_dim, eps):
    # Eq. (10): m0 = mean, L0^-1 = nu0 Cov, kappa0 = eps, nu0 = K + 1 + eps.
    y = targets(k_dim)
    prior = semi_informative_prior(y, belief=eps, excess=eps)
    assert prior.batch_shape == ()
    assert_close(prior.loc, y.numpy(force=True).mean(0), rel=1e-12)
    assert prior.belief.item() == eps
    assert_close(prior.df, torch.tensor(k_dim + 1 + eps, dtype=torch.float64))
    inverse = torch.linalg.inv(prior.scale_tril @ prior.scale_tril.T)
    covariance = np.cov(y.numpy(force=True), rowvar=False, bias=True).reshape(k_dim, k_dim)
    assert_close(inverse, (k_dim + 1 + eps) * covariance, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_precision_match_expects_the_precision_of_the_data(k_dim):
    y = targets(k_dim)
    covariance = np.cov(y.numpy(force=True), rowvar=False, bias=True).reshape(k_dim, k_dim)
    prior = semi_informative_prior(y)
    assert_close(prior.mean.precision, np.linalg.inv(covariance), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("excess", [1e-2, 3.0])
@pytest.mark.parametrize("k_dim", DIMENSIONS)
def test_variance_match_expects_the_covariance_of_the_data(k_dim, excess):
    y = targets(k_dim)
    covariance = np.cov(y.numpy(force=True), rowvar=False, bias=True).reshape(k_dim, k_dim)
    prior = semi_informative_prior(y, excess=excess, match="variance")
    assert_close(prior.data_covariance(), covariance, rel=1e-9, abs=1e-9)
    inverse = torch.linalg.inv(prior.scale_tril @ prior.scale_tril.T)
    assert_close(inverse, excess * covariance, rel=1e-8, abs=1e-9)


def test_matching_the_precision_inflates_the_variance_201_times():
    y = targets(1)
    ratio = semi_informative_prior(y).data_covariance().item() / y.var(correction=0).item()
    assert_close(ratio, 201.0, rel=1e-10)


def test_sampled_variance_of_the_prior_is_that_of_the_data(generator):
    # E[Lambda^-1] by drawing, with an excess large enough for the mean to have standard errors.
    y = targets(1)
    prior = semi_informative_prior(y, excess=10.0, match="variance")
    variances = 1 / prior.sample((20_000,), generator).precision.squeeze()
    stderr = variances.std() / 20_000**0.5
    assert (variances.mean() - y.var(correction=0)).abs() < 5 * stderr


def test_prior_moves_with_shift_and_scale_of_the_targets():
    y = targets(3)
    prior, moved = semi_informative_prior(y), semi_informative_prior(10.0 * y - 4.0)
    assert_close(moved.loc, 10.0 * prior.loc - 4.0, rel=1e-10)
    assert_close(moved.mean.precision, prior.mean.precision / 100.0, rel=1e-9)
    assert_close(moved.mutual_information(), prior.mutual_information(), rel=1e-12)


@pytest.mark.parametrize("match", ["precision", "variance"])
def test_float32_stays_float32_and_agrees(match):
    y = targets(3)
    single, double = semi_informative_prior(y.float(), match=match), semi_informative_prior(
        y.float().double(), match=match
    )  # fmt: skip
    assert single.loc.dtype == single.precision_tril.dtype == torch.float32
    assert_close(single.precision_tril, double.precision_tril, rel=1e-4, abs=1e-5)


def test_standardised_targets_give_the_standard_prior():
    y = targets(3)
    white = torch.linalg.solve(
        torch.linalg.cholesky(torch.cov(y.T, correction=0)), (y - y.mean(0)).T
    ).T
    prior = semi_informative_prior(white)
    assert_close(prior.loc, torch.zeros(3), abs=1e-12)
    assert_close(prior.precision_tril, torch.eye(3), rel=1e-10, abs=1e-10)
    assert kl_divergence(prior, prior) == 0


SINGULAR = "`y` must vary in every direction"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("level", [5.0, 0.1, 1e4 / 3])
@pytest.mark.parametrize("k_dim", [1, 3])
def test_a_constant_column_is_refused(k_dim, level, dtype):
    # The mean of 200 equal numbers need not be that number: rounding is no variation.
    y = targets(k_dim).to(dtype)
    y[:, -1] = level
    with pytest.raises(ValueError, match=SINGULAR):
        semi_informative_prior(y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k_dim", [1, 3])
def test_a_duplicated_column_is_refused(k_dim, dtype):
    y = targets(k_dim)
    doubled = torch.cat([y, 2.0 * y[:, :1]], 1).to(dtype)
    with pytest.raises(ValueError, match=SINGULAR):
        semi_informative_prior(doubled)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k_dim", [2, 3, 5])
def test_fewer_rows_than_columns_are_refused(k_dim, dtype):
    with pytest.raises(ValueError, match=SINGULAR):
        semi_informative_prior(targets(k_dim, n=k_dim).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_strongly_correlated_targets_and_small_spreads_are_accepted(dtype):
    y = targets(2)
    near = torch.stack([y[:, 0], y[:, 0] + 0.1 * y[:, 1]], 1).to(dtype)
    assert semi_informative_prior(near).precision_tril.isfinite().all()
    tiny = semi_informative_prior((1e-6 * random_normal((200, 1))).to(dtype))
    assert_close(tiny.mean.precision.sqrt() * 1e-6, torch.ones(1, 1), rel=0.2)


def test_wrong_shapes_values_and_options_are_refused():
    with pytest.raises(ValueError, match=r"`y` must have shape \(N, K\)"):
        semi_informative_prior(torch.zeros(5))
    with pytest.raises(ValueError, match="N >= 2"):
        semi_informative_prior(torch.zeros(1, 3))
    with pytest.raises(ValueError, match="`y` must be finite"):
        semi_informative_prior(torch.tensor([[1.0], [torch.nan]]))
    with pytest.raises(ValueError, match="choose one of: precision, variance"):
        semi_informative_prior(targets(1), match="mode")  # pyright: ignore[reportArgumentType]
