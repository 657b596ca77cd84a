"""A norm in a convolution, whatever the convolution's shape."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import nn

from _asserts import assert_close
from _beliefs import random_normal
from priornet.nn.dense_depth.folding import fold_norm


@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 3}, {"groups": 4}],
    ids=["plain", "strides over a margin", "groups"],
)
def test_a_folded_pair_does_what_both_did(options):
    conv: Any = nn.Conv2d(4, 8, 3, bias=False, **options).double()
    norm = nn.BatchNorm2d(8, eps=0.03).double()
    with torch.no_grad():
        conv.weight.copy_(random_normal(tuple(conv.weight.shape)))
        for seed, part in enumerate((norm.weight, norm.bias, norm.running_mean), start=1):
            assert part is not None
            part.copy_(random_normal((8,), seed=seed))  # weights of both signs
        assert norm.running_var is not None
        norm.running_var.copy_(random_normal((8,), seed=4).exp())
    pair = nn.Sequential(conv, norm).eval()
    folded = deepcopy(pair)
    fold_norm(folded, "0", "1")
    assert isinstance(folded[1], nn.Identity)
    x = random_normal((2, 4, 9, 7), seed=5)
    assert_close(folded(x), pair(x), rel=1e-12, abs=1e-12)
