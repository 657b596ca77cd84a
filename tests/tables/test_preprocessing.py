"""Tables become the numbers that a network reads, and the same numbers after a round via JSON."""

import json
import subprocess
import sys
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from _tables import transformed
from priornet.tables import preprocessing
from priornet.tables.encoding import Tally
from priornet.tables.learning import find_dominant
from priornet.tables.preprocessing import OutputColumn, TablePreprocessor
from priornet.tables.values import CellError

NAN = np.nan


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": [1.0, NAN, 3.0, 8.0],
            "colour": ["red", "blue", None, "red"],
            "size": pd.Categorical([2, 1, 2, 2]),
            "when": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-05"]),
            "price": ["1,5", "12 ", "n/a", "3"],
        }
    )


def test_numbers_agree_with_scikit_learn():
    X = np.random.default_rng(0).normal(3, 7, (50, 4))
    found = TablePreprocessor().fit_transform(X)
    np.testing.assert_allclose(found, StandardScaler().fit_transform(X), atol=1e-14)


def test_blocks_of_rows_change_nothing():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    prep = TablePreprocessor().fit(X)
    whole = prep.transform(X)
    parts = np.concatenate([prep.transform(X[:77]), prep.transform(X[77:])])
    np.testing.assert_array_equal(whole, parts)
    by_column = prep.transform(pa.table({"a": X[:, 0], "b": X[:, 1]}))
    np.testing.assert_array_equal(whole, by_column)


def test_layout_of_a_mixed_table(frame):
    prep = TablePreprocessor().fit(frame)
    assert prep.n_features_in_ == 5
    assert prep.feature_names_in_ == ("age", "colour", "size", "when", "price")
    assert prep.feature_names_out_ == (
        *("age", "age is missing", "colour = blue", "colour = red", "colour is missing"),
        *("size = 1", "size = 2", "when", "price", "price is missing"),
    )
    assert [source.column for source in prep.source_] == [0, 0, 1, 1, 1, 2, 2, 3, 4, 4]
    assert [s.is_continuous for s in prep.source_] == [s.role == "value" for s in prep.source_]
    assert prep.source_[4] == OutputColumn(1, "missing")


def test_values_of_a_mixed_table(frame):
    prep = TablePreprocessor().fit(frame)
    found = dict(zip(prep.feature_names_out_, prep.transform(frame).T, strict=True))
    scale = np.std([1, 3, 8])
    np.testing.assert_allclose(found["age"], (np.array([1, 3, 3, 8]) - 4) / scale)
    np.testing.assert_array_equal(found["age is missing"], [0, 1, 0, 0])
    np.testing.assert_array_equal(found["colour = red"], [1, 0, 0, 1])
    np.testing.assert_array_equal(found["colour is missing"], [0, 0, 1, 0])
    np.testing.assert_array_equal(found["size = 1"], [0, 1, 0, 0])
    np.testing.assert_allclose(found["when"] * prep.columns_[3].scale, [-1.75, -0.75, 0.25, 2.25])
    np.testing.assert_allclose(
        found["price"] * prep.columns_[4].scale + 5.5, [1.5, 12, 3, 3], atol=1e-12
    )
    age = prep.columns_[0]
    assert (age.minimum, age.maximum, age.median, age.mean) == (1, 8, 3, 4)


def test_containers_agree(frame):
    prep = TablePreprocessor().fit(frame)
    expected = prep.transform(frame)
    arrow = pa.Table.from_pandas(frame)
    objects = {name: frame[name].astype(object).to_numpy() for name in frame}
    for table in (arrow, arrow.to_batches()[0], objects, frame[reversed(frame.columns)]):
        np.testing.assert_array_equal(prep.transform(table), expected)
    refitted = TablePreprocessor().fit(arrow)
    assert refitted.columns_ == prep.columns_


