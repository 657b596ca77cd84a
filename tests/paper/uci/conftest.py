"""A small table with known structure, and the real ones where they are."""

import numpy as np
import pytest
import torch

from priornet_paper.uci.config import PRESETS
from priornet_paper.uci.folds import FoldStack, k_folds, make_fold

N_ROWS = 120


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    inputs = 5 + 3 * rng.standard_normal((N_ROWS, 4))
    inputs[:, 3] = 7.0  # a column that says nothing
    targets = 100 + 10 * np.sin(inputs[:, 0]) + rng.standard_normal(N_ROWS)
    return inputs, targets


@pytest.fixture
def smoke():
    return PRESETS["smoke"]


@pytest.fixture
def stack_of(table):
    """Folds of the small table, by number; with other targets if given."""

    def make(numbers, targets=None):
        inputs, own = table
        tests = k_folds(N_ROWS, 10, seed=0)
        folds = [make_fold(i, tests[i], N_ROWS, 0.2, 0) for i in numbers]
        return FoldStack.of(inputs, own if targets is None else targets, folds, "cpu")

    return make
