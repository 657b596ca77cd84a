"""Devices by name: what can be used here, and what is said of the others."""

import numpy as np
import pytest
import torch

from priornet import DistilledRegressor, GaussianRegressor
from priornet.estimators.prepared import chosen_device

X = np.random.default_rng(0).normal(size=(60, 2))


def test_auto_is_a_gpu_where_there_is_one(monkeypatch):
    for is_there, kind in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda found=is_there: found)
        assert chosen_device("auto").type == kind


def test_auto_learns_what_its_device_learns():
    kinds = ("auto", chosen_device("auto").type)
    options = {"hidden": (8,), "epochs": 3, "random_state": 0}
    one, other = (GaussianRegressor(**options, device=kind).fit(X, X[:, 0]) for kind in kinds)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("name", ["cuda:99", "meta"])
def test_a_device_that_is_not_here_is_refused_with_the_way_out(name):
    with pytest.raises(ValueError, match=rf"`device` is '{name}', .*: give \"cpu\", or \"auto\""):
        DistilledRegressor(device=name).fit(X, X[:, 0])


@pytest.mark.parametrize("name", ["gpu", "", 1.5, None])
def test_a_name_that_torch_does_not_know_is_refused(name):
    with pytest.raises(ValueError, match=r'`device` must be "auto", "cpu", "cuda" or "cuda:1"'):
        GaussianRegressor(device=name).fit(X, X[:, 0])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_named():
    with pytest.raises(ValueError, match=r"'cuda', which cannot be used here .*sees no GPU"):
        GaussianRegressor(device="cuda").fit(X, X[:, 0])
