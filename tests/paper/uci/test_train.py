"""Trainers: a network per task, by its own settings, its own fold and its own teachers."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from priornet import losses
from priornet.distributions import NormalWishart
from priornet.methods import STUDENTS
from priornet.nn import GaussianHead, NormalWishartHead, stack_belief
from priornet.nn.stacked import StackedMLP
from priornet.training import Batch
from priornet_paper.uci import train
from priornet_paper.uci.config import METHODS
from priornet_paper.uci.folds import FoldRows, Task, members_of
from priornet_paper.uci.train import Trainers, detects_best, validation_nll

STILL = {"learning_rate": 0.0, "weight_decay": 0.0, "noise": 0.1, "temperature": 1.0}


@pytest.fixture
def trainers(stack_of, smoke):
    return Trainers(FoldRows(stack_of((0, 1)), smoke), lambda: None)


@pytest.fixture
def teachers(trainers, smoke):
    """Trained ones: before, they are what a student of the same seed is by itself."""
    setting = {**STILL, "learning_rate": 1e-2}
    tasks = [Task(place, setting, m) for place in range(2) for m in range(smoke.n_members)]
    return {"inner": trainers.gaussian(tasks, "inner")}


@pytest.mark.parametrize("method", ["NWPN", "DER", *STUDENTS])
def test_a_network_has_the_settings_of_its_task(trainers, teachers, smoke, method):
    points = smoke.points(method)
    tasks = [Task(place, point) for place in range(2) for point in points]
    networks = trainers.of(method, teachers)([*tasks, tasks[0]], "inner").weights
    assert len(networks) == len(tasks) + 1
    torch.testing.assert_close(networks[0], networks[-1])
    assert len(networks[:-1].unique(dim=0)) == len(tasks)


@pytest.mark.parametrize("method", STUDENTS)
def test_students_start_as_the_first_member_of_their_own_fold(trainers, teachers, smoke, method):
    """At a rate of zero they stay there: the hidden layer is the member's."""
    students = trainers.of(method, teachers)([Task(1, STILL), Task(0, STILL)], "inner")
    for student, place in ((0, 1), (1, 0)):
        member = members_of(teachers["inner"], place, smoke.n_members).select([0]).pieces()
        found = students.select([student]).pieces()
        same = [name for name in found if found[name].shape == member[name].shape]
        assert same
        assert all(torch.equal(found[name], member[name]) for name in same)


def test_students_may_start_from_weights_of_their_own(stack_of, smoke, teachers):
    config = replace(smoke, student_start="random")
    own = Trainers(FoldRows(stack_of((0, 1)), config), lambda: None)
    students = own.of("EnD", teachers)([Task(0, STILL)], "inner").weights
    assert not torch.equal(students, members_of(teachers["inner"], 0, 1).weights)


def test_every_epoch_ticks(stack_of, smoke):
    ticks: list[int] = []
    rows = FoldRows(stack_of((0,)), smoke)
    Trainers(rows, lambda: ticks.append(1)).gaussian([Task(0, STILL), Task(0, STILL, 1)], "train")
    assert len(ticks) == smoke.epochs


@pytest.mark.parametrize("epochs", [1, 2])
def test_the_rate_falls_after_the_first_step(stack_of, smoke, epochs):
    task = Task(0, {**STILL, "learning_rate": 1e-2})

    def trained(schedule):
        config = replace(smoke, schedule=schedule, epochs=epochs, batch_size=200)  # a step each
        return Trainers(FoldRows(stack_of((0,)), config), lambda: None).gaussian([task], "train")

    falls, stays = trained("cosine").weights, trained("constant").weights
    assert torch.equal(falls, stays) == (epochs == 1)


