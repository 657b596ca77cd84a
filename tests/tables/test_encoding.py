"""What training learns about a column: medians, scales and labels, with weights as repetitions."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priornet.export import feeds
from priornet.tables.encoding import learn_column
from priornet.tables.preprocessing import TablePreprocessor, Tally
from priornet.tables.read import read_frame
from priornet.tables.values import CellError, Numbers, Texts


def learn(values, weight=None):
    weight = None if weight is None else np.asarray(weight, float)
    return learn_column(None, 0, Numbers(np.asarray(values, float)), weight, 50)[0]


numbers = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(numbers, st.integers(1, 5)), min_size=1, max_size=8))
def test_weighted_statistics_are_those_of_repeated_rows(pairs):
    values, repeats = (np.array(part) for part in zip(*pairs, strict=True))
    repeated = np.repeat(values, repeats)
    column = learn(values, repeats)
    assert column.median == np.median(repeated)
    assert column.mean == pytest.approx(repeated.mean(), abs=1e-9)
    if column.scale != 1:
        assert column.scale == pytest.approx(repeated.std(), rel=1e-6)
    assert (column.minimum, column.maximum) == (repeated.min(), repeated.max())


def test_weights_need_not_be_whole():
    column = learn([0.0, 10.0], [0.25, 0.75])
    assert column.mean == 7.5
    assert column.median == 10
    assert column.scale == pytest.approx(np.sqrt(0.25 * 7.5**2 + 0.75 * 2.5**2))


@pytest.mark.parametrize("values", [[3.0], [0.1] * 7, [1e9, 1e9 + 1e-7], [0.0, 5e-324]])
def test_constant_columns_keep_a_scale_of_one(values):
    assert learn(values).scale == 1


def test_moments_survive_a_large_offset():
    values = 1e9 + np.random.default_rng(0).normal(size=1000)
    column = learn(values)
    assert column.scale == pytest.approx(np.std(values - 1e9), rel=1e-6)


def test_labels_keep_their_most_frequent_by_weight():
    texts = Texts(np.array([0, 1, 1, 2, 3]), ("a", "b", "c", "d"))
    by_count, _ = learn_column("x", "x", texts, None, 2)
    assert (by_count.categories, by_count.has_other) == (("b",), True)
    by_weight, _ = learn_column("x", "x", texts, np.array([1.0, 0, 0, 9, 1]), 2)
    assert (by_weight.categories, by_weight.has_other) == (("c",), True)
    all_kept, _ = learn_column("x", "x", texts, np.array([1.0, 0, 0, 9, 0]), 2)
    assert (all_kept.categories, all_kept.has_other) == (("a", "c"), False)


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
    """The preprocessor of one table, which makes the same of another; and what it remarked."""
    preprocessor, tally = TablePreprocessor().fit(trained), Tally()
    expected = preprocessor.transform(trained)
    np.testing.assert_array_equal(preprocessor.transform(given, tally=tally), expected)
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


def test_columns_without_holes_are_read_in_one_piece_and_equal():
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
    preprocessor, tally = TablePreprocessor().fit(labels), Tally()
    others = pd.DataFrame({"a": ["7", "8.00", "12345678901234568.0", "8", "x"]})
    found = preprocessor.transform(others, tally=tally)
    assert tally.unknown == {"a": 3}
    assert found.sum(1).tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("word", ["NA", "none", "?", "-", " Null "])
def test_a_word_for_missing_that_training_had_not_is_missing(word):
    prep, tally = TablePreprocessor().fit({"a": ["x", "y", "x", None]}), Tally()
    expected = prep.transform({"a": [None, "x"]})
    assert (prep.transform({"a": [word, "x"]}, tally=tally) == expected).all()
    assert tally.unknown == {}
    assert feeds(prep, {"a": [word, "x"]})["a"].ravel().tolist() == ["", "x"]


def test_a_word_for_missing_is_a_label_where_training_had_it():
    prep, tally = TablePreprocessor().fit({"a": ["x", "y", "NA", None]}), Tally()
    assert prep.transform({"a": ["NA"]}).tolist() == [[1, 0, 0, 0]]
    prep.transform({"a": ["na"]}, tally=tally)  # neither that label nor surely a hole
    assert tally.unknown == {"a": 1}
    pooled = TablePreprocessor(max_categories=2).fit({"a": ["x", "x", "y", "none", None]})
    assert pooled.transform({"a": ["none"]}).tolist() == [[0, 1, 0]]


def test_a_file_is_read_as_pandas_read_it_for_training(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\nx,1\nNA,2\nnone,3\ny,4\nx,5\n")
    frame = pd.read_csv(path, na_values=["none"])
    prep, tally = TablePreprocessor().fit(frame), Tally()
    expected = prep.transform(frame)
    found = prep.transform(read_frame(path, prep.columns_), tally=tally)
    assert (found == expected).all()
    assert tally.unknown == {}
