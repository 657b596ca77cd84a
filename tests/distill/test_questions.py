"""Raw rows of a transfer set: numbers moved, everything else as the table has it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from priornet.distill import Questions, TransferSet, draw_inputs
from priornet.tables.preprocessing import TablePreprocessor

RNG = np.random.default_rng(0)
N = 80
FRAME = pd.DataFrame(
    {
        "x": 100 + 10 * RNG.standard_normal(N),
        "count": RNG.integers(0, 9, N),
        "colour": RNG.choice(["red", "blue", "green"], N),
        "hole": np.where(RNG.random(N) < 0.3, np.nan, RNG.standard_normal(N)),
        "yes": RNG.random(N) < 0.5,
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 99, N), "D"),
        "spelt": [f"{value:.2f}" for value in RNG.standard_normal(N)],
        "shop": RNG.integers(0, 4, N),
    }
)
MIX = TransferSet(far_share=0.4, mixup_share=0.2, generator_share=0.2)


def pose(table, transfer=MIX, n=500, labels=()):
    questions = Questions(table, TablePreprocessor().fit(table), labels)
    inputs = torch.from_numpy(questions.inputs)
    return questions, *questions.draw(transfer, inputs, n, torch.Generator().manual_seed(0))


def test_raw_rows_say_the_same_as_the_drawn_inputs():
    questions, drawn, raw = pose(FRAME, labels=("shop",))
    assert list(raw.columns) == list(FRAME.columns)
    found = questions.preprocessor.transform(raw)
    np.testing.assert_allclose(found, drawn.inputs.numpy(), atol=1e-9)


def test_only_numbers_are_moved():
    _, _, raw = pose(FRAME, labels=("shop",))
    for name in ("colour", "yes", "day", "spelt", "shop"):
        assert set(raw[name]) <= set(FRAME[name])
    for name in ("x", "count"):
        assert not set(raw[name]) <= set(FRAME[name])
    assert 0.1 < raw["hole"].isna().mean() < 0.5


def test_labels_come_from_one_row_of_the_table():
    _, drawn, raw = pose(FRAME, labels=("shop",))
    rows = FRAME.iloc[drawn.labels.numpy()].reset_index(drop=True)
    for name in ("colour", "yes", "day", "spelt", "shop"):
        pd.testing.assert_series_equal(raw[name], rows[name])
    assert raw["hole"].isna().equals(rows["hole"].isna())


def test_arrays_and_mappings_come_back_as_such():
    array = FRAME[["x", "hole"]].to_numpy()
    _, drawn, raw = pose(array)
    assert isinstance(raw, np.ndarray)
    assert np.isnan(raw[:, 1]).sum() == np.isnan(array[drawn.labels, 1]).sum()
    _, _, raw = pose({"x": array[:, 0], "colour": FRAME["colour"].to_numpy()})
    assert set(raw) == {"x", "colour"}
    assert len(raw["colour"]) == 500
    arrow = pa.Table.from_pandas(FRAME)
    assert list(pose(arrow)[2].columns) == list(FRAME.columns)


def test_label_columns_may_be_numbered():
    _, _, raw = pose(FRAME[["x", "count"]].to_numpy(), labels=(1,))
    assert set(raw[:, 1]) <= set(FRAME["count"])
    with pytest.raises(ValueError, match="column 'market' is not in the table"):
        pose(FRAME, labels=("market",))


def test_inputs_can_be_drawn_for_a_teacher_elsewhere():
    first, again = (draw_inputs(FRAME, 200, seed=3) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    assert len(first) == 200
    with pytest.raises(ValueError, match="`n` must be at least 1"):
        draw_inputs(FRAME, 0)


def test_nobody_is_asked_around_a_mistyped_number():
    frame = FRAME.copy()
    frame.loc[7, "x"] = 1e6
    _, drawn, raw = pose(frame, n=2000)
    assert drawn.inputs.abs().max() < 100
    assert raw["x"].abs().max() < 1000
