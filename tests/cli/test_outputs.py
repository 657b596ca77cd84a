"""Outputs of commands: inputs stay, files of others stay, files of our own are known."""

import errno
import gzip
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from priornet.cli.outputs import (
    FIGURE,
    IMAGE_TABLE,
    MAPS,
    MODEL,
    ONNX,
    PREDICTIONS,
    PROGRAM,
    REPORT,
    RESULTS,
    check_model_folder,
    check_outputs,
    figure_paths,
)
from priornet.messages import InputError

FOREIGN = b"years of work"
QUICK = ("--method", "single", "--epochs", 1, "--quiet")


@pytest.fixture
def place(models, csv, tmp_path):
    """A folder with a model and a table, as a user has it."""
    shutil.copytree(models / "one", tmp_path / "model")
    return tmp_path


def spellings(path):
    """One file in several ways."""
    link, hard = path.with_name(f"link-{path.name}"), path.with_name(f"hard-{path.name}")
    folder = path.parent.with_name(f"{path.parent.name}-again")
    if not link.exists():
        link.symlink_to(path)
        os.link(path, hard)
        folder.symlink_to(path.parent)
    around = path.parent / ".." / path.parent.name / path.name
    return [path, os.path.relpath(path), around, link, hard, folder / path.name]


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_input_is_no_output_however_it_is_spelled(tmp_path, overwrite):
    data = tmp_path / "in" / "data.csv"
    data.parent.mkdir()
    data.write_text("prediction,verdict\n")
    for path in map(type(tmp_path), spellings(data)):
        with pytest.raises(InputError, match="it is an input of this command"):
            check_outputs([(path, PREDICTIONS)], [data], overwrite=overwrite)
        with pytest.raises(InputError, match="it is an input of this command"):
            check_outputs([(data, PREDICTIONS)], [path], overwrite=overwrite)


