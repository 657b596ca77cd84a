"""Default size of a student, length of its training, and weights of answers."""

from __future__ import annotations

import math

import pytest
import torch

from _asserts import assert_close
from priornet.distill import start_as_average, start_as_member, start_as_members
from priornet.distill.student import (
    StudentSize,
    balance,
    default_rate,
    learning_rates,
    student_plan,
    student_size,
)
from priornet.distill.targets import targets_for
from priornet.distributions import GaussianEnsemble
from priornet.nn import (
    DenseDepth,
    GaussianHead,
    GaussianMixtureHead,
    NormalWishartHead,
    StackedMLP,
)
from priornet.nn.architecture import RampedMLP


@pytest.mark.parametrize("n_rows", [30, 3000, 40_000])
def test_passes_make_the_steps(n_rows):
    plan = student_plan(n_rows, "auto", 256, 15_000)
    assert plan.epochs * math.ceil(n_rows / 256) == pytest.approx(15_000, rel=0.01)


def test_given_settings_are_kept():
    plan = student_plan(3000, 7, 100, 15_000)
    assert (plan.epochs, plan.batch_size, plan.patience) == (7, 100, None)


def balanced(spreads):
    means = torch.tensor(spreads) * torch.tensor([-1.0, 1.0])[:, None]
    ensemble = GaussianEnsemble(means.unsqueeze(-1), torch.ones(2, len(spreads), 1))
    targets = targets_for("end", 1, 2, proxy=False, annealed=False)
    return balance(targets, targets.pack(ensemble))


def test_answers_count_by_the_spread_of_the_members():
    weights = balanced([1.0, 2.0, 3.0, 1e-6])
    assert float(weights.mean()) == pytest.approx(1)
    assert float(weights[2] / weights[0]) == pytest.approx(3, rel=0.1)
    assert float(weights[3] / weights[0]) > 0.1  # members that agree are not forgotten


def test_members_that_all_agree_count_alike():
    assert balanced([0.0, 0.0, 0.0]).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("n_rows", "n_steps"), [(30, 12_000), (3000, 15_000), (40_000, 24_000)])
def test_students_of_larger_tables_train_for_longer(n_rows, n_steps):
    size = student_size(n_rows, (64, 64), "smooth")
    assert size.n_steps == n_steps


def test_students_are_wider_than_their_teachers():
    assert student_size(30, (50,), "smooth") == StudentSize((100,), 0, 20_000, 12_000)
    assert student_size(30, (50,), "fine").hidden == (200,)


def test_students_that_follow_rows_are_wider_the_more_rows_there_are():
    sizes = [student_size(n, (64, 64), "rows") for n in (900, 8600, 41_000)]
    widths = [size.hidden[0] for size in sizes]
    assert widths == sorted(set(widths))
    assert [size.n_pieces for size in sizes] == [8, 16, 16]
    assert sizes[0].hidden == (96, 96)


def test_the_teacher_is_asked_at_least_once_per_row():
    size = student_size(10**6, (64, 64), "rows")
    assert size.n_transfer == 10**6


def test_steps_are_read_in_ramps_without_more_width():
    smooth, steps = (student_size(8600, (64, 64), kind) for kind in ("smooth", "steps"))
    assert (smooth.hidden, smooth.n_pieces) == ((128, 128), 0)
    assert steps.hidden == smooth.hidden
    assert steps.n_pieces > 0


def test_wider_layers_learn_in_smaller_steps():
    assert learning_rates(1.0, "smooth", 128) == (5.0, 2.0)
    narrow, wide = (learning_rates(1.0, "rows", width) for width in (256, 512))
    assert wide == (narrow[0] / 2, narrow[1] / 2)


def test_the_likelihood_of_own_members_is_learnt_faster():
    rates = {default_rate(by, has) for by, has in ((False, True), (True, False), (False, False))}
    assert rates == {2e-3}
    assert default_rate(by_likelihood=True, has_weights=True) == 4e-3


@pytest.fixture
def teacher():
    return StackedMLP(2, (6, 5), GaussianHead(5, 2, init_gain=1.0), seeds=range(3))


X = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))


def test_belief_has_the_mean_and_precision_of_its_member(teacher):
    head = NormalWishartHead(5, 2, initial_belief=7.0, initial_excess=3.0)
    students = StackedMLP(2, (6, 5), head, seeds=(8, 9))
    start_as_members(students, teacher, [2, 0])
    belief, members = students.together(X), teacher.together(X)
    assert_close(belief.loc, members.loc[[2, 0]], rel=1e-5, abs=1e-6)
    assert_close(belief.precision_tril, members.precision_tril[[2, 0]], rel=1e-5, abs=1e-6)
    assert_close(belief.belief, torch.full((2, 4), 7.0), rel=1e-5)
    assert_close(belief.excess, torch.full((2, 4), 3.0), rel=1e-5)


