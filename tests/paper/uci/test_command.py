"""`priornet reproduce uci`: names, resuming, damaged files, and the results it writes."""

import json

import pytest

from priornet.evaluation.results import read_results


@pytest.fixture
def smoke(call, tmp_path):
    def run(*options):
        common = ("--datasets", "boston", "--preset", "smoke", "--methods", "ensemble,der")
        return call("reproduce", "uci", *common, "--workers", "1", "--out", tmp_path, *options)

    return run


@pytest.mark.usefixtures("real")
def test_results_are_written_and_shown(smoke, tmp_path):
    done = smoke()
    assert done.exit_code == 0, done.output
    assert "boston (506 rows), preset smoke" in done.stdout
    assert "ENSM" in done.stdout
    results = read_results(tmp_path / "boston.smoke.json")
    assert list(results["methods"]) == ["ENSM", "DER"]
    assert [path.name for path in tmp_path.iterdir()] == ["boston.smoke.json"]


@pytest.mark.usefixtures("real")
def test_every_cell_of_a_part_of_a_table_is_marked(smoke, tmp_path):
    smoke("--methods", "der")
    path = tmp_path / "boston.smoke.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "complete": False}))
    done = smoke("--methods", "der")
    assert "boston (506 rows†), preset smoke" in done.stdout
    assert "†: not run on the full table." in done.stdout
    assert done.stdout.count("†") == 1 + 6 + 1


@pytest.mark.usefixtures("real", "forked_workers")
def test_data_sets_run_side_by_side(smoke, tmp_path):
    done = smoke("--datasets", "wine,boston", "--methods", "single,der", "--workers", "2", "--json")
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert list(shown) == ["wine", "boston"]
    for name, beside in (("wine", "boston"), ("boston", "wine")):
        written = read_results(tmp_path / f"{name}.smoke.json")
        assert written == shown[name]
        assert (written["workers"], written["beside"]) == (2, [beside])


@pytest.mark.usefixtures("real")
def test_what_is_finished_is_not_done_again(smoke, tmp_path):
    smoke()
    before = (tmp_path / "boston.smoke.json").stat().st_mtime_ns
    done = smoke("--json")
    assert "finished already" in done.stderr
    assert (tmp_path / "boston.smoke.json").stat().st_mtime_ns == before
    assert json.loads(done.stdout)["boston"]["dataset"] == "boston"
    smoke("--again")
    assert (tmp_path / "boston.smoke.json").stat().st_mtime_ns > before


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("part", ["mean", "values", "nll", "prr"])
def test_numbers_that_were_tampered_with_are_made_again(smoke, tmp_path, part):
    smoke("--methods", "der")
    path = tmp_path / "boston.smoke.json"
    whole = read_results(path)
    damaged = json.loads(path.read_text())
    scores = damaged["methods"]["DER"]
    if part in ("nll", "prr"):
        scores[part] = None
    else:
        scores["nll"][part] = 0.1 if part == "mean" else scores["nll"]["values"][:1]
    path.write_text(json.dumps(damaged))
    done = smoke("--methods", "der")
    assert "It is made again." in done.stderr
    found = read_results(path)["methods"]["DER"]["nll"]["values"]
    assert found == pytest.approx(whole["methods"]["DER"]["nll"]["values"], rel=1e-3)


@pytest.mark.usefixtures("real")
def test_other_methods_stay_in_the_file(smoke, tmp_path):
    smoke()
    before = read_results(tmp_path / "boston.smoke.json")["methods"]
    done = smoke("--methods", "single")
    assert done.exit_code == 0, done.output
    after = read_results(tmp_path / "boston.smoke.json")["methods"]
    assert list(after) == ["Single", "ENSM", "DER"]
    assert {name: after[name] for name in before} == before
    done = smoke("--methods", "endd")
    assert "boston.smoke.json: dropping ENSM (another run, or other settings)." in done.stderr


@pytest.mark.usefixtures("real")
def test_a_damaged_results_file_is_reported_and_made_again(smoke, tmp_path):
    path = tmp_path / "boston.smoke.json"
    path.write_text('{\n "dataset": "boston",\n')
    done = smoke()
    assert done.exit_code == 0
    assert f"{path}: not a results file" in done.stderr
    assert read_results(path)["n_rows"] == 506


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--datasets", "bostn"), 'unknown data set "bostn"; choose from: boston, energy'),
        (("--datasets", ","), "no data set named"),
        (("--methods", "endd,mc-dropout"), 'unknown method "mc-dropout"; choose from: single'),
        (("--folds", "0,x"), '--folds must be numbers such as 0,1; got "0,x"'),
        (("--folds", "10"), "--folds must lie in 0 to 9; got 10"),
        (("--splits", "canonical"), "--splits canonical needs --preset beyond"),
        (("--device", "tpu"), 'unknown device "tpu"; choose from: cpu, cuda'),
    ],
)
def test_bad_options(call, options, message):
    done = call("reproduce", "uci", *options)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_table_says_where_it_was_looked_for(call, monkeypatch, tmp_path):
    monkeypatch.setenv("PRIORNET_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens: no network
    done = call("reproduce", "uci", "--datasets", "wine", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: wine is not here: looked in $PRIORNET_DATA")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