def test_nothing_is_written_into_a_folder_that_is_an_input(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").touch()
    (tmp_path / "link").symlink_to("model")
    os.link(tmp_path / "model" / "weights", tmp_path / "hard.onnx")
    for name in ("model/weights", "model/new.onnx", "link/new.onnx", "model/a/../new.onnx"):
        with pytest.raises(InputError, match="an input of this command"):
            check_outputs([(tmp_path / name, ONNX)], [tmp_path / "model"], overwrite=True)
    with pytest.raises(InputError, match="it is an input of this command"):
        check_outputs([(tmp_path / "hard.onnx", ONNX)], [tmp_path / "model"], overwrite=True)


def test_standard_input_is_an_input(tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_text("x,prediction,verdict\n")
    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(InputError, match="it is an input"):
            check_outputs([(path, PREDICTIONS)], ["-"], overwrite=False)


def test_the_ending_of_another_kind_is_refused(tmp_path):
    for name in ("data.csv", "m.ONNX", "a.csv.gz", "m.safetensors"):
        with pytest.raises(InputError, match=r"is the ending of another kind .* ends in \.html"):
            check_outputs([(tmp_path / name, REPORT)], overwrite=True)
    for name in ("report.html", "report", "report.of.2024", "REPORT.HTM"):
        check_outputs([(tmp_path / name, REPORT)], overwrite=False)


def test_files_of_others_are_replaced_where_that_is_asked_for(tmp_path, capsys):
    path = tmp_path / "report.html"
    path.write_bytes(FOREIGN)
    with pytest.raises(InputError, match=r"no report of priornet's making.* add --overwrite"):
        check_outputs([(path, REPORT)], overwrite=False)
    check_outputs([(path, REPORT)], overwrite=True, quiet=True)
    said = capsys.readouterr().err
    assert said == f"{path}: the file that is there will be replaced.\n"


def test_an_empty_file_and_a_link_to_nothing_are_free(tmp_path, capsys):
    (tmp_path / "a.html").touch()
    (tmp_path / "b.html").symlink_to("none")
    outputs = [(tmp_path / "a.html", REPORT), (tmp_path / "b.html", REPORT), (None, REPORT)]
    check_outputs(outputs, [None], overwrite=False)
    assert capsys.readouterr().err == ""


def test_two_outputs_in_one_place_and_devices_are_refused(tmp_path):
    (tmp_path / "link").symlink_to("a.json")
    with pytest.raises(InputError, match="two outputs"):
        check_outputs([(tmp_path / n, RESULTS) for n in ("a.json", "link")], overwrite=True)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="a device or a pipe"):
        check_outputs([(tmp_path / "pipe", REPORT)], overwrite=True)


def test_many_files_are_named_in_few_lines(tmp_path, capsys):
    outputs = [(tmp_path / f"{i}.html", REPORT) for i in range(9)]
    for path, _ in outputs:
        path.write_text('<meta name="generator" content="priornet 1.0">')
    check_outputs(outputs, overwrite=False)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 4
    assert said[0] == f"{tmp_path / '0.html'}: the report that is there will be replaced."
    assert said[-1] == f"So will 6 more files, down to {tmp_path / '8.html'}."


def test_a_folder_is_replaced_only_where_it_is_a_model(refused, place):
    folder = place / "settings"
    folder.mkdir()
    (folder / "config.json").write_bytes(b'{"theme": "dark"}')
    command = ("fit", place / "data.csv", "--target", "strength", *QUICK, "--out", folder)
    message = refused(*command)
    assert message == (
        f'{folder}: what the folder holds ("config.json") is no model; name a new folder.'
    )
    assert (folder / "config.json").read_bytes() == b'{"theme": "dark"}'
    (folder / "config.json").rename(folder / "weights.safetensors")
    assert "is no model" in refused(*command)


def test_a_teacher_is_not_replaced_by_its_student(refused, place):
    before = (place / "model" / "config.json").read_bytes()
    again = place / "model" / ".." / "model"
    for teacher in (place / "model", again):
        options = ("--teacher", teacher, "--data", place / "data.csv", "--quiet")
        message = refused("distill", *options, "--out", place / "model")
        assert "it is an input of this command" in message
    assert (place / "model" / "config.json").read_bytes() == before
    with pytest.raises(InputError, match="it is an input"):
        check_model_folder(place / "model", [place / "model" / "config.json"])


def test_a_student_does_not_lie_in_its_teacher(refused, place):
    before = sorted(path.name for path in (place / "model").iterdir())
    (place / "link").symlink_to("model")
    options = ("--teacher", place / "model", "--data", place / "data.csv", "--quiet")
    for name in ("model/student", "model/a/student", "link/student"):
        message = refused("distill", *options, "--out", place / name)
        assert message.endswith(
            f"it lies in {place / 'model'}, an input of this command; name another."
        )
    assert sorted(path.name for path in (place / "model").iterdir()) == before


def test_nothing_is_written_into_another_model(refused, place, models, csv):
    shutil.copytree(place / "model", place / "other")
    (place / "link.html").symlink_to("other/r.html")
    before = sorted(path.name for path in (place / "other").iterdir())
    fit = ("fit", place / "data.csv", "--target", "strength", *QUICK, "--out")
    commands = (
        (*fit, place / "other" / "sub"),
        (*fit, place / "other" / "sub", "--holdout", 0),
        (*fit, place / "new", "--report", place / "other" / "r.html"),
        (*fit, place / "new", "--report", place / "link.html"),
        ("evaluate", models / "one", csv, "--report", place / "other" / "a" / "r.html"),
        ("predict", models / "one", csv, "--out", place / "other" / "p.csv", "--overwrite"),
        ("demo", "--out", place / "other"),
    )
    for command in commands:
        assert f"{place / 'other'} is the folder of a model" in refused(*command), command
    assert sorted(path.name for path in (place / "other").iterdir()) == before
    assert not (place / "new").exists()


@pytest.mark.parametrize("command", ["fit", "distill"])
def test_a_model_takes_neither_the_working_directory_nor_standard_output(
    refused, place, monkeypatch, command
):
    given = {
        "fit": ("fit", place / "data.csv", "--target", "strength", *QUICK),
        "distill": ("distill", "--teacher", place / "model", "--data", place / "data.csv"),
    }[command]
    (place / "empty").mkdir()
    shutil.copytree(place / "model", place / "other")
    for folder in ("empty", "other"):
        monkeypatch.chdir(place / folder)
        for name in (".", "", place / folder, f"../{folder}"):
            message = refused(*given, "--out", name)
            assert message.endswith("it is the working directory; name a folder in it.")
    monkeypatch.chdir(place)
    assert refused(*given, "--out", "-") == (
        "-: a model cannot go to standard output; name a folder."
    )
    assert sorted(path.name for path in place.iterdir()) == ["data.csv", "empty", "model", "other"]


def test_a_report_of_somebody_else_is_found_before_the_training(refused, place):
    report = place / "new-report.html"
    report.write_bytes(FOREIGN)
    command = ("fit", place / "data.csv", "--target", "strength", *QUICK, "--out", place / "new")
    assert "new-report.html: the file that is there is no report" in refused(*command)
    assert "no report" in refused(*command, "--report", report)
    inside = ("--report", place / "new" / "r.html")
    assert "it lies in the model's folder" in refused(*command, *inside)
    assert report.read_bytes() == FOREIGN
    assert not (place / "new").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "data.csv", "--target", "strength", *QUICK, "--out", "fitted", "--report", "{}"),
        ("predict", "model", "data.csv", "--quiet", "--out", "{}"),
        ("evaluate", "model", "data.csv", "--report", "{}"),
        ("export", "model", "--onnx", "{}"),
    ],
    ids=lambda command: f"{command[0]} {command[-2]}",
)
def test_every_option_keeps_the_rule(call, refused, place, monkeypatch, command):
    monkeypatch.chdir(place)
    ending = {"--out": ".csv", "--onnx": ".onnx"}.get(command[-2], ".html")
    path = place / f"file{ending}"
    path.write_bytes(FOREIGN)
    *rest, _ = command
    assert "add --overwrite" in refused(*rest, path)
    for given in ("model/config.json", "model/weights.safetensors", "data.csv"):
        if given != "data.csv" or rest[0] != "export":
            before = (place / given).read_bytes()
            assert given in refused(*rest, given, "--overwrite")
            assert (place / given).read_bytes() == before
    assert path.read_bytes() == FOREIGN
    first, second = call(*rest, path, "--overwrite"), call(*rest, path)
    assert (first.exit_code, second.exit_code) == (0, 0), second.output
    assert f"{path.name}: the file that is there will be replaced." in first.stderr
    assert ("that is there will be replaced" in second.stderr) == ("--quiet" not in rest)
    assert FOREIGN not in path.read_bytes()


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (("demo", "--out"), ("synthetic.json", "synthetic.png", "report.html")),
        (("reproduce", "synthetic", "--out"), ("synthetic.json", "synthetic-panels.svg")),
        (("reproduce", "behaviours", "--out"), ("behaviours.json", "behaviours.png")),
        (("reproduce", "uci", "--datasets", "wine", "--out"), ("wine.json",)),
        (("reproduce", "page", "--results", ".", "--out"), ("page.md", "images/rejection.png")),
    ],
    ids=lambda value: " ".join(value[:2]),
)
def test_names_that_the_user_did_not_give_are_looked_at_first(refused, tmp_path, command, files):
    out = tmp_path / "page.md" if "page" in command else tmp_path
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(FOREIGN)
        assert f"{path}: the file that is there is no " in refused(*command, out)
        assert path.read_bytes() == FOREIGN
        path.unlink()


