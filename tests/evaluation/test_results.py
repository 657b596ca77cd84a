"""Results files: honest summaries, whole files, known origin."""

import json
import math
import statistics
import subprocess

import pytest

from _results import assert_reproduced
from priornet.evaluation import results
from priornet.evaluation.results import (
    check_scores,
    check_summaries,
    provenance,
    provenance_of,
    read_results,
    signature_of,
    summary,
    write_results,
)


def test_summary_agrees_with_the_standard_library():
    values = [0.5, 1.25, -3.0, 2.0]
    found = summary(values)
    assert found["mean"] == pytest.approx(statistics.fmean(values))
    assert found["std"] == pytest.approx(statistics.stdev(values))
    assert found["sem"] == pytest.approx(statistics.stdev(values) / 2)
    assert found["values"] == values


def test_one_value_has_no_spread():
    assert summary([2.0]) == {"mean": 2.0, "std": None, "sem": None, "values": [2.0]}


def test_value_that_is_not_finite_becomes_null():
    found = summary([1.0, float("inf")])
    assert found == {"mean": None, "std": None, "sem": None, "values": [1.0, None]}


def test_written_results_read_back(tmp_path):
    content = {
        "curve": [0.1, 2.0, None],
        "name": "[ 1,\n 2 ]",
        "nested": {"pairs": [[1, 2], [3, 4]]},
    }
    path = tmp_path / "new" / "folder" / "results.json"
    write_results(path, content)
    assert read_results(path) == content
    assert '"curve": [ 0.1, 2.0, null ]' in path.read_text()


@pytest.mark.parametrize("bad", [float("nan"), object()])
def test_failed_write_leaves_the_old_file_alone(tmp_path, bad):
    path = tmp_path / "results.json"
    write_results(path, {"kept": 1})
    with pytest.raises((ValueError, TypeError)):
        write_results(path, {"kept": bad})
    assert read_results(path) == {"kept": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_interrupted_write_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "results.json"
    write_results(path, {"kept": 1})

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_results(path, {"kept": 2})
    assert read_results(path) == {"kept": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_provenance_is_ready_for_json():
    origin = json.loads(json.dumps(provenance()))
    assert set(origin) == {"versions", "processor", "commit", "dirty"}
    assert "," not in (origin["processor"] or "")  # which stands between several
    assert set(origin["versions"]) == {"priornet", "python", "torch", "numpy"}


CPUINFO = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: Intel(R) Xeon(R), Processor
processor\t: 1
model\t\t: 9
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (CPUINFO, "Intel(R) Xeon(R) Processor (family 6 model 143)"),
        ("", None),
        ("Features\t: fp asimd\n", None),
    ],
)
def test_processor_is_told_from_others_of_its_name(monkeypatch, text, name):
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_, **__: text)
    monkeypatch.setattr("platform.processor", lambda: "")
    assert results.provenance()["processor"] == name