def test_json_round_trip_is_exact(frame):
    prep = TablePreprocessor(max_labels=7).fit(frame)
    loaded = TablePreprocessor.from_json(json.loads(json.dumps(prep.to_json(), allow_nan=False)))
    assert loaded.columns_ == prep.columns_
    assert loaded.max_labels == 7
    assert loaded.feature_names_in_ == prep.feature_names_in_
    np.testing.assert_array_equal(loaded.transform(frame), prep.transform(frame))
    array = TablePreprocessor().fit(np.ones((2, 2)))
    assert TablePreprocessor.from_json(array.to_json()).feature_names_in_ is None


weights = st.lists(st.integers(0, 4), min_size=6, max_size=6).filter(lambda ws: sum(ws[:3]) > 0)


@given(weights, st.integers(0, 99))
def test_weights_equal_repeated_rows_exactly(repeats, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=6) * 1e3, "y": ["a", "b", "c", None, "a", "d"]})
    frame.loc[4, "x"] = NAN
    weighted = TablePreprocessor(max_labels=2).fit(frame, sample_weight=repeats)
    repeated = TablePreprocessor(max_labels=2).fit(frame.loc[np.repeat(range(6), repeats)])
    assert weighted.columns_ == repeated.columns_


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], "shape"),
        ([1.0, -1.0], "negative"),
        ([1.0, NAN], "finite"),
        ([0.0, 0.0], "all are zero"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        TablePreprocessor().fit(np.ones((2, 1)), sample_weight=weight)


def test_constant_columns_keep_a_scale_of_one():
    prep = TablePreprocessor().fit(np.array([[0.1, 1e9], [0.1, 1e9], [0.1, 1e9 + 1e-7]]))
    assert [column.scale for column in prep.columns_] == [1, 1]
    np.testing.assert_allclose(prep.transform([[1.1, 1e9]]), [[1, 0]])


def test_missing_value_is_imputed_where_training_had_none_and_counted():
    prep = TablePreprocessor().fit(pd.DataFrame({"a": [1.0, 2.0, 6.0], "b": ["x", "y", "y"]}))
    rows, tally = transformed(prep, {"a": [NAN, 1.0], "b": ["x", None]})
    assert rows[0, 0] * prep.columns_[0].scale == pytest.approx(2 - 3)
    np.testing.assert_array_equal(rows[:, 1:], [[1, 0], [0, 0]])
    assert tally == Tally(2, Counter({"a": 1, "b": 1}), unseen=2)
    plain = TablePreprocessor().fit(np.array([[1.0], [2.0], [6.0]]))
    found, tally = transformed(plain, [[NAN], [1.0]])
    np.testing.assert_array_equal(found[0], rows[0, 0])
    assert tally == Tally(2, Counter({"0": 1}), unseen=1)


def test_unknown_labels_are_all_zeros_and_counted():
    prep = TablePreprocessor().fit({"b": ["x", "y"]})
    rows, tally = transformed(prep, {"b": ["new", "x", "newer"]})
    np.testing.assert_array_equal(rows, [[0, 0], [1, 0], [0, 0]])
    assert tally == Tally(3, unknown=Counter({"b": 2}), unseen=2)


def test_tallies_are_added():
    both = Tally(2, Counter({"a": 1}), Counter(), Counter({"d": 1}), bare=1, unseen=2)
    more = Counter({"a": 1, "b": 2})
    both.merge(Tally(3, more, Counter({"c": 4}), Counter(), bare=1, unseen=3))
    assert both == Tally(
        5, Counter({"a": 2, "b": 2}), Counter({"c": 4}), Counter({"d": 1}), bare=2, unseen=5
    )


def test_rare_labels_are_pooled_and_unknown_ones_join_them():
    values = ["a"] * 5 + ["b"] * 4 + ["c", "d"]
    prep = TablePreprocessor(max_labels=3).fit({"x": values})
    assert prep.feature_names_out_ == ("x = a", "x = b", "x = (other)")
    rows = prep.transform({"x": ["a", "d", "new", None]})
    np.testing.assert_array_equal(rows, [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]])
    with pytest.raises(ValueError, match="at least 2"):
        TablePreprocessor(max_labels=1)


