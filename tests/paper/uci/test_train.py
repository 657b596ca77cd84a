"""Trainers: a network per task, by its own settings, its own fold and its own teachers."""

from dataclasses import replace

import pytest
import torch

from priornet import losses
from priornet.distributions import NormalWishart
from priornet.training import Batch
from priornet_paper.uci import train as module
from priornet_paper.uci.config import STUDENTS
from priornet_paper.uci.folds import FoldRows, Task, members_of
from priornet_paper.uci.train import Trainers

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
    monkeypatch.setattr(module, "fit", lambda stack, loss, *_, **__: learnt.append(loss))
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
