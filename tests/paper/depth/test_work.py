"""Tasks and their parts on disk: finished work is kept, other work is done again."""

import json
import math
import shutil
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch

from priornet.depth import open_depth, pack
from priornet.nn.weights import read_tensors, write_tensors
from priornet_paper.depth import methods, work
from priornet_paper.depth import train as loop
from priornet_paper.depth.config import METHODS, config_for, variants
from priornet_paper.depth.data import Sets, Sources
from priornet_paper.depth.machine import NotEnoughMemory
from priornet_paper.depth.tasks import Plan, Task, scores_of, with_needs
from priornet_paper.depth.work import Parts, Worker
from priornet_paper.runs import store


@pytest.fixture
def events():
    return []


@pytest.fixture
def worker(plan, events):
    return Worker(plan, events.append)


def task(plan, name="Single", kind: Literal["train", "score"] = "train", **changes):
    (variant,) = variants(replace(plan.config, **changes), [name])
    return Task(kind, variant, 0)


def whole(worker, wanted):
    """A piece whose time was not up first."""
    made = worker.do(wanted)
    assert made is not None
    return made


def test_what_each_task_needs(plan):
    members = ["Single.0.0", "Single.0.1"]
    assert [n.key for n in task(plan).needs] == []
    assert [n.key for n in task(plan, "EnD2").needs] == members
    assert [n.key for n in task(plan, "ENSM", "score").needs] == members
    assert [n.key for n in task(plan, "EnD2-T1", "score").needs] == ["EnD2-T1.0", *members]
    assert [n.key for n in task(plan, "NWPN", "score").needs] == ["NWPN.0"]
    assert [n.key for n in task(plan, "Single", "score").needs] == ["Single.0.0"]


def test_a_training_is_kept_and_not_done_again(worker, plan, events):
    made = worker.do(task(plan))
    assert len(made["losses"]) == plan.config.epochs
    assert [event.epoch for event in events] == [1]
    assert (plan.folder / "weights" / "Single.0.0.safetensors").is_file()
    assert not list((plan.folder / "checkpoints").iterdir())
    assert Worker(plan, events.append).do(task(plan)) == made
    assert len(events) == 1


def test_what_a_killed_writer_left_goes_too(worker, plan):
    left = plan.folder / "checkpoints" / "DD.0" / ".epoch-0001.safetensors.123"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half a file")
    worker.do(task(plan, "DD"))
    assert not left.parent.exists()


def test_weights_that_no_package_brings_are_refused_before_images_are_read(plan):
    config = replace(plan.config, encoder="densenet169")
    sources = replace(plan.sources, weights="imagenet")
    with pytest.raises(ValueError, match="no package brings the ImageNet weights of densenet169"):
        replace(plan, config=config, sources=sources)


def test_frozen_norms_need_weights(plan):
    with pytest.raises(ValueError, match='norm="frozen" keeps the statistics of ImageNet weights'):
        replace(plan, config=replace(plan.config, norm="frozen"))


@pytest.mark.parametrize(("change", "again"), [({"clip": 2.0}, True), ({"gamma": 0.5}, False)])
def test_other_settings_make_a_training_again(worker, plan, events, change, again):
    before = worker.do(task(plan))
    after = worker.do(task(plan, **change))
    assert (before["fingerprint"] != after["fingerprint"]) == again
    messages = [event.message for event in events if event.message]
    assert len(messages) == int(again)
    if again:
        assert "made with other settings or other data" in messages[0]


def test_damaged_weights_are_named_and_made_again(worker, plan, events):
    made = worker.do(task(plan))
    path = plan.folder / "weights" / "Single.0.0.safetensors"
    good = {name: tensor.clone() for name, tensor in read_tensors(path).tensors.items()}
    path.write_bytes(path.read_bytes()[:-100])
    assert worker.do(task(plan))["losses"] == made["losses"]
    assert f"{path}: not readable" in next(event.message for event in events if event.message)
    for name, tensor in read_tensors(path).tensors.items():
        assert torch.equal(tensor, good[name])