def git(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository laid out like this one, which the package believes to be its home."""
    package = tmp_path / "src" / "priornet"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    monkeypatch.setattr(results, "_PACKAGE", package)
    return tmp_path


def test_provenance_names_the_commit_and_says_whether_it_was_changed(checkout):
    commit = git(checkout, "rev-parse", "HEAD")
    assert provenance()["commit"] == commit
    assert provenance()["dirty"] is False
    (checkout / "pyproject.toml").write_text("changed")
    assert provenance()["dirty"] is True


def test_repository_around_an_installed_package_is_not_its_commit(checkout, monkeypatch):
    inside = checkout / "venv" / "lib" / "site-packages" / "priornet"
    inside.mkdir(parents=True)
    monkeypatch.setattr(results, "_PACKAGE", inside)
    assert provenance()["commit"] is None
    assert provenance()["dirty"] is None


def test_provenance_without_git_is_unknown(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert provenance()["commit"] is None


def test_results_of_several_commits_name_them_all():
    part = {"versions": {"torch": "2"}, "commit": "b", "dirty": False}
    one = provenance_of([part, part])
    assert (one["commit"], one["dirty"], one["versions"]) == ("b", False, {"torch": "2"})
    several = provenance_of([part, {**part, "commit": "a", "dirty": True}])
    assert (several["commit"], several["dirty"]) == ("a, b", True)
    assert one["processor"] is None  # parts of older versions do not say
    moved = provenance_of([{**part, "processor": "Y"}, {**part, "processor": "X"}, part])
    assert moved["processor"] == "X, Y"
    unknown = {**part, "commit": None, "dirty": None}
    assert (provenance_of([unknown])["commit"], provenance_of([unknown])["dirty"]) == (None, None)


def test_a_method_without_a_signature_has_that_of_its_file():
    file = {"commit": "a, b", "dirty": False, "versions": {"torch": "2"}, "device": "cpu"}
    assert signature_of(file, {"seconds": 1.0}) == file
    signed = signature_of(file, {"commit": "b", "processor": "X", "nll": {}})
    assert signed == {**file, "commit": "b", "processor": "X"}
    other = signature_of({**file, "processor": "Y"}, {"commit": "b", "dirty": False})
    assert other == {**file, "commit": "b", "processor": None}  # Y may be that of other methods


def test_a_repeated_run_is_held_to_the_file_of_its_own_processor(monkeypatch):
    here = {**provenance(), "processor": "this one"}
    monkeypatch.setattr("_results.provenance", lambda: here)
    committed = {"methods": {"DER": {"nll": summary([1.0, 2.0]), **here}}}
    now = {"methods": {"DER": {"nll": summary([2.0])}}}
    assert_reproduced(now, committed, "DER", ["nll"], fold=1, loose=0.5)
    off = {"methods": {"DER": {"nll": summary([2.0 + 1e-6])}}}
    with pytest.raises(AssertionError):
        assert_reproduced(off, committed, "DER", ["nll"], fold=1, loose=0.5)
    committed["methods"]["DER"]["processor"] = "another"
    assert_reproduced(off, committed, "DER", ["nll"], fold=1, loose=0.5)
    with pytest.raises(AssertionError):
        assert_reproduced(now, committed, "DER", ["nll"], fold=0, loose=0.5)


def test_what_was_summarised_passes_however_deep_it_lies():
    whole = summary([1.0, 2.0, 4.0])
    failed = summary([1.0, math.nan, 4.0])
    curve = {"mean": [0.5, 0.6], "values": [[0.4, 0.6], [0.6, 0.6]]}
    check_summaries({"a": {"nll": whole, "prr": {"x": failed, "y": None}}, "b": [curve, 1, "text"]})
    check_summaries(summary([7.0]))
    check_summaries({"nll": whole}, n_values=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": 0.1}, "its mean is not that of its values"),
        ({"mean": None}, "its mean is not that of its values"),
        ({"mean": "2"}, "its mean is not that of its values"),
        ({"std": 0.0}, "its std is not that of its values"),
        ({"sem": None}, "its sem is not that of its values"),
        ({"values": [1.0, 2.0]}, "its mean is not that of its values"),
        ({"values": [1.0, None, 4.0]}, "its mean is not that of its values"),
        ({"values": [1.0, "2", 4.0]}, "its values are not numbers"),
        ({"values": [1.0, True, 4.0]}, "its values are not numbers"),
        ({"values": []}, "its values are not numbers"),
        ({"values": None}, "its values are not numbers"),
        ({"values": [3e200, 1e200]}, "its mean is not that of its values"),
    ],
)
def test_numbers_that_do_not_belong_together_are_refused(change, message):
    damaged = {"EnD2": {"prr": {"total_variance": {**summary([1.0, 2.0, 4.0]), **change}}}}
    with pytest.raises(ValueError, match=rf"^EnD2\.prr\.total_variance: {message}$"):
        check_summaries(damaged)


def test_missing_folds_are_counted():
    with pytest.raises(ValueError, match="nll: 2 values where there should be 10"):
        check_summaries({"nll": summary([1.0, 2.0])}, n_values=10)


@pytest.mark.parametrize("half", [{"mean": 1.0}, {"values": [1.0]}])
def test_half_a_summary_is_refused(half):
    with pytest.raises(ValueError, match=r"^nll: its "):
        check_summaries({"nll": half})


@pytest.mark.parametrize("nll", [None, 5, {}, [], "1.0"])
def test_a_method_needs_its_scores(nll):
    whole = {"rmse": summary([1.0, 2.0]), "nll": summary([1.0, 2.0]), "prr": {"x": None}}
    check_scores(whole, ("rmse", "nll"), ("prr",), n_values=2)
    for damaged in ({**whole, "nll": nll}, nll):
        with pytest.raises(ValueError, match=r"no mean over folds$"):
            check_scores(damaged, ("rmse", "nll"))
    with pytest.raises(ValueError, match=r"^prr: no scores in it$"):
        check_scores({**whole, "prr": 5}, ("rmse", "nll"), ("prr",))
    with pytest.raises(ValueError, match=r"^rmse: 2 values where there should be 3$"):
        check_scores(whole, ("rmse", "nll"), n_values=3)
