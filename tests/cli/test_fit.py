"""From a table to a model and a report; what teaches nothing is refused, and leaves nothing."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from priornet.cli.inputs import Method
from priornet.estimators import load

QUICK = ("--method", "der", "--epochs", "2", "--quiet")


@pytest.fixture
def fit(call, csv, tmp_path):
    def run(*arguments, data=csv, out=tmp_path / "model"):
        return call("fit", data, "--out", out, *QUICK, *arguments)

    return run


def test_model_report_and_table(fit, table, tmp_path):
    done = fit("--target", "strength", "--ignore", "weight")
    assert done.exit_code == 0, done.output
    for word in ("RMSE", "NLL", "CRPS", "coverage", "PRR", "trust"):
        assert word in done.stdout
    assert str(tmp_path / "model-report.html") in done.stdout
    assert {p.name for p in tmp_path.iterdir()} == {"data.csv", "model", "model-report.html"}
    page = (tmp_path / "model-report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "strength" in page
    model = load(tmp_path / "model")
    assert model.predict(table[["x", "colour", "hole"]]).shape == (120,)


def test_json_holds_the_evaluation_and_goes_to_stdout_alone(fit, tmp_path):
    done = fit("--target", "strength", "--json", "--report", tmp_path / "new" / "r.html")
    results = json.loads(done.stdout)
    assert results["targets"] == ["strength"]
    assert results["features"] == ["x", "colour", "hole", "weight"]
    assert results["method"] == "der"
    assert results["n_training_rows"] == 102
    assert results["n_holdout_rows"] == results["holdout"]["n_rows"] == 18
    assert results["holdout"]["rmse"] > 0
    assert 0 <= results["interval"]["observed"]["predictive"] <= 1
    assert (tmp_path / "new" / "r.html").is_file()
    assert not (tmp_path / "model-report.html").exists()


def test_standard_input_is_a_table_too(call, refused, csv, tmp_path):
    options = ("--target", "strength", "--out", tmp_path / "model", *QUICK)
    assert call("fit", "-", *options, stdin=csv.read_text()).exit_code == 0
    assert "standard input: the target" in refused("fit", "-", *options, stdin="x,y\n1,2\n")


def test_seed_decides_everything(fit, tmp_path):
    found = []
    for number, seed in enumerate((1, 1, 2)):
        done = fit("--target", "strength", "--json", "--seed", seed, out=tmp_path / str(number))
        found.append(json.loads(done.stdout)["holdout"]["nll"])
    assert found[0] == found[1] != found[2]


def test_several_targets(fit, tmp_path):
    done = fit("--target", "strength", "--target", "weight", "--json")
    assert json.loads(done.stdout)["targets"] == ["strength", "weight"]
    assert load(tmp_path / "model").predict(
        pd.DataFrame({"x": [0.0], "colour": "red", "hole": 1.0})
    ).shape == (1, 2)


def test_names_are_shown_as_they_are(fit, table, tmp_path):
    path = tmp_path / "units.csv"
    table.rename(columns={"strength": "strength [mpa]", "weight": "[bold]"}).to_csv(
        path, index=False
    )
    targets = ("--target", "strength [mpa]", "--target", "[bold]", "--method", "single")
    done = fit(*targets, data=path)
    assert "RMSE strength [mpa]" in done.stdout
    assert "RMSE [bold]" in done.stdout
    page = (tmp_path / "model-report.html").read_text()
    assert "strength [mpa]" in page


def test_table_cannot_command_the_terminal(refused, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes(lines("1,2", "3,\x1b[2J"))
    message = refused("fit", path, "--target", "y", "--out", tmp_path / "model")
    assert "\x1b" not in message
    assert "\\x1b[2J" in message


@pytest.mark.parametrize("method", list(Method))
def test_every_method_fits_and_predicts(call, csv, tmp_path, method):
    out, scored = tmp_path / "model", tmp_path / "scored.csv"
    done = call(
        "fit", csv, "--target", "strength", "--out", out, "--method", method, "--epochs", 1, "-q"
    )
    assert done.exit_code == 0, done.output
    assert call("predict", out, csv, "--out", scored).exit_code == 0
    assert len(pd.read_csv(scored)) == 120


def test_trees_can_be_asked_for_and_left_out(call, csv, tmp_path):
    command = ("fit", csv, "--out", tmp_path / "model", "--target", "strength", "--epochs", "2")
    command += ("--method", "shared", "--quiet")
    for option, is_there in (("--trees", True), ("--no-trees", False)):
        assert call(*command, option).exit_code == 0
        assert (load(tmp_path / "model").fitted_.trees is not None) == is_there


def test_trees_belong_to_one_method(fit):
    done = fit("--target", "strength", "--no-trees")
    assert done.exit_code == 2
    assert "are for --method shared" in done.output


def test_fitting_over_a_model_replaces_it(fit, tmp_path):
    assert fit("--target", "strength").exit_code == 0
    assert fit("--target", "weight").exit_code == 0
    assert load(tmp_path / "model").fitted_.targets.names == ("weight",)


def test_replacing_a_model_is_said_on_stderr(call, csv, tmp_path):
    model = tmp_path / "model"
    command = ("fit", csv, "--target", "strength", "--out", model, *QUICK[:-1])
    first, second = call(*command), call(*command)
    sentence = f"{model}: the model that is there will be replaced."
    assert "replaced" not in first.stderr
    assert sentence in second.stderr.splitlines()
    assert "replaced" not in second.stdout
    assert "replaced" not in call(*command, "--quiet").stderr


def test_calibration_rows_are_held_out_as_asked(fit, call, csv, refused, tmp_path):
    interval = ("--out", tmp_path / "scored.csv", "--interval", "conformal")
    assert fit("--target", "strength", "--calibration", 0).exit_code == 0
    message = refused("predict", tmp_path / "model", csv, *interval)
    assert message == (
        f"{tmp_path / 'model'}: coverage 0.9 needs at least 9 calibration rows; 0 were held out; "
        "fit again with more rows, or with a larger --calibration."
    )
    assert fit("--target", "strength", "--calibration", 0.2).exit_code == 0
    assert len(load(tmp_path / "model").fitted_.calibration_scores) == 20  # of 102
    assert call("predict", tmp_path / "model", csv, *interval).exit_code == 0


def test_scores_of_large_targets_are_readable(fit, table, tmp_path):
    path = tmp_path / "prices.csv"
    prices = table.assign(strength=table["strength"] * 1e6, weight=table["weight"] * 1e6)
    prices.to_csv(path, index=False)
    done = fit("--target", "strength", data=path)
    assert re.search(r"RMSE +\d{1,3}(,\d{3})+ ", done.stdout)
    assert "e+0" not in done.stdout


def test_sums_over_different_units_are_not_shown(fit):
    done = fit("--target", "strength", "--target", "weight")
    assert done.exit_code == 0, done.output
    assert "RMSE weight" in done.stdout
    assert "CRPS" not in done.stdout


def test_rows_without_target_are_left_out_and_counted(fit, table, tmp_path):
    path = tmp_path / "holes.csv"
    table.assign(strength=table["strength"].where(table.index >= 7)).to_csv(path, index=False)
    done = fit("--target", "strength", data=path)
    assert "7 rows have no target and were left out." in done.stdout
    table.assign(strength=table["strength"].where(table.index >= 1)).to_csv(path, index=False)
    assert "1 row has no target and was left out." in fit("--target", "strength", data=path).stdout


def test_small_tables_train_without_evaluation(fit, table, tmp_path):
    path = tmp_path / "small.csv"
    table[:12].to_csv(path, index=False)
    done = fit("--target", "strength", data=path)
    assert done.exit_code == 0, done.output
    assert "12 rows are too few to hold some out" in done.stdout
    assert not (tmp_path / "model-report.html").exists()


def test_progress_is_shown_on_stderr_alone(csv, tmp_path):
    command = [sys.executable, "-m", "priornet", "fit", str(csv), "--target", "strength", "--json"]
    command += ["--out", str(tmp_path / "model"), "--method", "single", "--epochs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"] == str(tmp_path / "model")


def lines(*rows):
    return "\n".join(["x,y", *rows]).encode() + b"\n"


GOOD = [f"{i},{i * i % 7}" for i in range(20)]
BAD = {
    "missing target": ("y", b"x,z\n1,2\n3,4\n", 'the target "y" is not in the table; it has: x, z'),
    "mistyped target": ("yy", lines(*GOOD), '"yy" is not in the table; did you mean "y"'),
    "non-numeric target": ("y", lines(*GOOD, "1,high"), '"y" must be numeric; row 21 holds "high"'),
    "date target": ("y", b"x,y\n1,2020-01-01\n2,2020-01-02\n", '"y" must be numeric; row 1'),
    "constant target": ("y", lines("1,5", "2,5", "3,5"), '"y" is constant, 5 in every row'),
    "infinite target": ("y", lines(*GOOD, "1,inf"), '"y" is infinite in row 21'),
    "empty target": ("y", lines("1,", "2,"), '"y" has no value at all'),
    "one row": ("y", lines("1,2"), "one row with a target is not enough"),
    "one row with a target": ("y", lines("1,2", "3,"), "one row with a target is not enough"),
    "all-missing column": ("y", b"x,z,y\n1,,1\n2,,2\n3,,4\n", 'column "z" has no value at all'),
    "infinite value": ("y", lines(*GOOD, "inf,3"), 'column "x", row 21: the value is inf'),
    "infinite after a hole": ("y", lines("1,", *GOOD, "inf,3"), 'column "x", row 22'),
    "no features": ("y", b"y\n1\n2\n", "no column is left to predict from"),
    "empty file": ("y", b"", "the file is empty"),
    "header only": ("y", b"x,y\n", "it has a header but no rows"),
    "wrong encoding": ("y", lines(*GOOD) + b"caf\xe9,1\n", r"row 21: byte \d+ \(0xe9\) is"),
    "ragged": ("y", lines(*GOOD, "1,2,3"), "row 21 has 3 values where the header has 2 columns"),
    "two equal names": ("y", b"x,x,y\n1,2,3\n", 'two columns are called "x"'),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_and_leave_nothing(refused, tmp_path, case):
    target, content, message = BAD[case]
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    found = refused("fit", path, "--target", target, "--out", tmp_path / "model", *QUICK)
    assert found.startswith(f"{path}: ")
    assert re.search(message, found), found
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_bad_table_through_the_real_program(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes(lines("1,5", "2,5"))
    command = [sys.executable, "-m", "priornet", "fit", str(path), "--target", "y"]
    command += ["--out", str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f'Error: {path}: the target "y" is constant, 5 in every row; there is nothing to learn.\n'
    )
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_bad_paths_are_refused(refused, csv, tmp_path):
    folder, out = tmp_path / "folder", tmp_path / "model"
    folder.mkdir()
    (folder / "letter.txt").write_text("dear")
    target = ("--target", "strength")
    assert "it is a folder" in refused("fit", folder, *target, "--out", out)
    assert "No such file" in refused("fit", tmp_path / "no.csv", *target, "--out", out)
    assert "a file of this name is there" in refused("fit", csv, *target, "--out", csv)
    assert "other files" in refused("fit", csv, *target, "--out", folder)
    assert "cannot write there: Not a dir" in refused("fit", csv, *target, "--out", csv / "model")
    message = refused("fit", csv, *target, "--out", out, "--report", folder)
    assert message == f"{folder}: it is a folder; name a file in it."
    assert not out.exists()
    assert (folder / "letter.txt").read_text() == "dear"


def test_folder_without_permission_is_refused(refused, models, csv, closed_folder):
    with closed_folder(models / "one", csv) as (folder, model, data):
        for place in (folder / "model", folder / "new" / "model"):
            message = refused("fit", data, "--target", "strength", "--out", place)
            assert "cannot write there: Permission denied" in message
            assert str(folder) in message
        report = ("--report", folder / "r.html")
        message = refused("fit", data, "--target", "strength", "--out", model, *report)
        assert "cannot write there" in message
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--coverage", "1"], "--coverage must lie between 0 and 1"),
        (["--report", "r.html", "--holdout", "0"], "--report needs held-out rows"),
        (["--ignore", "colr"], 'the column to ignore "colr" is not in the table; did you mean'),
        (["--target", "strength"], "a target is named twice"),
    ],
)
def test_bad_options_are_refused(refused, csv, tmp_path, options, message):
    target = ("--target", "strength", "--out", tmp_path / "model")
    assert message in refused("fit", csv, *target, *options)
    assert not (tmp_path / "model").exists()


def test_text_is_learnt_from(fit, tmp_path):
    """Decimal commas, dates and booleans, in a file with semicolons."""
    rng = np.random.default_rng(0)
    rows = [
        f"{v:.2f}".replace(".", ",") + f";20{i % 20 + 10}-01-01;{'true' if i % 2 else 'false'};{i}"
        for i, v in enumerate(rng.normal(size=60))
    ]
    path = tmp_path / "european.csv"
    path.write_text("\n".join(["wert;tag;an;y", *rows]) + "\n")
    assert fit("--target", "y", data=path).exit_code == 0
    columns = load(tmp_path / "model").fitted_.preprocessor.columns_
    assert [column.parser for column in columns] == ["comma", "date", "boolean"]


@pytest.fixture
def doubtful(table, tmp_path):
    """A file with a column for each note, and a mistyped target in the fourth row."""
    table = table.copy()
    table["price"] = [f"{1000 + row // 2:,}" for row in range(len(table))]
    table["wide"] = np.where(np.arange(len(table)) == 6, 1e5, table["x"])
    table.loc[3, "strength"] = -1e6
    table.loc[0, "strength"] = np.nan  # left out, and counted
    path = tmp_path / "doubtful.csv"
    table.to_csv(path, index=False)
    return path


def test_columns_are_told_on_stderr_and_in_json(call, doubtful, tmp_path):
    options = ("--target", "strength", "--method", "single", "--epochs", 1)
    done = call("fit", doubtful, "--out", tmp_path / "m", *options, "--json")
    found = json.loads(done.stdout)
    columns = {column["column"]: column for column in found["columns"]}
    assert list(columns) == found["features"]
    assert [columns[name]["kind"] for name in ("x", "colour", "price")] == [
        "number",
        *["label"] * 2,
    ]
    assert columns["hole"]["n_missing"] > 0
    assert '  "colour": 3 labels (' in done.stderr
    for note in (
        "the target 'strength', row 4: -1e+06 is ",
        'column "wide", row 7: 100000 is ',
        'column "price" is read as labels',
        'rare labels share one column in "price" (',
    ):
        assert f"Warning: {doubtful}: {note}" in done.stderr
        assert sum(one.startswith(note) for one in found["warnings"]) == 1
    assert len(found["warnings"]) == 4
    assert done.stderr.count("Warning") == 4  # each of them once


def test_quiet_runs_warn_still(call, doubtful, tmp_path):
    options = ("--target", "strength", "--method", "single", "--epochs", 1, "--quiet")
    done = call("fit", doubtful, "--out", tmp_path / "m", *options)
    assert "as they are read" not in done.stderr
    assert done.stderr.count("Warning") == 4


def test_columns_of_a_healthy_table_are_told_without_a_warning(call, csv, tmp_path):
    options = ("--target", "strength", "--method", "single", "--epochs", 1)
    done = call("fit", csv, "--out", tmp_path / "m", *options)
    lines = done.stderr.splitlines()
    assert lines[0] == f"{csv}: columns as they are read:"
    assert lines[1].startswith('  "x": number, ')
    assert "Warning" not in done.stderr
    assert "as they are read" not in done.stdout


def test_ids_are_left_out_of_the_model_and_accepted_by_predict(call, table, tmp_path):
    path, options = tmp_path / "ids.csv", ("--target", "strength", "--method", "single")
    table.assign(name=[f"u{i}" for i in range(len(table))]).to_csv(path, index=False)
    done = call("fit", path, "--out", tmp_path / "m", *options, "--epochs", 1, "--json")
    found = json.loads(done.stdout)
    assert "name" not in found["features"]
    assert {one["column"]: one["kind"] for one in found["columns"]}["name"] == "id"
    (note,) = found["warnings"]
    assert note.startswith('column "name" is left out: it has 120 labels in 120 rows')
    assert done.stderr.count(note) == 1
    assert load(tmp_path / "m").fitted_.preprocessor.left_out_ == ("name",)
    page = (tmp_path / "m-report.html").read_text()
    assert "<dt>Left out as ids</dt><dd>1: name</dd>" in page
    assert "Rare labels pooled" not in page
    without = tmp_path / "without.csv"
    table.to_csv(without, index=False)
    written = [tmp_path / "with-scores.csv", tmp_path / "scores.csv"]
    for data, out in zip((path, without), written, strict=True):
        assert call("predict", tmp_path / "m", data, "--out", out).exit_code == 0
    first, second = map(pd.read_csv, written)
    assert first.drop(columns="name").equals(second)


def test_labels_are_pooled_as_asked(fit, tmp_path):
    done = fit("--target", "strength", "--max-labels", "2")
    assert 'rare labels share one column in "colour" (2 of 3).' in done.stderr
    column = load(tmp_path / "model").fitted_.preprocessor.columns_[1]
    assert (len(column.categories), column.has_other) == (1, True)
    page = (tmp_path / "model-report.html").read_text()
    assert "<dt>Rare labels pooled</dt><dd>1: colour</dd>" in page


def test_a_target_is_learnt_on_the_scale_asked_for(fit, call, csv, tmp_path):
    fit("--target", "strength", "--target-transform", "asinh")
    maps = load(tmp_path / "model").fitted_.targets.maps
    assert maps is not None
    assert maps[0].kind == "asinh"
    assert call("predict", tmp_path / "model", csv, "--out", tmp_path / "p.csv").exit_code == 0
    assert call("evaluate", tmp_path / "model", csv, "--json").exit_code == 0


def test_column_names_cannot_command_the_terminal(call, table, tmp_path):
    path = tmp_path / "evil.csv"
    table.rename(columns={"x": "x\x1b[2J"}).to_csv(path, index=False)
    options = ("--target", "strength", "--method", "single", "--epochs", 1)
    done = call("fit", path, "--out", tmp_path / "m", *options)
    assert "\x1b" not in done.stderr
    assert '  "x\\x1b[2J": number' in done.stderr


def test_a_target_is_not_ignored_too(refused, csv, tmp_path):
    options = ("--target", "strength", "--ignore", "strength", "--out", tmp_path / "m", "--quiet")
    said = refused("fit", csv, *options)
    assert said == 'the target "strength" is also to be ignored; name it once.'


@pytest.mark.parametrize("command", ["fit", "distill", "demo"])
def test_a_seed_that_no_generator_takes_is_the_option_s_fault(refused, command):
    said = refused(command, "--seed", 2**32)
    assert "'--seed'" in said
    assert "4294967295" in said
