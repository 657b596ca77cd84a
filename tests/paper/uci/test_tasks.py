"""Networks of a stack: each fold finds its own, and seeds differ where they should."""

import torch

from priornet.nn.architecture import Network
from priornet_paper.uci.tasks import members_of, seed_of


def test_an_ensemble_is_its_folds_own():
    stack = Network(4, (3,), 1).build([*range(6)], torch.zeros(1, 4))
    assert torch.equal(members_of(stack, 1, 2).weights, stack.weights[2:4])


def test_seeds_differ_by_fold_and_member_and_by_nothing_else(stack_of, smoke):
    folds = [*stack_of((0, 1, 2)).folds, *stack_of((2,)).folds]
    seeds = [[seed_of(smoke, fold, member) for member in range(5)] for fold in folds]
    assert seeds[2] == seeds[3]  # wherever in a stack the fold is
    assert len({seed for row in seeds for seed in row}) == 15
