"""The shared network against its definition, written member by member."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from scipy import stats

from priornet.distributions import GaussianEnsemble, NormalWishart
from priornet.nn.shared import SharedNetwork, score_knots

N_MEMBERS, N_SEEING, K = 6, 4, 2


def inputs(n_rows=80, dtype=torch.float64):
    """Make numbers, a plain 0/1 column, and a column of ten labels."""
    generator = torch.Generator().manual_seed(1)
    numbers = torch.randn(n_rows, 3, generator=generator, dtype=torch.float64)
    flag = (torch.rand(n_rows, 1, generator=generator) > 0.5).double()
    labels = torch.eye(10, dtype=torch.float64)[torch.randint(10, (n_rows,), generator=generator)]
    return torch.cat([numbers, flag, labels], 1).to(dtype)


def sizes(**settings):
    x = inputs()
    knots = score_knots(x, [True] * 3 + [False] * 11)
    given: dict[str, Any] = {"n_inputs": 14 + K, "widths": (8, 7), "n_targets": K, "knots": knots}
    given |= {"n_members": N_MEMBERS, "witnessed": N_SEEING, "label_columns": ((4, 14),)}
    given |= {"n_waves": 3, "wave_width": 2} | settings
    return SharedNetwork(**given)


def built(network=None, dtype=torch.float64):
    """Build a network whose weights have left their first values."""
    stack = (network or sizes()).build([0], torch.zeros(1, dtype=dtype))
    with torch.no_grad():
        generator = torch.Generator().manual_seed(2)
        noise = torch.randn(stack.weights.shape, generator=generator, dtype=torch.float64)
        stack.weights.add_(0.1 * noise.to(dtype))
    return stack


def with_witness(x):
    generator = torch.Generator().manual_seed(3)
    drawn = torch.randn(len(x), K, generator=generator, dtype=torch.float64)
    return torch.cat([x, drawn.to(x)], 1)


def test_scores_are_normal_scores_that_go_on_linearly():
    column = inputs(2000)[:, :1].exp()
    network = sizes(n_inputs=1 + K, knots=score_knots(column, [True]), label_columns=())
    stack = built(network)
    ranks = stats.rankdata(column[:, 0].numpy()) - 0.5
    expected = torch.from_numpy(stats.norm.ppf(ranks / len(column)))
    found = stack.scores(column)[:, 0]
    inner = (expected.abs() < 2).nonzero()[:, 0]
    torch.testing.assert_close(found[inner], expected[inner], rtol=0, atol=0.06)
    ends = torch.stack([column.min(), column.max()]).unsqueeze(-1)
    away = torch.tensor([[-5.0], [7.0]], dtype=torch.float64)
    torch.testing.assert_close(stack.scores(ends + away), stack.scores(ends) + away)
    assert (stack.scores(column.sort(0).values).diff(dim=0) >= 0).all()


def test_a_constant_column_has_a_score():
    knots = score_knots(torch.full((5, 1), 3.0), [True])
    stack = built(sizes(n_inputs=1 + K, knots=knots, label_columns=()))
    found = stack.scores(torch.tensor([[3.0], [4.0], [1.0]], dtype=torch.float64))
    assert found[:, 0].tolist() == [0.0, 1.0, -2.0]


def member_by_member(stack, x):
    """Compute the outputs as the definition has it, without folding."""
    parts = {name: part[0] for name, part in stack.pieces().items()}
    numbers = torch.cat([stack.scores(x[:, :3]), x[:, 14:]], 1)
    angles = [2 * math.pi * numbers[:, [j]] * parts["frequencies"][j] for j in range(3 + K)]
    units = [
        (torch.cat([angle.sin(), angle.cos()], 1) @ weight + bias).clamp(min=0)
        for angle, weight, bias in zip(
            angles, parts["waves.weight"], parts["waves.bias"], strict=True
        )
    ]
    found = []
    for m in range(N_MEMBERS):
        sees = float(m < N_SEEING)
        own = [*units[:3], *(sees * unit for unit in units[3:])]
        hidden = torch.cat([*own, numbers[:, :3], sees * numbers[:, 3:]], 1)
        hidden = torch.cat([hidden, x[:, 4:14] @ parts["labels.0"], x[:, 3:4]], 1)
        for i in range(2):
            read = (hidden * parts[f"{i}.read"][m]) @ parts[f"{i}.weight"]
            hidden = (read * parts[f"{i}.scale"][m] + parts[f"{i}.bias"][m]).clamp(min=0)
        out = hidden @ parts["head.weight"][m] + parts["head.bias"][m]
        skip = sees * parts["witness"][m] * x[:, 14:]
        found.append(torch.cat([out[:, :K] + skip, out[:, K:]], 1))
    return torch.stack(found)


def test_outputs_are_those_of_the_definition():
    stack, x = built(), with_witness(inputs())
    torch.testing.assert_close(stack.raw(x.unsqueeze(0)), member_by_member(stack, x))


def test_frozen_members_answer_as_before():
    stack, x = built(), with_witness(inputs()).unsqueeze(0)
    expected = stack.raw(x)
    stack.freeze()
    assert stack.folded is not None
    torch.testing.assert_close(stack.raw(x), expected, rtol=0, atol=0)
    with torch.no_grad():
        stack.folded.zero_()
    assert (stack.raw(x)[N_SEEING:] == 0).all()


def test_single_precision_places_waves_far_outside_of_the_training_range():
    stacks = single, double = [built(dtype=dtype) for dtype in (torch.float32, torch.float64)]
    with torch.no_grad():
        double.weights.copy_(single.weights)
    x = with_witness(1e9 * inputs()).float()
    body = [
        stack.embed(x.to(stack.weights), {name: part[0] for name, part in stack.pieces().items()})
        for stack in stacks
    ]
    units = [own[:, : (3 + K) * 2].double() for own in body]
    assert units[1].std() > 0.1
    torch.testing.assert_close(*units, rtol=0, atol=1e-4)


@pytest.mark.parametrize("witnessed", [0, N_SEEING])
def test_a_step_has_the_gradient_of_autograd(witnessed):
    network = sizes(witnessed=witnessed, n_inputs=14 + (K if witnessed else 0))
    stack = built(network)
    x = (with_witness(inputs()) if witnessed else inputs()).unsqueeze(0)
    out = stack.raw(x)
    gradient = torch.randn_like(out)
    out.backward(gradient)
    assert stack.weights.grad is not None
    expected = stack.weights.grad.clone()
    torch.testing.assert_close(stack.start_step(x), out.detach())
    stack.finish_step(gradient.clone())
    torch.testing.assert_close(stack.weights.grad, expected)


def test_some_members_never_see_the_witness():
    stack, x = built(), with_witness(inputs()).requires_grad_()
    out = stack.raw(x.unsqueeze(0))
    seen = [torch.autograd.grad(o.sum(), x, retain_graph=True)[0][:, 14:].abs().sum() for o in out]
    assert [bool(one > 0) for one in seen] == [True] * N_SEEING + [False] * 2


@pytest.mark.parametrize("chosen", [[0, 1, 4], [4, 5], [0, 2]])
def test_chosen_members_answer_as_before(chosen):
    stack, x = built(), with_witness(inputs()).unsqueeze(0)
    new = stack.select_members(chosen)
    known = x if min(chosen) < N_SEEING else x[..., :14]
    torch.testing.assert_close(new.raw(known), stack.raw(x)[chosen])
    assert new.network.n_members == len(chosen)


def test_the_answer_is_the_normal_wishart_fitted_to_the_members():
    stack, x = built(), with_witness(inputs()).unsqueeze(0)
    with torch.no_grad():
        stack.pieces()["head.weight"][..., K:].mul_(20)  # members that differ widely
    members = stack.head.distribution(stack.raw(x))
    ensemble = GaussianEnsemble(members.loc, members.covariance_matrix)
    expected, found = NormalWishart.fit(ensemble), stack.answer(x)
    assert found.batch_shape == (1, 80)
    torch.testing.assert_close(found.loc[0], expected.loc)
    torch.testing.assert_close(found.belief[0], expected.belief)
    torch.testing.assert_close(found.excess[0], expected.excess.clamp(min=1.0))
    assert (expected.excess < 1).any()


def test_both_precisions_start_from_the_same_weights():
    single, double = (sizes().build([5], torch.zeros(1, dtype=t)) for t in (torch.float32, None))
    torch.testing.assert_close(single.weights.float(), double.weights.float(), rtol=0, atol=0)
    other = sizes().build([6], torch.zeros(1))
    assert not torch.equal(other.weights, single.weights)


def test_members_disagree_before_training():
    stack = sizes().build([0], torch.zeros(1, dtype=torch.float64))
    means = stack.raw(with_witness(inputs()).unsqueeze(0))[..., :K]
    assert means.std(0).mean() > 0.3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"widths": ()}, "cannot have these sizes"),
        ({"n_members": 1}, "cannot have these sizes"),
        ({"witnessed": 7}, "7 of 6 members"),
        ({"n_inputs": 14}, "14 lists of knots for 14 inputs"),
        ({"knots": (((1.0, 0.0), (1.0, 1.0)),), "n_inputs": 1 + K}, "knots must rise"),
        ({"label_columns": ((4, 9), (8, 14))}, "must not overlap"),
        ({"label_columns": ((4, 15),)}, "must not overlap"),
    ],
)
def test_impossible_sizes_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(sizes(), **wrong)
