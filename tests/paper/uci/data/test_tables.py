"""Tables by name: found or downloaded, checked by fingerprints, refused by name."""

import json
import logging
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from _uci_files import (
    comma_text,
    download_of,
    housing,
    naval_text,
    packed,
    power_book,
    register,
    small,
    split,
    statlib,
    wine_text,
    xls,
    xlsx,
)
from priornet_paper.uci.data import DATASETS, UciError, load_uci, to_npz
from priornet_paper.uci.data.tables import (
    cache,
    difference,
    download,
    file_names,
    find,
    find_first_rows,
    find_table,
    fingerprints,
    get_uci,
    measure,
    missing,
    need,
    roots,
    url_file,
)


def assert_is(table, name, values):
    inputs, targets = split(name, values)
    np.testing.assert_allclose(table.inputs, inputs, rtol=1e-15)
    np.testing.assert_allclose(table.targets, targets, rtol=1e-15)
    assert table.name == name
    assert table.feature_names == DATASETS[name].feature_names
    assert table.target_name == DATASETS[name].target


@pytest.mark.parametrize("name", DATASETS)
def test_download_parse_check_and_the_cache_from_then_on(monkeypatch, server, cache_folder, name):
    values = small(name)
    register(monkeypatch, name, values)
    server.offer(monkeypatch, name, download_of(name, values))
    first, second = load_uci(name), load_uci(name)
    for table in (first, second):
        assert_is(table, name, values)
        assert table.is_complete
        assert table.path.parent == cache_folder
    assert len(server.requests) == 1


# The real tables as their authors would have written them: what the loader does with the originals.
ORIGINALS = {
    "boston": ("housing.data", housing),
    "concrete": ("Concrete_Data.xls", lambda v: xls(v, list("abcdefghi"))),
    "energy": ("ENB2012_data.xlsx", lambda v: xlsx([v], list("abcdefghij"))),
    "power": ("CCPP.zip", lambda v: packed(**{"CCPP__Folds5x2_pp.xlsx": power_book(v)})),
    "wine": ("winequality-red.csv", lambda v: wine_text(v).encode()),
    "protein": ("CASP.csv", lambda v: comma_text("protein", v).encode()),
    "msd": ("YearPredictionMSD.txt.zip", lambda v: download_of("msd", v)),
    "naval": ("UCI CBM Dataset.zip", lambda v: packed(**{"a__data.txt": naval_text(v)})),
    "ct_slices": ("slice_localization_data.zip", lambda v: download_of("ct_slices", v)),
}


@pytest.mark.parametrize("name", ORIGINALS)
def test_real_table_in_its_original_form_equals_the_parquet(real, monkeypatch, tmp_path, name):
    known = DATASETS[name]
    table = load_uci(name)
    frame = pd.read_parquet(table.path)
    values = frame[list(known.columns)].to_numpy(np.float64)
    monkeypatch.setenv("PRIORNET_DATA", str(tmp_path))
    file, write = ORIGINALS[name]
    (tmp_path / file).write_bytes(write(values))
    again = load_uci(name, may_download=False)
    assert again.path == tmp_path / file
    np.testing.assert_allclose(again.inputs, table.inputs, rtol=1e-14)
    np.testing.assert_allclose(again.targets, table.targets, rtol=1e-14)
    assert again.is_complete == table.is_complete == (known.first_rows is None)


def test_real_boston_as_statlib_has_it(real, monkeypatch, tmp_path):
    table = load_uci("boston")
    values = np.column_stack([table.inputs, table.targets])
    monkeypatch.setenv("PRIORNET_DATA", str(tmp_path))
    (tmp_path / "boston").write_bytes(statlib(values))
    assert (load_uci("boston", may_download=False).inputs == table.inputs).all()