def labels_of(*counts):
    """Repeat labels: each count's number of them, so often."""
    return [
        f"l{j}.{i}" for j, (n, often) in enumerate(counts) for i in range(n) for _ in range(often)
    ]


@pytest.mark.parametrize(
    ("counts", "n_kept", "n_pooled"),
    [
        ([(50, 1)], 50, 0),
        ([(300, 3)], 300, 0),
        ([(60, 3), (30, 2)], 60, 30),
        ([(20, 3), (80, 2)], 49, 51),
        ([(700, 3)], 670, 30),
    ],
    ids=["few", "all are learnt", "rare ones are pooled", "at least 49", "at most 671"],
)
def test_by_default_each_label_of_three_rows_has_a_column(counts, n_kept, n_pooled):
    (column,) = TablePreprocessor().fit({"x": labels_of(*counts)}).columns_
    assert (len(column.categories), len(column.pooled)) == (n_kept, n_pooled)
    assert column.has_other == (n_pooled > 0)
    rows = Counter(labels_of(*counts))
    kept, pooled = ([rows[label] for label in own] for own in (column.categories, column.pooled))
    assert min(kept) >= max(pooled, default=0)


def test_a_weight_of_three_makes_a_label_as_three_rows_do():
    labels = labels_of((60, 1))
    weighted = TablePreprocessor().fit({"x": labels}, sample_weight=[3] * 55 + [2] * 5)
    repeated = TablePreprocessor().fit({"x": np.repeat(labels, [3] * 55 + [2] * 5)})
    assert weighted.columns_ == repeated.columns_
    assert len(weighted.columns_[0].categories) == 55


def test_all_label_columns_together_keep_within_memory(monkeypatch):
    table = {"many": labels_of((300, 4)), "some": labels_of((60, 20)), "few": ["u", "v"] * 600}
    monkeypatch.setattr(preprocessing, "_MOST_VALUES", 200_000 * 190)
    many, some, few = TablePreprocessor().fit(table).columns_
    assert (many.width, some.width, few.width) == (128, 60, 2)
    assert TablePreprocessor(max_labels=300).fit(table).columns_[0].width == 300


IDS = {
    "name": [f"u{i}" for i in range(100)],
    "size": np.arange(100.0) / 7,
    "customer_id": np.arange(100) * 3,
    "year": np.arange(1900, 2000),
}


def test_ids_are_left_out_and_neither_needed_nor_refused():
    prep = TablePreprocessor(leave_out_ids=True).fit(IDS)
    assert prep.feature_names_in_ == ("size", "year")
    assert prep.left_out_ == ("name", "customer_id")
    loaded = TablePreprocessor.from_json(json.loads(json.dumps(prep.to_json())))
    expected = TablePreprocessor().fit_transform({name: IDS[name] for name in ("size", "year")})
    without = {name: IDS[name] for name in ("year", "size")}
    for one in (prep, loaded):
        for table in (IDS, without, pd.DataFrame(IDS)):
            np.testing.assert_array_equal(one.transform(table), expected)
        with pytest.raises(ValueError, match="unseen at fit time:\n- other"):
            one.transform({**IDS, "other": IDS["size"]})
    assert TablePreprocessor().fit(IDS).left_out_ == ()


