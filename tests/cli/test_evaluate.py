"""A saved model on rows with known targets: the scores, the report, and what is refused."""

import json

import numpy as np
import pytest

from priornet.estimators import load


@pytest.fixture
def far(table, tmp_path):
    path = tmp_path / "far.csv"
    table[["hole", "colour"]].assign(x=table["x"] + 100).to_csv(path, index=False)
    return path


def test_scores_and_report(call, models, csv, far, tmp_path):
    report = tmp_path / "report.html"
    done = call("evaluate", models / "one", csv, "--ood", far, "--report", report)
    assert done.exit_code == 0, done.output
    for word in ("RMSE", "OOD AUC", "120", str(report)):
        assert word in done.stdout.replace("\n", "")
    assert "strength" in report.read_text()


def test_json_agrees_with_the_estimator(call, models, csv, table):
    done = call("evaluate", models / "one", csv, "--json")
    results = json.loads(done.stdout)
    predicted = load(models / "one").predict(table[["x", "colour", "hole"]])
    rmse = np.sqrt(np.mean((predicted - table["strength"]) ** 2))
    assert results["scores"]["rmse"] == pytest.approx(rmse, rel=1e-6)
    assert results["scores"]["n_rows"] == 120
    assert results["ood"] is None
    assert results["report"] is None


def test_out_of_domain_rows_are_told_apart(call, models, csv, far):
    done = call("evaluate", models / "one", csv, "--ood", far, "--json")
    assert 0 <= json.loads(done.stdout)["scores"]["ood_auc"]["total_variance"] <= 1


def test_rows_with_what_training_never_had_are_said(call, models, table, csv, tmp_path):
    assert "never had" not in call("evaluate", models / "one", csv).stdout
    path = tmp_path / "new.csv"
    table.assign(colour=["violet", None, *table["colour"][2:]]).to_csv(path, index=False)
    done = call("evaluate", models / "one", path)
    assert '2 rows are unfamiliar for what training never had, in "colour" (2).' in done.stdout
    scores = json.loads(call("evaluate", models / "one", path, "--json").stdout)["scores"]
    assert scores["unseen"] == {"n_rows": 2, "columns": {"colour": 2}}


def test_several_targets(call, models, csv):
    done = call("evaluate", models / "two", csv, "--json")
    assert list(json.loads(done.stdout)["scores"]["targets"]) == ["strength", "weight"]


def test_bad_input_is_refused(refused, models, table, csv, far, tmp_path):
    bad, report = tmp_path / "bad.csv", tmp_path / "report.html"
    options = ("--report", report)
    assert 'the target "strength" is not in the table' in refused(
        "evaluate", models / "one", far, *options
    )
    table[:1].to_csv(bad, index=False)
    assert "one row" in refused("evaluate", models / "one", bad, *options)
    table.drop(columns="x").to_csv(bad, index=False)
    assert '"x" is not in the table' in refused("evaluate", models / "one", bad, *options)
    table.assign(x=np.inf).to_csv(bad, index=False)
    assert f'{bad}: column "x", row 1' in refused("evaluate", models / "one", bad, *options)
    assert f'{bad}: column "x", row 1' in refused(
        "evaluate", models / "one", csv, "--ood", bad, *options
    )
    table.assign(strength="high").to_csv(bad, index=False)
    assert "must be numeric" in refused("evaluate", models / "one", bad, *options)
    assert "it is a folder" in refused("evaluate", models / "one", csv, "--report", tmp_path)
    assert "--coverage" in refused("evaluate", models / "one", csv, "--coverage", "2")
    assert not report.exists()


def test_standard_input_is_read_once(refused, models):
    said = refused("evaluate", models / "one", "-", "--ood", "-")
    assert said == "standard input is named twice; name a file in one of its places."