def test_real_power_from_another_sheet_is_in_another_order(real, monkeypatch, tmp_path):
    table = load_uci("power")
    values = np.column_stack([table.inputs, table.targets])
    monkeypatch.setenv("PRIORNET_DATA", str(tmp_path))
    text = comma_text("power", np.random.default_rng(0).permutation(values))
    (tmp_path / "power.csv").write_text(text)
    with pytest.raises(UciError, match=r"power\.csv: this is not the table power: .*other order"):
        load_uci("power")


@pytest.fixture
def wine(monkeypatch):
    values = small("wine")
    register(monkeypatch, "wine", values)
    return values


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text[: len(text) // 2], "cannot be read|rows instead of 20"),
        (lambda text: text[: text[:-1].rindex("\n") + 1], "it has 19 rows instead of 20"),
        (lambda text: text + text[text[:-1].rindex("\n") + 1 :], "it has 21 rows instead of 20"),
        (lambda text: text.replace("\n1", "\n2"), 'column "fixed_acidity" has the mean'),
        (lambda text: text.replace("-", "x"), "cannot be read"),
        (lambda text: "", "cannot be read: it has no row of numbers"),
        (lambda text: "<html>Not found</html>", "cannot be read: it has no row of numbers"),
    ],
)
def test_a_wrong_file_is_refused_by_name(folder, wine, change, problem):
    (folder / "winequality-red.csv").write_text(change(wine_text(wine)))
    with pytest.raises(UciError, match=problem) as caught:
        load_uci("wine")
    message = str(caught.value)
    assert message.startswith(f"{folder / 'winequality-red.csv'}: this is not the table wine: ")
    assert message.endswith(f"replace it with the file from {DATASETS['wine'].url}.")
    assert "\n" not in message


@pytest.mark.parametrize("name", DATASETS)
def test_damaged_originals_are_refused_or_read_never_a_crash(monkeypatch, folder, capfd, name):
    values = small(name, 6)
    register(monkeypatch, name, values)
    file = DATASETS[name].url.rpartition("/")[2]
    content = download_of(name, values)
    rng = np.random.default_rng(0)
    refusals = []
    for attempt in range(40):
        broken = bytearray(content)
        if attempt % 2:
            del broken[rng.integers(len(broken)) :]
        else:
            broken[rng.integers(len(broken))] ^= int(rng.integers(1, 256))
        (folder / file).write_bytes(bytes(broken))
        try:
            load_uci(name, may_download=False)
        except UciError as error:
            refusals.append(str(error))
    assert len(refusals) >= 20  # every truncation at least
    assert all(str(folder / file) in refusal for refusal in refusals)
    assert capfd.readouterr().out == ""


def test_a_damaged_parquet_or_npz_is_refused(folder, wine):
    for ending in ("parquet", "npz"):
        path = folder / f"wine.{ending}"
        path.write_bytes(b"PAR1 or PK, but not really")
        with pytest.raises(UciError, match=rf"wine\.{ending}: this is not the table wine: it can"):
            load_uci("wine")
        path.unlink()


def test_a_wrong_download_is_refused_and_not_kept(monkeypatch, server, cache_folder, wine):
    server.offer(monkeypatch, "wine", download_of("wine", wine[:-1]))
    with pytest.raises(UciError, match="it has 19 rows instead of 20"):
        load_uci("wine")
    assert not any(cache_folder.glob("*"))
    server.offer(monkeypatch, "wine", download_of("wine", wine))
    assert_is(load_uci("wine"), "wine", wine)


def test_a_damaged_file_in_the_cache_is_refused_and_replaced_by_get(
    monkeypatch, server, cache_folder, wine
):
    server.offer(monkeypatch, "wine", download_of("wine", wine))
    load_uci("wine")
    (cache_folder / "wine+quality.zip").write_bytes(b"")
    with pytest.raises(UciError, match="run `priornet datasets get wine`"):
        load_uci("wine")
    table, was_downloaded = get_uci("wine")
    assert was_downloaded
    assert_is(table, "wine", wine)
    assert get_uci("wine")[1] is False
    assert len(server.requests) == 2