@pytest.mark.parametrize(
    ("name", "values", "is_id"),
    [
        ("Id", np.arange(50), True),
        ("customerId", np.arange(50)[::-1] * 1000, True),
        ("rownames", np.arange(50), True),
        ("customer id", [f"{i}" for i in range(50)], True),
        ("grid", np.arange(50), False),
        ("id", np.arange(50) / 2, False),
        ("id", np.arange(50) // 2, False),
        ("id", np.arange(19), False),
        ("x", [f"a{i // 2}" for i in range(50)], False),
        ("x", [f"a{i}" for i in range(19)], False),
        ("x", [f"a{i}" for i in range(39)] + ["a0"] * 10, False),
        ("x", [f"a{i}" for i in range(41)] + ["a0"] * 9, True),
    ],
)
def test_a_column_is_an_id_by_its_labels_or_by_name_and_numbers(name, values, is_id):
    table = {name: values, "y": np.zeros(len(values))}
    prep = TablePreprocessor(leave_out_ids=True).fit(table)
    assert prep.left_out_ == ((name,) if is_id else ())


def test_ids_without_names_stay_and_a_table_of_ids_alone_is_refused():
    frame = pd.DataFrame({0: IDS["name"], 1: IDS["size"]})
    assert TablePreprocessor(leave_out_ids=True).fit(frame).n_features_in_ == 2
    with pytest.raises(ValueError, match='no column is left to learn from: column "name" is left'):
        TablePreprocessor(leave_out_ids=True).fit({"name": IDS["name"]})


def test_the_state_of_an_earlier_format_is_read():
    table = {"x": labels_of((3, 5), (4, 1)), "z": np.arange(19.0)}
    prep = TablePreprocessor(max_labels=4).fit(table)
    state = json.loads(json.dumps(prep.to_json()))
    assert state["format"] == 2
    state |= {"format": 1, "max_categories": state.pop("max_labels")}
    del state["left_out"]
    for column in state["columns"]:
        del column["pooled"]
    earlier = TablePreprocessor.from_json(state)
    assert (earlier.max_labels, earlier.left_out_) == (4, ())
    np.testing.assert_array_equal(earlier.transform(table), prep.transform(table))


def test_labels_that_arrive_as_numbers_are_still_labels():
    prep = TablePreprocessor().fit(pd.DataFrame({"a": pd.Categorical(["1", "2", "1"])}))
    np.testing.assert_array_equal(prep.transform({"a": [2.0, NAN, 1.0]})[:, 1], [1, 0, 0])


def test_number_columns_accept_text_that_spells_numbers_only():
    prep = TablePreprocessor().fit({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    rows = prep.transform({"a": ["1", " 2 "], "b": ["2", "1"]})
    np.testing.assert_array_equal(rows, [[-1, 1], [1, -1]])
    with pytest.raises(CellError, match=r'column "b", row 1: "many" is not a number'):
        prep.transform({"a": [1, 2], "b": ["1", "many"]})


def test_dates_and_numbers_are_not_exchanged():
    prep = TablePreprocessor().fit({"a": np.array(["2020-01-01", "2020-01-02"], "M8[D]")})
    np.testing.assert_array_equal(prep.transform({"a": ["2020-01-02"]}), [[1]])
    with pytest.raises(ValueError, match="held dates in training and holds numbers"):
        prep.transform({"a": [1.0]})
    with pytest.raises(CellError, match='"soon" is not a date'):
        prep.transform({"a": ["soon"]})
    numbers = TablePreprocessor().fit({"a": [1.0, 2.0]})
    with pytest.raises(ValueError, match="held numbers in training and holds dates"):
        numbers.transform({"a": np.array(["2020-01-01"], "M8[D]")})


@pytest.mark.parametrize("wrap", [np.asarray, pd.DataFrame], ids=["array", "frame"])
def test_infinite_values_are_refused_with_their_place(wrap):
    X = np.array([[1.0, 2.0], [3.0, -np.inf], [np.inf, 1.0]])
    prep = TablePreprocessor().fit(np.array([[1.0, 2.0], [3.0, 4.0]]))
    with pytest.raises(CellError, match=r"column 1, row 1: .*-inf"):
        prep.transform(wrap(X))
    with pytest.raises(CellError, match="row 2"):
        TablePreprocessor().fit(wrap(X))
    with pytest.raises(CellError, match=r'column "a", row 1: .*inf'):
        TablePreprocessor().fit({"a": ["1", "inf"], "b": ["x", "y"]})


def test_far_values_stay_finite_in_float32():
    prep = TablePreprocessor().fit(np.array([[0.0], [1.0]]))
    rows = prep.transform([[1e300], [-1e300]], dtype=np.float32)
    assert rows.dtype == np.float32
    assert np.isfinite(np.square(rows)).all()
    assert rows[0] > 1e6
    narrow = TablePreprocessor().fit(np.array([[0.0], [1e-12]]))
    assert np.isfinite(narrow.transform([[1e308], [-1e308]])).all()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [NAN, NAN], "b": [1, 2]}, '"a" has no value at all'),
        ({"a": [1, 2], "b": ["", None]}, '"b" has no value at all'),
        ({"a": ["n/a", "?"]}, '"a" has no value at all'),
        (np.empty((0, 3)), r"0 sample\(s\)"),
        (np.empty((3, 0)), r"0 feature\(s\)"),
        ({}, r"0 feature\(s\)"),
    ],
)
def test_unusable_tables_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        TablePreprocessor().fit(table)


