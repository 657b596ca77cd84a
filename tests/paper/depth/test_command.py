"""`priornet reproduce depth` and `depth-maps`: options, finished work, results and figures."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from _depth_files import SETTINGS
from _workers import worker_killed_after
from priornet.evaluation.results import read_results


@pytest.fixture
def smoke(call, sets, tmp_path, fabric_alone):
    def run(*options):
        chosen = [part for setting in SETTINGS for part in ("--set", setting)]
        common = ("--data", sets, "--preset", "smoke", "--weights", "none", "--out", tmp_path)
        return call("reproduce", "depth", *common, *chosen, "--quiet", *options)

    return run


def test_results_are_written_and_shown(smoke, tmp_path):
    done = smoke("--methods", "single,ensemble,rkl")
    assert done.exit_code == 0, done.output
    assert "nyu: 5 training and 3 test images, preset smoke, mean of 1 seed" in done.stdout
    assert "ENSM" in done.stdout
    results = read_results(tmp_path / "nyu.smoke.json")
    assert list(results["methods"]) == ["Single", "ENSM", "NWPN"]


def test_kitti_is_learnt_the_other_way_round(smoke, tmp_path):
    done = smoke("--dataset", "kitti", "--methods", "rkl")
    assert done.exit_code == 0, done.output
    results = read_results(tmp_path / "kitti.smoke.json")
    assert results["foreign"] == {"nyu": 4, "lsun_bedroom": 2}  # the preset takes four at most
    assert results["methods"]["NWPN"]["ood_auc"].keys() == {"lsun_bedroom"}


def test_what_is_finished_is_not_done_again(smoke, tmp_path):
    smoke("--methods", "der")
    path = tmp_path / "nyu.smoke.json"
    before = path.stat().st_mtime_ns
    done = smoke("--methods", "der", "--json")
    assert "finished already" in done.stderr
    assert path.stat().st_mtime_ns == before
    assert json.loads(done.stdout)["dataset"] == "nyu"


def test_damaged_images_are_not_blamed_on_the_results(smoke, sets, tmp_path):
    copy = shutil.copytree(sets, tmp_path / "sets")
    assert smoke("--methods", "dd", "--data", copy).exit_code == 0
    depth = copy / "nyu" / "depth" / "0007.png"  # of a test image
    depth.write_bytes(depth.read_bytes()[:-30])
    done = smoke("--methods", "dd", "--data", copy)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: ")
    assert "depth/0007.png" in done.stderr
    assert done.stderr.count("\n") == 1


def test_again_means_again(smoke, tmp_path):
    smoke("--methods", "dd")
    weights = tmp_path / ".parts" / "nyu.smoke" / "weights" / "DD.0.safetensors"
    before = weights.stat().st_mtime_ns
    assert smoke("--methods", "dd", "--again").exit_code == 0
    assert weights.stat().st_mtime_ns > before


def test_other_test_images_are_another_question(smoke, sets, tmp_path):
    smoke("--methods", "dd")
    before = read_results(tmp_path / "nyu.smoke.json")
    shutil.copytree(sets / "nyu", tmp_path / "others")
    pictures = tmp_path / "others" / "rgb"
    shutil.copy(pictures / "0000.jpg", pictures / "0007.jpg")
    done = smoke("--methods", "dd", "--test", tmp_path / "others")
    assert done.exit_code == 0, done.output
    after = read_results(tmp_path / "nyu.smoke.json")
    assert "finished already" not in done.stderr
    assert after["digests"]["test"] != before["digests"]["test"]
    assert after["methods"]["DD"]["rmse"]["mean"] != before["methods"]["DD"]["rmse"]["mean"]


def test_constant_depth_is_one_line(smoke, sets, tmp_path):
    import shutil

    from PIL import Image

    copy = tmp_path / "copy"
    shutil.copytree(sets, copy)
    for path in (copy / "nyu" / "depth").iterdir():
        Image.fromarray(np.full((32, 64), 9, np.uint8)).save(path)
    done = smoke("--data", copy, "--methods", "single")
    assert done.exit_code == 2, done.output
    assert "there is nothing to learn" in done.stderr
    assert done.stderr.count("\n") == 1


def test_time_that_is_up(smoke, tmp_path):
    done = smoke("--methods", "single", "--minutes", "0")
    assert done.exit_code == 0
    assert "The time is up. What is finished is kept" in done.stderr
    assert not (tmp_path / "nyu.smoke.json").exists()


def test_an_interrupted_run_says_how_to_go_on(smoke, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("priornet_paper.depth.run.run", interrupted)
    done = smoke("--methods", "single")
    assert done.exit_code == 130
    assert done.stderr == "Interrupted. What is finished is kept; the same command goes on.\n"


def test_methods_may_be_named_as_in_results(smoke, tmp_path):
    done = smoke("--methods", "Single,ENSM,EnD2-T10,NWPN-g0.05")
    assert done.exit_code == 0, done.output
    results = read_results(tmp_path / "nyu.smoke.json")
    assert [*results["methods"], *results["variants"]] == [
        "Single",
        "ENSM",
        "EnD2-T10",
        "NWPN-g0.05",
    ]


def test_a_table_without_ood_sets_does_not_speak_of_them(smoke, sets):
    done = smoke("--methods", "dd", "--data", next(sets.glob("nyu*")))
    assert done.exit_code == 0, done.output
    assert "OOD AUC" not in done.stdout


def test_a_damaged_results_file_is_reported_and_made_again(smoke, tmp_path):
    path = tmp_path / "nyu.smoke.json"
    path.write_text('{\n "dataset": "nyu",\n')
    done = smoke("--methods", "single")
    assert done.exit_code == 0
    assert f"{path}: not a results file" in done.stderr
    assert read_results(path)["n_train"] == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--methods", "single,mc-dropout"),
            'unknown method "mc-dropout"; choose from: dd, single',
        ),
        (("--methods", ","), "no method named"),
        (("--methods", "rkl-gx"), 'unknown method "NWPN-gx"'),
        (("--device", "tpu"), 'unknown device "tpu"; choose from: cpu, cuda'),
        (("--devices", "2", "--workers", "2"), "not both"),
        (("--foreign", "church"), '--foreign must be NAME=PATH; got "church"'),
        (("--set", "epoch=3"), '"epoch=3" is not NAME=VALUE'),
        (("--set", "n_decoder=3", "--methods", "single"), "`n_decoder` must be at least 16"),
        (("--set", "height=33"), "`height` must be even"),
        (("--set", "norm=frozen"), 'norm="frozen" keeps the statistics of ImageNet weights'),
        (("--data", "nowhere"), "nowhere: there is no such file or folder"),
        (("--weights", "nowhere.pth", "--methods", "single"), "nowhere.pth"),
    ],
)
def test_bad_options(smoke, options, message):
    done = smoke(*options)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_bad_option_opens_no_progress_bar(sets):
    """Run the command in a process of its own: an empty bar would leave an empty line."""
    code = "from priornet.cli import app; app()"
    given = ["reproduce", "depth", "--data", str(sets), "--methods", "bagging"]
    done = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith('Error: unknown method "bagging"')
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_a_worker_that_is_killed_is_one_line(smoke, tmp_path):
    options = ("--methods", "dd,single,der", "--set", "epochs=3")
    with worker_killed_after(".parts/*/weights/*.safetensors", tmp_path) as kept:
        done = smoke(*options, "--workers", "2")
    assert done.exit_code == 1, done.output
    assert done.stderr.startswith("Error: a worker process was lost (killed, or out of memory)")
    assert done.stderr.endswith("Run it again: finished work is kept.\n")
    assert done.stderr.count("\n") == 1
    before = {path: path.stat().st_mtime_ns for path in kept}
    assert before
    assert smoke(*options).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == before


def test_a_gpu_that_others_hold_is_one_line(smoke, monkeypatch):
    def busy(*_, **__):
        raise torch.AcceleratorError("CUDA error: device(s) is/are busy or unavailable\nCUDA might")

    monkeypatch.setattr("priornet_paper.depth.work.make_fabric", busy)
    done = smoke("--methods", "single")
    assert done.exit_code == 1, done.output
    assert done.stderr.startswith("Error: the GPU is not available now (CUDA error: device(s) is/")
    assert done.stderr.endswith("use --device cpu. What is finished is kept.\n")
    assert done.stderr.count("\n") == 1


def test_weights_of_another_network_are_named(smoke, tmp_path):
    from safetensors.torch import save_file

    path = tmp_path / "resnet.safetensors"
    save_file({"layer1.weight": torch.ones(3)}, path)
    done = smoke("--weights", path, "--methods", "single")
    assert done.exit_code == 2, done.output
    assert str(path) in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("file", ["nyu/rgb/0003.jpg", "nyu/rgb/0007.jpg", "lsun/rgb/b.jpg"])
def test_a_damaged_photograph_is_named_before_the_work(smoke, sets, tmp_path, file):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(sets, copy)
    path = copy / file
    path.write_bytes(path.read_bytes()[:-40])
    done = smoke("--data", copy, "--methods", "single")
    assert done.exit_code == 2
    assert str(path) in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / ".parts").exists()


def test_a_picture_without_depth_names_the_option(smoke, sets, tmp_path):
    import shutil

    copy = shutil.copytree(sets, tmp_path / "copy")
    (copy / "nyu" / "depth" / "0002.png").unlink()
    done = smoke("--data", copy, "--methods", "dd")
    assert done.exit_code == 2, done.output
    message = "0002.png: this depth file is missing; with `--missing skip` such images are left out"
    assert message in done.stderr
    assert smoke("--data", copy, "--methods", "dd", "--missing", "skip").exit_code == 0


def test_images_that_do_not_fit_into_memory_are_one_line(smoke):
    done = smoke("--methods", "single", "--set", f"width={2**30}")  # Pillow refuses that at once
    assert done.exit_code == 2, done.output
    assert f"nyu: 5 images of 32 x {2**30} pixels take 1202.6 GB of memory" in done.stderr
    assert "use smaller ones (`height`, `width`) or fewer (`n_images`)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_all_invalid_depth_is_named(smoke, sets, tmp_path):
    import shutil

    from PIL import Image

    copy = tmp_path / "copy"
    shutil.copytree(sets, copy)
    path = copy / "nyu" / "depth" / "0002.png"
    Image.fromarray(np.zeros((32, 64), np.uint8)).save(path)
    done = smoke("--data", copy, "--methods", "single")
    assert done.exit_code == 2
    assert f"{path}: no pixel of this depth map holds a measurement" in done.stderr


@pytest.fixture(scope="module")
def finished(sets, tmp_path_factory, fabric_alone):
    """Make results with the reported preset's name, as they come back from another machine."""
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
    own, others = (
        (tmp_path / "images" / f"depth-{name}-nyu.svg").read_text() for name in ("maps", "foreign")
    )
    for name in ("KITTI 2", "bedroom 2"):
        assert f"<!-- {name} -->" in others
    assert "<!-- KITTI 3 -->" not in others
    assert "<!-- absolute error -->" in own
    assert "<!-- absolute error -->" not in others
    assert "<!-- input -->" not in own + others
    assert "<!-- input -->" in (finished / "photographs" / "foreign-nyu.svg").read_text()


def test_ood_sets_may_lie_in_other_places(draw, sets, tmp_path):
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
    """Make results of both sets and maps of one, as where one of two machines gave them back."""
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
