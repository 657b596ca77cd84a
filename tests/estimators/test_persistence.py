"""Models on disk come back bit for bit; anything else than a model is refused with a reason."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

import priornet
from _models import change_tensor, make_first_format, sign
from priornet import DeepEnsembleRegressor, DistilledRegressor, GaussianRegressor, writing
from priornet.distill import TransferSet
from priornet.estimators import ModelError, persistence
from priornet.writing import open_together

FIRST_FORMAT = Path(__file__).parent / "format_1"
QUICK = {"hidden": (8,), "epochs": 3, "random_state": 0}
STUDENT = {**QUICK, "n_members": 3, "student_epochs": 2, "n_transfer": 500}
MAKERS = {
    "single": lambda: GaussianRegressor(**QUICK),
    "ensemble": lambda: DeepEnsembleRegressor(3, **QUICK),
    "prior network": lambda: priornet.PriorNetRegressor(**QUICK),
    "evidential": lambda: priornet.EvidentialRegressor(**QUICK),
    "endd": lambda: DistilledRegressor(**STUDENT, transfer=TransferSet(near=0.1)),
    "end": lambda: DistilledRegressor(objective="end", **STUDENT),
    "md-end": lambda: DistilledRegressor(objective="md-end", **STUDENT),
    "shared": lambda: priornet.SharedPriorRegressor(4, **QUICK),
}


def table(n: int = 150):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(n), "b": rng.choice(["x", "y", "z"], n)})
    frame.loc[::9, "a"] = np.nan
    y = pd.Series(3e4 + 1e3 * (frame["b"] == "x") + rng.standard_normal(n), name="price")
    return frame, y


@functools.cache
def fitted(name: str):
    return MAKERS[name]().fit(*table())


@pytest.fixture
def folder(tmp_path):
    """Save a model to damage."""
    fitted("ensemble").save(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_whose_training_diverged_can_be_saved(tmp_path):
    X, y = table()
    with pytest.warns(UserWarning, match="training diverged in 1 of 1 networks"):
        model = GaussianRegressor(**QUICK, learning_rate=1e38).fit(X, y)
    model.save(tmp_path / "model")
    saved = json.loads((tmp_path / "model" / "config.json").read_text())
    assert saved["training"]["train_loss"] == [None]
    again = priornet.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("name", MAKERS)
def test_a_loaded_model_predicts_the_same_bits(name, tmp_path):
    X, _ = table()
    model = fitted(name)
    model.save(tmp_path / "model")
    again = priornet.load(tmp_path / "model")
    assert type(again) is type(model)
    for method in ("predict", "predict_familiarity", "predict_verdict"):
        np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    for how in ("predictive", "conformal"):
        ours, theirs = (m.predict_interval(X, 0.8, how) for m in (model, again))
        np.testing.assert_array_equal(ours, theirs)
    pd.testing.assert_frame_equal(
        again.predict_uncertainty(X).to_frame(), model.predict_uncertainty(X).to_frame()
    )
    given, found = model.get_params(deep=False), again.get_params(deep=False)
    assert given == found
    assert again.feature_names_in_.tolist() == ["a", "b"]
    assert again.fitted_.targets.names == ("price",)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_arrays_and_small_tables_come_back_too(n_targets, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), rng.standard_normal((20, n_targets))
    model = GaussianRegressor(**QUICK).fit(X, y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(priornet.load(tmp_path / "model").predict(X), model.predict(X))


def test_the_folder_holds_weights_and_plain_json(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "weights.safetensors"]
    config = json.loads((folder / "config.json").read_text())
    assert config["class"] == "DeepEnsembleRegressor"
    assert config["parameters"]["n_members"] == 3
    assert config["versions"]["priornet"] == priornet.__version__
    assert config["training"]["epochs"] == 3


def test_files_are_as_readable_as_the_users_other_files(folder):
    (folder.parent / "other").touch()
    common = (folder.parent / "other").stat().st_mode & 0o777
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {common}
    assert folder.stat().st_mode & 0o444 == common & 0o444


def test_saving_over_a_model_replaces_it(folder):
    fitted("single").save(folder)
    assert type(priornet.load(folder)) is GaussianRegressor
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["chapter.tex", "config.json"])
def test_saving_over_something_else_is_refused(tmp_path, name):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / name).write_text('["years of work"]')
    with pytest.raises(FileExistsError, match="is not a model folder"):
        fitted("single").save(tmp_path / "thesis")
    assert (tmp_path / "thesis" / name).read_text() == '["years of work"]'


@pytest.mark.parametrize("moment", ["weights", "swap"])
def test_an_interrupted_save_leaves_the_old_model(folder, moment, monkeypatch):
    before = priornet.load(folder)

    def fail(*_):
        raise KeyboardInterrupt

    is_early = moment == "weights"
    place, name = (persistence, "_tensors") if is_early else (writing, "replace_folder")
    monkeypatch.setattr(place, name, fail)
    with pytest.raises(KeyboardInterrupt):
        fitted("single").save(folder)
    X, _ = table()
    np.testing.assert_array_equal(priornet.load(folder).predict(X), before.predict(X))
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_link_leads_to_the_new_model(folder):
    link = folder.with_name("latest")
    link.symlink_to(folder.name)
    fitted("single").save(link)
    assert link.is_symlink()
    assert type(priornet.load(folder)) is GaussianRegressor
    assert sorted(path.name for path in folder.parent.iterdir()) == ["latest", "model"]


def test_a_model_that_was_set_aside_is_found_with_a_warning(folder):
    """Copy the state after a killed save on a system that cannot exchange folders."""
    expected = priornet.load(folder).predict(table()[0])
    folder.rename(folder.with_name(".priornet-old-model"))
    with pytest.warns(UserWarning, match=r"saving to .*model was interrupted") as caught:
        again = priornet.load(folder)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(again.predict(table()[0]), expected)
    again.save(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    assert type(priornet.load(folder)) is DeepEnsembleRegressor


def spoil_config(folder, change) -> None:
    """Write other fields, with digests that fit them."""
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))
    sign(folder)


def spoil_unsigned(folder, change) -> None:
    """Write other fields, laid out as ``save`` does, with the digests from before."""
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def forge(folder, fields) -> None:
    """Write other fields, with a digest that fits them; they may hold the one of the weights."""
    config = json.loads((folder / "config.json").read_text())
    config |= fields
    del config["sha256"]
    text = json.dumps(config, indent=2)
    digest = hashlib.sha256(text.encode()).hexdigest()
    (folder / "config.json").write_text(text[:-2] + f',\n  "sha256": "{digest}"\n}}')


def spoil_tensor(folder, name, change) -> None:
    """Write other numbers, with digests that fit them."""
    change_tensor(folder, name, change)
    sign(folder)


def truncate(path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def hostile_pickle(path) -> None:
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("executed code from the file",))

    path.write_bytes(pickle.dumps(Bomb()))


SPOILED = {
    "nothing there": (lambda f: shutil.rmtree(f), "does not exist"),
    "a file": (lambda f: (shutil.rmtree(f), f.write_text("x")), "is a file"),
    "no config": (lambda f: (f / "config.json").unlink(), "config.json is missing"),
    "no weights": (
        lambda f: (f / "weights.safetensors").unlink(),
        "weights.safetensors is missing",
    ),
    "half a config": (lambda f: truncate(f / "config.json"), "damaged or truncated"),
    "half the weights": (lambda f: truncate(f / "weights.safetensors"), "is not what was saved"),
    "half the weights, signed": (
        lambda f: (truncate(f / "weights.safetensors"), sign(f)),
        "damaged or truncated",
    ),
    "pickled weights": (lambda f: hostile_pickle(f / "weights.safetensors"), "is not what was"),
    "pickled weights, signed": (
        lambda f: (hostile_pickle(f / "weights.safetensors"), sign(f)),
        "damaged or truncated",
    ),
    "pickled config": (lambda f: hostile_pickle(f / "config.json"), "damaged"),
    "another json": (lambda f: (f / "config.json").write_text("[1]"), "does not describe"),
    "newer format": (lambda f: spoil_config(f, lambda c: c.update(format=99)), "upgrade priornet"),
    "two fields of one name": (
        lambda f: (f / "config.json").write_text('{"format": 2, "format": 2}'),
        "the field 'format' stands there twice",
    ),
    "two fields of one name, deeper": (
        lambda f: (f / "config.json").write_text('{"format": 2, "x": [{"a": 1, "b": 2, "a": 1}]}'),
        "the field 'a' stands there twice",
    ),
    "an unknown field": (
        lambda f: spoil_config(f, lambda c: c.update(comment="mine")),
        "format 2 has no field 'comment'",
    ),
    "no digest": (
        lambda f: spoil_unsigned(f, lambda c: c.pop("sha256")),
        "has changed since it was saved",
    ),
    "no digest of the weights": (
        lambda f: spoil_unsigned(f, lambda c: c.pop("weights_sha256")),
        "has changed since it was saved",
    ),
    "another number": (
        lambda f: spoil_unsigned(f, lambda c: c.update(n_networks=4)),
        "has changed since it was saved",
    ),
    "the first format with a digest": (
        lambda f: spoil_unsigned(f, lambda c: c.update(format=1)),
        "format 1 has no field 'weights_sha256'",
    ),
    "a digest of the weights that is no text": (
        lambda f: forge(f, {"weights_sha256": 3}),
        '"weights_sha256" is 3',
    ),
    "weights of another model": (
        lambda f: change_tensor(f, "weights", lambda w: w + 1),
        "weights.safetensors is not what was saved with config.json",
    ),
    "weights that overflow": (
        lambda f: spoil_tensor(f, "weights", lambda w: torch.full_like(w, 3e38)),
        "its predictions are not",
    ),
    "a scale that overflows": (
        lambda f: spoil_config(f, lambda c: c["targets"].update(scale=[1e308])),
        "its predictions are not",
    ),
    "a folder for a config": (
        lambda f: ((f / "config.json").unlink(), (f / "config.json").mkdir()),
        r"config\.json is a folder",
    ),
    "a pipe for weights": (
        lambda f: ((f / "weights.safetensors").unlink(), os.mkfifo(f / "weights.safetensors")),
        "weights.safetensors is not a file",
    ),
    "weights without end": (
        lambda f: os.truncate(f / "weights.safetensors", 1 << 40),
        r"too large to be a model's \(1099511627776 bytes\)",
    ),
    "unknown class": (
        lambda f: spoil_config(f, lambda c: c.update({"class": "os.system"})),
        "unknown class",
    ),
    "unknown parameter": (
        lambda f: spoil_config(f, lambda c: c["parameters"].update(evil=1)),
        "no parameter 'evil'",
    ),
    "bad parameter": (
        lambda f: spoil_config(f, lambda c: c["parameters"].update(hidden=[0])),
        "`hidden`",
    ),
    "huge network": (
        lambda f: spoil_config(f, lambda c: c["network"].update(widths=[10**9])),
        "should be",
    ),
    "negative width": (
        lambda f: spoil_config(f, lambda c: c["network"].update(widths=[-1])),
        '"network.widths"',
    ),
    "no network": (lambda f: spoil_config(f, lambda c: c.pop("network")), '"network" is missing'),
    "unknown head": (
        lambda f: spoil_config(f, lambda c: c["network"].update(head="x")),
        '"network.head"',
    ),
    "unknown field": (
        lambda f: spoil_config(f, lambda c: c["network"].update(x=1)),
        "a field 'x' that this version does not know",
    ),
    "two targets": (
        lambda f: spoil_config(f, lambda c: c["targets"].update(names=["a", "b"])),
        "do not fit",
    ),
    "zero scale": (
        lambda f: spoil_config(f, lambda c: c["targets"].update(scale=[0.0])),
        '"targets.scale"',
    ),
    "text scale": (
        lambda f: spoil_config(f, lambda c: c["targets"].update(scale=["x"])),
        '"targets.scale"',
    ),
    "no columns": (
        lambda f: spoil_config(f, lambda c: c["preprocessing"].update(columns=[])),
        "columns",
    ),
    "another shape": (
        lambda f: spoil_tensor(f, "weights", lambda w: w[:, 1:].clone()),
        "should be torch.float32",
    ),
    "another dtype": (
        lambda f: spoil_tensor(f, "weights", lambda w: w.half()),
        "should be torch.float32",
    ),
    "nan weights": (lambda f: spoil_tensor(f, "weights", lambda w: w * torch.nan), "not finite"),
    "no reference": (
        lambda f: spoil_tensor(f, "reference_knowledge", lambda w: w[:0].clone()),
        "reference rows",
    ),
    "nan in calibration": (
        lambda f: spoil_tensor(f, "calibration_scores", lambda w: w.fill_(torch.nan)),
        'weights.safetensors: tensor "calibration_scores" has numbers that are not finite',
    ),
    "infinite calibration": (
        lambda f: spoil_tensor(f, "calibration_scores", lambda w: w + torch.inf),
        'weights.safetensors: tensor "calibration_scores" has numbers that are not finite',
    ),
    "negative calibration": (
        lambda f: spoil_tensor(f, "calibration_scores", lambda w: w - 1e3),
        'weights.safetensors: tensor "calibration_scores" has negative numbers',
    ),
    "unsorted calibration": (
        lambda f: spoil_tensor(f, "calibration_scores", lambda w: w.flip(0).contiguous()),
        'weights.safetensors: tensor "calibration_scores" is not sorted',
    ),
    "nan in reference": (
        lambda f: spoil_tensor(f, "reference_knowledge", lambda w: w * torch.nan),
        'weights.safetensors: tensor "reference_knowledge" has numbers that are not finite',
    ),
    "unsorted reference": (
        lambda f: spoil_tensor(f, "reference_knowledge", lambda w: w.flip(0).contiguous()),
        'weights.safetensors: tensor "reference_knowledge" is not sorted',
    ),
    "no calibration": (
        lambda f: spoil_tensor(f, "calibration_scores", lambda w: w.reshape(-1).clone()),
        'weights.safetensors: tensor "calibration_scores" should be',
    ),
}


@pytest.mark.parametrize(("spoil", "message"), SPOILED.values(), ids=SPOILED)
def test_a_damaged_or_hostile_folder_is_refused(folder, spoil, message):
    spoil(folder)
    with pytest.raises(ModelError, match=message) as caught:
        priornet.load(folder)
    assert "model" in str(caught.value)  # names the place
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", MAKERS)
def test_finite_weights_that_overflow_are_refused_in_any_format(name, tmp_path):
    fitted(name).save(tmp_path / "model")
    change_tensor(tmp_path / "model", "weights", lambda w: w.fill_(3e38))
    make_first_format(tmp_path / "model")
    with pytest.raises(ModelError, match="its predictions are not"):
        priornet.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["ensemble", "student"])
def test_a_model_of_the_first_format_predicts_what_it_did(name, tmp_path):
    """Compare with ``predictions.json``; the model was written before there were digests."""
    kept = json.loads((FIRST_FORMAT / "predictions.json").read_text())
    rows = pd.DataFrame(kept["rows"]).astype({"size": float})
    with pytest.warns(UserWarning, match=rf"format_1/{name} was saved without a digest") as caught:
        model = priornet.load(FIRST_FORMAT / name)
    assert caught[0].filename == __file__
    mean, std = model.predict(rows, return_std=True)
    found, expected = {"mean": mean, "std": std}, kept["predictions"][name]
    for key in found:  # other processors may add float32 numbers in another order
        np.testing.assert_allclose(found[key], expected[key], rtol=1e-6)
    tensors = load_file(FIRST_FORMAT / name / "weights.safetensors")
    assert torch.equal(model.fitted_.stack.weights, tensors["weights"])
    model.save(tmp_path / "model")
    assert load_file(tmp_path / "model" / "weights.safetensors").keys() == tensors.keys()
    again = priornet.load(tmp_path / "model")  # without a warning
    np.testing.assert_array_equal(again.predict(rows), mean)


def test_windows_line_ends_change_nothing(folder):
    path = folder / "config.json"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert type(priornet.load(folder)) is DeepEnsembleRegressor


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(folder, monkeypatch):
    fitted("single").save(folder.with_name("new"))
    opened = []

    def open_when_it_is_gone(place, names):
        opened.append(place)
        if len(opened) == 1:
            shutil.rmtree(folder)
            folder.with_name("new").rename(folder)
            raise FileNotFoundError(errno.ENOENT, "gone", str(place / "config.json"))
        return open_together(place, names)

    monkeypatch.setattr(persistence, "open_together", open_when_it_is_gone)
    assert type(priornet.load(folder)) is GaussianRegressor
    assert len(opened) == 2


def test_a_folder_that_stays_is_read_once(folder, monkeypatch):
    tries = []
    monkeypatch.setattr(persistence.time, "sleep", tries.append)
    change_tensor(folder, "weights", lambda w: w + 1)
    with pytest.raises(ModelError):
        priornet.load(folder)
    with pytest.raises(ModelError):
        priornet.load(folder.with_name("none"))
    assert tries == []


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        GaussianRegressor().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


FORKING = """
import os, signal, sys
import numpy as np, torch
torch.set_num_threads(2)
import priornet

model = priornet.load(sys.argv[1])
child = os.fork()
if child == 0:
    signal.alarm(600)  # ends it where it hangs
    model.predict(np.zeros((5000, 2)))
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_model_may_be_loaded_before_a_fork(tmp_path):
    """Load and fork, as web servers do: the child lacks threads that the parent started."""
    X = np.random.default_rng(0).standard_normal((50, 2))
    model = GaussianRegressor(hidden=(64, 64), epochs=1, random_state=0).fit(X, X[:, 0])
    model.save(tmp_path / "m")
    assert subprocess.run([sys.executable, "-c", FORKING, tmp_path / "m"]).returncode == 0