def test_rows_without_weight_do_not_rescue_an_empty_column():
    with pytest.raises(ValueError, match="column 0 has no value"):
        TablePreprocessor().fit(np.array([[1.0], [NAN]]), sample_weight=[0, 1])


def test_columns_at_prediction_are_matched_by_name():
    prep = TablePreprocessor().fit(pd.DataFrame({"a": [0.0, 2.0], "b": [0.0, 4.0]}))
    new = pd.DataFrame({"b": [4.0], "c": [9.0], "a": [0.0]})
    np.testing.assert_array_equal(prep.transform(new, extra="ignore"), [[-1, 1]])
    np.testing.assert_array_equal(prep.transform(new[["b", "a"]]), [[-1, 1]])
    with pytest.raises(ValueError, match="unseen at fit time:\n- c"):
        prep.transform(new)
    with pytest.raises(ValueError, match="yet now missing:\n- b"):
        prep.transform(new[["a"]])
    with pytest.raises(ValueError, match="X has 3 features, but TablePreprocessor is expecting 2"):
        prep.transform(np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(format=3), '"format" is 3'),
        (lambda s: s.pop("format"), '"format"'),
        (lambda s: s.update(max_labels="many"), "\"max_labels\" is 'many'"),
        (lambda s: s.update(has_names=1), '"has_names"'),
        (lambda s: s.update(columns=[]), "filled list"),
        (lambda s: s["columns"].append(s["columns"][0]), "same name"),
        (lambda s: s["columns"].append(3), "column 2 is not an object"),
        (lambda s: s["columns"][0].pop("mean"), "column 0 must have exactly"),
        (lambda s: s["columns"][0].update(surprise=1), "column 0 must have exactly"),
        (lambda s: s["columns"][0].update(name=None), "name None"),
        (lambda s: s["columns"][0].update(kind="text"), "\"kind\" is 'text'"),
        (lambda s: s["columns"][0].update(parser=[]), '"parser"'),
        (lambda s: s["columns"][0].update(has_missing=1), '"has_missing" is 1'),
        (lambda s: s["columns"][0].update(mean=NAN), '"mean" is nan'),
        (lambda s: s["columns"][0].update(mean="0"), '"mean" is'),
        (lambda s: s["columns"][0].update(scale=0), '"scale" is 0'),
        (lambda s: s["columns"][0].update(scale=5e-324), '"scale" is'),
        (lambda s: s["columns"][0].update(mean=10**400), '"mean" is 1000'),
        (lambda s: s["columns"][0].update(categories=["x"]), "numeric with 1 categories"),
        (lambda s: s["columns"][0].update(has_other=True), "has_other"),
        (lambda s: s["columns"][1].update(categories=[]), "categorical with 0"),
        (lambda s: s["columns"][1].update(categories=["x", "x"]), "distinct"),
        (lambda s: s["columns"][1].update(categories="xy"), "distinct"),
        (lambda s: s["columns"][1].update(pooled=["z"]), "without"),
        (lambda s: s["columns"][1].update(pooled=["x"], has_other=True), 'in "categories"'),
        (lambda s: s["columns"][1].update(pooled=[3], has_other=True), "distinct"),
        (lambda s: s.update(left_out=["a"]), "the name of a column"),
        (lambda s: s.update(left_out="a"), "distinct"),
    ],
)
def test_damaged_state_is_refused_with_the_reason(change, message):
    state = TablePreprocessor().fit({"a": [1.0, 2.0], "b": ["x", "y"]}).to_json()
    change(state)
    with pytest.raises(ValueError, match=f"damaged: .*{message}"):
        TablePreprocessor.from_json(state)


