"""Summaries in results files: those whose numbers do not belong together are refused by name."""

import math

import pytest

from priornet.evaluation.summaries import check_scores, check_summaries, summary


def test_what_was_summarised_passes_however_deep_it_lies():
    whole = summary([1.0, 2.0, 4.0])
    failed = summary([1.0, math.nan, 4.0])
    curve = {"mean": [0.5, 0.6], "values": [[0.4, 0.6], [0.6, 0.6]]}
    check_summaries({"a": {"nll": whole, "prr": {"x": failed, "y": None}}, "b": [curve, 1, "text"]})
    check_summaries(summary([7.0]))
    check_summaries({"nll": whole}, n_values=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": 0.1}, "its mean is not that of its values"),
        ({"mean": None}, "its mean is not that of its values"),
        ({"mean": "2"}, "its mean is not that of its values"),
        ({"std": 0.0}, "its std is not that of its values"),
        ({"sem": None}, "its sem is not that of its values"),
        ({"values": [1.0, 2.0]}, "its mean is not that of its values"),
        ({"values": [1.0, None, 4.0]}, "its mean is not that of its values"),
        ({"values": [1.0, "2", 4.0]}, "its values are not numbers"),
        ({"values": [1.0, True, 4.0]}, "its values are not numbers"),
        ({"values": []}, "its values are not numbers"),
        ({"values": None}, "its values are not numbers"),
        ({"values": [3e200, 1e200]}, "its mean is not that of its values"),
    ],
)
def test_numbers_that_do_not_belong_together_are_refused(change, message):
    damaged = {"EnD2": {"prr": {"total_variance": {**summary([1.0, 2.0, 4.0]), **change}}}}
    with pytest.raises(ValueError, match=rf"^EnD2\.prr\.total_variance: {message}$"):
        check_summaries(damaged)


def test_missing_folds_are_counted():
    with pytest.raises(ValueError, match="nll: 2 values where there should be 10"):
        check_summaries({"nll": summary([1.0, 2.0])}, n_values=10)


@pytest.mark.parametrize("half", [{"mean": 1.0}, {"values": [1.0]}])
def test_half_a_summary_is_refused(half):
    with pytest.raises(ValueError, match=r"^nll: its "):
        check_summaries({"nll": half})


@pytest.mark.parametrize("nll", [None, 5, {}, [], "1.0"])
def test_a_method_needs_its_scores(nll):
    whole = {"rmse": summary([1.0, 2.0]), "nll": summary([1.0, 2.0]), "prr": {"x": None}}
    check_scores(whole, ("rmse", "nll"), ("prr",), n_values=2)
    for damaged in ({**whole, "nll": nll}, nll):
        with pytest.raises(ValueError, match=r"no mean over folds$"):
            check_scores(damaged, ("rmse", "nll"))
    with pytest.raises(ValueError, match=r"^prr: no scores in it$"):
        check_scores({**whole, "prr": 5}, ("rmse", "nll"), ("prr",))
    with pytest.raises(ValueError, match=r"^rmse: 2 values where there should be 3$"):
        check_scores(whole, ("rmse", "nll"), n_values=3)
