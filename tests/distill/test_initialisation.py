"""Students that start as members predict what those members predict."""

import pytest
import torch

from _asserts import assert_close
from priornet.distill import start_as_average, start_as_member, start_as_members
from priornet.nn import (
    DenseDepth,
    GaussianHead,
    GaussianMixtureHead,
    NormalWishartHead,
    StackedMLP,
)
from priornet.nn.ramps import RampedMLP


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
