"""Folds, and the rows of their tasks: own rows, generated inputs, answers of own teachers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from priornet.distill.targets import targets_for
from priornet.nn import stack_belief
from priornet.nn.architecture import Network
from priornet_paper.uci import folds as module
from priornet_paper.uci.folds import (
    FoldRows,
    FoldStack,
    Task,
    k_folds,
    make_fold,
    members_of,
    seed_of,
)


def test_every_row_is_a_test_row_once():
    folds = k_folds(103, 10, seed=3)
    assert_array_equal(np.sort(np.concatenate(folds)), np.arange(103))
    assert {len(fold) for fold in folds} == {10, 11}


def test_folds_follow_the_seed():
    assert_array_equal(k_folds(50, 5, 1)[0], k_folds(50, 5, 1)[0])
    assert not np.array_equal(k_folds(50, 5, 1)[0], k_folds(50, 5, 2)[0])


def test_parts_of_a_fold_are_strangers():
    test = k_folds(200, 10, 0)[4]
    fold = make_fold(4, test, 200, 0.2, seed=0)
    assert len(fold.validation) == 36
    parts = np.concatenate([fold.test, fold.inner, fold.validation])
    assert_array_equal(np.sort(parts), np.arange(200))
    assert_array_equal(np.sort(np.concatenate([fold.inner, fold.validation])), fold.train)


def test_each_fold_has_units_of_its_own(table):
    inputs, targets = table
    folds = [make_fold(i, test, 120, 0.2) for i, test in enumerate(k_folds(120, 10, 0))][:3]
    stack = FoldStack.of(inputs, targets, folds, "cpu")
    assert stack.inputs.shape == (360, 4)
    for place, fold in enumerate(folds):
        rows = stack.rows(place, fold.train)
        assert_allclose(stack.inputs[rows][:, :3].mean(0), 0, atol=1e-6)
        assert_allclose(stack.inputs[rows][:, :3].std(0, correction=0), 1, rtol=1e-6)
        assert_allclose(stack.inputs[rows][:, 3], 0, atol=1e-6)
        back = stack.shift[place] + stack.scale[place] * stack.targets[:, 0]
        assert_allclose(back[stack.rows(place, fold.test)], targets[fold.test], rtol=1e-5)


def test_units_do_not_know_the_test_rows(table):
    inputs, targets = table
    fold = make_fold(0, k_folds(120, 10, 0)[0], 120)
    changed = inputs.copy()
    changed[fold.test] *= 100
    plain, other = (FoldStack.of(x, targets, [fold], "cpu") for x in (inputs, changed))
    rows = plain.rows(0, fold.train)
    assert_array_equal(plain.inputs[rows], other.inputs[rows])
    assert plain.scale == pytest.approx([targets[fold.train].std()])


def test_an_ensemble_is_its_folds_own():
    stack = Network(4, (3,), 1).build([*range(6)], torch.zeros(1, 4))
    assert torch.equal(members_of(stack, 1, 2).weights, stack.weights[2:4])


def test_seeds_differ_by_fold_and_member_and_by_nothing_else(stack_of, smoke):
    folds = [*stack_of((0, 1, 2)).folds, *stack_of((2,)).folds]
    seeds = [[seed_of(smoke, fold, member) for member in range(5)] for fold in folds]
    assert seeds[2] == seeds[3]  # wherever in a stack the fold is
    assert len({seed for row in seeds for seed in row}) == 15


N_ROWS = 120


@pytest.fixture
def teachers(smoke):
    """Two folds' ensembles that differ."""
    seeds = [*range(2 * smoke.n_members)]
    stack = Network(4, (smoke.hidden,), 1).build(seeds, torch.zeros(1, 4))
    with torch.no_grad():
        torch.nn.init.normal_(stack.weights, std=0.3, generator=torch.Generator().manual_seed(0))
    return stack


@pytest.mark.parametrize("part", ["inner", "train"])
def test_a_task_has_the_rows_of_its_fold(stack_of, smoke, part):
    stack = stack_of((3, 5))
    prepared = FoldRows(stack, smoke).plain([Task(1, {}), Task(0, {}), Task(1, {})], part)
    for place, found in zip((1, 0, 1), prepared.rows, strict=True):
        assert (found - place * N_ROWS).tolist() == getattr(stack.folds[place], part).tolist()