def test_get_leaves_the_files_of_the_data_folder_alone(monkeypatch, server, folder, wine):
    server.offer(monkeypatch, "wine", download_of("wine", wine))
    (folder / "wine.npz").write_bytes(b"mine")
    with pytest.raises(UciError, match=r"wine\.npz: this is not"):
        get_uci("wine")
    assert (folder / "wine.npz").read_bytes() == b"mine"
    assert server.requests == []


def test_first_rows_serve_until_the_whole_table_is_here(monkeypatch, server, folder):
    values = small("msd")
    register(monkeypatch, "msd", values)
    server.offer(monkeypatch, "msd", download_of("msd", values))
    inputs, targets = split("msd", values)
    np.savez(folder / "msd_first10.npz", inputs=inputs[:10], targets=targets[:10])
    part = load_uci("msd")
    assert not part.is_complete
    assert (part.inputs == inputs[:10]).all()
    assert server.requests == []
    assert get_uci("msd")[0].is_complete
    assert_is(load_uci("msd"), "msd", values)


def test_a_missing_file_says_where_it_looked_and_how_to_get_it(folder, cache_folder):
    with pytest.raises(UciError, match=r"^power is not here") as caught:
        load_uci("power", may_download=False)
    known = DATASETS["power"]
    for part in (folder, cache_folder.parent, "priornet datasets get power", known.url):
        assert str(part) in str(caught.value)


@pytest.mark.parametrize("call", [load_uci, get_uci])
def test_unknown_name_lists_the_valid_ones(call):
    with pytest.raises(UciError, match='unknown dataset "wnie"; choose one of: boston'):
        call("wnie")


def test_without_a_package_the_error_says_how_to_get_it(monkeypatch, folder):
    (folder / "Concrete_Data.xls").write_bytes(xls(small("concrete"), list("abcdefghi")))
    monkeypatch.setitem(sys.modules, "xlrd", None)
    with pytest.raises(UciError, match=r"xlrd is needed .*`pip install '\.\[uci\]'"):
        load_uci("concrete")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(UciError, match=r"pooch is needed to download"):
        load_uci("wine")


NUMPY_ALONE = """
import json, sys
for absent in ("pandas", "pyarrow", "pooch", "sklearn", "torch", "openpyxl", "xlrd"):
    sys.modules[absent] = None
from priornet_paper.uci.data import canonical_splits, load_uci
table = load_uci("boston")
print(json.dumps([table.inputs.shape, float(table.targets.sum()), len(canonical_splits("boston"))]))
"""


