"""The training loop: it learns, resumes bit for bit, and shares batches among processes."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch

import _depth_training
from _compile import compiles
from _depth_training import TINY, run_tiny
from priornet.nn import DenseDepth
from priornet_paper.depth import methods
from priornet_paper.depth import train as loop
from priornet_paper.depth.machine import make_fabric
from priornet_paper.runs import jobs

HELPER = Path(__file__).parents[2] / "_depth_training.py"
METHODS = ("DD", "Single", "NWPN", "DER", "EnD2", "EnD", "MD-EnD")


def killed(folder, method):
    """Train in a process that dies; give its exit code."""
    context: Any = get_context(jobs._START_METHOD)
    process = context.Process(target=_depth_training.main, args=(folder, "kill", method))
    process.start()
    process.join(600)
    return process.exitcode


def shared(folder, n_processes, *methods):
    """Train in processes that share every batch; give losses and weights of each method."""
    path = os.pathsep.join([str(HELPER.parent), os.environ["PYTHONPATH"]])
    command = [sys.executable, HELPER, folder, "share", str(n_processes), *methods]
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return torch.load(folder / "found.pt", weights_only=True)


def assert_same_weights(one, other):
    for (name, a), b in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.equal(a, b), name


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns(method, tmp_path):
    # One temperature and one weight throughout: what is compared must mean the same.
    config = replace(TINY, epochs=8, gamma_epochs=0.0, temperature=1.0)
    _, outcome = run_tiny(tmp_path, method, config)
    assert outcome.is_finished
    assert len(outcome.losses) == 8
    assert outcome.losses[-1] < outcome.losses[0]


@pytest.mark.parametrize("method", METHODS)
def test_half_precision_is_for_the_network_alone(method, tmp_path, monkeypatch):
    """Depth, temperatures and losses stay float32, whatever the network computes in."""
    seen = watched_dtypes(method, monkeypatch)
    full, one = run_tiny(tmp_path / "full", method)
    half, other = run_tiny(tmp_path / "half", method, half=True)
    assert set(seen) == {torch.float32}
    assert other.losses == pytest.approx(one.losses, rel=0.05, abs=0.05)
    assert not torch.equal(full.decoder.weight, half.decoder.weight)


def watched_dtypes(method, monkeypatch):
    """Dtypes of what the objective is given from now on."""
    kind, seen = methods._METHODS[method], []
    plain = kind.sums

    def watched(self, head, outputs, batch, setting):
        seen.extend([outputs.dtype, batch.depth.dtype, setting.dtype])
        return plain(self, head, outputs, batch, setting)

    monkeypatch.setattr(kind, "sums", watched)
    return seen


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize("method", ["Single", "NWPN", "EnD2", "EnD2+EnD"])
def test_killed_in_the_middle_of_an_epoch_it_ends_with_the_same_bits(method, tmp_path):
    config = replace(TINY, average=1.0)
    whole, undisturbed = run_tiny(tmp_path / "whole", method, config)
    assert killed(tmp_path / "killed", method) == -signal.SIGKILL
    found = [path for path in (tmp_path / "killed").rglob("*") if path.is_file()]
    left = [path.name for path in found if not path.parent.name.startswith(".priornet-")]
    assert left == ["epoch-0001.safetensors"] * len(method.split("+"))
    epochs = []
    again, resumed = run_tiny(
        tmp_path / "killed", method, config, progress=lambda tick: epochs.append(tick.epoch)
    )
    assert epochs == [2, 3]
    for one, other in zip(as_list(whole), as_list(again), strict=True):
        assert_same_weights(one, other)
    for one, other in zip(as_list(resumed), as_list(undisturbed), strict=True):
        assert one.losses == other.losses


def as_list(found):
    return found if isinstance(found, list) else [found]


def test_stopped_after_an_epoch_it_ends_with_the_same_bits(tmp_path):
    whole, _ = run_tiny(tmp_path / "whole", "EnD2")
    _, first = run_tiny(tmp_path / "stopped", "EnD2", stop=lambda: True)
    assert not first.is_finished
    assert len(first.losses) == 1
    again, second = run_tiny(tmp_path / "stopped", "EnD2")
    assert second.is_finished
    assert_same_weights(whole, again)


TOGETHER = ("EnD2", "EnD2-T10", "EnD", "MD-EnD")


def test_students_taught_together_end_as_they_do_alone(tmp_path):
    """To the last bit: they share the answers of their teachers and nothing else."""
    networks, outcomes = run_tiny(tmp_path / "together", "+".join(TOGETHER))
    for name, network, outcome in zip(TOGETHER, networks, outcomes, strict=True):
        alone, expected = run_tiny(tmp_path / name, name)
        assert_same_weights(network, alone)
        assert outcome.losses == expected.losses
    assert len({tuple(outcome.losses) for outcome in outcomes}) == len(TOGETHER)


def test_teachers_answer_once_for_all_of_their_students(tmp_path, monkeypatch):
    calls = []
    plain = loop.Step._asked
    monkeypatch.setattr(loop.Step, "_asked", lambda self, x: calls.append(1) or plain(self, x))
    run_tiny(tmp_path / "one", "EnD2")
    alone = len(calls)
    run_tiny(tmp_path / "four", "+".join(TOGETHER))
    assert len(calls) == 2 * alone > 0


def test_students_taught_together_go_on_where_they_stopped(tmp_path):
    whole, expected = run_tiny(tmp_path / "whole", "EnD2+EnD")
    _, first = run_tiny(tmp_path / "stopped", "EnD2+EnD", stop=lambda: True)
    assert [(len(one.losses), one.is_finished) for one in first] == [(1, False)] * 2
    again, second = run_tiny(tmp_path / "stopped", "EnD2+EnD")
    assert [one.losses for one in second] == [one.losses for one in expected]
    for one, other in zip(whole, again, strict=True):
        assert_same_weights(one, other)


def test_another_seed_gives_other_weights(tmp_path):
    one, _ = run_tiny(tmp_path / "one")
    other, _ = run_tiny(tmp_path / "other", config=replace(TINY, weight_decay=0.5))
    assert not torch.equal(one.decoder.weight, other.decoder.weight)


def test_two_processes_do_what_one_does_with_twice_the_batch(tmp_path):
    """Frozen norms: the batch is halved, its sums are divided by what the whole of it holds."""
    methods = ("Single", "NWPN", "EnD2", "EnD+EnD2-T10")
    alone, together = _depth_training.share(1, methods, tmp_path), shared(tmp_path, 2, *methods)
    for method in methods:
        (one, own), (two, both) = alone[method], together[method]
        assert len(one) == TINY.epochs
        assert two == pytest.approx(one, rel=1e-5, abs=1e-6)
        torch.testing.assert_close(both, own, rtol=1e-3, atol=1e-4)


def test_a_batch_that_cannot_be_halved_is_refused(tmp_path):
    class TwoProcesses:
        global_rank, world_size, device = 0, 2, torch.device("cpu")

    with pytest.raises(ValueError, match="a batch of 5 images cannot be shared equally by 2"):
        run_tiny(tmp_path, config=replace(TINY, batch=5), fabric=TwoProcesses())
    with pytest.raises(ValueError, match='use `norm="frozen"`'):
        run_tiny(tmp_path, config=replace(TINY, norm="batch"), fabric=TwoProcesses())


def test_batch_statistics_are_those_of_the_images_of_the_set_alone(tmp_path):
    """Out-of-domain images pass through with the statistics so far, and leave no trace in them."""
    config = replace(TINY, norm="batch", learning_rate=1e-12, weight_decay=0.0)
    single, _ = run_tiny(tmp_path / "a", "Single", config)
    prior_network, _ = run_tiny(tmp_path / "b", "NWPN", config)
    torch.testing.assert_close(prior_network.encoder[1].running_var, single.encoder[1].running_var)
    assert not torch.allclose(single.encoder.get_buffer("1.running_var"), torch.ones(8))


def test_frozen_norms_keep_their_statistics(tmp_path):
    network, _ = run_tiny(tmp_path)
    assert torch.equal(network.encoder.get_buffer("1.running_mean"), torch.zeros(8))
    assert not torch.equal(network.encoder.get_parameter("1.weight"), torch.ones(8))


def test_a_loss_that_is_no_number_stops_the_training(tmp_path):
    with pytest.raises(FloatingPointError, match="Single, seed 7: the loss of epoch 1 is"):
        run_tiny(tmp_path, config=replace(TINY, learning_rate=1e30, clip=1e30))


def test_advice_about_precision_is_not_repeated_by_every_process(caplog):
    make_fabric("cpu")
    accelerators = import_module("lightning_fabric.accelerators.cuda")
    with caplog.at_level("INFO"):
        accelerators.rank_zero_info("you should set `torch.set_float32_matmul_precision('medium')`")
        accelerators.rank_zero_info("something else")
    assert [record.getMessage() for record in caplog.records] == ["something else"]


@compiles
def test_teachers_are_compiled_once_for_all_of_them():
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    teachers = [DenseDepth(None, "efficientnet_lite0", n_decoder=16).eval() for _ in range(3)]
    images = torch.rand(2, 3, 32, 64)
    raw = torch.compile(loop._raw, dynamic=False, backend=count)
    with torch.no_grad():
        for teacher in teachers:
            torch.testing.assert_close(raw(teacher, images), teacher.raw(images))
    assert len(graphs) == 1
