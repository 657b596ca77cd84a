"""The list of development tables keeps its rule, and `benchmarks/tables.py` scores as it says."""

import hashlib
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.distributions import Normal

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ALLOWED = {
    *(
        "modeldata",
        "ISLR",
        "ISLR2",
        "AER",
        "Ecdat",
        "MASS",
        "ggplot2",
        "nlme",
        "lme4",
        "mosaicData",
    ),
    *("psych", "boot", "DAAG", "HistData", "survival", "nycflights13", "uci", "sklearn"),
}


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name.startswith("tables"):
            del sys.modules[name]


def test_a_third_of_each_size_is_held_back_and_stays_so(module):
    data = module("tables_data")
    sources, kept = data.sources(), data.held_back()
    assert {source.package for source in sources.values()} <= ALLOWED
    for size in data.SIZES:
        names = {name for name, source in sources.items() if source.size == size}
        assert len(names & kept) == round(len(names) / 3)
    digest = hashlib.sha256("\n".join(sorted(kept)).encode()).hexdigest()
    assert digest.startswith("2d1257076da42b89"), (
        "the tables held back were written down before the first run"
    )


def test_twenty_levels_score_a_density_as_its_closed_form_does(module):
    scores = module("tables_scores")
    y = np.random.RandomState(0).randn(2000)
    mean = np.zeros(2000)
    density = Normal(torch.zeros(2000, dtype=torch.float64), torch.tensor(1.5).double())
    by_density = scores.score(scores.Answer(mean, density), y)
    quantiles = np.tile(density.icdf(torch.from_numpy(scores.LEVELS)[:, None])[:, 0], (2000, 1))
    by_levels = scores.score(scores.Answer(mean, quantiles=quantiles), y)
    assert by_levels["crps"] == pytest.approx(by_density["crps"], rel=0.01)
    assert by_levels["pinball"] == pytest.approx(by_density["pinball"])
    assert by_density["predictive"]["width"] == pytest.approx(2 * 1.645 * 1.5, rel=1e-3)
    assert "nll" not in by_levels


def test_moved_rows_differ_in_one_number_by_six_deviations(module):
    scores = module("tables_scores")
    train = pd.DataFrame({"a": [0.0, 2.0, 4.0], "b": [1.0, np.nan, 5.0], "text": ["x", None, "y"]})
    rows = scores.moved(train, train, seed=0)
    deviations = train[["a", "b"]].std()
    steps = (rows[["a", "b"]] - train[["a", "b"]].fillna(train["b"].mean())).fillna(0) / deviations
    assert np.allclose(np.sort(np.abs(steps.to_numpy())), [[0, 6]] * 3)
    assert rows["text"].equals(train["text"])
    assert scores.moved(train[["text"]], train[["text"]], seed=0) is None


def test_smoke_run_scores_and_goes_on_where_it_stopped(module, monkeypatch, tmp_path, capsys):
    tables, path = module("tables"), tmp_path / "out.json"
    monkeypatch.setattr(tables.torch, "set_num_threads", lambda n: None)
    monkeypatch.setattr(sys, "argv", ["tables.py", "run", "--smoke", "--json", str(path)])
    tables.main()
    first = path.read_bytes()
    found = json.loads(first)["tables"]["sklearn/diabetes"]["methods"]
    assert found["Single"]["rmse"] < 77  # the deviation of the target
    assert found["HistGradientBoosting"]["rmse"] < 77
    assert 0.7 < found["Single"]["predictive"]["coverage"] <= 1
    tables.main()
    assert path.read_bytes() == first
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["tables.py", "summary", str(path), "--ours", "Single"])
    tables.main()
    assert "RMSE to the best trees" in capsys.readouterr().out


def test_summary_compares_with_the_best_of_the_others(module):
    summary = module("tables_summary")
    methods = {
        "ours": {"rmse": 2.0, "crps": 1.0, "nll": 0.5},
        "CatBoost": {"rmse": 4.0},
        "LightGBM": {"rmse": 1.6},
        "NGBoost": {"rmse": 1.0, "crps": 0.5, "nll": 0.7},
    }
    compare = {title: row[0](methods, "ours") for title, row in summary.ROWS.items()}
    assert compare["RMSE to the best trees"] == pytest.approx(1.25)
    assert compare["RMSE to the best peer"] == pytest.approx(2.0)
    assert compare["CRPS to the best peer"] == pytest.approx(2.0)
    assert compare["NLL minus the best peer's"] == pytest.approx(-0.2)
    files = [
        {"most_rows": 10, "tables": {"a/b": {"size": "small", "methods": {name: found}}}}
        for name, found in methods.items()
    ]
    printed = summary.summarise(summary.merged(files), "ours")
    assert "a/b 1.250" in printed
    assert "NGBoost                    1.00" in printed
