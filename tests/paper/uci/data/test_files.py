"""Files of tables: the data folder first, then the cache, then a download."""

import logging
import math
import sys
from dataclasses import replace

import pytest

from _uci_files import download_of, small
from priornet_paper.uci.data import DATASETS, UciError
from priornet_paper.uci.data.files import (
    cache,
    download,
    file_names,
    find,
    find_first_rows,
    find_table,
    missing,
    need,
    roots,
    url_file,
)


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_the_data_folder_comes_before_the_cache(folder, cache_folder):
    assert roots() == [folder, cache_folder.parent]
    cached = touch(cache_folder / "wine.parquet")
    assert find_table(DATASETS["wine"]) == cached
    own = touch(folder / "winequality-red.csv")
    assert find_table(DATASETS["wine"]) == own


def test_a_folder_uci_within_counts(folder):
    inner = touch(folder / "uci" / "wine.parquet")
    assert find_table(DATASETS["wine"]) == inner
    outer = touch(folder / "wine.npz")
    assert find_table(DATASETS["wine"]) == outer


def test_a_folder_of_that_name_is_no_table(folder):
    (folder / "boston").mkdir()
    assert find_table(DATASETS["boston"]) is None


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("power", "CCPP.zip"),
        ("power", "power.arff"),
        ("naval", "UCI CBM Dataset/data.txt"),
        ("concrete", "concrete+compressive+strength.zip"),
        ("ct_slices", "slice_localization_data.zip"),
    ],
)
def test_original_names_are_known(folder, name, file):
    path = touch(folder / file)
    assert find_table(DATASETS[name]) == path


def test_first_rows_are_a_file_of_their_own(folder):
    path = touch(folder / "msd_first1176.parquet")
    assert find_table(DATASETS["msd"]) is None
    assert find_first_rows(DATASETS["msd"]) == path
    touch(folder / "wine_first10.parquet")
    assert find_first_rows(DATASETS["wine"]) is None


def test_a_data_folder_that_is_not_there_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("PRIORNET_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UciError, match=r"nowhere: \$PRIORNET_DATA must name a folder"):
        find(["x"])


def test_without_pooch_there_is_no_cache(monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert cache() is None
    assert roots() == [folder]
    assert "is not installed" in str(missing("x is", ["y"], "z"))


def test_missing_says_where_it_looked(monkeypatch, folder, cache_folder):
    text = str(missing("wine is", file_names(DATASETS["wine"]), "Get it."))
    for part in (f"$PRIORNET_DATA ({folder})", str(cache_folder.parent), "winequality-red.csv"):
        assert part in text
    assert text.endswith("Get it.")
    monkeypatch.delenv("PRIORNET_DATA")
    assert "$PRIORNET_DATA (not set)" in str(missing("wine is", [], "Get it."))


def test_downloads_are_called_as_in_their_address():
    assert url_file("http://host/a/wine+quality.zip?x=1") == "wine+quality.zip"
    assert url_file("http://host/a/UCI%20CBM%20Dataset.zip") == "UCI CBM Dataset.zip"


CONTENT = download_of("wine", small("wine"))


def test_the_file_arrives_in_the_cache(monkeypatch, server, cache_folder):
    server.offer(monkeypatch, "wine", CONTENT)
    path = download(DATASETS["wine"])
    assert path == cache_folder / "wine+quality.zip"
    assert path.read_bytes() == CONTENT


def test_the_second_address_is_tried(monkeypatch, server, cache_folder):
    server.files["/mirror/boston"] = b"1 2 3"
    urls = (f"{server.url}/gone/housing.data", f"{server.url}/mirror/boston")
    assert download(replace(DATASETS["boston"], urls=urls)) == cache_folder / "boston"
    assert server.requests == ["/gone/housing.data", "/mirror/boston"]


def test_a_wrong_address_is_reported_with_what_to_do(server, folder, cache_folder):
    known = replace(DATASETS["wine"], urls=(f"{server.url}/gone.zip",))
    with pytest.raises(UciError, match="404") as caught:
        download(known)
    for part in (f"{server.url}/gone.zip", str(folder), "winequality-red.csv", "get the file"):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not any(cache_folder.glob("*"))


def test_a_connection_that_breaks_leaves_nothing(monkeypatch, server, cache_folder):
    server.offer(monkeypatch, "wine", CONTENT)
    server.cut = 200
    with pytest.raises(UciError, match=r"wine is not here.*IncompleteRead"):
        download(DATASETS["wine"])
    assert not any(cache_folder.glob("*"))


def test_no_server_is_no_connection(server, monkeypatch):
    known = replace(DATASETS["wine"], urls=("http://127.0.0.1:9/wine.zip",))
    with pytest.raises(UciError, match=r"wine\.zip: no connection"):
        download(known)


def test_pooch_says_nothing_and_keeps_its_level(monkeypatch, server, capfd):
    import pooch

    level = pooch.get_logger().level
    server.offer(monkeypatch, "wine", CONTENT)
    download(DATASETS["wine"])
    assert pooch.get_logger().level == level != logging.WARNING
    assert capfd.readouterr() == ("", "")


def test_a_package_that_is_there_is_imported():
    assert need("math", "count") is math


def test_a_missing_package_says_what_for_and_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "xlrd", None)
    with pytest.raises(UciError, match=r"xlrd is needed to read .xls.*pip install '\.\[uci\]"):
        need("xlrd", "read .xls files")
