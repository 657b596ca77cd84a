"""Scored tables have the stated columns; what cannot be scored is refused, and leaves nothing."""

import io
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from priornet import GaussianRegressor
from priornet.estimators import load
from priornet.evaluation import score_file

ADDED = [
    "prediction",
    "lower",
    "upper",
    "total",
    "data",
    "knowledge",
    "in_domain",
    "verdict",
    "unseen",
]


@pytest.fixture
def parquet(table, tmp_path):
    path = tmp_path / "data.parquet"
    table.to_parquet(path, index=False)
    return path


def test_columns_are_what_the_estimator_says(call, models, table, parquet, tmp_path):
    out = tmp_path / "scored.parquet"
    done = call("predict", models / "one", parquet, "--out", out)
    assert done.exit_code == 0, done.output
    scored = pd.read_parquet(out)
    pd.testing.assert_frame_equal(scored.filter(list(table)), table)
    assert list(scored.columns[len(table.columns) :]) == ADDED
    model = load(models / "one")
    X = table[["x", "colour", "hole"]]
    record = model.predict_uncertainty(X)
    lower, upper = model.predict_interval(X)
    for name, expected in {
        "prediction": model.predict(X),
        "lower": lower,
        "upper": upper,
        "total": np.sqrt(record.total_variance),
        "data": np.sqrt(record.data_variance),
        "knowledge": np.sqrt(record.knowledge_variance),
        "in_domain": model.predict_familiarity(X),
    }.items():
        np.testing.assert_allclose(scored[name], expected, rtol=1e-6, err_msg=name)
    assert scored["verdict"].tolist() == model.predict_verdict(X).tolist()


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_csv_gives_the_same_numbers(call, models, csv, parquet, tmp_path, ending):
    expected, out = tmp_path / "expected.parquet", tmp_path / f"scored.{ending}"
    call("predict", models / "one", parquet, "--out", expected)
    assert call("predict", models / "one", csv, "--out", out).exit_code == 0
    found = pd.read_parquet(out) if ending == "parquet" else pd.read_csv(out)
    assert found.pop("unseen").isna().all()
    names = ["x", "colour", "hole", *ADDED[:-1]]
    same = pd.read_parquet(expected).filter(names)
    pd.testing.assert_frame_equal(found.filter(names), same, rtol=1e-6)
    if ending == "parquet":  # what the model does not read stays what CSV has: text
        assert found["strength"].tolist() == pd.read_csv(csv, dtype=str)["strength"].tolist()


def test_standard_input_to_standard_output(call, models, csv):
    done = call("predict", models / "one", "-", stdin=csv.read_text())
    assert done.exit_code == 0, done.output
    scored = pd.read_csv(io.StringIO(done.stdout))
    assert list(scored.columns[-9:]) == ADDED
    assert len(scored) == 120
    assert "120 rows" in done.stderr
    # What only passes through comes out as it went in.
    first = csv.read_text().splitlines()[1]
    assert done.stdout.splitlines()[1].startswith(f"{first},")


def test_standard_input_is_called_so(refused, models):
    message = refused("predict", models / "one", "-", stdin="x,colour,hole\n1,red,2\nmany,red,1\n")
    assert message.startswith('standard input: column "x", row 2: "many" is not a number')


