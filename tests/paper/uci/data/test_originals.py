"""Original files, loose and in archives: every column, in the original order."""

import numpy as np
import pytest

from _uci_files import download_of, housing, naval_text, packed, power_book, small, statlib
from priornet_paper.uci.data.originals import read_original
from priornet_paper.uci.data.registry import DATASETS


def read(tmp_path, file, content, name):
    path = tmp_path / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_original(path, DATASETS[name])


@pytest.mark.parametrize("name", DATASETS)
def test_every_column_comes_out_of_the_download(tmp_path, name):
    values = small(name)
    file = DATASETS[name].url.rpartition("/")[2]
    found = read(tmp_path, file, download_of(name, values), name)
    np.testing.assert_allclose(found, values, rtol=1e-15)


@pytest.mark.parametrize("write", [housing, statlib])
def test_both_forms_of_the_boston_table(tmp_path, write):
    values = small("boston")
    file = "boston" if write is statlib else "housing.data"
    assert (read(tmp_path, file, write(values), "boston") == values).all()


def test_the_fifth_sheet_counts_for_power(tmp_path):
    values = small("power")
    assert (read(tmp_path, "Folds5x2_pp.xlsx", power_book(values), "power") == values).all()
    loose = packed(**{"CCPP__Folds5x2_pp.XLSX": power_book(values)})
    assert (read(tmp_path, "CCPP.zip", loose, "power") == values).all()


def test_arff_loose_and_in_an_archive(tmp_path):
    values = small("power")
    attributes = "".join(f"@attribute {name} real\n" for name in DATASETS["power"].columns)
    rows = "".join(",".join(map(repr, row)) + "\n" for row in values.tolist())
    text = f"@relation plant\n{attributes}@data\n{rows}"
    assert (read(tmp_path, "power.arff", text, "power") == values).all()
    archive = packed(**{"sub__Folds5x2_pp.arff": text})
    assert (read(tmp_path, "power.zip", archive, "power") == values).all()


def test_naval_text_without_its_archive(tmp_path):
    values = small("naval")
    assert (read(tmp_path, "data.txt", naval_text(values), "naval") == values).all()


def test_an_archive_without_the_table_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"the archive holds no CASP.csv"):
        read(tmp_path, "protein.zip", packed(**{"other.csv": "1,2"}), "protein")


def test_archives_are_opened_only_so_deep(tmp_path):
    content = packed(**{"CASP.csv": "1,2"})
    for _ in range(5):
        content = packed(**{"inner.zip": content})
    with pytest.raises(ValueError, match=r"the archive holds no CASP.csv"):
        read(tmp_path, "protein.zip", content, "protein")
