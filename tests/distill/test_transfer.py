"""The transfer set: rows between neighbours, noise, labels, and the raw rows of its inputs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from priornet.distill import Questions, TransferSet, draw_inputs
from priornet.tables.preprocessing import TablePreprocessor

INPUTS = torch.cat([torch.randn(50, 2), torch.eye(2)[torch.arange(50) % 2]], -1)
CONTINUOUS = [True, True, False, False]


def draw(transfer: TransferSet, n: int = 20_000, continuous=None, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    drawn = transfer.draw(INPUTS, n, generator, continuous)
    return drawn.inputs, drawn.centre


def test_every_row_is_a_centre_before_any_is_one_again():
    _, centre = draw(TransferSet(), n=130)
    counts = centre.bincount(minlength=50)
    assert counts.sum() == 130
    assert set(counts.tolist()) == {2, 3}


def test_noise_has_the_given_scales():
    near, centre = draw(TransferSet(near=0.1, far_share=0.0, neighbours=0))
    torch.testing.assert_close(
        (near - INPUTS[centre]).std(0), torch.full((4,), 0.1), rtol=0.05, atol=0
    )
    far, centre = draw(TransferSet(far=(0.5, 2.0), far_share=1.0))
    # Of a scale uniform in its logarithm the mean square is (b^2 - a^2) / (2 ln(b / a)).
    expected = torch.tensor((4 - 0.25) / (2 * math.log(4)))
    square = (far - INPUTS[centre]).square().mean(0)
    torch.testing.assert_close(square, expected.expand(4), rtol=0.05, atol=0)


def test_near_rows_lie_between_a_row_and_one_of_its_nearest():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(30, 3, generator=generator, dtype=torch.float64)
    x, centre, _ = TransferSet(far_share=0.0, neighbours=2).draw(inputs, 3000, generator)
    distance = torch.cdist(inputs, inputs).fill_diagonal_(math.inf)
    steps = inputs[distance.argsort()[:, :2]] - inputs[:, None]  # (30, 2, 3)
    moved = (x - inputs[centre])[:, None]  # (3000, 1, 3)
    way = (moved * steps[centre]).sum(-1) / steps[centre].square().sum(-1)  # (3000, 2)
    off = (moved - way[..., None] * steps[centre]).norm(dim=-1)
    chosen = off.argmin(1)
    assert float(off.amin(1).max()) < 1e-12
    taken = way.gather(1, chosen[:, None]).flatten()
    assert 0 <= float(taken.min()) < 0.01
    assert 0.99 < float(taken.max()) <= 1
    assert 0.45 < float(chosen.float().mean()) < 0.55


def test_near_rows_stay_on_a_flat_surface():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(200, 2, generator=generator) @ torch.randn(2, 6, generator=generator)
    x, *_ = TransferSet(far_share=0.0).draw(inputs, 1000, generator)
    assert float(torch.linalg.svdvals(x)[2]) < 1e-4


def test_neighbours_among_many_rows_come_from_a_part(monkeypatch):
    monkeypatch.setattr("priornet.distill.transfer._MOST_DISTANCES", 1)
    monkeypatch.setattr("priornet.distill.transfer._LEAST_OTHERS", 20)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(2000, 2, generator=generator)
    x, centre, _ = TransferSet(far_share=0.0).draw(inputs, 2000, generator)
    reach = (x - inputs[centre]).norm(dim=1)
    assert 0.02 < float(reach.median()) < 0.4  # 20 others lie further apart than 2000


@pytest.mark.parametrize("n_rows", [1, 2])
def test_few_rows_have_few_neighbours(n_rows):
    generator = torch.Generator().manual_seed(0)
    x, *_ = TransferSet(far_share=0.0).draw(torch.ones(n_rows, 2), 10, generator)
    assert torch.equal(x, torch.ones(10, 2))


def test_labels_stay_labels():
    x, centre = draw(TransferSet(far_share=1.0, exchange=0.5), continuous=CONTINUOUS)
    labels = x[:, 2:]
    assert bool(((labels == 0) | (labels == 1)).all())
    assert bool((labels.sum(1) == 1).all())
    changed = (labels != INPUTS[centre][:, 2:]).any(1).float().mean()
    assert 0.2 < float(changed) < 0.3  # half of the exchanges meet the same label
    same, centre = draw(TransferSet(far_share=1.0, exchange=0.0), continuous=CONTINUOUS)
    assert torch.equal(same[:, 2:], INPUTS[centre][:, 2:])


def test_same_seed_same_draw():
    assert torch.equal(draw(TransferSet())[0], draw(TransferSet())[0])
    assert not torch.equal(draw(TransferSet())[0], draw(TransferSet(), seed=1)[0])


@pytest.mark.parametrize(
    "bad",
    [
        {"near": -1.0},
        {"far": (0.0, 1.0)},
        {"far": (2.0, 1.0)},
        {"far": (1.0,)},
        {"far": 3},
        {"far_share": 1.5},
        {"neighbours": -1},
    ],
)
def test_impossible_settings_are_refused(bad):
    with pytest.raises(ValueError, match="must"):
        TransferSet(**bad)


def test_mixed_rows_lie_between_any_two_and_take_the_labels_of_the_nearer():
    transfer = TransferSet(far_share=0.0, mixup_share=1.0)
    drawn = transfer.draw(INPUTS, 4000, torch.Generator().manual_seed(0), CONTINUOUS)
    low, high = INPUTS[:, :2].amin(0), INPUTS[:, :2].amax(0)
    assert ((drawn.inputs[:, :2] >= low - 1e-6) & (drawn.inputs[:, :2] <= high + 1e-6)).all()
    # Pairs are random rows, not neighbours: half of the way is half the spread of the table.
    moved = (drawn.inputs - INPUTS[drawn.centre])[:, :2]
    expected = INPUTS[:, :2].var(0) * 2 / 3  # E[way^2] E[difference^2]
    torch.testing.assert_close(moved.square().mean(0), expected, rtol=0.15, atol=0)
    assert torch.equal(drawn.inputs[:, 2:], INPUTS[drawn.labels, 2:])
    assert 0.4 < float((drawn.labels != drawn.centre).float().mean()) < 0.6


def test_mixed_rows_have_the_labels_of_the_nearer_row():
    """Draw between two rows at 0 and 1, each with a label: below 1/2 the first is nearer."""
    inputs = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    transfer = TransferSet(far_share=0.0, mixup_share=1.0)
    drawn = transfer.draw(inputs, 200, torch.Generator().manual_seed(0), [True, False, False])
    assert torch.equal(drawn.labels, (drawn.inputs[:, 0] > 0.5).long())
    assert (drawn.labels != drawn.centre).any()


def test_generated_rows_have_the_widened_spread_and_labels_of_rows():
    transfer = TransferSet(far_share=0.0, generator_share=1.0)
    drawn = transfer.draw(INPUTS, 20_000, torch.Generator().manual_seed(0), CONTINUOUS)
    covariance = torch.cov(drawn.inputs[:, :2].T)
    torch.testing.assert_close(
        covariance.diagonal(), 3 * INPUTS[:, :2].var(0, unbiased=False), rtol=0.1, atol=0
    )
    assert torch.equal(drawn.inputs[:, 2:].sum(-1), torch.ones(20_000))


def test_shares_add_up():
    kinds = TransferSet(far_share=0.25, mixup_share=0.25, generator_share=0.25, neighbours=0)
    drawn = kinds.draw(INPUTS, 8000, torch.Generator().manual_seed(0))
    still = (drawn.inputs == INPUTS[drawn.centre]).all(-1).float().mean()
    assert 0.22 < float(still) < 0.28
    with pytest.raises(ValueError, match="must not exceed 1 together"):
        TransferSet(far_share=0.6, mixup_share=0.3, generator_share=0.2)


def test_training_inputs_themselves_can_be_drawn():
    x, centre = draw(TransferSet(far_share=0.0, neighbours=0), n=50)
    assert torch.equal(x, INPUTS[centre])
    assert torch.equal(centre.sort().values, torch.arange(50))


RNG = np.random.default_rng(0)
N = 80
FRAME = pd.DataFrame(
    {
        "x": 100 + 10 * RNG.standard_normal(N),
        "count": RNG.integers(0, 9, N),
        "colour": RNG.choice(["red", "blue", "green"], N),
        "gap": np.where(RNG.random(N) < 0.3, np.nan, RNG.standard_normal(N)),
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
    assert 0.1 < raw["gap"].isna().mean() < 0.5


def test_labels_come_from_one_row_of_the_table():
    _, drawn, raw = pose(FRAME, labels=("shop",))
    rows = FRAME.iloc[drawn.labels.numpy()].reset_index(drop=True)
    for name in ("colour", "yes", "day", "spelt", "shop"):
        pd.testing.assert_series_equal(raw[name], rows[name])
    assert raw["gap"].isna().equals(rows["gap"].isna())


def test_arrays_and_mappings_come_back_as_such():
    array = FRAME[["x", "gap"]].to_numpy()
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


def test_inputs_can_be_drawn_for_a_teacher_outside_python():
    first, again = (draw_inputs(FRAME, 200, seed=3) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    assert len(first) == 200
    with pytest.raises(ValueError, match="`n` must be at least 1"):
        draw_inputs(FRAME, 0)


def test_no_input_is_drawn_around_a_mistyped_number():
    frame = FRAME.copy()
    frame.loc[7, "x"] = 1e6
    _, drawn, raw = pose(frame, n=2000)
    assert drawn.inputs.abs().max() < 100
    assert raw["x"].abs().max() < 1000
