"""Model folders of format 2, saved before the first release, which must load for ever.

They were fitted as in ``test_methods.py``, ``pair`` by EnD2 to two targets. Neither they nor their
values are ever written anew.
"""

from pathlib import Path

import pytest

import priornet
from _golden import assert_golden
from _golden_table import added_columns, answers

MODELS = Path(__file__).parent / "models"


@pytest.mark.parametrize("name", ["ensemble", "endd", "pair"])
def test_a_saved_model_answers_as_before(name, tmp_path):
    model = priornet.load(MODELS / name)
    found = {"python": answers(model), "predict": added_columns(MODELS / name, tmp_path)}
    assert_golden(f"models/{name}", {name: found}, for_ever=True)
    model.save(tmp_path / "again")
    again = answers(priornet.load(tmp_path / "again"))
    assert_golden(f"models/{name}", {name: {**found, "python": again}}, for_ever=True)
