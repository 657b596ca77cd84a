"""Rows with what training never had are found, one by one, with the columns behind it."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from priornet.tables.preprocessing import TablePreprocessor, Tally
from priornet.tables.unseen import Unseen, most_missing

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


def test_plain_numbers_are_looked_at_too():
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


def test_pooled_labels_take_one_more():
    preprocessor = TablePreprocessor(max_categories=3).fit({"a": list("aaabbcd")})
    assert not look(preprocessor, {"a": ["z", "a"]}).rows.any()


def with_missing(counts, n_columns=8):
    """A table whose rows lack so many values, in columns that all lack some."""
    rows = np.arange(len(counts) * n_columns, dtype=float).reshape(-1, n_columns) % 7
    for i, count in enumerate(counts):
        rows[i, (i + np.arange(count)) % n_columns] = NAN
    return rows


def test_a_row_that_lacks_more_than_training_rows_did():
    preprocessor = TablePreprocessor().fit(with_missing([2, 1, 2, 1] * 10))
    assert preprocessor.most_missing_ == 2
    assert look(preprocessor, with_missing([0, 2, 3, 7, 8])).rows.tolist() == [
        False, False, True, True, True,
    ]  # fmt: skip
    assert look(preprocessor, with_missing([7])).columns[0] == "0; 1; 2; 3; 4; 5; 6"


@pytest.mark.parametrize(("n_bare", "limit"), [(0, 1), (1, 1), (2, 1), (3, 7)])
def test_one_in_a_hundred_training_rows_is_enough(n_bare, limit):
    """Of 250 rows three are over one in a hundred, two are not."""
    counts = np.array([1] * (250 - n_bare) + [7] * n_bare)
    assert most_missing(counts, None) == limit
    weight = np.ones(250)
    weight[-1] = 3  # counts as three rows
    assert most_missing(counts, weight) == (7 if n_bare else 1)


def test_a_row_without_any_value_is_too_bare_whatever_training_had():
    preprocessor = TablePreprocessor().fit(with_missing([8, 8, 1, 0]))
    assert look(preprocessor, with_missing([8, 7])).rows.tolist() == [True, False]


def test_limits_are_saved_and_older_files_have_some():
    preprocessor = TablePreprocessor().fit(with_missing([0, 1, 2] * 5))
    state = json.loads(json.dumps(preprocessor.to_json()))
    rows = with_missing([2, 3, 8])
    again = look(TablePreprocessor.from_json(state), rows)
    assert again.rows.tolist() == [False, True, True]
    del state["most_missing"]
    older = look(TablePreprocessor.from_json(state), rows)
    assert older.rows.tolist() == [False, False, True]  # it can only tell that nothing is there


@pytest.mark.parametrize("wrong", [-1, 8, 1.0, True, "2", None])
def test_damaged_limits_are_refused(wrong):
    state = TablePreprocessor().fit(with_missing([0, 1, 2] * 5)).to_json()
    with pytest.raises(ValueError, match='"most_missing" is'):
        TablePreprocessor.from_json({**state, "most_missing": wrong})


def test_tally_counts_each_row_once():
    preprocessor, tally = TablePreprocessor().fit(TRAINING), Tally()
    rows = pd.DataFrame([row for row, _ in ROWS.values()], columns=TRAINING.columns)
    for part in (rows[:5], rows[5:]):
        preprocessor.transform(part, tally=tally)
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
