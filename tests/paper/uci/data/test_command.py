"""``priornet datasets``: what is here, and getting what is not."""

import json

import numpy as np
import pytest

from _uci_files import download_of, register, serving, small, split
from priornet_paper.uci.data import DATASETS


@pytest.fixture
def folder(monkeypatch, tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("PRIORNET_DATA", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return path


@pytest.fixture
def server():
    with serving() as running:
        yield running


def test_the_list_names_every_table_and_where_it_is(call, folder):
    (folder / "wine.parquet").touch()
    (folder / "msd_first1176.parquet").touch()
    done = call("datasets")
    assert done.exit_code == 0
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line}
    assert list(DATASETS) == list(rows)[1:-1]
    assert rows["boston"].split("  ")[-1] == "not here"
    assert "1599 x 11" in rows["wine"]
    assert rows["wine"].endswith(str(folder / "wine.parquet"))
    assert rows["msd"].endswith("msd_first1176.parquet (first 1176 rows only)")
    assert "CC BY 4.0" in rows["naval"]
    assert "datasets get NAME" in done.stdout


def test_the_list_as_json(call, folder):
    (folder / "ct_slices_first682.npz").touch()
    entries = {entry["name"]: entry for entry in json.loads(call("datasets", "--json").stdout)}
    assert list(entries) == list(DATASETS)
    assert entries["boston"]["path"] is None
    assert entries["boston"]["first_rows_only"] is None
    assert entries["ct_slices"]["path"] == str(folder / "ct_slices_first682.npz")
    assert entries["ct_slices"]["first_rows_only"] == 682
    assert entries["protein"]["n_rows"] == 45730
    assert entries["protein"]["target"] == "RMSD"


def test_get_downloads_once_and_checks(call, folder, server, monkeypatch):
    for name in ("wine", "boston"):
        values = small(name)
        register(monkeypatch, name, values)
        server.offer(monkeypatch, name, download_of(name, values))
    done = call("datasets", "get", "wine", "boston", "wine")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("wine: 20 x 11, downloaded to ")
    assert lines[1].startswith("boston: 20 x 13, downloaded to ")
    assert lines[1].endswith("cache/priornet/uci/housing.data")
    again = json.loads(call("datasets", "get", "wine", "--json").stdout)
    assert again[0]["was_downloaded"] is False
    assert (again[0]["n_rows"], again[0]["n_features"]) == (20, 11)
    assert len(server.requests) == 2


def test_get_takes_what_the_data_folder_has(call, folder, monkeypatch):
    values = small("wine")
    register(monkeypatch, "wine", values)
    inputs, targets = split("wine", values)
    np.savez(folder / "wine.npz", inputs=inputs, targets=targets)
    assert call("datasets", "get", "wine").stdout == (
        f"wine: 20 x 11, found in {folder / 'wine.npz'}\n"
    )


def test_unknown_names_are_refused_before_anything_is_downloaded(
    refused, folder, server, monkeypatch
):
    server.offer(monkeypatch, "wine", download_of("wine", small("wine")))
    message = refused("datasets", "get", "wine", "wnie")
    assert message.startswith('unknown dataset "wnie"; choose one of: boston, ')
    assert server.requests == []


def test_a_table_that_cannot_be_had_is_one_line(refused, folder, server, monkeypatch):
    server.offer(monkeypatch, "wine", b"")
    server.files.clear()
    message = refused("datasets", "get", "wine")
    assert "404" in message
    assert str(folder) in message


def test_a_wrong_file_is_one_line_that_names_it(refused, folder, monkeypatch):
    register(monkeypatch, "wine", small("wine"))
    (folder / "winequality-red.csv").write_text("1;2;3\n")
    message = refused("datasets", "get", "wine")
    assert message.startswith(f"{folder / 'winequality-red.csv'}: this is not the table wine: ")


def test_a_data_folder_that_is_not_there_is_refused(refused, monkeypatch, tmp_path):
    monkeypatch.setenv("PRIORNET_DATA", str(tmp_path / "nowhere"))
    assert "must name a folder" in refused("datasets")


def test_get_without_names_is_bad_usage(call):
    assert call("datasets", "get").exit_code == 2
