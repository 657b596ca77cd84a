"""The same values give the same matrix in any container; unseen values are found row by row."""

import datetime
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from _tables import transformed
from priornet.export import feeds
from priornet.tables.encoding import Unseen, most_missing
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.read import read_frame
from priornet.tables.values import CellError

TRUTH = [True, False, False, True, None]
BOOLEANS = {
    "boolean": pd.DataFrame({"a": pd.Series(TRUTH, dtype="boolean")}),
    "bool[pyarrow]": pd.DataFrame({"a": pd.Series(TRUTH, dtype="bool[pyarrow]")}),
    "objects": pd.DataFrame({"a": pd.Series(TRUTH, dtype=object)}),
    "numbers": pd.DataFrame({"a": [1.0, 0.0, 0.0, 1.0, np.nan]}),
    "Int64": pd.DataFrame({"a": pd.Series([1, 0, 0, 1, None], dtype="Int64")}),
    "words": pd.DataFrame({"a": ["True", "False", "False", "True", None]}),
    "other words": pd.DataFrame({"a": [" true", "FALSE", "false", "TRUE ", ""]}),
    "digits": pd.DataFrame({"a": ["1", "0", "0", "1", ""]}),
    "digits with points": pd.DataFrame({"a": ["1.0", "0.0", "0", "1", None]}),
    "mapping": {"a": np.array(TRUTH, object)},
    "arrow": pa.table({"a": TRUTH}),
    "arrow text": pa.table({"a": ["True", "False", "False", "True", None]}),
}
DECLARED = {
    "category of booleans": pd.DataFrame({"a": pd.Categorical(TRUTH)}),
    "category of numbers": pd.DataFrame({"a": pd.Categorical([1, 0, 0, 1, None])}),
    "category of words": pd.DataFrame(
        {"a": pd.Categorical(["true", "false", "false", "true", ""])}
    ),
    "dictionary of booleans": pa.table(
        {"a": pa.DictionaryArray.from_arrays([0, 1, 1, 0, None], pa.array([True, False]))}
    ),
    "dictionary with a null": pa.table(
        {"a": pa.DictionaryArray.from_arrays([0, 1, 1, 0, 2], pa.array(["True", "False", None]))}
    ),
}


def same_matrix(trained, given):
    """Fit to one table, check that another gives the same matrix, and count its unseen rows."""
    preprocessor = TablePreprocessor().fit(trained)
    found, tally = transformed(preprocessor, given)
    np.testing.assert_array_equal(found, preprocessor.transform(trained))
    return preprocessor, tally


@pytest.mark.parametrize("given", BOOLEANS | DECLARED)
@pytest.mark.parametrize("trained", BOOLEANS)
def test_booleans_are_the_same_in_every_container(trained, given):
    table = (BOOLEANS | DECLARED)[given]
    preprocessor, tally = same_matrix(BOOLEANS[trained], table)
    assert not tally.imputed
    np.testing.assert_array_equal(feeds(preprocessor, table)["a"][:, 0], [1, 0, 0, 1, np.nan])


@pytest.mark.parametrize("given", BOOLEANS | DECLARED)
@pytest.mark.parametrize("trained", DECLARED)
def test_declared_categories_are_found_again_in_every_container(trained, given):
    table = (BOOLEANS | DECLARED)[given]
    preprocessor, tally = same_matrix(DECLARED[trained], table)
    assert not tally.unknown
    own = feeds(preprocessor, DECLARED[trained])["a"]
    assert feeds(preprocessor, table)["a"].tolist() == own.tolist()


def test_training_learns_the_same_from_every_container():
    states = [TablePreprocessor().fit(table).to_json() for table in BOOLEANS.values()]
    assert all(state == states[0] for state in states)
    assert states[0]["columns"][0]["parser"] == "boolean"


def test_columns_without_missing_values_are_read_in_one_piece_and_equal():
    typed = pd.DataFrame({"a": [True, False, True], "b": [0, 1, 2]})
    preprocessor = TablePreprocessor().fit(typed)
    words = typed.astype({"a": "str", "b": "str"})
    np.testing.assert_array_equal(preprocessor.transform(words), preprocessor.transform(typed))


def test_a_column_of_other_numbers_has_no_true_and_false():
    preprocessor = TablePreprocessor().fit({"a": [0.0, 0.5, 1.0]})
    with pytest.raises(CellError, match='column "a", row 1: "true" is not a number'):
        preprocessor.transform({"a": np.array(["1", "true"])})