def test_generated_inputs_are_marked_and_are_the_folds_own(stack_of, smoke):
    stack = stack_of((0, 1))
    rows = FoldRows(stack, smoke)
    data, own, extra, _ = rows.with_outside([Task(1, {}), Task(0, {})], "train")
    assert extra is not None
    for place, known, generated in zip((1, 0), own, extra, strict=True):
        assert torch.equal(data.inputs[known], stack.inputs[known])
        assert torch.equal(data.targets[known, :1], stack.targets[known])
        assert data.targets[known, 1].eq(1).all()
        assert torch.equal(data.inputs[generated], rows.outside(place, "train"))
        assert data.targets[generated, 1].eq(0).all()


def test_inputs_generated_for_a_search_have_not_seen_the_validation_rows(stack_of, smoke):
    stack = stack_of((0,))
    held = stack.rows(0, stack.folds[0].validation)
    before = FoldRows(stack, smoke)
    inside, whole = before.outside(0, "inner"), before.outside(0, "train")
    stack.inputs[held] *= 3
    after = FoldRows(stack, smoke)
    assert torch.equal(after.outside(0, "inner"), inside)
    assert not torch.equal(after.outside(0, "train"), whole)


def test_tasks_of_one_fold_and_noise_share_what_their_teachers_said(stack_of, smoke, teachers):
    targets = targets_for("md-end", 1, smoke.n_members, proxy=False, annealed=False)
    tasks = [Task(p, {"noise": noise}) for p, noise in ((0, 0.1), (1, 0.1), (0, 0.1), (0, 0.0))]
    rows = FoldRows(stack_of((0, 1)), smoke)
    data, asked, _, epoch_rows = rows.asked(targets, tasks, "train", teachers)
    assert epoch_rows == [108] * 4
    assert torch.equal(asked[0], asked[2])
    assert [len(numbers) for numbers in asked] == [108 * smoke.epochs] * 3 + [108]
    assert len(data.inputs) == 108 * (2 * smoke.epochs + 1)
    for task, numbers in zip(tasks, asked, strict=True):
        teacher = members_of(teachers, task.place, smoke.n_members)
        told = targets.pack(stack_belief(teacher, data.inputs[numbers])).float()
        torch.testing.assert_close(data.targets[numbers], told)


def test_a_teacher_is_asked_so_often_at_most(stack_of, smoke, teachers):
    targets = targets_for("end", 1, smoke.n_members, proxy=False, annealed=False)
    rows = FoldRows(stack_of((0, 1)), replace(smoke, epochs=50, n_asked=400))
    asked = rows.asked(targets, [Task(0, {"noise": 0.1})], "train", teachers)
    assert len(asked.data.inputs) == 3 * 108


def test_noise_has_the_strength_it_is_said_to_have(stack_of, smoke, teachers):
    targets = targets_for("end", 1, smoke.n_members, proxy=False, annealed=False)
    stack = stack_of((0, 1))
    rows = FoldRows(stack, replace(smoke, epochs=50))
    data = rows.asked(targets, [Task(0, {"noise": 0.2})], "train", teachers).data
    copies = len(data.inputs) // 108
    noise = data.inputs - stack.inputs[rows.of(0, "train")].repeat(copies, 1)
    n = noise.numel()
    assert abs(noise.std().item() / 0.2 - 1) < 5 / (2 * n) ** 0.5  # five standard errors


def test_teachers_answer_on_a_gpu_as_they_do_here(smoke, teachers):
    """Rows that stay on the device take another way."""
    x = 3 * torch.randn(500, 4, generator=torch.Generator().manual_seed(0))
    teacher = members_of(teachers, 0, smoke.n_members)
    here, there = stack_belief(teacher, x), module._belief_on_device(teacher, x)
    assert there.means.dtype == torch.float64
    torch.testing.assert_close(there.means, here.means, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(there.covariances, here.covariances, rtol=1e-5, atol=1e-6)


def test_noise_does_not_depend_on_the_company_of_a_fold(stack_of, smoke, teachers):
    targets = targets_for("endd", 1, smoke.n_members, proxy=False, annealed=False)
    tasks, found = [Task(1, {"noise": 0.1}), Task(0, {"noise": 0.1})], []
    for numbers, task in (((0, 1), tasks[0]), ((1,), tasks[1])):
        rows = FoldRows(stack_of(numbers), smoke)
        found.append(rows.asked(targets, [task], "train", teachers).data.inputs)
    assert torch.equal(*found)
