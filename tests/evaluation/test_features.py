"""Panels: bins hold the rows they should, sweeps move one feature alone, unusual values count."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from priornet.evaluation.features import MAX_PANELS, Feature, features_of, panels

KINDS = {
    "age": "numeric",
    "income": "numeric",
    "city": "categorical",
    "since": "numeric",
    "height": "numeric",
}


@pytest.fixture(scope="module")
def features(ensemble):
    return features_of(ensemble.X, ensemble.model.fitted_.preprocessor.columns_)


def panel_of(evaluation, name):
    return next(panel for panel in evaluation.panels if panel.name == name)


def test_columns_come_as_training_knew_them(features, ensemble):
    named = {feature.name: feature for feature in features}
    np.testing.assert_array_equal(named["age"].numbers, ensemble.X["age"])
    assert named["city"].labels == tuple(ensemble.X["city"])
    days = (ensemble.X["since"] - pd.Timestamp("1970-01-01")).dt.days
    np.testing.assert_allclose(named["since"].numbers, days)
    assert named["since"].is_date
    np.testing.assert_array_equal(np.isnan(named["height"].numbers), ensemble.X["height"].isna())


def test_text_columns_that_spell_numbers_are_numbers(ensemble):
    columns = ensemble.model.fitted_.preprocessor.columns_
    spelt = ensemble.X.assign(age=ensemble.X["age"].map("{:.6f}".format))
    age = features_of(spelt, columns)[0].numbers
    assert age is not None
    np.testing.assert_allclose(age, ensemble.X["age"], atol=1e-6)


@pytest.mark.parametrize("name", list(KINDS))
def test_every_present_row_is_in_one_bin(evaluation, ensemble, name):
    panel = panel_of(evaluation, name)
    assert panel.kind == KINDS[name]
    assert panel.count.sum() == ensemble.X[name].notna().sum()


def test_spread_of_a_category_is_that_of_its_rows(evaluation, ensemble):
    panel = panel_of(evaluation, "city")
    lima = evaluation.row_spread["knowledge"][(ensemble.X["city"] == "Lima").to_numpy()]
    k = panel.categories.index("Lima")
    assert panel.count[k] == len(lima)
    for found, share in ((panel.low, 0.1), (panel.median, 0.5), (panel.high, 0.9)):
        assert found[k] == np.quantile(lima, share, method="inverted_cdf")


def test_unknown_category_is_marked(evaluation):
    panel = panel_of(evaluation, "city")
    known = dict(zip(panel.categories, panel.is_known, strict=True))
    assert not known.pop("Atlantis")
    assert all(known.values())


def test_sweep_moves_one_feature_and_holds_the_others(evaluation, ensemble):
    """One point by hand: medians of training, the commonest label of the rows, and the step."""
    columns = ensemble.model.fitted_.preprocessor.columns_
    panel = panel_of(evaluation, "age")
    row = {}
    for column in columns:
        if column.kind == "categorical":
            row[column.name] = ensemble.X[column.name].mode()[0]
        elif column.parser == "date":
            row[column.name] = pd.Timestamp("1970-01-01") + pd.Timedelta(days=column.median)
        else:
            row[column.name] = column.median
    row["age"] = panel.sweep_at[3]
    record = ensemble.model.predict_uncertainty(pd.DataFrame([row]))
    assert panel.sweep[3] == pytest.approx(np.sqrt(record.knowledge_variance[0]), rel=1e-4)


def test_sweep_leaves_the_training_range_on_both_sides(evaluation):
    panel = panel_of(evaluation, "age")
    width = panel.train_high - panel.train_low
    assert panel.sweep_at[0] == pytest.approx(panel.train_low - width / 2)
    assert panel.sweep_at[-1] == pytest.approx(panel.train_high + width / 2)


def test_single_network_sweeps_total_uncertainty(single):
    record = single.evaluate()
    assert record.panel_part == "total"
    assert [panel.name for panel in record.panels] == ["x0", "x1"]
    assert all((panel.sweep > 0).all() for panel in record.panels)


def test_many_features_show_those_that_move_most(features):
    age = features[0]
    copies = [age] * (MAX_PANELS + 5)
    n_steps = len(panels([age], np.ones(150), lambda table: np.ones(len(table)))[0].sweep)
    height = np.arange(len(copies)) + 2.0  # how far each sweep reaches
    swept = np.concatenate([np.linspace(1, top, n_steps) for top in height])
    with_names = [
        type(age)(f"f{j}", age.known, age.numbers, age.labels) for j in range(len(copies))
    ]
    made = panels(with_names, np.ones(150), lambda _: swept)
    assert [panel.name for panel in made] == [f"f{j}" for j in range(5, len(copies))]


def test_constant_and_empty_columns_have_panels(features):
    age = features[0]
    for values in (np.full(150, 7.0), np.full(150, np.nan)):
        feature = type(age)("f", age.known, values, None)
        (panel,) = panels([feature], np.ones(150), lambda table: np.ones(len(table)))
        assert panel.count.sum() == np.isfinite(values).sum()


def test_a_wide_table_is_swept_in_parts(features, monkeypatch):
    """The last features move most: a rough sweep finds them, and no table grows with the square."""
    age = features[0]
    wide = [
        Feature(f"f{j}", replace(age.known, name=f"f{j}"), age.numbers, None) for j in range(260)
    ]
    measured = []

    def measure(table):
        measured.append(table.size)
        offsets = (table.to_numpy() - age.known.median) * np.arange(260)
        return 1 + np.abs(offsets).sum(1)

    monkeypatch.setattr("priornet.evaluation.features._MOST_CELLS", 260 * 49 * 10)
    made = panels(wide, np.ones(150), measure)
    assert [panel.name for panel in made] == [f"f{j}" for j in range(260 - MAX_PANELS, 260)]
    assert {len(panel.sweep) for panel in made} == {49}
    assert max(measured) <= 260 * 49 * 10
