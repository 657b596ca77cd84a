"""Tables of columns and of one matrix answer alike; a wrong cell says where it stands."""

import pickle

import numpy as np
import pytest

from priornet.tables.columns import CellError, Numbers, Table, Texts


def test_a_matrix_and_its_columns_are_the_same_table():
    matrix = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    columns = tuple(Numbers(column) for column in matrix.T)
    for table in (Table(None, 2, matrix=matrix), Table(None, 2, columns)):
        assert table.n_columns == 3
        for j in range(3):
            column = table.column(j)
            assert isinstance(column, Numbers)
            np.testing.assert_array_equal(column.values, matrix[:, j])


def test_columns_are_called_by_name_or_by_number():
    columns = (Texts(np.array([0, -1]), ("x",)),) * 2
    assert [Table(("a", "b"), 2, columns).label(j) for j in range(2)] == ["a", "b"]
    assert [Table(None, 2, columns).label(j) for j in range(2)] == [0, 1]


@pytest.mark.parametrize(("column", "where"), [("a b", '"a b"'), (7, "7")])
def test_a_wrong_cell_says_where_it_stands_also_from_another_process(column, where):
    for error in (
        CellError(column, 3, "no."),
        pickle.loads(pickle.dumps(CellError(column, 3, "no."))),
    ):
        assert str(error) == f"column {where}, row 3: no."
        assert (error.column, error.row, error.problem) == (column, 3, "no.")