@pytest.mark.parametrize("state", [None, [], "x", 3])
def test_state_that_is_no_object_is_refused(state):
    with pytest.raises(ValueError, match="damaged: it is not an object"):
        TablePreprocessor.from_json(state)


def test_module_needs_neither_pandas_nor_pyarrow_nor_scikit_learn():
    code = (
        "import sys; sys.modules.update(pandas=None, pyarrow=None, sklearn=None)\n"
        "from priornet.tables.preprocessing import TablePreprocessor\n"
        "print(TablePreprocessor().fit_transform({'a': [1.0, 3.0], 'b': ['x', 'y']}).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]\n", done.stderr


def with_a_mistyped_number(value=1e4):
    X = np.random.default_rng(0).normal(3, 7, (500, 2))
    X[17, 1] = value
    return X


def test_a_mistyped_number_does_not_set_the_scale():
    X = with_a_mistyped_number()
    others = np.delete(X, 17, axis=0)
    first, second = TablePreprocessor().fit(X).columns_
    assert first.mean == pytest.approx(X[:, 0].mean())
    assert (second.minimum, second.maximum) == (others[:, 1].min(), others[:, 1].max())
    assert second.mean == pytest.approx(others[:, 1].mean(), abs=0.1)
    assert second.scale == pytest.approx(others[:, 1].std(), rel=0.02)


def test_only_training_clips_a_mistyped_number():
    X = with_a_mistyped_number(-1e4)
    prep = TablePreprocessor().fit(X)
    matrix = prep.transform(X)
    assert matrix[17, 1] < -1000
    taken = prep.within(matrix)
    assert taken[17, 1] == np.delete(matrix, 17, axis=0)[:, 1].min()
    taken[17, 1] = matrix[17, 1]
    np.testing.assert_array_equal(taken, matrix)


def test_a_row_near_the_range_of_training_is_not_clipped():
    X = np.array([[1.0, 1.0, 5.0], [3.0, 2.0, 5.0]])
    prep = TablePreprocessor().fit(X)
    matrix = prep.transform(np.array([[20.0, -10.0, 5e6]]))  # the last column is constant
    assert prep.within(matrix) is matrix


def is_scaled_plainly(prep, X):
    """Check mean and deviation, in extended precision, and that no value is clipped."""
    for column, values in zip(prep.columns_, np.asarray(X, float).T, strict=True):
        values = values[~np.isnan(values)]
        mean = values.sum(dtype=np.longdouble) / len(values)
        square = np.square(values - mean, dtype=np.longdouble).sum() / len(values)
        low, high = values.min(), values.max()
        expected = (low, 1.0) if low == high else (float(mean), float(np.sqrt(square)))
        assert (column.mean, column.scale) == expected
        assert (column.minimum, column.maximum) == (low, high)
    matrix = prep.transform(X)
    return prep.within(matrix) is matrix


@pytest.mark.parametrize("seed", range(5))
def test_columns_without_outliers_are_scaled_by_all_values(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 2000))
    indicator = np.zeros(n)
    indicator[3] = 1
    amounts = np.where(rng.random(n) < 0.99, 0, rng.integers(1, 3, n) * 1000)
    columns = [
        rng.normal(1e6, 3, n), rng.lognormal(0, 1.5, n), rng.exponential(size=n),
        rng.poisson(0.1, n), rng.standard_t(3, n), indicator, amounts, np.full(n, 4.0),
        np.where(rng.random(n) < 0.3, NAN, rng.uniform(size=n)),
    ]  # fmt: skip
    X = np.column_stack(columns)
    prep = TablePreprocessor().fit(X)
    assert is_scaled_plainly(prep, X)
    assert [one.dominant for one in prep.summaries_] == [None] * len(columns)


