"""A file means the same to every command: what fit reads, predict and evaluate read alike."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from priornet import DeepEnsembleRegressor, DistilledRegressor
from priornet.cli.inputs import Interval, check_interval
from priornet.estimators import EvidentialRegressor, load
from priornet.messages import InputError
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.read import TableReader, convert_known_numbers, read_features, read_labelled

N_ROWS = 60


@pytest.fixture(scope="module")
def dated():
    """Dates without an end, codes with zeros in front, decimals commas: text in a CSV file."""
    rng = np.random.default_rng(0)
    days = [datetime.date(2020, 3, 1) + datetime.timedelta(days=i) for i in range(N_ROWS)]
    ends = [None if i % 5 else datetime.date(9999, 12, 31) for i in range(N_ROWS)]
    x = rng.normal(size=N_ROWS)
    return pd.DataFrame(
        {
            "from": [day.isoformat() for day in days],
            "until": ["" if end is None else end.isoformat() for end in ends],
            "code": ["007" if value > 0 else "x1" for value in x],
            "price": [f"{value:.2f}".replace(".", ",") for value in x],
            "x": x,
            "y": x + rng.normal(size=N_ROWS) / 10,
        }
    )


@pytest.fixture(scope="module")
def model(dated, tmp_path_factory):
    path = tmp_path_factory.mktemp("dated") / "model"
    regressor = EvidentialRegressor(hidden=(8,), epochs=2, random_state=0)
    regressor.fit(dated.drop(columns="y"), dated["y"]).save(path)
    return path


def whole(path, columns):
    """The matrix of a file as evaluate reads it, and as predict does."""
    names = [column.name for column in columns]
    preprocessor = TablePreprocessor()
    preprocessor._set(tuple(names), tuple(columns), len(names))
    frame = read_labelled(str(path), ["y"], names, known=columns).features
    with TableReader(path) as reader:
        batches = [convert_known_numbers(batch.select(names), columns) for batch in reader]
    parts = [preprocessor.transform(batch) for batch in batches]
    return preprocessor.transform(frame), np.concatenate(parts)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("rows", ["some", "all"])
def test_cells_mean_what_the_column_of_the_model_means(dated, model, tmp_path, ending, rows):
    """A whole file of 20200301 is one of dates, of 007 one of labels, and so is a part of it."""
    columns = load(model).fitted_.preprocessor.columns_
    expected = load(model).fitted_.preprocessor.transform(dated.drop(columns="y"))
    given = dated.copy()
    some = dated.index if rows == "all" else dated.index[::2]
    given.loc[some, "from"] = given.loc[some, "from"].str.replace("-", "")
    path = tmp_path / f"x.{ending}"
    kept = np.flatnonzero(given["code"] == "007")
    for part in (slice(None), kept):
        table = given.iloc[part]
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path, index=False)
        for found in whole(path, columns):
            np.testing.assert_array_equal(found, expected[part])


def test_predict_and_evaluate_take_dates_that_all_look_like_numbers(call, dated, model, tmp_path):
    given = dated.assign(**{"from": dated["from"].str.replace("-", "")})
    given.to_csv(tmp_path / "x.csv", index=False)
    scores = call("evaluate", model, tmp_path / "x.csv", "--json")
    assert scores.exit_code == 0, scores.output
    assert json.loads(scores.stdout)["n_rows_read"] == N_ROWS
    assert f"{N_ROWS} rows read" in scores.stderr
    out = tmp_path / "out.csv"
    scored = call("predict", model, tmp_path / "x.csv", "--out", out, "--json")
    summary = json.loads(scored.stdout)
    assert summary["n_rows_read"] == summary["n_rows_written"] == N_ROWS
    assert f"{N_ROWS} rows read, {N_ROWS} rows written" in scored.stderr
    rmse = np.sqrt(np.mean(np.square(pd.read_csv(out)["prediction"] - dated["y"])))
    assert json.loads(scores.stdout)["scores"]["targets"]["y"]["rmse"] == pytest.approx(rmse, 1e-5)


def test_typed_dates_without_an_end_are_the_same_days_to_fit_and_predict(dated, tmp_path):
    frame = dated[["y", "x"]].assign(until=[datetime.datetime(9999, 12, 31), None] * (N_ROWS // 2))
    for unit in ("s", "us"):
        frame["until"] = frame["until"].astype(f"datetime64[{unit}]")
        frame.to_parquet(tmp_path / "x.parquet", index=False)
        learnt = TablePreprocessor().fit(read_features(str(tmp_path / "x.parquet"), ["until"]))
        assert learnt.columns_[0].maximum == 2_932_896
        with TableReader(tmp_path / "x.parquet") as reader:
            batch = next(iter(reader)).select(["until"])
        np.testing.assert_array_equal(learnt.transform(batch), learnt.transform(frame[["until"]]))


def test_a_named_index_is_a_column_and_an_unnamed_one_is_not(call, table, tmp_path):
    named = table[["x", "strength"]].set_index(pd.Index(np.arange(120) ** 2, name="area"))
    options = ("--target", "strength", "--method", "der", "--epochs", "1", "--json")
    found = {}
    for name in ("area", None):
        named.index.name = name
        named.to_parquet(tmp_path / "x.parquet")
        done = call("fit", tmp_path / "x.parquet", "--out", tmp_path / f"{name}", *options)
        assert done.exit_code == 0, done.output
        assert "120 rows read" in done.stderr
        found[name] = json.loads(done.stdout)
        out = tmp_path / "out.csv"
        scored = call("predict", tmp_path / f"{name}", tmp_path / "x.parquet", "--out", out)
        assert scored.exit_code == 0, scored.output
    assert found["area"]["features"] == ["x", "area"]
    assert found[None]["features"] == ["x"]
    assert found[None]["n_rows_read"] == 120
    assert '"__index_level_0__" is an index without a name' in found[None]["notes"][0]


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_the_index_that_pandas_writes_to_csv_is_left_out(call, table, tmp_path, name):
    path = tmp_path / "x.csv"
    table[["x", "strength"]].to_csv(path, index_label=name or None)
    options = ("--target", "strength", "--method", "der", "--epochs", "1", "--json")
    done = call("fit", path, "--out", tmp_path / "model", *options)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["features"] == ["x"]
    assert found["notes"] == [f'"{name}" is an index without a name and was left out.']
    scored = call("predict", tmp_path / "model", path, "--out", tmp_path / "out.csv")
    assert scored.exit_code == 0, scored.output
    assert pd.read_csv(tmp_path / "out.csv").shape[0] == 120


def test_a_decimal_comma_among_thousands_is_named(refused, tmp_path):
    cells = [f'"{1 + i % 9},{100 + i}"' for i in range(60)]
    cells[6] = '"12,5"'
    path = tmp_path / "x.csv"
    path.write_text("x,y\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))
    said = refused("fit", path, "--target", "y", "--out", tmp_path / "model")
    assert 'the target "y" must be numeric; row 7 holds "12,5", though most commas' in said


def test_targets_that_are_lists_are_refused(refused, tmp_path):
    path = tmp_path / "x.parquet"
    pd.DataFrame({"x": [1.0, 2.0], "y": [[1.0], [2.0]]}).to_parquet(path)
    options = ("--target", "y", "--out", tmp_path / "model")
    assert 'column "y" has the type list' in refused("fit", path, *options)


def test_too_little_memory_is_one_line(call, models, csv, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("Unable to allocate 6.5 GiB")

    monkeypatch.setattr(TablePreprocessor, "transform", fail)
    done = call("predict", models / "one", csv, "--out", tmp_path / "out.csv")
    assert done.exit_code == 1
    assert done.stderr.startswith(
        "Error: not enough memory (Unable to allocate 6.5 GiB); use fewer"
    )
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def ensemble(table):
    model = DeepEnsembleRegressor(2, hidden=(4,), epochs=1, random_state=0)
    return model.fit(table[["x"]], table["strength"])


def test_enough_rows_pass_and_the_predictive_needs_none(ensemble, tmp_path):
    check_interval(tmp_path, ensemble, Interval.CONFORMAL, 0.9)
    check_interval(tmp_path, ensemble, Interval.PREDICTIVE, 0.999)


def test_the_way_out_is_an_option_of_fit(ensemble, tmp_path):
    with pytest.raises(InputError, match=r"12 were held out; fit again .* larger --calibration\.$"):
        check_interval(tmp_path, ensemble, Interval.CONFORMAL, 0.99)


def test_a_student_without_targets_needs_them(ensemble, table, tmp_path):
    student = DistilledRegressor(ensemble, student_epochs=1, n_transfer=200).fit(table[["x"]])
    with pytest.raises(InputError, match=r"0 were held out; .*`priornet distill`: with --target"):
        check_interval(tmp_path, student, Interval.CONFORMAL, 0.9)
