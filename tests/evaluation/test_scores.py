"""Uncertainty of rows: several targets count in their own units."""

import numpy as np

from priornet.evaluation.scores import joint, spread_of


def test_rows_of_several_targets_add_up_in_their_own_units():
    deviation = np.array([[3.0, 40.0], [0.0, 10.0]])
    np.testing.assert_allclose(joint(deviation, np.array([1.0, 10.0])), [5.0, 1.0])
    np.testing.assert_allclose(joint(deviation[:, :1], np.ones(1)), [3.0, 0.0])


def test_deviations_alone_cost_no_measures(ensemble):
    scale = np.ones(1)
    prediction = ensemble.model.predict_all(ensemble.X)
    spread = spread_of(prediction, scale, with_measures=False)
    np.testing.assert_array_equal(spread.knowledge, spread_of(prediction, scale).knowledge)
    assert spread.measures == {}
