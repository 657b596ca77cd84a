"""Pieces on disk: known by all that they depend on, named where they do not fit."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from priornet.nn.tensor_files import write_tensors
from priornet_paper.depth.orders import Task
from priornet_paper.depth.pieces import Pieces
from priornet_paper.depth.recipe import recipes
from priornet_paper.depth.sets import Sets


@pytest.fixture
def told():
    return []


@pytest.fixture
def pieces(order, told):
    return of(order, lambda task, text: told.append(text))


def of(order, remark=lambda task, text: None):
    return Pieces(order, Sets(order.config, order.sources), remark)


def task(order, name, kind):
    (recipe,) = recipes(order.config, [name])
    return Task(kind, recipe, 0)


def write(pieces, task, fingerprint):
    path = pieces.path(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    if task.kind == "train":
        write_tensors(path, {"weight": torch.ones(2)}, {"fingerprint": fingerprint})
    else:
        path.write_text(json.dumps({"fingerprint": fingerprint}))
    return path


@pytest.mark.parametrize("kind", ["train", "score"])
def test_a_piece_is_known_by_its_fingerprint(pieces, order, told, kind):
    wanted = task(order, "NWPN", kind)
    assert pieces.finished(wanted) is None
    assert told == []  # that there is none yet is no news
    fingerprint = pieces.fingerprint(wanted)
    write(pieces, wanted, fingerprint)
    assert pieces.finished(wanted)["fingerprint"] == fingerprint
    path = write(pieces, wanted, "another")
    assert pieces.finished(wanted) is None
    path.write_bytes(path.read_bytes()[:-3])
    assert pieces.finished(wanted) is None
    assert [text.partition(": ")[0] for text in told] == [str(path)] * 2
    assert "of other settings or other images; it is made again" in told[0]
    assert "not readable" in told[1]


def test_what_is_forgotten_is_gone_with_its_checkpoints(pieces, order):
    trained, scored = task(order, "DER", "train"), task(order, "DER", "score")
    paths = [write(pieces, one, "x") for one in (trained, scored)]
    pieces.checkpoints(trained).mkdir(parents=True)
    pieces.forget(scored)
    assert [path.exists() for path in paths] == [True, False]
    assert pieces.checkpoints(trained).exists()
    pieces.forget(trained)
    pieces.forget(trained)  # nothing is there any more, and nobody minds
    assert not paths[0].exists()
    assert not pieces.checkpoints(trained).exists()


def test_a_score_depends_on_what_it_is_a_score_of(pieces, order):
    before = pieces.fingerprint(task(order, "EnD2", "score"))
    slower = replace(order, config=replace(order.config, learning_rate=1e-5))
    assert of(slower).fingerprint(task(slower, "EnD2", "score")) != before
    other = replace(order, config=replace(order.config, gamma=0.5))  # NWPN's own
    assert of(other).fingerprint(task(other, "EnD2", "score")) == before


@pytest.mark.parametrize("what", ["test", "lsun_bedroom"])
def test_a_score_is_of_its_images(order, photographs, tmp_path, what):
    home = {"test": "nyu_small", "lsun_bedroom": "lsun_small"}[what]
    copy = shutil.copytree(photographs / home, tmp_path / "copy")
    sources = replace(
        order.sources,
        test=copy if what == "test" else None,
        foreign=order.sources.foreign | ({what: copy} if what != "test" else {}),
    )
    score, moved = task(order, "Single", "score"), replace(order, sources=sources)
    before = of(order).fingerprint(score)
    assert of(moved).fingerprint(score) == before
    pictures = (
        sorted((copy / "rgb").iterdir()) if (copy / "rgb").exists() else sorted(copy.glob("*"))
    )
    shutil.copy(pictures[0], pictures[-1])
    assert of(moved).fingerprint(score) != before


def test_what_a_prior_network_learnt_is_not_strange_to_it(pieces, order):
    def strange(name):
        return pieces.strange_to(task(order, name, "score").recipe)

    assert strange("NWPN") == ["lsun_bedroom"]
    assert strange("DER") == ["kitti", "lsun_bedroom"]
