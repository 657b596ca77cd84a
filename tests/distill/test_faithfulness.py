"""Measures of faithfulness against what they must be, and words that name the place."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from priornet.distill.faithfulness import (
    Agreement,
    Faithfulness,
    agreement,
    problems,
    worst_place,
)
from priornet.distill.teacher import join_ensembles
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart

GENERATOR = torch.Generator().manual_seed(0)
MEANS = 3 * torch.randn(1, 300, 1, generator=GENERATOR, dtype=torch.float64)
MEANS = MEANS + MEANS.abs() * torch.randn(5, 300, 1, generator=GENERATOR, dtype=torch.float64)
VARIANCES = 0.5 + torch.rand(5, 300, 1, generator=GENERATOR, dtype=torch.float64)
TEACHER = GaussianEnsemble(MEANS, VARIANCES)
GOOD = Agreement(300, 0.99, 0.9, 0.9, 1.0, 0.95)


def test_a_teacher_is_faithful_to_itself():
    found = agreement(TEACHER, TEACHER)
    assert found.r2 == 1
    assert found.rank_total == pytest.approx(1)
    assert found.rank_knowledge == pytest.approx(1)
    assert found.nll == found.nll_teacher


def test_r2_is_that_of_the_means():
    mean = MEANS.mean(0)
    shifted = GaussianEnsemble(MEANS + 0.5, VARIANCES)
    expected = 1 - 0.25 / float(mean.var(0, unbiased=False))
    assert agreement(shifted, TEACHER).r2 == pytest.approx(expected)


def test_a_constant_teacher_is_measured_by_its_noise():
    teacher = GaussianEnsemble(torch.full((2, 50, 1), 7.0).double(), torch.ones(2, 50, 1).double())
    near = GaussianEnsemble(teacher.means + 0.1, torch.ones(2, 50, 1).double())
    assert agreement(near, teacher).r2 == pytest.approx(0.99)


def test_nll_against_the_teacher_is_a_cross_entropy():
    teacher = GaussianEnsemble(torch.zeros(1, 4000, 1).double(), torch.ones(1, 4000, 1).double())
    student = Gaussian(torch.ones(4000, 1).double(), variance=torch.full((4000, 1), 2.0).double())
    found = agreement(student, teacher)
    entropy = 0.5 * math.log(2 * math.pi * math.e)
    assert found.nll_teacher == pytest.approx(entropy, abs=0.02)
    # KL of N(0, 1) from N(1, 2).
    kl = 0.5 * (1 / 2 + 1 / 2 - 1 + math.log(2))
    assert found.nll - found.nll_teacher == pytest.approx(kl, abs=0.02)


def test_ranks_are_left_out_where_there_is_nothing_to_rank():
    flat = GaussianEnsemble(
        MEANS.mean(0, keepdim=True).expand(5, -1, -1), VARIANCES[:, :1] + 0 * MEANS
    )
    found = agreement(flat, flat)
    assert found.rank_total is None
    assert found.rank_knowledge is None
    gaussian = Gaussian(MEANS[0], variance=VARIANCES[0])
    assert agreement(gaussian, TEACHER).rank_knowledge is None


def test_a_normal_wishart_fitted_to_the_members_is_faithful():
    found = agreement(NormalWishart.fit(TEACHER), TEACHER)
    assert found.r2 > 0.7
    assert found.rank_knowledge is not None
    assert found.rank_knowledge > 0.9


def test_joined_ensembles_are_those_of_both_inputs():
    both = join_ensembles([TEACHER, TEACHER])
    assert both.batch_shape == (600,)
    torch.testing.assert_close(both.covariances[:, 300:], TEACHER.covariances)


def test_a_good_student_has_no_problems():
    assert problems(GOOD, GOOD, GOOD, "somewhere") == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"r2": 0.71}, "R2 of the mean is 0.71 .at least 0.9 is good.; worst there"),
        ({"r2": math.nan}, "R2 of the mean is nan"),
        ({"nll": 2.0}, "cost 1.05 nats more than the teacher itself takes"),
        ({"rank_total": 0.2}, "rank correlation of total uncertainty is 0.20"),
        ({"rank_knowledge": 0.5}, "rank correlation of knowledge uncertainty is 0.50"),
    ],
)
def test_problems_say_by_how_much(change, message):
    bad = replace(GOOD, **change)
    (found,) = problems(bad, None, bad, "worst there")
    assert re.search(message, found)


def test_ranks_say_on_which_rows_they_are_lost():
    bad = replace(GOOD, rank_total=0.2)
    (alone,) = problems(bad, None, bad, None)
    assert alone.endswith("(at least 0.6 is good)")
    ood = replace(GOOD, rank_total=0.11)
    (both,) = problems(replace(GOOD, rank_total=0.75), ood, bad, None)
    assert both == f"{alone}: 0.75 on the rows, 0.11 on out-of-domain rows"
    (both,) = problems(replace(GOOD, rank_total=None), ood, bad, None)
    assert ": none on the rows, 0.11 on out-of-domain rows" in both


def test_the_worst_place_is_named():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.uniform(0, 100, 400), "colour": rng.choice(["red", "blue"], 400)}
    )
    error = np.where(table["age"] > 75, 4.0, 0.1)
    assert worst_place(table, error).startswith('worst where "age" is above 7')  # pyright: ignore
    error = np.where(table["colour"] == "red", 4.0, 0.1)
    assert worst_place(table, error).startswith('worst where "colour" is "red" (')  # pyright: ignore
    assert worst_place(table.to_numpy()[:, :1].astype(float), np.ones(400)) is None
    assert worst_place(table, np.zeros(400)) is None
    with_missing = table["age"].mask(np.arange(400) < 100).to_numpy()[:, None]
    where = worst_place(with_missing, np.where(np.arange(400) < 100, 4.0, 0.1))
    assert where is not None
    assert "column 0 is missing" in where


def test_one_row_is_compared_without_a_word_of_torch():
    one = GaussianEnsemble(MEANS[:, :1], VARIANCES[:, :1])
    found = agreement(one, one)
    assert (found.r2, found.rank_total, found.rank_knowledge) == (1, None, None)


def test_a_column_of_missing_values_alone_is_no_place():
    X = np.column_stack([np.full(40, np.nan), np.arange(40.0)])
    place = worst_place(X, np.r_[np.zeros(30), np.ones(10)])
    assert place == "worst where column 1 is above 29.25 (4.0 times the average error)"


def test_costs_are_the_teachers_over_the_students():
    """Compare by hand: a tenth of the bytes, and five times the rows per second."""
    found = Faithfulness(
        inside=GOOD,
        outside=None,
        everywhere=GOOD,
        truth=None,
        bytes_student=20,
        bytes_teacher=200,
        rows_per_second_student=10.0,
        rows_per_second_teacher=2.0,
        n_dropped=0,
        problems=(),
    )
    assert (found.times_smaller, found.times_faster) == (10, 5)
