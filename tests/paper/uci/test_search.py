"""The protocol: nothing leaks, folds do not disturb each other, choices use unseen rows."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from priornet.nn import GaussianHead, NormalWishartHead, stack_belief
from priornet.nn.stacked import StackedMLP
from priornet_paper.uci import search
from priornet_paper.uci.config import METHODS, STUDENTS
from priornet_paper.uci.folds import FoldRows, Task
from priornet_paper.uci.search import detects_best, validation_nll
from priornet_paper.uci.train import Trainers


@pytest.fixture
def outcomes(stack_of, smoke):
    return search.solve(stack_of((0, 1)), smoke, METHODS)


def test_every_method_gives_networks_for_every_fold(outcomes, smoke):
    assert set(outcomes) == set(METHODS)
    for method, outcome in outcomes.items():
        n_networks = smoke.n_members if method == "ENSM" else 1
        assert [stack.n_networks for stack in outcome.networks] == [n_networks] * 2
        assert all(chosen in smoke.points(method) for chosen in outcome.chosen)
        assert outcome.seconds > 0


def test_single_is_a_member_where_both_choose_the_same(outcomes):
    single, ensemble = outcomes["Single"], outcomes["ENSM"]
    same = [place for place in range(2) if single.chosen[place] == ensemble.chosen[place]]
    for place in same:
        one, all_of = single.networks[place].weights, ensemble.networks[place].weights
        torch.testing.assert_close(one[0], all_of[0])
    assert same


def test_beliefs_are_of_the_methods_kind(outcomes):
    kinds = {
        method: type(stack_belief(outcome.networks[0], torch.zeros(3, 4))).__name__
        for method, outcome in outcomes.items()
    }
    assert kinds == {
        "Single": "Gaussian",
        "ENSM": "GaussianEnsemble",
        "EnD2": "NormalWishart",
        "NWPN": "NormalWishart",
        "DER": "NormalWishart",
        "EnD": "Gaussian",
        "MD-EnD": "GaussianEnsemble",
    }


@pytest.mark.parametrize("method", METHODS)
def test_test_targets_change_no_choice_and_no_weight(stack_of, smoke, table, method):
    plain = stack_of((0,))
    targets = table[1].copy()
    test = plain.folds[0].test
    targets[test] = np.random.default_rng(1).permutation(targets[test]) + 1000
    first = search.solve(plain, smoke, [method])[method]
    second = search.solve(stack_of((0,), targets), smoke, [method])[method]
    assert first.chosen == second.chosen
    assert torch.equal(first.networks[0].weights, second.networks[0].weights)


@pytest.mark.parametrize("method", METHODS)
def test_validation_targets_do_matter(stack_of, smoke, table, method):
    """The test above would pass if nothing were read; the training rows are."""
    plain = stack_of((0,))
    targets = table[1].copy()
    targets[plain.folds[0].validation] += np.random.default_rng(1).normal(0, 30, 22)
    first = search.solve(plain, smoke, [method])[method]
    second = search.solve(stack_of((0,), targets), smoke, [method])[method]
    assert not torch.equal(first.networks[0].weights, second.networks[0].weights)


@pytest.mark.parametrize("method", METHODS)
def test_a_fold_alone_is_the_fold_in_company(stack_of, smoke, method):
    """Up to the rounding of float32: the same rows, seeds, noise and teachers.

    A student that starts as a member has gradients near zero, and Adam makes steps of their
    rounding: weights may differ, by little beside the difference of two folds.
    """
    alone = search.solve(stack_of((1,)), smoke, [method])[method]
    among = search.solve(stack_of((0, 1)), smoke, [method])[method]
    assert alone.chosen[0] == among.chosen[1]
    one, other, stranger = alone.networks[0], among.networks[1], among.networks[0]
    gap = (one.weights - other.weights).abs().mean()
    assert gap < 0.05 * (one.weights - stranger.weights).abs().mean()


def test_teachers_of_a_search_have_learnt_the_inner_rows_alone(stack_of, smoke):
    """What a search asks must not have seen the validation rows either."""
    stack = stack_of((0, 1))
    found, teachers = search.solve_gaussians(stack, smoke, ("ENSM", "EnD2"))
    chosen = found["ENSM"].chosen
    tasks = [Task(p, chosen[p], m) for p in range(2) for m in range(smoke.n_members)]
    trainers = Trainers(FoldRows(stack, smoke), lambda: None)
    inner, train = (trainers.gaussian(tasks, part).weights.detach() for part in ("inner", "train"))
    assert not torch.equal(inner, train)
    assert np.array_equal(teachers["inner"], inner)
    assert np.array_equal(teachers["train"], train)


def test_settings_are_judged_on_the_validation_rows(stack_of, smoke, monkeypatch):
    judged = []
    plain = search.validation_nll

    def spied(networks, inputs, targets, n_each):
        judged.append((inputs, targets))
        return plain(networks, inputs, targets, n_each)

    monkeypatch.setattr(search, "validation_nll", spied)
    stack = stack_of((0, 1))
    search.solve(stack, smoke, ["DER"])
    for place, (inputs, targets) in enumerate(judged):
        rows = stack.rows(place, stack.folds[place].validation)
        assert torch.equal(inputs, stack.inputs[rows])
        assert torch.equal(targets, stack.targets[rows])
    assert len(judged) == 2


def test_the_setting_of_lowest_validation_nll_is_chosen(stack_of, smoke):
    grids = {**smoke.grids, "Single": {"learning_rate": (0.0, 1e-2), "weight_decay": (0.0,)}}
    config = replace(smoke, epochs=40, grids=grids)
    chosen = search.solve(stack_of((0, 1)), config, ["Single"])["Single"].chosen
    assert [point["learning_rate"] for point in chosen] == [1e-2, 1e-2]


def test_among_equals_the_one_that_tells_generated_rows_is_chosen(stack_of, smoke):
    """The NLL hardly sees the weight outside; within its noise more weight wins."""
    nwpn = {name: values[:1] for name, values in smoke.grids["NWPN"].items()}
    grids = {**smoke.grids, "NWPN": {**nwpn, "gamma": (0.0, 1.0)}}
    config = replace(smoke, epochs=40, grids=grids)

    def weights(selection):
        chosen = search.solve(stack_of((0, 1)), replace(config, selection=selection), ["NWPN"])
        return [point["gamma"] for point in chosen["NWPN"].chosen]

    assert weights("one-se") == [1.0, 1.0]
    assert weights("nll") != [1.0, 1.0]


def test_an_ensemble_tried_as_one_network_chooses_as_the_single_does(stack_of, smoke):
    tried = search.solve(stack_of((0, 1)), replace(smoke, n_tried=1), ["Single", "ENSM"])
    assert tried["Single"].chosen == tried["ENSM"].chosen


def test_epochs_are_counted(stack_of, smoke):
    for methods in (["Single"], ["ENSM", "DER"], ["EnD2"], list(METHODS)):
        ticks: list[int] = []
        search.solve(stack_of((0,)), smoke, methods, lambda ticks=ticks: ticks.append(1))
        assert len(ticks) == search.n_epochs(smoke, methods)


def test_students_learn_the_same_from_teachers_that_are_sent(stack_of, smoke):
    wanted = ["Single", "ENSM", *STUDENTS]
    stack = stack_of((0, 1))
    first, teachers = search.solve_gaussians(stack, smoke, wanted)
    assert set(first) == {"Single", "ENSM"}
    at_once = search.solve(stack, smoke, wanted)
    for method in STUDENTS:
        sent = search.solve(stack, smoke, [method], teachers=teachers)[method]
        assert sent.chosen == at_once[method].chosen
        for one, other in zip(sent.networks, at_once[method].networks, strict=True):
            assert torch.equal(one.weights, other.weights)


X = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
Y = X[:, :1]


def test_networks_of_a_setting_are_a_mixture():
    stack = StackedMLP(2, (8,), GaussianHead(8, init_gain=1.0), range(6))
    found = validation_nll(stack, X, Y, 3)
    alone = [-g.log_prob(Y) for g in (stack.select([i]).together(X) for i in range(6))]
    for setting, members in enumerate((alone[:3], alone[3:])):
        density = torch.stack([torch.exp(-nll[0]) for nll in members]).mean(0)
        torch.testing.assert_close(found[setting], -torch.log(density).detach())


@pytest.mark.parametrize("gap", [0.0, 5.0])
def test_only_those_as_good_as_the_best_are_asked_about_strange_rows(gap):
    """The second network doubts strange rows; it is taken unless its NLL is clearly worse."""
    stack = StackedMLP(2, (8,), NormalWishartHead(8), [0, 0])
    with torch.no_grad():
        stack.pieces()["1.weight"][1, :, 2] = -0.2  # belief falls where features grow
    nll = torch.randn(1, 30, generator=torch.Generator().manual_seed(1)).repeat(2, 1)
    nll[1] += gap
    assert detects_best(stack, nll, X, 10 * X, 1) == (1 if gap == 0 else 0)


@pytest.mark.parametrize(("gap", "is_as_good"), [(0.257, True), (0.259, False)])
def test_as_good_is_within_one_standard_error_of_the_mean(gap, is_as_good):
    """By hand: half of 16 gaps are g - 1, half g + 1.

    Their deviation is sqrt(16 / 15), and the standard error of their mean sqrt(1 / 15) = 0.2582.
    """
    stack = StackedMLP(2, (8,), NormalWishartHead(8), [0, 0])
    with torch.no_grad():
        stack.pieces()["1.weight"][1, :, 2] = -0.2  # doubts strange rows, as above
    nll = torch.zeros(2, 16, dtype=torch.float64)
    nll[1] = gap + torch.tensor([-1.0, 1.0]).repeat(8)
    assert detects_best(stack, nll, X, 10 * X, 1) == int(is_as_good)