def test_time_that_is_up_ends_a_training_after_its_epoch(plan, events):
    late = replace(plan, until=time.time(), config=replace(plan.config, epochs=3))
    worker = Worker(late, events.append)
    assert worker.do(task(late)) is None
    assert [event.epoch for event in events] == [1]
    on_time = Worker(replace(late, until=float("inf")), events.append)
    made = on_time.do(task(late))
    assert made is not None
    assert len(made["losses"]) == 3
    assert [event.epoch for event in events] == [1, 2, 3]


def test_members_differ_and_the_first_is_single(worker, plan):
    (ensemble,) = variants(plan.config, ["ENSM"])
    needs = Task("score", ensemble, 0).needs
    for needed in needs:
        worker.do(needed)
    first, second = (worker.network(needed).bottom.weight for needed in needs)
    assert not torch.equal(first, second)
    assert worker.parts.path(needs[0]) == worker.parts.path(task(plan))


def test_members_of_an_ensemble_are_scored_too(worker, plan):
    single, ensemble = (Task("score", r, 0) for r in variants(plan.config, ["Single", "ENSM"]))
    for needed in ensemble.needs:
        worker.do(needed)
    first, second = (read_tensors(worker.parts.path(needed)) for needed in ensemble.needs)
    alone = worker.do(single)["result"]
    assert worker.do(ensemble)["result"]["members"]["rmse"] != alone["rmse"]
    # Both members alike: their mean is the first one's score.
    write_tensors(worker.parts.path(ensemble.needs[1]), first.tensors, second.state)
    worker.parts.forget(ensemble)
    members = worker.do(ensemble)["result"]["members"]
    assert members == {name: alone[name] for name in members}
    assert {"delta1", "rmse", "nll"} <= members.keys()


