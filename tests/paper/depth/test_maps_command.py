"""`priornet reproduce depth-maps`: figures of finished models, from files alone."""

import json
import shutil

import pytest

from _depth_files import SETTINGS


@pytest.fixture(scope="module")
def finished(sets, tmp_path_factory, fabric_alone):
    """Results of the reported preset's name, as they come back from another machine."""
    from typer.testing import CliRunner

    from priornet.cli import app

    out = tmp_path_factory.mktemp("results")
    chosen = [part for setting in SETTINGS for part in ("--set", setting)]
    options = ["--data", str(sets), "--preset", "smoke", "--weights", "none", "--out", str(out)]
    command = ["reproduce", "depth", *options, *chosen, "--quiet", "--methods", "ensemble,endd"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    (out / "nyu.smoke.json").rename(out / "nyu.json")
    (out / ".parts" / "nyu.smoke").rename(out / ".parts" / "nyu")
    shutil.rmtree(out / ".parts" / "nyu" / "weights")
    return out


@pytest.fixture
def draw(call, sets, finished, tmp_path):
    def run(*options, data=sets, results=finished):
        common = ("--data", data, "--results", results, "--images", tmp_path / "images")
        return call("reproduce", "depth-maps", *common, *options)

    return run


def test_figures_with_photographs_are_kept_apart(draw, finished, tmp_path):
    done = draw()
    assert done.exit_code == 0, done.output
    public = {path.stem for path in (tmp_path / "images").iterdir()}
    assert public == {"depth-maps-nyu", "depth-foreign-nyu", "depth-scale-nyu"}
    private = {path.stem for path in (finished / "photographs").iterdir()}
    assert private == {"maps-nyu", "foreign-nyu", "inputs-nyu"}
    assert str(finished / "photographs" / "inputs-nyu.png") in done.stdout
    own, foreign = (
        (tmp_path / "images" / f"depth-{name}-nyu.svg").read_text() for name in ("maps", "foreign")
    )
    for name in ("KITTI 2", "bedroom 2"):
        assert f"<!-- {name} -->" in foreign
    assert "<!-- KITTI 3 -->" not in foreign
    assert "<!-- absolute error -->" in own
    assert "<!-- absolute error -->" not in foreign
    assert "<!-- input -->" not in own + foreign
    assert "<!-- input -->" in (finished / "photographs" / "foreign-nyu.svg").read_text()


def test_foreign_sets_may_lie_elsewhere(draw, sets, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for path in sets.iterdir():
        if not path.name.startswith("lsun"):
            (few / path.name).symlink_to(path)
    (bedrooms,) = sets.glob("lsun*")
    done = draw(data=few)
    assert done.exit_code == 2
    assert "no images of lsun_bedroom there; say where they are (--foreign" in done.stderr
    done = draw("--foreign", f"lsun_bedroom={bedrooms}", data=few)
    assert done.exit_code == 0, done.output
    assert "<!-- bedroom 2 -->" in (tmp_path / "images" / "depth-foreign-nyu.svg").read_text()
    done = draw("--foreign", "bedrooms", data=few)
    assert done.exit_code == 2
    assert "--foreign must be NAME=PATH" in done.stderr


def test_figures_of_another_preset_lie_beside_its_results(call, sets, finished, tmp_path):
    copy = tmp_path / "smoke"
    shutil.copytree(finished, copy, ignore=shutil.ignore_patterns("photographs"))
    (copy / "nyu.json").rename(copy / "nyu.smoke.json")
    (copy / ".parts" / "nyu").rename(copy / ".parts" / "nyu.smoke")
    command = ("reproduce", "depth-maps", "--data", sets, "--results", copy)
    done = call(*command, "--preset", "smoke")
    assert done.exit_code == 0, done.output
    drawn = {path.stem for path in (copy / "photographs" / "smoke").iterdir()}
    assert {"depth-maps-nyu", "inputs-nyu"} <= drawn
    assert {path.name for path in copy.iterdir()} == {".parts", "nyu.smoke.json", "photographs"}
    done = call(*command)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert f"{copy}: no nyu.json or kitti.json there" in done.stderr


def test_other_images_than_those_scored_are_refused(draw, sets, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(sets, copy)
    pictures = copy / "lsun" / "rgb"
    shutil.copy(pictures / "a.jpg", pictures / "b.jpg")
    done = draw(data=copy)
    assert done.exit_code == 2
    assert "other lsun_bedroom images than those that" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_maps_that_cannot_be_read_are_named(draw, finished, tmp_path, damage):
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    part = copy / ".parts" / "nyu" / "EnD2.0.maps.safetensors"
    if damage == "gone":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:100])
    done = draw(results=copy)
    assert done.exit_code == 2
    assert "EnD2.0.maps.safetensors: " in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture
def also_kitti(finished, tmp_path):
    """Results of both sets, maps of one, as where one of two machines gave them back."""
    copy = tmp_path / "both"
    shutil.copytree(finished, copy)
    content = json.loads((finished / "nyu.json").read_text())
    (copy / "kitti.json").write_text(json.dumps(content | {"dataset": "kitti"}))
    return copy


def test_a_set_without_maps_is_left_out(draw, also_kitti, tmp_path):
    done = draw(results=also_kitti)
    assert done.exit_code == 0, done.output
    part = also_kitti / ".parts" / "kitti" / "ENSM.0.maps.safetensors"
    assert f"kitti is left out: {part}: it is not there; " in done.stderr
    # In another folder: methods that other teachers taught would go with these.
    command = "`reproduce depth --data DATA --dataset kitti --preset smoke --methods ensemble,endd"
    assert f"{command} --out OTHER`" in done.stderr
    assert done.stderr.count("left out") == 1
    drawn = {path.stem for path in (tmp_path / "images").iterdir()}
    assert drawn == {"depth-maps-nyu", "depth-foreign-nyu", "depth-scale-nyu"}


def test_no_maps_at_all_no_figures(draw, also_kitti):
    shutil.rmtree(also_kitti / ".parts")
    done = draw(results=also_kitti)
    assert done.exit_code == 2
    for name in ("nyu", "kitti"):
        assert f"{name}/ENSM.0.maps.safetensors: it is not there" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_damaged_results_file_is_named(draw, finished, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    content = json.loads((finished / "nyu.json").read_text())
    content.pop("digests")
    (copy / "nyu.json").write_text(json.dumps(content))
    done = draw(results=copy)
    assert done.exit_code == 2
    assert "nyu.json: not a results file" in done.stderr


def test_no_results_no_figures(draw, tmp_path):
    (tmp_path / "empty").mkdir()
    done = draw(results=tmp_path / "empty")
    assert done.exit_code == 2
    assert "no nyu.json or kitti.json there" in done.stderr
