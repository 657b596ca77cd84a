"""Empty folders to look in, a server to download from, and the real tables where they are."""

import pytest

from _uci_files import serving


@pytest.fixture(autouse=True)
def cache_folder(monkeypatch, tmp_path):
    """The user's cache, empty; no data folder is set."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PRIORNET_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache" / "priornet" / "uci"


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """``$PRIORNET_DATA``, empty."""
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("PRIORNET_DATA", str(path))
    return path


@pytest.fixture
def server():
    with serving() as running:
        yield running