def test_arrays_are_enough_on_a_machine_with_numpy_alone(real, monkeypatch, tmp_path):
    from priornet_paper.uci.data import write_splits

    to_npz("boston", tmp_path / "boston.npz")
    write_splits("boston", tmp_path)
    expected = load_uci("boston")
    monkeypatch.setenv("PRIORNET_DATA", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", NUMPY_ALONE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[506, 13], float(expected.targets.sum()), 20]


@pytest.mark.parametrize("name", DATASETS)
def test_real_tables_load(real, name):
    table = load_uci(name, may_download=False)
    known = DATASETS[name]
    assert table.inputs.shape == (known.first_rows or known.n_rows, known.n_features)
    assert table.inputs.dtype == table.targets.dtype == np.float64
    assert table.is_complete == (known.first_rows is None)


@pytest.fixture
def wine_of_fingerprints(monkeypatch):
    values = small("wine", 200)
    return register(monkeypatch, "wine", values), *split("wine", values)


def problem_of(known, inputs, targets):
    problem = difference(known, inputs, targets)
    assert problem is not None
    return problem


def test_there_is_one_for_each_table():
    assert list(fingerprints()) == list(DATASETS)
    for name, own in fingerprints().items():
        known = DATASETS[name]
        assert own.n_rows == (known.first_rows or known.n_rows)
        for numbers in (own.mean, own.std, own.trend):
            assert numbers.shape == (known.n_features + 1,)


@pytest.mark.parametrize("name", DATASETS)
def test_stored_numbers_are_those_of_the_real_table(real, name):
    known = DATASETS[name]
    suffix = f"_first{known.first_rows}" if known.first_rows else ""
    frame = pd.read_parquet(real / f"{name}{suffix}.parquet")
    frame = frame[[*known.feature_names, known.target]]
    own = fingerprints()[name]
    np.testing.assert_allclose(own.mean, frame.mean(), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(own.std, frame.std(ddof=0), rtol=1e-10, atol=1e-9)
    ramp = pd.Series(np.linspace(-1, 1, len(frame)))
    covariance = frame.apply(lambda column: column.cov(ramp, ddof=0))
    np.testing.assert_allclose(own.trend, covariance, rtol=1e-10, atol=1e-9)


def test_the_table_itself_passes_also_after_rounding_of_sums(wine_of_fingerprints):
    known, inputs, targets = wine_of_fingerprints
    assert difference(known, inputs, targets) is None
    assert difference(known, inputs * (1 + 1e-13), targets) is None


def test_missing_rows_and_columns_are_counted(wine_of_fingerprints):
    known, inputs, targets = wine_of_fingerprints
    assert "199 rows instead of 200" in problem_of(known, inputs[1:], targets[1:])
    assert "10 feature columns instead of 11" in problem_of(known, inputs[:, 1:], targets)
    assert "feature columns" in problem_of(known, inputs[:, 0], targets)
    assert "shape (200,) beside 199 rows" in problem_of(known, inputs[1:], targets)


def test_missing_values_are_noticed(wine_of_fingerprints):
    known, inputs, targets = wine_of_fingerprints
    inputs[17, 3] = np.nan
    assert "missing or infinite" in problem_of(known, inputs, targets)


def test_one_wrong_cell_names_its_column(wine_of_fingerprints):
    known, inputs, targets = wine_of_fingerprints
    inputs[17, 3] += 1.0
    assert '"residual_sugar" has the mean' in problem_of(known, inputs, targets)
    targets[:2] += (5.0, -5.0)  # the mean stays
    inputs[17, 3] -= 1.0
    assert '"quality" has the standard deviation' in problem_of(known, inputs, targets)


def test_another_order_of_rows_is_noticed(wine_of_fingerprints):
    known, inputs, targets = wine_of_fingerprints
    order = np.random.default_rng(0).permutation(len(targets))
    assert "another order" in problem_of(known, inputs[order], targets[order])
    assert "another order" in problem_of(known, inputs, targets[order])


def test_first_rows_are_checked_in_the_whole_table_too(monkeypatch):
    values = small("msd", 20)
    known = register(monkeypatch, "msd", values)
    inputs, targets = split("msd", values)
    assert difference(known, inputs, targets) is None
    assert difference(known, inputs[:10], targets[:10]) is None
    assert "15 rows instead of 20" in problem_of(known, inputs[:15], targets[:15])
    assert "instead of" in problem_of(known, inputs[::-1], targets[::-1])


def test_constant_columns_are_compared_by_their_size(monkeypatch):
    values = small("naval", 30)
    values[:, 8] = 288.0
    known = register(monkeypatch, "naval", values)
    inputs, targets = split("naval", values)
    assert difference(known, inputs, targets) is None
    inputs[:, 8] = 288.1
    assert '"T1" has the mean 288.1 instead of 288' in problem_of(known, inputs, targets)


def test_measure_uses_all_rows():
    own = measure(np.array([[0.0], [2.0], [4.0]]), np.array([1.0, 1.0, 1.0]))
    assert own.n_rows == 3
    assert own.mean.tolist() == [2.0, 1.0]
    np.testing.assert_allclose(own.std, [np.sqrt(8 / 3), 0.0])
    np.testing.assert_allclose(own.trend, [4 / 3, 0.0])


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