def test_pipe_of_real_programs(models, csv):
    program = [sys.executable, "-m", "priornet", "predict", str(models / "one"), "-", "-q"]
    done = subprocess.run(program, input=csv.read_bytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert len(done.stdout.splitlines()) == 121


@pytest.mark.parametrize("given", ["path", "link", "stdin", "model"])
def test_a_table_is_not_appended_to_itself(models, csv, tmp_path, given):
    model, data, end = shutil.copytree(models / "one", tmp_path / "m"), csv, csv
    if given == "link":
        data = tmp_path / "link.csv"
        os.link(csv, data)
    if given == "model":
        end = model / "config.json"
    before = end.read_bytes()
    name = "-" if given == "stdin" else str(data)
    program = [sys.executable, "-m", "priornet", "predict", str(model), name, "-q"]
    with data.open("rb") as read, end.open("ab") as written:
        done = subprocess.run(
            program, stdin=read, stdout=written, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"Error: standard output: it goes to ")
    assert done.stderr.endswith(b", an input of this command; name another file.\n")
    assert end.read_bytes() == before


def test_standard_output_may_be_any_other_file(models, csv, tmp_path):
    program = [sys.executable, "-m", "priornet", "predict", str(models / "one"), str(csv), "-q"]
    with (tmp_path / "scored.csv").open("ab") as written:
        subprocess.run(program, stdout=written, check=True)
    assert len(pd.read_csv(tmp_path / "scored.csv")) == 120


def test_reader_that_stops_early_gets_no_traceback(models, table, tmp_path):
    path = tmp_path / "long.csv"
    pd.concat([table] * 700).to_csv(path, index=False)  # two batches; a pipe holds 64 KiB
    command = f"{sys.executable} -m priornet predict {models / 'one'} {path} | head -n 2"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 2
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_several_targets_get_their_names(call, models, csv, tmp_path):
    out = tmp_path / "scored.csv"
    assert call("predict", models / "two", csv, "--out", out).exit_code == 0
    columns = list(pd.read_csv(out).columns[5:])
    assert columns == [
        *(f"{name}_strength" for name in ADDED[:6]),
        *(f"{name}_weight" for name in ADDED[:6]),
        *ADDED[6:],
    ]


def test_model_without_knowledge_has_no_in_domain_score(call, models, csv, tmp_path):
    call("predict", models / "single", csv, "--out", tmp_path / "x.csv")
    scored = pd.read_csv(tmp_path / "x.csv")
    assert np.isnan(scored["in_domain"].to_numpy()).all()
    assert set(scored["knowledge"]) == {0}
    assert set(scored["verdict"]) <= {"trust", "noisy"}
    assert ",nan," not in (tmp_path / "x.csv").read_text()


def test_entropies_on_request(call, models, csv, tmp_path):
    out = tmp_path / "x.parquet"
    assert call("predict", models / "one", csv, "--out", out, "--entropies").exit_code == 0
    scored = pd.read_parquet(out)
    total = scored["data_entropy"] + scored["mutual_information"]
    np.testing.assert_allclose(scored["total_entropy"], total)
    assert np.all(scored["epkl"] >= scored["mutual_information"])


def test_one_row_is_one_row(call, models, table, tmp_path):
    path = tmp_path / "one.csv"
    table[:1].assign(colour="ultraviolet").to_csv(path, index=False)
    done = call("predict", models / "one", path, "--out", tmp_path / "scored.csv")
    assert done.stdout.startswith("1 row in ")
    assert 'Column "colour": 1 row with a label that training had not.' in done.stdout
    assert "1 rows" not in done.stdout


def test_tabs_in_and_out(call, models, table, csv, tmp_path):
    path, out, same = tmp_path / "data.tsv", tmp_path / "scored.tsv", tmp_path / "scored.csv"
    named = table.assign(colour=table["colour"].where(table.index != 3, "a\tb, c"))
    named.to_csv(path, sep="\t", index=False)
    named.to_csv(csv, index=False)
    assert call("predict", models / "one", path, "--out", out).exit_code == 0
    assert call("predict", models / "one", csv, "--out", same).exit_code == 0
    scored = pd.read_csv(out, sep="\t")
    pd.testing.assert_frame_equal(scored, pd.read_csv(same))
    assert scored["colour"].tolist()[3] == "a\tb, c"


def test_coverage_and_kind_of_interval(call, models, csv, tmp_path):
    widths = []
    for number, options in enumerate((["--coverage", "0.5"], [], ["--interval", "conformal"])):
        out = tmp_path / f"{number}.parquet"
        done = call("predict", models / "one", csv, "--out", out, *options)
        assert done.exit_code == 0, done.output
        scored = pd.read_parquet(out)
        widths.append((scored["upper"] - scored["lower"]).mean())
    assert widths[0] < widths[1]
    assert widths[2] != pytest.approx(widths[1])


def test_names_that_the_table_has_already_are_not_overwritten(call, models, table, tmp_path):
    path, out = tmp_path / "data.csv", tmp_path / "out.csv"
    table.assign(total=7).to_csv(path, index=False)
    done = call("predict", models / "one", path, "--out", out)
    assert 'begin with "priornet_"' in done.stdout
    scored = pd.read_csv(out)
    assert set(scored["total"]) == {7}
    assert list(scored.columns[-9:]) == [f"priornet_{name}" for name in ADDED]
    again = call("predict", models / "one", out, "--out", tmp_path / "again.csv")
    assert again.exit_code == 2
    assert '"priornet_prediction", to be added, is there already' in again.stderr
    assert not (tmp_path / "again.csv").exists()


def test_json_says_what_was_met(call, models, table, tmp_path):
    path, out = tmp_path / "data.parquet", tmp_path / "out.parquet"
    rows = table.drop(columns=["strength", "weight"]).assign(note="extra")
    rows.loc[:2, "colour"] = "violet"
    rows.loc[:1, "x"] = np.nan
    rows.loc[3, "hole"] = 1e6
    rows.to_parquet(path)
    done = call("predict", models / "one", path, "--out", out, "--json")
    summary = json.loads(done.stdout)
    assert summary["n_rows"] == sum(summary["verdicts"].values()) == 120
    assert summary["unknown_labels"] == {"colour": 3}
    assert summary["unexpected_holes"] == {"x": 2}
    assert summary["far_numbers"] == {"hole": 1}
    assert (summary["n_bare"], summary["n_unseen"]) == (0, 4)
    assert summary["ignored_columns"] == ["note"]
    assert summary["added_columns"] == ADDED
    words = call("predict", models / "one", path, "--out", out).stdout
    assert 'Column "colour": 3 rows with a label that training had not.' in words
    assert 'Column "x": 2 rows without a value, where training had none.' in words
    assert 'Column "hole": 1 row with a number far out of the training range.' in words
    assert (
        '4 rows are unfamiliar for what training never had; "unseen" names the columns of each.'
        in words
    )
    assert 'Not read by the model, passed on: "note".' in words


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_with_what_training_never_had_are_named_in_the_output(
    call, models, table, tmp_path, ending
):
    path, out = tmp_path / "data.csv", tmp_path / f"out.{ending}"
    rows = table.drop(columns=["strength", "weight"])
    rows.loc[0, "colour"] = None
    rows.loc[1, ["colour", "x"]] = ["violet", np.nan]
    rows.loc[2, "hole"] = np.nan  # as in training
    rows.loc[3, "x"] = -1e5
    rows.to_csv(path, index=False)
    done = call("predict", models / "one", path, "--out", out)
    assert done.exit_code == 0, done.output
    scored = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert scored["unseen"].fillna("").tolist() == ["colour", "x; colour", "", "x"] + [""] * 116
    assert scored["verdict"][[0, 1, 3]].tolist() == ["unfamiliar"] * 3
    assert scored["verdict"].tolist().count("trust") > 90


def test_rows_that_lack_too_much_are_counted(call, table, tmp_path):
    X = table[["x", "colour", "hole"]].astype({"colour": object}).fillna({"hole": 0.0})
    for row in range(len(X)):  # each row of training lacks one value
        X.iloc[row, row % 3] = None
    model = GaussianRegressor(hidden=(8,), epochs=2, random_state=0)
    model.fit(X, table["strength"]).save(tmp_path / "model")
    X.iloc[0] = [1.0, None, np.nan]
    X.iloc[1] = [np.nan, "red", np.nan]
    X.to_parquet(tmp_path / "data.parquet")
    words = call(
        "predict", tmp_path / "model", tmp_path / "data.parquet", "--out", tmp_path / "out.csv"
    )
    assert "2 rows lack more values than 99 of 100 training rows did." in words.stdout


def test_reordered_and_extra_columns_change_nothing(call, models, table, tmp_path):
    results = []
    for name, frame in (("a", table), ("b", table[table.columns[::-1]].assign(extra="x"))):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        call("predict", models / "one", tmp_path / f"{name}.csv", "--out", tmp_path / f"{name}.pq")
        results.append(pd.read_parquet(tmp_path / f"{name}.pq")[ADDED])
    pd.testing.assert_frame_equal(*results)


def test_batches_do_not_change_the_scores(models, table, tmp_path):
    """Score more rows than a batch holds, each many times: equal rows get equal scores."""
    long = pd.concat([table] * 1200, ignore_index=True)
    long.to_parquet(tmp_path / "long.parquet")
    summary = score_file(load(models / "one"), tmp_path / "long.parquet", tmp_path / "out.parquet")
    assert summary["n_rows"] == len(long)
    scored = pq.read_table(tmp_path / "out.parquet", columns=["prediction"])["prediction"]
    by_copy = scored.to_numpy().reshape(1200, 120)
    np.testing.assert_allclose(by_copy, np.broadcast_to(by_copy[0], by_copy.shape), rtol=1e-6)


BAD = {
    "column absent": (lambda t: t.drop(columns="x"), '"x" is not in the table'),
    "columns absent": (lambda t: t[["colour"]], 'missing that the model needs: "x", "hole"'),
    "infinite": (lambda t: t.assign(x=[*t["x"][:-1], np.inf]), 'column "x", row 120: .*inf'),
    "text": (lambda t: t.assign(x=[*t["x"][:-1], "many"]), 'column "x", row 120: "many" is not'),
    "no rows": (lambda t: t[:0], "a header but no rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_and_leave_nothing(refused, models, table, tmp_path, case):
    change, message = BAD[case]
    path, out = tmp_path / "bad.csv", tmp_path / "out" / "scored.csv"
    out.parent.mkdir()
    change(table).to_csv(path, index=False)
    found = refused("predict", models / "one", path, "--out", out)
    assert found.startswith(f"{path}: ")
    assert re.search(message, found), found
    assert list(out.parent.iterdir()) == []


def test_bad_value_in_a_late_batch_is_named_by_its_row_in_the_file(refused, models, tmp_path):
    n_rows = 200_000
    x = np.zeros(n_rows)
    x[150_123] = np.inf
    path, out = tmp_path / "x.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"x": x, "colour": ["red"] * n_rows, "hole": np.ones(n_rows)}), path)
    assert "row 150124" in refused("predict", models / "one", path, "--out", out)
    assert not out.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["x.parquet"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"x,colour,hole\n1,caf\xe9,2\n", "row 1: byte 19 \\(0xe9\\) is not UTF-8"),
        (b"x,colour,hole\n1,red\n", "row 1 has 2 values"),
    ],
)
def test_bad_files_are_refused(refused, models, tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    found = refused("predict", models / "one", path, "--out", tmp_path / "out.csv")
    assert re.search(message, found), found
    assert not (tmp_path / "out.csv").exists()


def test_bad_paths_are_refused(refused, models, csv, tmp_path):
    folder, out = tmp_path / "folder", tmp_path / "out.csv"
    folder.mkdir()
    assert refused("predict", models / "one", folder, "--out", out) == (
        f"{folder}: it is a folder; name a file in it."
    )
    assert "No such file" in refused("predict", models / "one", tmp_path / "no.csv", "--out", out)
    assert "no such folder" in refused("predict", tmp_path / "no-model", csv, "--out", out)
    assert "it is a file" in refused("predict", csv, csv, "--out", out)
    assert "config.json is missing" in refused("predict", folder, csv, "--out", out)
    assert "unknown kind of table" in refused("predict", models / "one", csv, "--out", "x.xlsx")
    assert "it is a folder" in refused("predict", models / "one", csv, "--out", folder)
    assert "No such file" in refused(
        "predict", models / "one", csv, "--out", folder / "a" / "b.csv"
    )
    assert not out.exists()


def test_folder_without_permission_is_refused(call, refused, models, csv, closed_folder):
    call("predict", models / "one", csv)  # every import, while they may be read
    with closed_folder(models / "one", csv) as (folder, model, data):
        message = refused("predict", model, data, "--out", folder / "out.csv")
        assert message == f"{folder}: cannot write there: Permission denied."
        assert list(folder.iterdir()) == []


def test_table_without_permission_is_refused(call, refused, models, csv, closed_folder):
    call("predict", models / "one", csv)
    with closed_folder(models / "one", csv, mode=0o000) as (folder, model, _):
        assert refused("predict", model, folder / "x.csv") == (
            f"{folder / 'x.csv'}: Permission denied."
        )


def test_bad_options_are_refused(refused, models, csv, tmp_path):
    out = tmp_path / "out.csv"
    for coverage in ("0", "1", "1.5", "nan"):
        message = refused("predict", models / "one", csv, "--out", out, "--coverage", coverage)
        assert "--coverage must lie between 0 and 1" in message
    assert "--json and --out -" in refused("predict", models / "one", csv, "--json")
    message = refused(
        "predict", models / "one", csv, "--out", out, "--interval", "conformal", "--coverage", 0.999
    )
    assert "0.999" in message
    assert not out.exists()


TRUTHS = {"typed": bool, "words": "str", "category": "category", "digits": "int64"}


def truths(kind, n_rows=60):
    """Make a table whose column ``is_new`` is true or false, in one of several types."""
    rng = np.random.default_rng(0)
    x, is_new = rng.normal(size=n_rows), rng.random(n_rows) < 0.5
    frame = pd.DataFrame({"x": x, "is_new": is_new, "y": x + 3 * is_new})
    return frame.astype({"is_new": TRUTHS[kind]})


@pytest.mark.parametrize("trained", TRUTHS)
def test_true_and_false_are_the_same_in_every_kind_of_file(call, trained, tmp_path):
    from priornet.estimators import EvidentialRegressor

    frame = truths(trained)
    model = EvidentialRegressor(hidden=(8,), epochs=3, random_state=0)
    model.fit(frame[["x", "is_new"]], frame["y"]).save(tmp_path / "model")
    expected = model.predict(frame[["x", "is_new"]])
    assert call("export", tmp_path / "model", "--onnx", tmp_path / "m.onnx").exit_code == 0
    files = []
    for kind in TRUTHS:
        files.append(tmp_path / f"{kind}.parquet")
        truths(kind).to_parquet(files[-1])
    for words in (["True", "False"], ["true", "FALSE"], ["1", "0"], ["1.0", "0"]):
        files.append(tmp_path / f"{words[0]}.csv")
        shown = np.where(truths("typed")["is_new"], *words)
        truths("typed").assign(is_new=shown).to_csv(files[-1], index=False)
    for file in files:
        out = tmp_path / "out.parquet"
        done = call("predict", tmp_path / "model", file, "--out", out)
        assert done.exit_code == 0, done.output
        assert "a label that training had not" not in done.stdout
        np.testing.assert_allclose(pd.read_parquet(out)["prediction"], expected, rtol=1e-6)
        done = call("verify", tmp_path / "model", tmp_path / "m.onnx", file)
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith("60 rows agree")


def test_words_for_numbers_are_numbers_in_parquet_in_every_batch(call, tmp_path):
    from priornet.estimators import GaussianRegressor

    frame = truths("typed")
    model = GaussianRegressor(hidden=(8,), epochs=1).fit(frame[["x", "is_new"]], frame["y"])
    model.save(tmp_path / "model")
    n = 400_000  # more than a batch: the first has words, the last digits
    lines = [f"{i},{word}" for i, word in enumerate(["True", ""] * (n // 4) + ["1"] * (n // 2))]
    (tmp_path / "x.csv").write_text("x,is_new\n" + "\n".join(lines) + "\n")
    done = call("predict", tmp_path / "model", tmp_path / "x.csv", "--out", tmp_path / "o.parquet")
    assert done.exit_code == 0, done.output
    found = pd.read_parquet(tmp_path / "o.parquet")["is_new"]
    assert found.dtype == float
    assert (found.sum(), found.isna().sum()) == (n // 4 + n // 2, n // 4)


def test_a_model_that_an_interrupted_save_set_aside_is_used_and_told(call, models, csv, tmp_path):
    shutil.copytree(models / "one", tmp_path / ".model.old")
    done = call("predict", tmp_path / "model", csv, "--out", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    place = tmp_path / ".model.old"
    assert f"the model from before is read from {place}" in done.stderr
    assert done.stderr.startswith("Warning: saving to ")


def test_values_pass_through_as_they_were_written(call, models, tmp_path):
    lines = ["x,colour,hole,note", '1.50,red,007,"a, b"', "-2e0,blue,,plain", '3,"red",1.0,"""q"""']
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    done = call("predict", models / "one", tmp_path / "in.csv", "--out", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    found = (tmp_path / "out.csv").read_text().splitlines()
    lines[3] = lines[3].replace('"red"', "red")  # which needs no quotes
    assert all(new.startswith(f"{old},") for new, old in zip(found, lines, strict=True))
    assert all('"' not in new.removeprefix(old) for new, old in zip(found, lines, strict=True))


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_predictions_that_overflow_end_with_one_line(
    call, models, table, tmp_path, monkeypatch, command
):
    """Refuse nan and inf, which finite weights may still give."""
    model, path = load(models / "single"), tmp_path / "data.csv"
    with torch.no_grad():
        model.fitted_.stack.weights.mul_(1e15)
    monkeypatch.setattr(f"priornet.cli.{command}.load_model", lambda _: model)
    table.assign(x=[*table["x"][:70], 1e300, *table["x"][71:]]).to_csv(path, index=False)
    out = ("--out", tmp_path / "out.csv") if command == "predict" else ()
    done = call(command, models / "single", path, *out)
    assert done.exit_code == 1, done.output
    assert done.stderr.startswith(
        f"Error: {path}: the prediction is not a finite number in row 71:"
    )
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not (tmp_path / "out.csv").exists()
