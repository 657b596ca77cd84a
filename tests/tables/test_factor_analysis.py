"""Out-of-domain inputs have the stated distribution, and 0/1 columns stay what they are."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import FactorAnalysis

from _asserts import assert_mean_close
from priornet.tables.factor_analysis import FactorAnalysisGenerator
from priornet.tables.preprocessing import TablePreprocessor


@pytest.fixture
def inputs():
    rng = np.random.default_rng(0)
    loadings = np.array([[1.0, 0.8, 0.0, -0.5, 0.3]])
    noise = np.array([0.3, 0.5, 1.0, 0.7, 0.4])
    return rng.normal(size=(400, 1)) @ loadings + rng.normal(size=(400, 5)) * noise + 2


def test_samples_have_three_times_the_covariance_of_factor_analysis(inputs, generator):
    fitted = FactorAnalysisGenerator(n_factors=1).fit(inputs)
    # scikit-learn on all rows, not on the few that stand for them inside
    model = FactorAnalysis(1, svd_method="lapack", tol=1e-9, max_iter=5000).fit(inputs)
    expected = torch.as_tensor(3 * model.get_covariance())
    drawn = fitted.sample(50_000, generator, dtype=torch.float64)
    centred = drawn - torch.as_tensor(model.mean_)
    assert_mean_close(drawn, torch.as_tensor(model.mean_))
    assert_mean_close(centred[:, :, None] * centred[:, None, :], expected)


def test_spread_scales_the_covariance(inputs, generator):
    narrow = FactorAnalysisGenerator(spread=1.0).fit(inputs)
    wide = FactorAnalysisGenerator(spread=4.0).fit(inputs)
    state = generator.get_state()
    near = narrow.sample(10, generator, dtype=torch.float64) - torch.as_tensor(narrow.mean_)
    generator.set_state(state)
    far = wide.sample(10, generator, dtype=torch.float64) - torch.as_tensor(wide.mean_)
    torch.testing.assert_close(far, 2 * near)


def test_weights_equal_repeated_rows(inputs):
    repeats = np.arange(len(inputs)) % 3
    weighted = FactorAnalysisGenerator().fit(inputs, sample_weight=repeats)
    repeated = FactorAnalysisGenerator().fit(np.repeat(inputs, repeats, axis=0))
    np.testing.assert_allclose(weighted.mean_, repeated.mean_)
    np.testing.assert_allclose(weighted.noise_variance_, repeated.noise_variance_, rtol=1e-6)
    np.testing.assert_allclose(
        weighted.loadings_ @ weighted.loadings_.T,
        repeated.loadings_ @ repeated.loadings_.T,
        atol=1e-8,
    )


def test_the_same_seed_draws_the_same_rows(inputs):
    fitted = FactorAnalysisGenerator().fit(inputs)
    first, second = (fitted.sample(7, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)
    assert first.dtype == torch.float32


def test_labels_and_missing_values_are_drawn_as_such(generator):
    rng = np.random.default_rng(0)
    age = rng.normal(size=300)
    age[:30] = np.nan
    table = {"age": age, "colour": rng.choice(["red", "green", "blue"], 300)}
    prep = TablePreprocessor().fit(table)
    fitted = FactorAnalysisGenerator().fit(prep.transform(table), prep.source_)
    drawn = fitted.sample(20_000, generator, dtype=torch.float64)
    names = list(prep.feature_names_out_)
    flags = drawn[:, 1:]
    assert ((flags == 0) | (flags == 1)).all()
    block = drawn[:, [names.index(f"colour = {colour}") for colour in ("red", "green", "blue")]]
    assert (block.sum(1) <= 1).all()
    # red, green, blue and the unknown colour, a quarter each
    assert_mean_close(block, torch.full((3,), 0.25, dtype=torch.float64))
    missing = drawn[:, names.index("age is missing")]
    assert_mean_close(missing, torch.tensor(0.1, dtype=torch.float64))
    column = prep.columns_[0]
    imputed = (column.median - column.mean) / column.scale
    torch.testing.assert_close(
        drawn[missing == 1, 0], torch.full((int(missing.sum()),), imputed, dtype=torch.float64)
    )
    assert drawn[missing == 0, 0].unique().numel() > 1000


def test_constant_columns_stay_constant(generator):
    inputs = np.random.default_rng(0).normal(size=(50, 3))
    inputs[:, 1] = 0.0
    drawn = FactorAnalysisGenerator().fit(inputs).sample(20, generator)
    assert (drawn[:, 1] == 0).all()
    assert (drawn[:, [0, 2]].std(0) > 0.5).all()


@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (5, 40)])
def test_few_rows_and_few_columns_suffice(shape, generator):
    inputs = np.random.default_rng(0).normal(size=shape)
    drawn = FactorAnalysisGenerator().fit(inputs).sample(4, generator)
    assert drawn.shape == (4, shape[1])
    assert drawn.isfinite().all()


def test_a_table_of_labels_only_suffices(generator):
    prep = TablePreprocessor().fit({"a": ["x", "y", None]})
    fitted = FactorAnalysisGenerator().fit(prep.transform({"a": ["x", "y", None]}), prep.source_)
    assert fitted.sample(8, generator).shape == (8, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FactorAnalysisGenerator(n_factors=0), "n_factors"),
        (lambda: FactorAnalysisGenerator(spread=0.0), "spread"),
        (lambda: FactorAnalysisGenerator().fit(np.zeros(3)), "matrix"),
        (lambda: FactorAnalysisGenerator().fit(np.zeros((3, 2)), []), "describe 2 columns"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