def test_the_temperature_is_held_then_falls_to_one(stack_of, smoke, teachers, monkeypatch):
    """By hand, for ten epochs: T for 20 %, a straight line to 1 over 60 %, then 1."""
    seen: list[torch.Tensor] = []
    own = losses.endd

    def spied(nw, teacher, temperature, tempering):
        seen.append(torch.as_tensor(temperature).expand(2, 1).flatten())
        return own(nw, teacher, temperature, tempering)

    monkeypatch.setattr(losses, "endd", spied)
    config = replace(smoke, epochs=10, batch_size=200)  # a step each
    tasks = [Task(0, {**STILL, "temperature": start}) for start in (10.0, 4.0)]
    trainers = Trainers(FoldRows(stack_of((0,)), config), lambda: None)
    trainers.of("EnD2", teachers)(tasks, "inner")
    from_ten = [10, 10, 10, 8.5, 7, 5.5, 4, 2.5, 1, 1]
    from_four = [4, 4, 4, 3.5, 3, 2.5, 2, 1.5, 1, 1]
    torch.testing.assert_close(torch.stack(seen).T, torch.tensor([from_ten, from_four]))


def test_rows_outside_count_gamma_times(trainers, monkeypatch):
    """By hand: over beta; inside as Eq. (11) has it, outside the divergence from the prior."""
    learnt = []
    monkeypatch.setattr(train, "fit", lambda stack, loss, *_, **__: learnt.append(loss))
    setting = {**STILL, "beta": 100.0, "prior_belief": 0.1}
    tasks = [Task(0, {**setting, "gamma": gamma}) for gamma in (0.5, 3.0)]
    trainers.of("NWPN", {})(tasks, "inner")
    (loss,) = learnt
    y_and_mark = torch.tensor([[2.0, 1.0], [0.0, 0.0]]).expand(2, 2, 2)  # rows inside and outside
    batch = Batch(torch.empty(0), y_and_mark, torch.ones(2, 2), None)
    nw = NormalWishart.from_excess(
        torch.ones(2, 2, 1), torch.ones(2, 2, 1, 1), torch.tensor(4.0), torch.tensor(3.0)
    )
    prior = trainers._priors(tasks, "inner")
    inside = losses.reverse_kl(nw, torch.full((2, 2, 1), 2.0), prior, 100.0)[:, 0] / 100
    outside = losses.reverse_kl(nw, None, prior, 0.0)[:, 1] / 100 * torch.tensor([0.5, 3.0])
    torch.testing.assert_close(loss(nw, batch, 0.5), torch.stack([inside, outside], 1))


@pytest.fixture
def outcomes(stack_of, smoke):
    return train.solve(stack_of((0, 1)), smoke, METHODS)


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
    first = train.solve(plain, smoke, [method])[method]
    second = train.solve(stack_of((0,), targets), smoke, [method])[method]
    assert first.chosen == second.chosen
    assert torch.equal(first.networks[0].weights, second.networks[0].weights)


@pytest.mark.parametrize("method", METHODS)
def test_validation_targets_do_matter(stack_of, smoke, table, method):
    """The test above would pass if nothing were read; the training rows are."""
    plain = stack_of((0,))
    targets = table[1].copy()
    targets[plain.folds[0].validation] += np.random.default_rng(1).normal(0, 30, 22)
    first = train.solve(plain, smoke, [method])[method]
    second = train.solve(stack_of((0,), targets), smoke, [method])[method]
    assert not torch.equal(first.networks[0].weights, second.networks[0].weights)


@pytest.mark.parametrize("method", METHODS)
def test_a_fold_alone_is_the_fold_in_company(stack_of, smoke, method):
    """Up to the rounding of float32: the same rows, seeds, noise and teachers.

    A student that starts as a member has gradients near zero, and Adam makes steps of their
    rounding: weights may differ, by little beside the difference of two folds.
    """
    alone = train.solve(stack_of((1,)), smoke, [method])[method]
    among = train.solve(stack_of((0, 1)), smoke, [method])[method]
    assert alone.chosen[0] == among.chosen[1]
    one, other, stranger = alone.networks[0], among.networks[1], among.networks[0]
    gap = (one.weights - other.weights).abs().mean()
    assert gap < 0.05 * (one.weights - stranger.weights).abs().mean()