def test_a_column_of_booleans_takes_other_numbers_however_they_come_and_no_other_words():
    preprocessor = TablePreprocessor().fit({"a": [True, False]})
    far = preprocessor.transform({"a": np.array(["0.25", "true"])})
    np.testing.assert_array_equal(far, preprocessor.transform({"a": [0.25, 1.0]}))
    with pytest.raises(CellError, match='"yes" is not true or false'):
        preprocessor.transform({"a": np.array(["true", "yes"])})


def test_truth_and_numbers_mixed_in_training_are_labels():
    column = TablePreprocessor().fit({"a": np.array(["true", "5"])}).columns_[0]
    assert column.categories == ("5", "true")


DAYS = pd.to_datetime(["2020-02-03", "2020-02-04", "2020-02-03 12:30:01.5"], format="ISO8601")
SAME = {
    "whole numbers": [
        pd.DataFrame({"a": pd.Categorical([1, 2, 10])}),
        pd.DataFrame({"a": pd.Series([1, 2, 10], dtype="Int64")}),
        pd.DataFrame({"a": [1.0, 2.0, 10.0]}),
        pd.DataFrame({"a": ["1.0", "2.0", "10.0"]}),
        pd.DataFrame({"a": pd.Categorical([1.0, 2.0, 10.0])}),
        pa.table({"a": pa.array([1, 2, 10]).dictionary_encode()}),
    ],
    "times of the day": [
        pd.DataFrame({"a": ["12:30", "08:00", "23:59"]}),
        pd.DataFrame({"a": ["12:30:00", "08:00:00.000000", "23:59"]}),
        pa.table({"a": [datetime.time(12, 30), datetime.time(8), datetime.time(23, 59)]}),
        pd.DataFrame({"a": [datetime.time(12, 30), datetime.time(8), datetime.time(23, 59)]}),
    ],
    "dates": [
        pd.DataFrame({"a": pd.Categorical(DAYS)}),
        pd.DataFrame({"a": DAYS}),
        pd.DataFrame({"a": ["2020-02-03", "2020-02-04T00:00", "2020-02-03 12:30:01.500"]}),
        pa.table({"a": pa.array(DAYS.to_pydatetime()).dictionary_encode()}),
        {"a": np.array([datetime.date(2020, 2, 3), *DAYS[1:].to_pydatetime()], object)},
    ],
}


@pytest.mark.parametrize("values", SAME)
def test_categories_of_numbers_and_dates_are_found_again(values):
    trained, *others = SAME[values]
    preprocessor = TablePreprocessor().fit(trained)
    expected = preprocessor.transform(trained)
    assert expected.sum() == 3  # each row has a label of its own
    for other in others:
        np.testing.assert_array_equal(preprocessor.transform(other), expected)
        assert (
            feeds(preprocessor, other)["a"].tolist() == feeds(preprocessor, trained)["a"].tolist()
        )


def test_codes_and_ambiguous_spellings_are_not_guessed():
    labels = pd.DataFrame({"a": pd.Categorical(["007", "8", "8.0", "x", "12345678901234567"])})
    others = pd.DataFrame({"a": ["7", "8.00", "12345678901234568.0", "8", "x"]})
    found, tally = transformed(TablePreprocessor().fit(labels), others)
    assert tally.unknown == {"a": 3}
    assert found.sum(1).tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("word", ["NA", "none", "?", "-", " Null "])
def test_a_word_for_missing_that_training_had_not_is_missing(word):
    prep = TablePreprocessor().fit({"a": ["x", "y", "x", None]})
    found, tally = transformed(prep, {"a": [word, "x"]})
    assert (found == prep.transform({"a": [None, "x"]})).all()
    assert tally.unknown == {}
    assert feeds(prep, {"a": [word, "x"]})["a"].ravel().tolist() == ["", "x"]


def test_a_word_for_missing_is_a_label_where_training_had_it():
    prep = TablePreprocessor().fit({"a": ["x", "y", "NA", None]})
    assert prep.transform({"a": ["NA"]}).tolist() == [[1, 0, 0, 0]]
    _, tally = transformed(prep, {"a": ["na"]})  # neither that label nor surely a missing value
    assert tally.unknown == {"a": 1}
    pooled = TablePreprocessor(max_labels=2).fit({"a": ["x", "x", "y", "none", None]})
    assert pooled.transform({"a": ["none"]}).tolist() == [[0, 1, 0]]


