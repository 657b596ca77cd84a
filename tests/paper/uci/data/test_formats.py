"""Readers of every format: Parquet, NumPy, original files, text, ARFF and Excel."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from _uci_files import (
    download_of,
    housing,
    lines,
    naval_text,
    packed,
    power_book,
    small,
    split,
    statlib,
    xls,
    xlsx,
)
from priornet_paper.uci.data.formats import (
    parse_arff,
    parse_text,
    parse_xls,
    parse_xlsx,
    read_npz,
    read_original,
    read_parquet,
    write_npz,
)
from priornet_paper.uci.data.registry import DATASETS


def test_parquet_columns_are_found_by_name_in_any_order(tmp_path):
    known, values = DATASETS["energy"], small("energy")
    frame = pd.DataFrame(values, columns=list(known.columns))
    frame[sorted(frame.columns)].to_parquet(tmp_path / "energy.parquet")
    inputs, targets = read_parquet(tmp_path / "energy.parquet", known)
    expected = split("energy", values)
    assert (inputs == expected[0]).all()
    assert (targets == expected[1]).all()


def test_parquet_without_a_column_is_refused(tmp_path):
    pd.DataFrame({"AT": [1.0], "V": [2.0]}).to_parquet(tmp_path / "power.parquet")
    with pytest.raises(ValueError, match='no column "AP"'):
        read_parquet(tmp_path / "power.parquet", DATASETS["power"])


def test_arrays_come_back_in_double_precision(tmp_path):
    path = tmp_path / "wine.npz"
    inputs, targets = split("wine", small("wine"))
    write_npz(path, (inputs, targets))
    found = read_npz(path)
    assert (found[0] == inputs).all()
    assert (found[1] == targets).all()
    np.savez(path, inputs=inputs.astype(np.float32), targets=np.arange(3))
    assert [array.dtype for array in read_npz(path)] == [np.float64, np.float64]


def test_arrays_under_other_names_are_refused(tmp_path):
    np.savez(tmp_path / "wine.npz", inputs=np.zeros(3))
    with pytest.raises(ValueError, match='no array "targets"'):
        read_npz(tmp_path / "wine.npz")


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


NUMBERS = st.floats(-1e12, 1e12)
ARFF = """% Title: power plant
@relation plant

@attribute AT numeric
@attribute V REAL
@ATTRIBUTE PE integer

@DATA
% a comment among the rows
8.34,40.77,480
23.64, 58.49, 445
"""


@settings(deadline=None, max_examples=50)
@given(
    arrays(
        np.float64, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6), elements=NUMBERS
    ),
    st.sampled_from([",", ";", "\t", "  "]),
    st.booleans(),
)
def test_every_separator_gives_the_numbers_back(values, separator, has_header):
    header = separator.join(f'"column_{i}"' for i in range(values.shape[1])) + "\r\n"
    text = header * has_header + lines(values, separator)
    assert (parse_text(text.encode(), values.shape[1]) == values).all()


def test_rows_broken_into_two_lines_below_a_preface():
    values = small("boston")
    assert (parse_text(statlib(values), 14) == values).all()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 2 3\n4 5\n", "5 values do not make rows of 3"),
        ("1 2 3\n4 five 6\n", "five"),
        ("1,2,3\n4,5\n", "Expected 3 columns, got 2"),
        ("1,2,3\n4,,6\n", "''"),
        ("1;2;3\n4;x;6\n", "'x'"),
        ("a,b,c\n", "no row of numbers"),
        ("", "no row of numbers"),
    ],
)
def test_broken_rows_are_refused(text, problem):
    with pytest.raises(ValueError, match=problem):
        parse_text(text.encode(), 3)


def test_arff_rows_follow_the_data_mark():
    assert parse_arff(ARFF.encode(), 3).tolist() == [[8.34, 40.77, 480.0], [23.64, 58.49, 445.0]]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("@DATA", "", "no @data"),
        ("V REAL", "V {low,high}", "attribute V is not numeric"),
        ("40.77", "?", r"\?"),
    ],
)
def test_arff_that_is_not_a_table_of_numbers_is_refused(old, new, problem):
    with pytest.raises(ValueError, match=problem):
        parse_arff(ARFF.replace(old, new).encode(), 3)


VALUES = np.array([[1.5, 2.0, -3.25], [0.1, 1e-7, 79.98611076]])
HEADER = ["a (kg)", "b", "c"]


def test_xls_gives_the_numbers_of_a_sheet():
    np.testing.assert_allclose(parse_xls(xls(VALUES, HEADER), 3, 0), VALUES, rtol=1e-15)


def test_xlsx_gives_the_numbers_of_the_sheet_that_is_asked_for():
    book = xlsx([VALUES[:1], VALUES, VALUES[::-1]], HEADER)
    assert (parse_xlsx(book, 3, 1) == VALUES).all()
    assert (parse_xlsx(book, 3, 2) == VALUES[::-1]).all()


@pytest.mark.parametrize(
    ("parse", "book"),
    [(parse_xls, xls(VALUES, HEADER)), (parse_xlsx, xlsx([VALUES], HEADER))],
    ids=["xls", "xlsx"],
)
def test_wrong_sheets_and_widths_are_refused(parse, book):
    with pytest.raises(ValueError, match="the table is on sheet 8, and it has"):
        parse(book, 3, 7)
    with pytest.raises(ValueError, match="row 2 has 3 values instead of 4"):
        parse(book, 4, 0)


def test_a_missing_value_or_a_word_among_the_numbers_is_refused():
    rows = [*VALUES.tolist(), [1.0, None, 2.0]]
    with pytest.raises(ValueError, match="row 4 has 2 values"):
        parse_xlsx(xlsx([np.array(rows, dtype=object)], HEADER), 3, 0)
    rows[-1] = [1.0, "two", 2.0]
    with pytest.raises(ValueError, match="two"):
        parse_xlsx(xlsx([np.array(rows, dtype=object)], HEADER), 3, 0)


def test_a_sheet_without_numbers_is_refused():
    with pytest.raises(ValueError, match="no row of numbers"):
        parse_xlsx(xlsx([np.zeros((0, 3))], HEADER), 3, 0)
