"""Targets are scaled; targets whose variance is no number are refused."""

import numpy as np
import pandas as pd
import pytest
from torch.distributions import MultivariateNormal

from priornet import DeepEnsembleRegressor, DistilledRegressor, GaussianRegressor
from priornet.estimators import ColumnWarning
from priornet.tables.target_columns import clip_targets, target_scaling

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 2))
Y = X[:, 0] ** 2 + 0.1 * RNG.normal(size=150)
QUICK = {"hidden": (8,), "epochs": 3, "random_state": 0}


def test_scaling_is_that_of_weighted_rows():
    shift, scale = target_scaling(np.array([[1.0], [3.0]]), np.array([3.0, 1.0]), ("y",))
    assert shift == pytest.approx([1.5])
    assert scale == pytest.approx([np.sqrt(0.75)])


@pytest.mark.parametrize("factor", [1e141, 1e300])
def test_targets_whose_variance_overflows_are_refused(factor):
    with pytest.raises(ValueError, match=r"'y' is too large \(.*divide it by a power of ten"):
        GaussianRegressor(**QUICK).fit(X, factor * Y)
    teacher = DeepEnsembleRegressor(2, **QUICK).fit(X, Y)
    with pytest.raises(ValueError, match="'y' is too large"):
        DistilledRegressor(teacher).fit(X, factor * Y)


@pytest.mark.parametrize("factor", [1e-145, 1e-200, 1e-300])
def test_targets_whose_variance_vanishes_are_refused(factor):
    with pytest.raises(ValueError, match=r"'y' are .*multiply it by a power of ten"):
        GaussianRegressor(**QUICK).fit(X, factor * Y)


@pytest.mark.parametrize("value", [0.0, 3.5, 1e-200, 1e139])
def test_a_constant_target_is_refused_as_constant(value):
    with pytest.raises(ValueError, match="'y' is constant"):
        GaussianRegressor(**QUICK).fit(X, np.full(len(X), value))


def test_values_that_differ_by_rounding_are_constant():
    y = np.array([0.1 + 0.2, 0.3, 0.15 + 0.15])[np.arange(len(X)) % 3]
    assert len(np.unique(y)) > 1
    with pytest.raises(ValueError, match="'y' is constant"):
        GaussianRegressor(**QUICK).fit(X, y)


@pytest.mark.parametrize("offset", [1e13, 1e15, -1e15])
def test_a_large_offset_is_not_a_constant_target(offset):
    """Use whole numbers up to 9e15, which are exact."""
    y = np.sign(X[:, 0])
    shift, scale = target_scaling((offset + y)[:, None], None, ("y",))
    assert shift == pytest.approx([offset + y.mean()], abs=0.2)
    assert scale == pytest.approx([y.std()])
    model = GaussianRegressor(hidden=(16,), epochs=30, random_state=0).fit(X, offset + y)
    assert np.mean(np.sign(model.predict(X) - offset) == y) > 0.9


@pytest.mark.parametrize("factor", [1e-130, 1e130])
def test_units_of_targets_do_not_matter(factor):
    plain = DeepEnsembleRegressor(2, **QUICK).fit(X, Y)
    scaled = DeepEnsembleRegressor(2, **QUICK).fit(X, factor * Y)
    np.testing.assert_allclose(scaled.predict(X), factor * plain.predict(X), rtol=1e-3)
    one, other = (m.predict_uncertainty(X).knowledge_variance for m in (plain, scaled))
    np.testing.assert_allclose(other, factor * one * factor, rtol=1e-2)


def test_entropies_grow_by_the_logarithm_of_every_scale():
    """Compare with the members after their covariances were moved to the units of two targets."""
    model = DeepEnsembleRegressor(2, **QUICK).fit(X, np.column_stack([Y, 1000 * X[:, 1]]))
    found = model.predict_uncertainty(X).data_entropy
    ensemble = model.predict_belief(X)
    members = MultivariateNormal(ensemble.means, ensemble.covariances)
    np.testing.assert_allclose(found, members.entropy().mean(0), rtol=1e-9)


def test_an_offset_does_not_cost_members_their_differences():
    model = DeepEnsembleRegressor(3, **QUICK).fit(X, Y)
    before, mean = model.predict_uncertainty(X), model.predict(X)
    model.fitted_.targets.scaling.shift[:] += 2.0**40
    after = model.predict_uncertainty(X)
    for name in ("knowledge_variance", "total_variance", "epkl", "data_entropy"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    np.testing.assert_allclose(model.predict(X), mean + 2.0**40, rtol=1e-15)


def test_one_mistyped_target_does_not_ruin_the_model():
    y = Y.copy()
    y[17] = 1e4
    with pytest.warns(ColumnWarning, match=r"the target 'y', row 17: 10000 is .*Training takes"):
        model = GaussianRegressor(hidden=(16,), epochs=200, random_state=0).fit(X, y)
    clean = GaussianRegressor(hidden=(16,), epochs=200, random_state=0).fit(X, Y)
    others = np.arange(len(X)) != 17
    assert model.score(X[others], Y[others]) > clean.score(X[others], Y[others]) - 0.02


def test_only_outliers_among_training_targets_are_clipped():
    y = np.stack([Y, Y, Y], 1)
    y[5, 1], y[6, 1], y[7, 2] = -1e5, 1e5, 1e6
    train = np.delete(np.arange(len(y)), 6)
    before = y.copy()
    clipped = clip_targets(y, train)
    np.testing.assert_array_equal(y, before)
    assert clipped[5, 1] == np.delete(Y, [5, 6]).min()
    assert clipped[6, 1] == 1e5  # not learnt from, and kept for calibration
    assert clipped[7, 2] == np.delete(Y, [6, 7]).max()
    clipped[[5, 7], [1, 2]] = y[[5, 7], [1, 2]]
    np.testing.assert_array_equal(clipped, y)
    healthy = Y[:, None]
    assert clip_targets(healthy, train) is healthy


def test_masked_targets_are_refused():
    masked = np.ma.array(Y, mask=np.arange(len(Y)) == 7)
    with pytest.raises(ValueError, match="'y' is masked in row 7"):
        GaussianRegressor(**QUICK).fit(X, masked)
    whole = np.ma.array(Y, mask=False)
    assert (
        GaussianRegressor(**QUICK).fit(X, whole).predict(X)
        == GaussianRegressor(**QUICK).fit(X, Y).predict(X)
    ).all()


def test_masked_inputs_are_missing():
    hidden = np.where(X[:, :1] > 1, [[1, 0]], 0).astype(bool)
    masked, missing = np.ma.array(X, mask=hidden), np.where(hidden, np.nan, X)
    model = GaussianRegressor(**QUICK).fit(missing, Y)
    for table in (masked, {"a": masked[:, 0], "b": masked[:, 1]}):
        other = GaussianRegressor(**QUICK).fit(table, Y)
        assert (other.predict(table) == model.predict(missing)).all()


@pytest.mark.parametrize("kind", ["array", "series", "zone", "duration", "list", "frame"])
def test_dates_and_durations_are_no_targets(kind):
    when = pd.Series(pd.date_range("2020-01-01", periods=len(Y)), name="when")
    y = {
        "array": when.to_numpy(),
        "series": when,
        "zone": when.dt.tz_localize("UTC"),
        "duration": when - when[0],
        "list": list(when.dt.to_pydatetime()),
        "frame": pd.DataFrame({"y": Y, "when": when}),
    }[kind]
    with pytest.raises(ValueError, match="holds dates or durations; it must be numeric"):
        GaussianRegressor(**QUICK).fit(X, y)
