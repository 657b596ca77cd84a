"""Training learns medians, scales, labels and outliers of a column; weights are repetitions.

Targets are scaled; targets whose variance is no number are refused.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import MultivariateNormal

from priornet import DeepEnsembleRegressor, DistilledRegressor, GaussianRegressor
from priornet.estimators import ColumnWarning
from priornet.tables.learning import (
    clip_targets,
    find_dominant,
    learn_column,
    target_notes,
    target_scaling,
)
from priornet.tables.values import Numbers, Texts


def learn(values, weight=None):
    weight = None if weight is None else np.asarray(weight, float)
    return learn_column(0, Numbers(np.asarray(values, float)), weight, 50).column


numbers = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(numbers, st.integers(1, 5)), min_size=1, max_size=8))
def test_weighted_statistics_are_those_of_repeated_rows(pairs):
    values, repeats = (np.array(part) for part in zip(*pairs, strict=True))
    repeated = np.repeat(values, repeats)
    column = learn(values, repeats)
    assert column.median == np.median(repeated)
    assert column.mean == pytest.approx(repeated.mean(), abs=1e-9)
    if column.scale != 1:
        assert column.scale == pytest.approx(repeated.std(), rel=1e-6)
    assert (column.minimum, column.maximum) == (repeated.min(), repeated.max())


def test_weights_need_not_be_whole():
    column = learn([0.0, 10.0], [0.25, 0.75])
    assert column.mean == 7.5
    assert column.median == 10
    assert column.scale == pytest.approx(np.sqrt(0.25 * 7.5**2 + 0.75 * 2.5**2))


@pytest.mark.parametrize("values", [[3.0], [0.1] * 7, [1e9, 1e9 + 1e-7], [0.0, 5e-324]])
def test_constant_columns_keep_a_scale_of_one(values):
    assert learn(values).scale == 1


def test_moments_survive_a_large_offset():
    values = 1e9 + np.random.default_rng(0).normal(size=1000)
    column = learn(values)
    assert column.scale == pytest.approx(np.std(values - 1e9), rel=1e-6)


def test_labels_keep_their_most_frequent_by_weight():
    texts = Texts(np.array([0, 1, 1, 2, 3]), ("a", "b", "c", "d"))
    by_count = learn_column("x", texts, None, 2).column
    assert (by_count.categories, by_count.has_other) == (("b",), True)
    by_weight = learn_column("x", texts, np.array([1.0, 0, 0, 9, 1]), 2).column
    assert (by_weight.categories, by_weight.has_other) == (("c",), True)
    all_kept = learn_column("x", texts, np.array([1.0, 0, 0, 9, 0]), 2).column
    assert (all_kept.categories, all_kept.has_other) == (("a", "c"), False)


RNG = np.random.default_rng(0)


def with_one(values, value, row=3):
    found = np.array(values, float)
    found[row] = value
    return found


@pytest.mark.parametrize("value", [1e3, -1e4, 1e12, 1e300])
def test_a_typing_error_is_found_with_its_row(value):
    column = with_one(RNG.normal(size=500), value)
    found = find_dominant(column)
    assert found is not None
    assert (found.rows, found.values) == ((3,), (value,))
    others = np.delete(column, 3)
    assert (found.low, found.high) == (others.min(), others.max())
    assert found.is_clipped
    assert found.share > 0.99
    taken = found.taken(column)
    assert taken[3] == (found.high if value > 0 else found.low)
    assert (np.delete(taken, 3) == others).all()


def test_distance_and_share_follow_their_definition():
    column = with_one(np.linspace(-1, 1, 501), 40.0, row=250)  # the median is 0 without and with
    found = find_dominant(column)
    assert found is not None
    assert found.times == pytest.approx(40 / 1, rel=0.01)
    squares = (column - column.mean()) ** 2
    assert found.share == pytest.approx(squares[250] / squares.sum())
    assert not found.is_clipped
    assert found.taken(column) is column


def test_a_few_outliers_are_found_in_any_order():
    column = RNG.normal(size=500)
    column[[7, 400]] = [1e9, 1e4]
    found = find_dominant(column)
    assert found is not None
    assert found.rows == (7, 400)
    assert abs(found.high) < 5


@pytest.mark.parametrize(("n", "typos"), [(20, 2), (60, 3), (150, 2), (199, 3)])
def test_two_or_three_far_typing_errors_in_few_rows_are_clipped(n, typos):
    column = np.random.default_rng(n).normal(size=n)
    column[:typos] = [1e5, -2e4, 1e7][:typos]
    found = find_dominant(column)
    assert found is not None
    assert found.rows == tuple(range(typos))
    assert found.is_clipped
    assert np.abs(found.taken(column)).max() < 5


def test_two_values_less_far_in_few_rows_are_kept_without_a_note():
    column = np.append(np.random.default_rng(0).normal(size=98), [50.0, 60.0])
    assert find_dominant(column) is None


@pytest.mark.parametrize("ones", [2, 20, 38])
def test_one_cell_far_from_zeros_and_ones_is_clipped(ones):
    column = np.append(np.zeros(40), [*np.ones(ones), 1e4])
    found = find_dominant(column)
    assert found is not None
    assert (found.values, found.low, found.high) == ((1e4,), 0, 1)
    assert found.is_clipped
    assert find_dominant(np.append(column, 1e4)) is None  # a third value, not a mistake
    assert find_dominant(np.where(column == 1e4, 99, column)) is None


def test_many_far_values_are_no_outliers():
    column = RNG.normal(size=500)
    column[:6] = 9999
    assert find_dominant(column) is None


@pytest.mark.parametrize(
    "column",
    [
        with_one(np.zeros(500), 1),
        with_one(np.zeros(500), 1e6),
        np.append(np.zeros(499), [1.0, 1e9]),
        np.append(np.zeros(60), [1.0, 1e9]),
        np.append(np.zeros(60), [1e9, 1e9]),
        np.full(500, 7.0),
        RNG.poisson(0.02, 500).astype(float),
        np.array([1, 2, 3, 4, 1e9]),
    ],
    ids=[
        "indicator",
        "amount",
        "indicator and amount",
        "few",
        "indicator of few",
        "constant",
        "counts",
        "five rows",
    ],
)
def test_rare_values_among_equal_ones_are_no_outliers(column):
    assert find_dominant(column) is None


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.normal(size=500),
        lambda rng: rng.uniform(size=500),
        lambda rng: rng.lognormal(0, 1, 500),
        lambda rng: rng.exponential(size=500),
        lambda rng: rng.standard_t(3, size=500),
        lambda rng: rng.negative_binomial(0.3, 0.05, 500).astype(float),
    ],
    ids=["normal", "uniform", "lognormal", "exponential", "t3", "counts"],
)
def test_ordinary_columns_have_no_outliers(draw):
    rng = np.random.default_rng(1)
    assert [find_dominant(draw(rng)) for _ in range(300)] == [None] * 300


def test_heavy_tails_are_rarely_clipped():
    rng = np.random.default_rng(2)
    found = [find_dominant(rng.standard_cauchy(500)) for _ in range(300)]
    assert sum(one is not None and one.is_clipped for one in found) <= 12


DRAWS = np.random.default_rng(0)
X = DRAWS.normal(size=(150, 2))
Y = X[:, 0] ** 2 + 0.1 * DRAWS.normal(size=150)
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


@pytest.mark.filterwarnings("ignore:the target 'y' is .* of the rows")
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


@pytest.mark.parametrize(
    ("share", "is_named"), [(0.0, False), (0.2, False), (0.25, True), (0.95, True)]
)
def test_a_target_that_often_has_one_value_is_named(share, is_named):
    y = np.arange(1.0, 101.0)
    y[: round(100 * share)] = 0.0
    notes = target_notes(y[:, None], ("cost",), str)
    assert len(notes) == is_named
    if is_named:
        assert notes[0].startswith(f"the target 'cost' is 0 in {share:.0%} of the rows: a density")
    assert target_notes(y[:19, None] // 2, ("cost",), str) == []


def test_a_model_of_a_target_with_a_mass_is_fitted_all_the_same():
    with pytest.warns(ColumnWarning, match="the target 'y' is 0 in 50% of the rows"):
        model = GaussianRegressor(**QUICK).fit(X, np.where(np.arange(len(X)) % 2, Y, 0.0))
    assert np.isfinite(model.predict(X)).all()
