"""Too few held-out rows are told with the option that helps."""

import pytest

from priornet import DeepEnsembleRegressor, DistilledRegressor
from priornet.cli.conformal import check_interval
from priornet.cli.errors import InputError
from priornet.cli.options import Interval


@pytest.fixture(scope="module")
def ensemble(table):
    model = DeepEnsembleRegressor(2, hidden=(4,), epochs=1, random_state=0)
    return model.fit(table[["x"]], table["strength"])


def test_enough_rows_pass_and_the_predictive_needs_none(ensemble, tmp_path):
    check_interval(tmp_path, ensemble, Interval.CONFORMAL, 0.9)
    check_interval(tmp_path, ensemble, Interval.PREDICTIVE, 0.999)


def test_the_way_out_is_an_option_of_fit(ensemble, tmp_path):
    with pytest.raises(InputError, match=r"12 were held out; fit again .* larger --calibration\.$"):
        check_interval(tmp_path, ensemble, Interval.CONFORMAL, 0.99)


def test_a_student_without_targets_needs_them(ensemble, table, tmp_path):
    student = DistilledRegressor(ensemble, student_epochs=1, n_transfer=200).fit(table[["x"]])
    with pytest.raises(InputError, match=r"0 were held out; .*`priornet distill`: with --target"):
        check_interval(tmp_path, student, Interval.CONFORMAL, 0.9)