def test_own_results_and_figures_are_replaced_and_named(call, tmp_path):
    command = ("reproduce", "behaviours", "--out", tmp_path)
    assert call(*command).stderr == ""
    done = call(*command)
    assert done.exit_code == 0
    paths = [tmp_path / "behaviours.json", *(p for p, _ in figure_paths(tmp_path, "behaviours"))]
    for path in paths:
        assert f"{path}: the " in done.stderr


def test_a_failed_report_says_that_the_model_is_there(call, place, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "new-report.html")

    monkeypatch.setattr("priornet.report.page.write_bytes", full)
    command = ("fit", place / "data.csv", "--target", "strength", *QUICK, "--out", place / "new")
    done = call(*command)
    assert done.exit_code == 1
    assert done.stderr == (
        f"Error: new-report.html: No space left on device. Written before that: {place / 'new'}.\n"
    )
    assert (place / "new" / "config.json").exists()


ADDED = b"prediction,lower,upper,total,data,knowledge,in_domain,verdict"
HEADER = b"x," + ADDED + b"\n"
ENTROPIES = b"verdict,total_entropy,data_entropy,mutual_information,epkl"
PREFIXED = b"x,total," + b",".join(b"priornet_" + name for name in ADDED.split(b",")) + b"\n"
TWO = (
    b"x,prediction_a,lower_a,upper_a,total_a,data_a,knowledge_a,prediction_b c,lower_b c,"
    b"upper_b c,total_b c,data_b c,knowledge_b c,in_domain,verdict,unseen\n"
)


