"""Targets and predictions of another shape or kind: every loss says what is wrong."""

from __future__ import annotations

import math

import pytest
import torch

from _contract import every, settings
from _losses import WITH_TARGETS, assert_same, draw, ensemble, nw, product
from priornet import losses
from priornet.distributions import GaussianMixture

# -- targets --------------------------------------------------------------------------------------


@every(settings(WITH_TARGETS, (1, 2), ((4,),)))
def test_a_target_of_another_shape_is_refused(case, k_dim, batch):
    parameters, target = draw(case, k_dim, batch)
    y = target["y"]
    wrong = {
        "no event axis": y[:, 0],
        "one event axis too many": y.unsqueeze(-1),
        "an axis within the batch": y.unsqueeze(1),
        "an axis before the batch": y.unsqueeze(0),
        "no batch": y[0],
        "one too many": torch.cat([y, y[:1]]),
        "another K": torch.cat([y, y], -1),
        "column for a row of predictions": y[:, :1].expand(4, k_dim).unsqueeze(1),
    }
    for what, bad in wrong.items():
        with pytest.raises(ValueError, match=r"`y` must have shape \(4, \d\)") as caught:
            case.call(parameters, {"y": bad})
        assert f"got {tuple(bad.shape)}" in str(caught.value), what


@pytest.mark.parametrize("case", WITH_TARGETS, ids=lambda c: c.name)
def test_a_flat_target_is_told_how_to_become_a_column(case):
    parameters, target = draw(case, 1, (4,))
    with pytest.raises(ValueError, match=r"pass `y\.unsqueeze\(-1\)`"):
        case.call(parameters, {"y": target["y"][:, 0]})


@pytest.mark.parametrize("case", WITH_TARGETS, ids=lambda c: c.name)
def test_a_target_of_another_kind_is_refused(case):
    parameters, target = draw(case, 1, (4,))
    y = target["y"]
    for bad, kind, message in (
        (y.float(), TypeError, r"`y` is torch\.float32 but `?the prediction`? is torch\.float64"),
        (y.long(), TypeError, r"`y` is torch\.int64 but `?the prediction`? is torch\.float64"),
        (y.to("meta"), ValueError, rf"`y` is on meta but `?the prediction`? is on {y.device}"),
        (y.tolist(), TypeError, r"`y` must be a tensor; got list"),
        (None, (TypeError, ValueError), r"`y` (must be a tensor; got NoneType|is needed)"),
    ):
        with pytest.raises(kind, match=message):
            case.call(parameters, {"y": bad})


@pytest.mark.parametrize("missing", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("case", WITH_TARGETS, ids=lambda c: c.name)
def test_an_unmasked_missing_target_is_refused(case, missing, device):
    if device.type != "cpu":
        pytest.skip("values are looked at on the CPU only")
    parameters, target = draw(case, 1, (4,))
    target["y"][2] = missing
    message = r"`y` must be finite; 1 of 4 values are nan or inf.*Pass `mask`"
    with pytest.raises(ValueError, match=message):
        case.call(parameters, target)
    still_seen = torch.tensor([True, False, True, True])
    with pytest.raises(ValueError, match=message):
        case.call(parameters, target, mask=still_seen)


# -- the wrong kind of prediction -----------------------------------------------------------------


def test_gaussian_nll_of_a_belief_names_its_predictive():
    for belief in (nw(), product(), ensemble()):
        with pytest.raises(TypeError, match=r"`distribution`.*predictive\(\)"):
            losses.gaussian_nll(belief, torch.zeros(4, 2))


def test_gaussian_nll_takes_any_predictive():
    y = torch.zeros(4, 2)
    for predictive in (nw().predictive(), product().predictive(), ensemble().predictive()):
        assert_same(losses.gaussian_nll(predictive, y), -predictive.log_prob(y))
    assert isinstance(ensemble().predictive(), GaussianMixture)
