"""Downloads through Pooch: into the cache, whole or not at all."""

import logging
from dataclasses import replace

import pytest

from _uci_files import download_of, small
from priornet_paper.uci.data import DATASETS, UciError
from priornet_paper.uci.data.download import download

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