def test_teachers_of_a_search_have_learnt_the_inner_rows_alone(stack_of, smoke):
    """The teachers of a search must not have seen the validation rows either."""
    stack = stack_of((0, 1))
    found, teachers = train.solve_gaussians(stack, smoke, ("ENSM", "EnD2"))
    chosen = found["ENSM"].chosen
    tasks = [Task(p, chosen[p], m) for p in range(2) for m in range(smoke.n_members)]
    trainers = Trainers(FoldRows(stack, smoke), lambda: None)
    inner, plain = (trainers.gaussian(tasks, part).weights.detach() for part in ("inner", "train"))
    assert not torch.equal(inner, plain)
    assert np.array_equal(teachers["inner"], inner)
    assert np.array_equal(teachers["train"], plain)


def test_settings_are_judged_on_the_validation_rows(stack_of, smoke, monkeypatch):
    judged = []
    plain = train.validation_nll

    def spied(networks, inputs, targets, n_each):
        judged.append((inputs, targets))
        return plain(networks, inputs, targets, n_each)

    monkeypatch.setattr(train, "validation_nll", spied)
    stack = stack_of((0, 1))
    train.solve(stack, smoke, ["DER"])
    for place, (inputs, targets) in enumerate(judged):
        rows = stack.rows(place, stack.folds[place].validation)
        assert torch.equal(inputs, stack.inputs[rows])
        assert torch.equal(targets, stack.targets[rows])
    assert len(judged) == 2


def test_the_setting_of_lowest_validation_nll_is_chosen(stack_of, smoke):
    grids = {**smoke.grids, "Single": {"learning_rate": (0.0, 1e-2), "weight_decay": (0.0,)}}
    config = replace(smoke, epochs=40, grids=grids)
    chosen = train.solve(stack_of((0, 1)), config, ["Single"])["Single"].chosen
    assert [point["learning_rate"] for point in chosen] == [1e-2, 1e-2]


def test_among_equals_the_one_that_tells_generated_rows_is_chosen(stack_of, smoke):
    """The NLL hardly sees the weight outside; within its noise more weight wins."""
    nwpn = {name: values[:1] for name, values in smoke.grids["NWPN"].items()}
    grids = {**smoke.grids, "NWPN": {**nwpn, "gamma": (0.0, 1.0)}}
    config = replace(smoke, epochs=40, grids=grids)

    def weights(selection):
        chosen = train.solve(stack_of((0, 1)), replace(config, selection=selection), ["NWPN"])
        return [point["gamma"] for point in chosen["NWPN"].chosen]

    assert weights("one-se") == [1.0, 1.0]
    assert weights("nll") != [1.0, 1.0]


def test_an_ensemble_tried_as_one_network_chooses_as_the_single_does(stack_of, smoke):
    tried = train.solve(stack_of((0, 1)), replace(smoke, n_tried=1), ["Single", "ENSM"])
    assert tried["Single"].chosen == tried["ENSM"].chosen


def test_epochs_are_counted(stack_of, smoke):
    for methods in (["Single"], ["ENSM", "DER"], ["EnD2"], list(METHODS)):
        ticks: list[int] = []
        train.solve(stack_of((0,)), smoke, methods, lambda ticks=ticks: ticks.append(1))
        assert len(ticks) == train.n_epochs(smoke, methods)


def test_students_learn_the_same_from_teachers_that_are_sent(stack_of, smoke):
    wanted = ["Single", "ENSM", *STUDENTS]
    stack = stack_of((0, 1))
    first, teachers = train.solve_gaussians(stack, smoke, wanted)
    assert set(first) == {"Single", "ENSM"}
    at_once = train.solve(stack, smoke, wanted)
    for method in STUDENTS:
        sent = train.solve(stack, smoke, [method], teachers=teachers)[method]
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
def test_only_settings_as_good_as_the_best_are_compared_on_ood_rows(gap):
    """The second network doubts OOD rows; it is taken unless its NLL is clearly worse."""
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
        stack.pieces()["1.weight"][1, :, 2] = -0.2  # doubts out-of-domain rows, as above
    nll = torch.zeros(2, 16, dtype=torch.float64)
    nll[1] = gap + torch.tensor([-1.0, 1.0]).repeat(8)
    assert detects_best(stack, nll, X, 10 * X, 1) == int(is_as_good)