def test_the_diabetes_table_is_scaled_by_all_values():
    from priornet.tables.diabetes import load_diabetes

    X, y = load_diabetes()
    assert is_scaled_plainly(TablePreprocessor().fit(X), X)
    assert find_dominant(np.asarray(y, float)) is None


@pytest.mark.parametrize(
    "name", ["boston", "concrete", "energy", "naval", "power", "protein", "wine"]
)
def test_real_tables_are_scaled_by_all_values(name, real):
    from priornet_paper.uci.data import load_uci

    table = load_uci(name)
    assert is_scaled_plainly(TablePreprocessor().fit(table.inputs), table.inputs)
    targets = np.asarray(table.targets, float).reshape(len(table.targets), -1)
    assert [find_dominant(column) for column in targets.T] == [None] * targets.shape[1]


def test_numbered_columns_are_found_by_their_numbers():
    frame = pd.DataFrame({10: [1.0, 3.0], 20: [5.0, 9.0], 30: [-1.0, 0.0]})
    prep = TablePreprocessor().fit(frame)
    expected = prep.transform(frame)
    assert (prep.transform(frame[[30, 10, 20]]) == expected).all()
    loaded = TablePreprocessor.from_json(prep.to_json())  # no file has the numbers
    with pytest.warns(UserWarning, match="taken by their place"):
        loaded.transform(frame[[30, 10, 20]])


def test_columns_taken_by_place_are_warned_about():
    values = np.array([[1.0, 2.0], [3.0, 5.0]])
    named = pd.DataFrame(values, columns=["a", "b"])
    pairs = pd.MultiIndex.from_tuples([("a", 1), ("b", 1)])
    for labels in ([0, 1], pairs):
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            TablePreprocessor().fit(named).transform(pd.DataFrame(values, columns=labels))
    prep = TablePreprocessor().fit(pd.DataFrame(values))
    with pytest.warns(UserWarning, match="fitted without feature names"):
        prep.transform(named)
    with pytest.warns(UserWarning, match="taken by their place"):
        prep.transform(pd.DataFrame(values, columns=[1, 2]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = prep.transform(values)
        assert (TablePreprocessor().fit(values).transform(pd.DataFrame(values)) == expected).all()


def test_columns_matrix_holds_raw_numbers_and_places_of_labels():
    table = {
        "day": ["2020-01-01", ""] * 3,
        "colour": ["b", "a", "b", "a", "b", None],
        "x": [5e9] * 6,
    }
    prep = TablePreprocessor().fit(table)
    rows = {"x": [1.0, 2.0, 3.0], "colour": ["c", "b", None], "day": ["1970-01-03", "", ""]}
    found = prep.columns_matrix(rows | {"more": [1, 2, 3]})
    expected = [[2.0, -1.0, 1.0], [np.nan, 1.0, 2.0], [np.nan, np.nan, 3.0]]
    np.testing.assert_array_equal(found, expected)


def test_columns_matrix_numbers_pooled_labels_too():
    labels = ["a"] * 600 + ["b"] * 400 + ["c", "d"]
    prep = TablePreprocessor(max_labels=3).fit({"x": labels})
    (column,) = prep.columns_
    assert column.pooled
    asked = [*column.categories, *column.pooled, "new"]
    assert prep.columns_matrix({"x": asked})[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, -1.0]
