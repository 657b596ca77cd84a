"""Files are scored from Python; batches come back in order, few at a time."""

import json
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from _golden_table import INPUTS, make_table
from priornet import DeepEnsembleRegressor
from priornet.estimators import PredictionError
from priornet.evaluation import score_file
from priornet.evaluation.scored_files import in_parallel
from priornet.tables import TableError

TABLE = make_table()


@pytest.fixture(scope="module")
def model():
    model = DeepEnsembleRegressor(2, hidden=(8,), epochs=3, random_state=0)
    return model.fit(TABLE[INPUTS], TABLE["price"])


@pytest.fixture
def source(tmp_path):
    TABLE.to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def test_a_file_gets_the_columns_of_predict_table(model, source, tmp_path):
    seen = []
    found = score_file(
        model, source, tmp_path / "out.parquet", coverage=0.5, progress=lambda *n: seen.append(n)
    )
    scored = pd.read_parquet(tmp_path / "out.parquet")
    expected = model.predict_table(TABLE[INPUTS], coverage=0.5)
    pd.testing.assert_frame_equal(scored.drop(columns=list(TABLE)), expected, check_exact=True)
    assert seen == [(len(TABLE), len(TABLE))]
    assert found["verdicts"] == {
        word: (expected["verdict"] == word).sum() for word in ("trust", "noisy", "unfamiliar")
    }
    assert found["ignored_columns"] == ["rent"]
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize("case", ["column", "value", "overflow", "held out", "unnamed"])
def test_a_file_that_cannot_be_scored_leaves_nothing(model, tmp_path, case):
    rows, options = TABLE.copy(), {}
    if case == "column":
        rows, error, message = rows.drop(columns="size"), TableError, '"size" is not in the table'
    elif case == "value":
        rows.loc[7, "size"], error, message = (
            np.inf,
            TableError,
            'column "size", row 8: the value',
        )
    elif case == "overflow":
        rows.loc[7, "size"], error, message = 1e300, PredictionError, "in row 7"
        model = DeepEnsembleRegressor(2, hidden=(8,), epochs=1, random_state=0)
        model.fit(TABLE[INPUTS], TABLE["price"]).fitted_.stack.weights.data.mul_(1e15)
    elif case == "held out":
        options, error, message = {"coverage": 0.99, "method": "conformal"}, ValueError, "held out"
    else:
        model = DeepEnsembleRegressor(2, hidden=(8,), epochs=1)
        model.fit(TABLE[["size", "rooms"]].to_numpy(), TABLE["price"])
        error, message = ValueError, "columns have no names"
    rows.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(error, match=message):
        score_file(model, tmp_path / "rows.parquet", tmp_path / "out.csv", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


BATCHES = [pa.record_batch({"a": [number] * (number + 1)}) for number in range(12)]


def test_results_keep_their_order_and_know_the_rows_before():
    def slow_at_first(batch, first_row):
        time.sleep(0.05 if first_row == 0 else 0)
        return batch["a"][0].as_py(), first_row

    found = list(in_parallel(slow_at_first, BATCHES))
    assert found == [(number, number * (number + 1) // 2) for number in range(12)]


def test_few_batches_are_read_ahead():
    read, done = 0, 0

    def batches():
        nonlocal read
        for batch in BATCHES:
            read += 1
            assert read - done <= 6
            yield batch

    for _ in in_parallel(lambda batch, _: batch, batches()):
        done += 1
    assert read == done == 12


def test_an_error_comes_after_the_results_before_it():
    def fails_at_three(batch, _):
        if batch.num_rows == 4:
            raise ValueError("three")
        return batch.num_rows

    results, before = in_parallel(fails_at_three, BATCHES), threading.active_count()
    assert [next(results) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(ValueError, match="three"):
        next(results)
    assert threading.active_count() == before


def test_each_batch_has_one_thread_of_torch_and_the_process_gets_its_own_back():
    torch.set_num_threads(2)
    try:
        found = set(in_parallel(lambda *_: torch.get_num_threads(), BATCHES))
        assert found == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