@pytest.mark.parametrize(
    ("name", "content", "is_own"),
    [
        ("a.csv", HEADER, True),
        ("a.csv", HEADER.replace(b"verdict", ENTROPIES), True),
        ("a.csv", HEADER.replace(b"verdict", ENTROPIES.replace(b",", b",unseen,", 1)), True),
        ("a.csv", PREFIXED, True),
        ("a.csv", PREFIXED.replace(b"verdict", b"verdict,priornet_unseen"), True),
        ("a.csv", TWO, True),
        ("a.csv", TWO.replace(b"upper_b c", b"upper_b"), False),
        ("a.csv", b"case,judge,verdict\n", False),
        ("a.csv", b"in_domain,verdict\n", False),
        ("a.csv", b"model,layer,epkl\n", False),
        ("a.csv", HEADER.replace(b"verdict", b"priornet_verdict"), False),
        ("a.csv", HEADER.replace(b"lower,upper", b"upper,lower"), False),
        ("a.csv", HEADER.replace(b"verdict", b"verdict,unseen"), True),
        ("a.csv", b'"two\nlines",' + HEADER, True),
        ("a.tsv", HEADER.replace(b",", b"\t"), True),
        ("a.csv.gz", gzip.compress(HEADER, mtime=0), True),
        ("a.csv.gz", gzip.compress(HEADER, mtime=0)[:-9], False),
        ("a.csv.gz", HEADER, False),
        ("a.csv", HEADER.replace(b"verdict", b"verdict,checked by hand"), False),
        ("a.csv", b"x,y\n1,2\n", False),
        ("a.csv", "x,größe\n".encode("latin-1"), False),
        ("a.csv", b"", False),
        ("a.parquet", b"PAR1 and no more", False),
        ("a.csv", b"x" * 200_000, False),
    ],
)
def test_predictions_end_in_our_columns(tmp_path, name, content, is_own):
    path = tmp_path / name
    path.write_bytes(content)
    assert PREDICTIONS.is_own(path) is is_own


@pytest.mark.parametrize("last", ["verdict", "price"])
def test_parquet_is_known_by_its_schema(tmp_path, last):
    names = ["x", *ADDED.decode().split(",")[:-1], last]
    pq.write_table(pa.table({name: [1.0] for name in names}), tmp_path / "a.parquet")
    assert PREDICTIONS.is_own(tmp_path / "a.parquet") is (last == "verdict")


def test_results_are_known_even_if_they_are_damaged(tmp_path):
    path = tmp_path / "a.json"
    content = {"dataset": "wine", "versions": {"priornet": "0.1.0"}}
    for text, is_own in (
        (json.dumps(content, indent=1), True),
        (json.dumps(content, indent=1)[:-5], True),
        (json.dumps(content), True),
        (json.dumps({"dataset": "wine"}, indent=1), False),
        ("{", False),
        ("[]", False),
    ):
        path.write_text(text)
        assert RESULTS.is_own(path) is is_own, text


def test_maps_and_their_table(tmp_path):
    names = ("depth", "lower", "upper", "total", "data")
    maps: Any = {name: np.ones(2) for name in names}
    np.savez_compressed(tmp_path / "ours.npz", **maps)
    np.savez_compressed(tmp_path / "other.npz", depth=np.ones(2))
    assert MAPS.is_own(tmp_path / "ours.npz")
    assert not MAPS.is_own(tmp_path / "other.npz")
    (tmp_path / "images.csv").write_text("image,depth,total,data,knowledge,epkl\n")
    assert IMAGE_TABLE.is_own(tmp_path / "images.csv")
    assert not PREDICTIONS.is_own(tmp_path / "ours.npz")


@pytest.mark.parametrize("kind", [FIGURE, MODEL, ONNX, PROGRAM], ids=lambda kind: kind.called)
def test_what_cannot_be_read_is_not_ours(tmp_path, kind):
    (tmp_path / "junk").write_bytes(b"\xff\x00junk")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "config.json").write_text("[1]")
    for name in ("junk", "folder", "none"):
        assert not kind.is_own(tmp_path / name)


def test_figures_of_the_pages_are_known():
    folder = Path(__file__).parents[2] / "docs" / "images"
    made_by_hand = {"architecture.svg", "report.png"}
    figures = [path for path in folder.iterdir() if path.name not in made_by_hand]
    assert len(figures) > 10
    assert [path.name for path in figures if not FIGURE.is_own(path)] == []