def test_a_student_starts_as_a_member_whose_norms_are_then_folded(worker, plan, monkeypatch):
    student = task(plan, "EnD2")
    for needed in student.needs:
        worker.do(needed)
    found = []

    def look(fabric, trainees, data, training, teachers):
        found.append((*[trainee.network for trainee in trainees], teachers))
        return None

    monkeypatch.setattr(work, "train", look)
    worker.do(student)
    ((network, teachers),) = found
    for name, value in read_tensors(worker.parts.path(student.needs[0])).tensors.items():
        if name.startswith("encoder."):
            assert torch.equal(network.state_dict()[name], value), name
    images = torch.rand(2, 3, 32, 64, generator=torch.Generator().manual_seed(0))
    for teacher, needed in zip(teachers, student.needs, strict=True):
        assert teacher.encoder.norms_folded
        assert not any(p.requires_grad for p in teacher.parameters())
        expected = worker.network(needed).raw(images)
        torch.testing.assert_close(teacher.raw(images), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("early_split", [False, True])
def test_members_of_md_end_may_split_early(plan, early_split):
    plan = replace(plan, config=replace(plan.config, early_split=early_split))
    worker, student = Worker(plan), task(plan, "MD-EnD")
    for needed in (*student.needs, student):
        worker.do(needed)
    result = whole(worker, task(plan, "MD-EnD", "score"))["result"]
    assert math.isfinite(result["rmse"])
    assert math.isfinite(result["nll"])
    assert "epkl" in result["agreement"]
    own, member = (
        read_tensors(worker.parts.path(one)).tensors for one in (student, student.needs[0])
    )
    n_blocks = plan.config.n_members if early_split else 1
    block = [name for name in member if name.startswith("up4.")]
    assert block
    for name in block:
        assert own[name].numel() == n_blocks * member[name].numel(), name
    for name in ("up3.conv_b.weight", "bottom.weight"):
        assert own[name].shape == member[name].shape
    assert not torch.equal(own["head.projection.weight"][:2], member["head.projection.weight"])


def test_a_packed_file_teaches_what_its_folder_does(worker, plan, photographs, tmp_path):
    paths = {name: tmp_path / f"{name}.pack" for name in ("nyu", "kitti")}
    for name, path in paths.items():
        pack(open_depth(photographs / f"{name}_small", "all"), path)
    sources = replace(plan.sources, own=paths["nyu"], ood={"kitti": paths["kitti"]})
    packed = Worker(replace(plan, sources=sources, folder=tmp_path / "packed"))
    prior_network = task(plan, "NWPN")  # learns images of both sets
    first, second = whole(worker, prior_network), whole(packed, prior_network)
    assert second["losses"] == first["losses"]
    assert second["fingerprint"] == first["fingerprint"]
    one, other = (
        read_tensors(place.parts.path(prior_network)).tensors for place in (worker, packed)
    )
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def play_small_gpu(monkeypatch, is_too_much):
    """Steps fail as on a GPU that some of them do not fit."""
    plain = loop.Step._plain

    def small_gpu(self, batch):
        if is_too_much(self, batch):
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return plain(self, batch)

    monkeypatch.setattr(loop.Step, "_plain", small_gpu)


def taught(plan, *names):
    first, *others = (task(plan, name) for name in names)
    return first._replace(beside=tuple(other.variant for other in others))


def test_students_together_leave_the_files_that_each_would(worker, plan, events):
    joint = taught(plan, "EnD2", "EnD")
    for needed in joint.needs:
        worker.do(needed)
    events.clear()
    made = worker.do(joint)
    assert [(event.key, event.epoch) for event in events] == [("EnD2.0", 1), ("EnD.0", 1)]
    assert not list((plan.folder / "checkpoints").iterdir())
    assert [worker.parts.finished(one) is not None for one in joint.each] == [True, True]
    assert worker.do(task(plan, "EnD2")) == made
    weights = {one: dict(read_tensors(worker.parts.path(one)).tensors) for one in joint.each}
    for one in joint.each:
        worker.parts.forget(one)
        worker.do(one)
        for name, tensor in read_tensors(worker.parts.path(one)).tensors.items():
            assert torch.equal(tensor, weights[one][name]), name


def test_a_student_that_is_there_is_not_taught_again(worker, plan, events):
    joint = taught(plan, "EnD2", "EnD")
    for needed in (*joint.needs, joint.each[0]):
        worker.do(needed)
    events.clear()
    assert worker.do(joint) is not None
    assert [event.key for event in events] == ["EnD.0"]


def test_students_go_on_from_where_each_of_them_is(plan, events):
    """Others may have been beside them before; nobody loses an epoch."""
    config = replace(plan.config, epochs=3)
    late = replace(plan, until=time.time(), config=config)
    joint = taught(late, "EnD2", "EnD")
    on_time = Worker(replace(late, until=float("inf")), events.append)
    for needed in joint.needs:
        on_time.do(needed)
    assert Worker(late).do(joint) is None  # both have learnt for an epoch
    assert Worker(late).do(joint.each[0]) is None  # and EnD2 for another, by itself
    events.clear()
    on_time.do(taught(late, "EnD2", "EnD", "MD-EnD"))
    told = [(event.key, event.epoch) for event in events]
    assert told == [
        *(("MD-EnD.0", epoch) for epoch in (1, 2, 3)),
        *((name, epoch) for epoch in (2, 3) for name in ("EnD2.0", "EnD.0")),
    ]
    weights = read_tensors(on_time.parts.path(joint)).tensors
    again = Worker(replace(late, until=float("inf"), folder=plan.folder / "again"))
    for needed in (*joint.needs, joint.each[0]):
        again.do(needed)
    for name, tensor in read_tensors(again.parts.path(joint)).tensors.items():
        assert torch.equal(tensor, weights[name]), name


def test_stopped_between_the_files_of_two_students_nothing_is_learnt_again(
    worker, plan, events, monkeypatch
):
    joint = taught(plan, "EnD2", "EnD")
    for needed in joint.needs:
        worker.do(needed)
    plain, written = store.write_tensors, []

    def interrupted(path, *arguments):
        if written:
            raise KeyboardInterrupt
        written.append(path)
        plain(path, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_tensors", interrupted)
        with pytest.raises(KeyboardInterrupt):
            worker.do(joint)
    assert [worker.parts.finished(one) is not None for one in joint.each] == [True, False]
    events.clear()
    made = worker.do(joint)
    assert events == []
    assert len(made["losses"]) == plan.config.epochs
    assert worker.parts.finished(joint.each[1]) is not None


def test_one_that_fails_does_not_take_the_others_with_it(worker, plan, events, monkeypatch):
    joint = taught(plan, "EnD2", "EnD")
    for needed in joint.needs:
        worker.do(needed)
    plain = methods.objective_for(joint.variant, worker.sets.scale).__class__.sums

    def broken(self, *arguments):
        return plain(self, *arguments) * (math.nan if self.variant.method == "EnD2" else 1.0)

    monkeypatch.setattr(methods._Student, "sums", broken)
    with pytest.raises(FloatingPointError, match="EnD2, seed"):
        worker.do(joint)
    assert [worker.parts.finished(one) is not None for one in joint.each] == [False, True]


def test_students_that_do_not_fit_together_are_taught_one_by_one(worker, plan, events, monkeypatch):
    joint = taught(plan, "EnD2", "EnD")
    for needed in joint.needs:
        worker.do(needed)
    events.clear()
    play_small_gpu(monkeypatch, lambda step, _: len(step.trainees) > 1)
    assert worker.do(joint) is not None
    assert events[0].message == "Memory does not suffice. 2 students go on one by one."
    assert [event.key for event in events[1:]] == ["EnD2.0", "EnD.0"]
    assert [worker.parts.finished(one) is not None for one in joint.each] == [True, True]


def test_a_score_holds_everything(worker, plan):
    for needed in (*task(plan, "EnD2").needs, task(plan, "EnD2")):
        worker.do(needed)
    score = task(plan, "EnD2", "score")
    piece = worker.do(score)
    result = piece["result"]
    assert result["n_images"] == 4
    assert {"delta1", "rel", "rmse", "log10", "nll", "c_auc", "spearman_depth"} <= result.keys()
    assert result["ood_auc"].keys() == {"kitti", "lsun_bedroom"}
    assert result["ood_auc"]["kitti"].keys() >= {"mutual_information", "epkl", "total_variance"}
    assert "within_images" in result["agreement"]["epkl"]
    assert len(piece["training"]) == 1
    maps = read_tensors(plan.folder / "EnD2.0.maps.safetensors").tensors
    assert maps["nyu/prediction"].shape == (4, 16, 32)
    assert maps["kitti/epkl"].shape == (6, 16, 32)
    assert maps["kitti/epkl"].dtype == torch.float32
    assert Worker(plan).parts.finished(score) == piece


def test_a_prior_network_is_not_scored_on_what_it_learnt(worker, plan):
    prior_network = task(plan, "NWPN")
    worker.do(prior_network)
    piece = worker.do(prior_network._replace(kind="score"))
    assert piece["result"]["ood_auc"].keys() == {"lsun_bedroom"}


def test_dense_depth_has_depth_only(worker, plan):
    worker.do(task(plan, "DD"))
    result = worker.do(task(plan, "DD", "score"))["result"]
    assert "rmse" in result
    assert "nll" not in result
    assert "ood_auc" not in result


@pytest.mark.parametrize("name", ["Single", "EnD2"])
def test_too_little_memory_names_the_batch_that_fits(worker, plan, monkeypatch, name):
    for needed in task(plan, name).needs:
        worker.do(needed)
    kept = set(plan.folder.rglob("*.safetensors"))
    play_small_gpu(monkeypatch, lambda _, batch: len(batch.images) > 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "small GPU")
    with pytest.raises(NotEnoughMemory, match=r"a batch of 4 .* does not fit.*a batch of 1 do"):
        worker.do(task(plan, name))
    assert set(plan.folder.rglob("*.safetensors")) == kept


def test_seeds_of_members_are_their_own():
    seeds = [work._training_seed(seed, member) for seed in range(3) for member in range(5)]
    assert len(set(seeds)) == 15


@pytest.fixture
def told():
    return []


@pytest.fixture
def parts(plan, told):
    return of(plan, told.append)


def of(plan, message=lambda text: None):
    return Parts(plan, Sets(plan.config, plan.sources), message)


def a_task(plan, name, kind):
    (variant,) = variants(plan.config, [name])
    return Task(kind, variant, 0)


def write(parts, a_task, fingerprint):
    path = parts.path(a_task)
    path.parent.mkdir(parents=True, exist_ok=True)
    if a_task.kind == "train":
        write_tensors(path, {"weight": torch.ones(2)}, {"fingerprint": fingerprint})
    else:
        path.write_text(json.dumps({"fingerprint": fingerprint}))
    return path


@pytest.mark.parametrize("kind", ["train", "score"])
def test_a_part_is_known_by_its_fingerprint(parts, plan, told, kind):
    wanted = a_task(plan, "NWPN", kind)
    assert parts.finished(wanted) is None
    assert told == []  # that there is none yet is no news
    fingerprint = parts.fingerprint(wanted)
    write(parts, wanted, fingerprint)
    assert parts.finished(wanted)["fingerprint"] == fingerprint
    path = write(parts, wanted, "another")
    assert parts.finished(wanted) is None
    path.write_bytes(path.read_bytes()[:-3])
    assert parts.finished(wanted) is None
    assert [text.partition(": ")[0] for text in told] == [str(path)] * 2
    assert "made with other settings or other data, or damaged; made again" in told[0]
    assert "not readable" in told[1]


EARLIER = json.loads((Path(__file__).parent / "files" / "fingerprints.json").read_text())


@pytest.mark.parametrize("dataset", ["nyu", "kitti"])
def test_parts_of_an_earlier_version_are_known(dataset):
    """The fingerprints were written by the version before parts were shared with UCI."""
    sets: Any = SimpleNamespace(
        fingerprint=lambda *, uses_ood: f"images-{uses_ood}",
        set_digest=lambda name: f"digest-{name}",
    )
    config = replace(config_for(dataset, "fast"), seeds=(0,), n_members=2)
    other = {"nyu": "kitti", "kitti": "nyu"}[dataset]
    known = {other: Path(other), "lsun_bedroom": Path("lsun")}
    parts = Parts(Plan(config, Sources(Path(dataset), known), Path("parts")), sets, print)
    names = [*METHODS, "EnD2-T10", "EnD2-proxy", "NWPN-g0.05"]
    tasks = with_needs(scores_of(variants(config, names)))
    found = {f"{dataset} {task.kind} {task.key}": parts.fingerprint(task) for task in tasks}
    assert found == {name: text for name, text in EARLIER.items() if name.startswith(dataset)}


def test_what_is_forgotten_is_gone_with_its_checkpoints(parts, plan):
    trained, scored = a_task(plan, "DER", "train"), a_task(plan, "DER", "score")
    paths = [write(parts, one, "x") for one in (trained, scored)]
    parts.checkpoints(trained).mkdir(parents=True)
    parts.forget(scored)
    assert [path.exists() for path in paths] == [True, False]
    assert parts.checkpoints(trained).exists()
    parts.forget(trained)
    parts.forget(trained)  # nothing is there any more, and nobody minds
    assert not paths[0].exists()
    assert not parts.checkpoints(trained).exists()


def test_a_score_depends_on_what_it_is_a_score_of(parts, plan):
    before = parts.fingerprint(a_task(plan, "EnD2", "score"))
    slower = replace(plan, config=replace(plan.config, learning_rate=1e-5))
    assert of(slower).fingerprint(a_task(slower, "EnD2", "score")) != before
    other = replace(plan, config=replace(plan.config, gamma=0.5))  # NWPN's own
    assert of(other).fingerprint(a_task(other, "EnD2", "score")) == before


@pytest.mark.parametrize("what", ["test", "lsun_bedroom"])
def test_a_score_is_of_its_images(plan, photographs, tmp_path, what):
    home = {"test": "nyu_small", "lsun_bedroom": "lsun_small"}[what]
    copy = shutil.copytree(photographs / home, tmp_path / "copy")
    sources = replace(
        plan.sources,
        test=copy if what == "test" else None,
        ood=plan.sources.ood | ({what: copy} if what != "test" else {}),
    )
    score, moved = a_task(plan, "Single", "score"), replace(plan, sources=sources)
    before = of(plan).fingerprint(score)
    assert of(moved).fingerprint(score) == before
    pictures = (
        sorted((copy / "rgb").iterdir()) if (copy / "rgb").exists() else sorted(copy.glob("*"))
    )
    shutil.copy(pictures[0], pictures[-1])
    assert of(moved).fingerprint(score) != before


def test_the_set_that_a_prior_network_learnt_is_not_ood(parts, plan):
    def ood_sets(name):
        return parts.ood_sets_of(a_task(plan, name, "score").variant)

    assert ood_sets("NWPN") == ["lsun_bedroom"]
    assert ood_sets("DER") == ["kitti", "lsun_bedroom"]