def test_a_file_is_read_as_pandas_read_it_for_training(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\nx,1\nNA,2\nnone,3\ny,4\nx,5\n")
    frame = pd.read_csv(path, na_values=["none"])
    prep = TablePreprocessor().fit(frame)
    found, tally = transformed(prep, read_frame(path, prep.columns_))
    assert (found == prep.transform(frame)).all()
    assert tally.unknown == {}


NAN = float("nan")
TRAINING = pd.DataFrame(
    {
        "age": [20.0, 30.0, 40.0, 60.0],
        "height": [1.6, NAN, 1.8, 1.7],
        "city": ["Graz", "Linz", "Graz", "Linz"],
        "job": ["cook", None, "clerk", None],
    }
)


def look(preprocessor, rows):
    unseen = Unseen()
    preprocessor.transform(rows, unseen=unseen)
    return unseen


ROWS = {
    "ordinary": ((25.0, 1.7, "Graz", "cook"), ""),
    "as bare as a row of training": ((25.0, NAN, "Graz", None), ""),
    "missing where training had all": ((NAN, 1.7, "Graz", "cook"), "age"),
    "no label where training had all": ((25.0, 1.7, None, "cook"), "city"),
    "new label": ((25.0, 1.7, "Wien", "cook"), "city"),
    "new label beside a missing value": ((NAN, 1.7, "Wien", "cook"), "age; city"),
    "nearly out of reach": ((99.0, 1.7, "Graz", "cook"), ""),
    "far above": ((101.0, 1.7, "Graz", "cook"), "age"),
    "far below": ((-21.0, 1.7, "Graz", "cook"), "age"),
    "nothing at all": ((NAN, NAN, None, None), "age; city"),
}


@pytest.mark.parametrize(("row", "columns"), ROWS.values(), ids=ROWS)
def test_each_reason_is_found_in_its_row_alone(row, columns):
    preprocessor = TablePreprocessor().fit(TRAINING)
    rows = pd.concat([TRAINING, pd.DataFrame([row], columns=TRAINING.columns)], ignore_index=True)
    unseen = look(preprocessor, rows)
    assert unseen.columns.tolist() == ["", "", "", "", columns]
    assert unseen.rows.tolist() == [False] * 4 + [columns != ""]
    carried = look(preprocessor, pa.Table.from_pandas(rows[rows.columns[::-1]]))
    np.testing.assert_array_equal(carried.rows, unseen.rows)


def test_plain_numbers_are_checked_too():
    preprocessor = TablePreprocessor().fit([[0.0, 5.0], [2.0, 5.0]])
    unseen = look(preprocessor, [[0.5, 5.0], [NAN, 5.0], [9.0, 5.0], [-9.0, 6.0], [0.5, 5 + 1e-9]])
    assert unseen.columns.tolist() == ["", "0", "0", "0; 1", ""]  # 5 was the only value of a column


@pytest.mark.parametrize(("values", "known"), [([0.0, 1, 1], [0, 1]), ([1.0, 1, 1], [1])])
def test_other_numbers_than_zero_and_one_are_new_where_training_had_no_others(values, known):
    preprocessor = TablePreprocessor().fit({"a": values, "b": [1.0, 2.0, 3.0]})
    tried = [0.0, 1.0, 2.0, -1.0, 0.5]
    unseen = look(preprocessor, {"a": tried, "b": [2.0] * 5})
    assert unseen.rows.tolist() == [value not in known for value in tried]
    preprocessor = TablePreprocessor().fit(np.array([values, [1.0, 2.0, 3.0]]).T)
    unseen = look(preprocessor, np.array([tried, [2.0] * 5]).T)
    assert unseen.rows.tolist() == [value not in known for value in tried]


def test_the_median_of_zeros_and_ones_is_no_new_number():
    preprocessor = TablePreprocessor().fit({"a": [0.0, 1.0, NAN], "b": [1.0, 2.0, 3.0]})
    assert preprocessor.columns_[0].median == 0.5
    assert not look(preprocessor, {"a": [NAN, 1.0], "b": [1.0, 2.0]}).rows.any()
    unseen = look(TablePreprocessor().fit([[0.0], [1.0]]), [[NAN], [1.0]])
    assert (list(unseen.absent), list(unseen.far)) == (["0"], [])


def test_unknown_labels_join_pooled_labels():
    preprocessor = TablePreprocessor(max_labels=3).fit({"a": list("aaabbcd")})
    assert not look(preprocessor, {"a": ["z", "a"]}).rows.any()


def test_a_new_label_is_unseen_where_few_rows_had_a_label_of_their_own():
    labels = ["a"] * 120 + ["b"] * 70 + ["c", "c", "3", "3"]
    rows = {"a": ["a", "c", "3.0", "z", "NA"]}
    for own, marked in ((["d"], [False, False, False, True, True]), (["d", "e"], [False] * 5)):
        preprocessor = TablePreprocessor(max_labels=3).fit({"a": labels + own})
        assert look(preprocessor, rows).rows.tolist() == marked
        found = preprocessor.transform(rows).tolist()
        is_missing = [0, 0, 0] if any(marked) else [0, 0, 1]  # NA, unless it may be a pooled label
        assert found == [[1, 0, 0], *[[0, 0, 1]] * 3, is_missing]


def with_missing(counts, n_columns=8):
    """Make a table whose rows lack these numbers of values, in columns that all lack some."""
    rows = np.arange(len(counts) * n_columns, dtype=float).reshape(-1, n_columns) % 7
    for i, count in enumerate(counts):
        rows[i, (i + np.arange(count)) % n_columns] = NAN
    return rows


def test_a_row_that_lacks_more_than_training_rows_is_unseen():
    preprocessor = TablePreprocessor().fit(with_missing([2, 1, 2, 1] * 10))
    assert preprocessor.most_missing_ == 2
    assert look(preprocessor, with_missing([0, 2, 3, 7, 8])).rows.tolist() == [
        False, False, True, True, True,
    ]  # fmt: skip
    assert look(preprocessor, with_missing([7])).columns[0] == "0; 1; 2; 3; 4; 5; 6"


@pytest.mark.parametrize(("n_bare", "limit"), [(0, 1), (1, 1), (2, 1), (3, 7)])
def test_the_limit_is_the_number_that_one_row_in_a_hundred_lacks(n_bare, limit):
    """Use 250 rows: three are more than one in a hundred, two are not."""
    counts = np.array([1] * (250 - n_bare) + [7] * n_bare)
    assert most_missing(counts, None) == limit
    weight = np.ones(250)
    weight[-1] = 3  # counts as three rows
    assert most_missing(counts, weight) == (7 if n_bare else 1)


def test_a_row_without_any_value_is_always_too_bare():
    preprocessor = TablePreprocessor().fit(with_missing([8, 8, 1, 0]))
    assert look(preprocessor, with_missing([8, 7])).rows.tolist() == [True, False]


def test_the_limit_is_saved_and_older_files_have_a_default():
    preprocessor = TablePreprocessor().fit(with_missing([0, 1, 2] * 5))
    state = json.loads(json.dumps(preprocessor.to_json()))
    rows = with_missing([2, 3, 8])
    again = look(TablePreprocessor.from_json(state), rows)
    assert again.rows.tolist() == [False, True, True]
    del state["most_missing"]
    older = look(TablePreprocessor.from_json(state), rows)
    assert older.rows.tolist() == [False, False, True]  # it can only tell that nothing is there


@pytest.mark.parametrize("wrong", [-1, 8, 1.0, True, "2", None])
def test_a_damaged_limit_is_refused(wrong):
    state = TablePreprocessor().fit(with_missing([0, 1, 2] * 5)).to_json()
    with pytest.raises(ValueError, match='"most_missing" is'):
        TablePreprocessor.from_json({**state, "most_missing": wrong})


def test_tally_counts_each_row_once():
    rows = pd.DataFrame([row for row, _ in ROWS.values()], columns=TRAINING.columns)
    _, tally = transformed(TablePreprocessor().fit(TRAINING), rows[:5], rows[5:])
    assert tally.n_rows == len(ROWS)
    assert tally.unseen == sum(columns != "" for _, columns in ROWS.values())
    assert (tally.imputed, tally.unknown) == ({"age": 3, "city": 2}, {"city": 2})
    assert (tally.far, tally.bare) == ({"age": 2}, 0)


def test_words_for_missing_values_count_as_empty_cells_do():
    numbers = [["1", "2", "3"], ["4", "5", "6"], ["7", "8", "9"], ["1", "3", "5"]]
    for word in ("", "NA"):
        rows = numbers[:2] + [[word, word, "7"]] * 2 + numbers[2:]
        table = dict(zip("abc", map(list, zip(*rows, strict=True)), strict=True))
        assert TablePreprocessor().fit(table).most_missing_ == 2