def test_every_head_of_a_mixture_is_the_member(teacher):
    student = StackedMLP(2, (6, 5), GaussianMixtureHead(5, 2, n_members=3), seeds=(8,))
    start_as_members(student, teacher, [1])
    member = teacher.together(X).loc[1]
    for mean in student.together(X).means[:, 0]:
        assert_close(mean, member, rel=1e-5, abs=1e-6)


def test_teacher_and_student_share_no_memory(teacher):
    student = StackedMLP(2, (6, 5), GaussianHead(5, 2), seeds=(8,))
    start_as_members(student, teacher, [1])
    before = teacher.weights.detach().clone()
    with torch.no_grad():
        student.weights.zero_()
    assert torch.equal(teacher.weights, before)


def test_a_wide_student_is_the_average_of_members(teacher):
    head = NormalWishartHead(10, 2, initial_belief=7.0)
    student = StackedMLP(2, (12, 10), head, seeds=(8,))
    assert start_as_average(student, teacher)
    expected = teacher.raw(X.expand(3, *X.shape))[:2].mean(0)
    own = student.raw(X[None])[0, :, : expected.shape[-1]]
    assert_close(own, expected, rel=1e-5, abs=1e-6)
    assert_close(student.together(X).belief, torch.full((1, 4), 7.0), rel=1e-5)


def test_a_student_with_ramps_is_the_average_too(teacher):
    edges = ((-1.0, 0.0, 1.0), (0.0, 2.0))
    student = RampedMLP(edges, (12, 10), GaussianHead(10, 2), seeds=(8,))
    assert start_as_average(student, teacher)
    expected = teacher.together(X).loc[:2].mean(0)
    assert_close(student.together(X).loc[0], expected, rel=1e-5, abs=1e-6)


def test_every_head_of_a_wide_mixture_is_the_average(teacher):
    student = StackedMLP(2, (12, 10), GaussianMixtureHead(10, 2, n_members=3), seeds=(8,))
    assert start_as_average(student, teacher)
    expected = teacher.together(X).loc[:2].mean(0)
    for mean in student.together(X).means[:, 0]:
        assert_close(mean, expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("widths", [(6,), (12, 5), (9, 10), (24, 20), (3, 5)])
def test_students_into_whom_members_do_not_fit_keep_their_weights(teacher, widths):
    student = StackedMLP(2, widths, GaussianHead(widths[-1], 2), seeds=(8,))
    before = student.weights.detach().clone()
    assert not start_as_average(student, teacher)
    assert torch.equal(student.weights, before)


IMAGES = torch.rand(1, 3, 32, 64, generator=torch.Generator().manual_seed(0))


def depth_network(head, **more):
    def make(n):
        return head(n, per_pixel=True, **more)

    return DenseDepth(make, "efficientnet_lite0", n_decoder=16).eval()


@pytest.fixture(scope="module")
def depth_member():
    return depth_network(GaussianHead, init_gain=1.0)


def test_a_depth_student_predicts_what_its_member_predicts(depth_member):
    student = depth_network(NormalWishartHead, initial_belief=7.0)
    start_as_member(student, depth_member)
    belief, member = student(IMAGES), depth_member(IMAGES)
    assert_close(belief.loc, member.loc, rel=1e-5, abs=1e-6)
    assert_close(belief.precision_tril, member.precision_tril, rel=1e-5, abs=1e-6)
    assert_close(belief.belief, torch.full((1, 16, 32), 7.0), rel=1e-5)


def test_every_head_of_a_depth_mixture_is_the_member(depth_member):
    student = depth_network(GaussianMixtureHead, n_members=3)
    start_as_member(student, depth_member)
    mean = depth_member(IMAGES).loc
    for own in student(IMAGES).means:
        assert_close(own, mean, rel=1e-5, abs=1e-6)


def test_depth_student_and_member_share_no_memory(depth_member):
    student = depth_network(GaussianHead)
    start_as_member(student, depth_member)
    before = depth_member(IMAGES).loc.detach().clone()
    with torch.no_grad():
        for weight in student.parameters():
            weight.zero_()
    assert torch.equal(depth_member(IMAGES).loc, before)
