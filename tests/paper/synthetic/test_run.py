"""The synthetic experiment: complete, finite, repeatable, and right about what it knows."""

import ast
import inspect
import json
import subprocess
import sys
from dataclasses import asdict, fields, replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from _asserts import assert_close
from priornet.distributions import NormalWishart
from priornet.evaluation.results import preset_of, read_results
from priornet.training import Batch
from priornet_paper.synthetic import train as synthetic_training
from priornet_paper.synthetic.config import METHODS, PRESETS, VARIANTS, Config
from priornet_paper.synthetic.data import true_std
from priornet_paper.synthetic.run import run

COMMITTED = Path(__file__).parents[3] / "results"
TINY = replace(
    PRESETS["smoke"],
    n_runs=1,
    epochs=1,
    n_train=256,
    n_out=64,
    n_test=64,
    n_curve=11,
    variants=("EnD2-bounded",),
)
MEASURES = {
    "expected_entropy",
    "epkl",
    "total_variance",
    "variance_of_mean",
    "total_entropy",
    "mutual_information",
}


SIGNATURE = {"device", "versions", "processor", "commit", "dirty", "seconds"}


@pytest.fixture(scope="module")
def smoke():
    return run(PRESETS["smoke"])


def numbers(tree):
    """Every leaf of a JSON-like tree that is a number or null, with its path."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from ((f"{key}/{path}", leaf) for path, leaf in numbers(value))
    elif isinstance(tree, list):
        for value in tree:
            yield from numbers(value)
    elif tree is None or isinstance(tree, (int, float)):
        yield "", tree


def test_rows_outside_count_gamma_times_and_all_come_in_an_epoch(monkeypatch):
    """Three times as much at three times the gamma; rows inside as before."""
    learnt = []

    def listening(stack, loss, batches, *_, **__):
        learnt.append(loss)
        assert batches.extra_size * batches.n_steps == TINY.n_out

    monkeypatch.setattr(synthetic_training, "fit", listening)
    for gamma in (0.5, 1.5):
        config = replace(TINY, gamma=gamma)
        synthetic_training.train_prior_networks(
            synthetic_training.Data(config), config, lambda _: None
        )
    y_and_mark = torch.tensor([[[2.0, 1.0], [0.0, 0.0]]])  # a row inside, a row outside
    batch = Batch(torch.empty(0), y_and_mark, torch.ones(1, 2), None)
    nw = NormalWishart.from_excess(
        torch.ones(1, 2, 1), torch.ones(1, 2, 1, 1), torch.tensor(4.0), torch.tensor(3.0)
    )
    one, three = (loss(nw, batch, 0.5) for loss in learnt)
    assert bool((one > 0).all())
    torch.testing.assert_close(three, one * torch.tensor([1.0, 3.0]))


def test_results_have_the_documented_form(smoke):
    assert {"dataset", "preset", "config", "methods", "seconds", "device"} <= set(smoke)
    assert {"versions", "commit", "dirty", "curves", "truth", "train"} <= set(smoke)
    assert (smoke["dataset"], smoke["preset"]) == ("synthetic", "smoke")
    assert (tuple(smoke["methods"]), tuple(smoke["variants"])) == (METHODS, tuple(VARIANTS))
    assert Config(**smoke["config"]) == PRESETS["smoke"]


@pytest.mark.parametrize("method", [*METHODS, *VARIANTS])
def test_every_method_has_every_metric(smoke, method):
    found = {**smoke["methods"], **smoke["variants"]}[method]
    for group in ("prr", "ood_auc", "in_domain", "out_of_domain", "out_of_domain_median"):
        assert set(found[group]) == MEASURES
    for name in ("rmse", "nll", "crps", "coverage90", "data_std_error_median", "knowledge_growth"):
        assert set(found[name]) == {"mean", "std", "sem", "values"}
        assert len(found[name]["values"]) == PRESETS["smoke"].n_runs
    assert ("against_ensemble" in found) == method.startswith("EnD2")


def test_every_method_is_signed(smoke):
    for found in (*smoke["methods"].values(), *smoke["variants"].values()):
        for name in SIGNATURE - {"seconds"}:
            assert found[name] == smoke[name]


def test_variant_says_what_it_changes_and_why(smoke):
    for name, found in smoke["variants"].items():
        assert found["of"] == name.partition("-")[0]
        assert Config(**{**smoke["config"], **found["change"]}) != Config(**smoke["config"]) or (
            name in ("EnD2-bounded", "NWPN-decayed")  # the smoke preset has them already
        )
        assert len(found["why"]) > 40


def test_every_number_is_finite(smoke):
    json.dumps(smoke, allow_nan=False)
    assert not [path for path, leaf in numbers(measured(smoke)) if leaf is None]


def test_total_variance_is_data_plus_knowledge_along_the_curves(smoke):
    for method in METHODS:
        curve = {name: torch.tensor(values) for name, values in smoke["curves"][method].items()}
        parts = curve["data_std"].square() + curve["knowledge_std"].square()
        assert_close(curve["total_std"].square(), parts, rel=1e-4)


def test_curves_cover_the_grid(smoke):
    x = smoke["curves"]["x"]
    assert (x[0], x[-1], len(x)) == (-25.0, 25.0, PRESETS["smoke"].n_curve)
    assert all(len(v) == len(x) for m in METHODS for v in smoke["curves"][m].values())


def measured(results):
    """Keep all that one seed decides: not the time it took."""
    kept = {key: results[key] for key in ("curves", "train", "truth")}
    for group in ("methods", "variants"):
        for name, found in results[group].items():
            kept[name] = {key: value for key, value in found.items() if key not in SIGNATURE}
    return kept


def test_same_seed_gives_the_same_numbers():
    assert measured(run(TINY)) == measured(run(TINY))


def test_other_seed_gives_other_numbers():
    assert measured(run(TINY)) != measured(run(replace(TINY, seed=1)))


def test_run_leaves_random_state_and_threads_alone():
    before = torch.get_rng_state(), torch.get_num_threads()
    run(TINY)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.get_num_threads() == before[1]


def test_progress_rises_to_one():
    ticks = []
    run(replace(TINY, epochs=2), ticks.append)
    assert [t.method for t in ticks] == [m for m in (*METHODS, "EnD2-bounded") for _ in range(2)]
    assert [t.done for t in ticks] == pytest.approx([(i + 1) / 8 for i in range(8)])
    assert all(torch.tensor(t.loss).isfinite() for t in ticks)


def test_repetition_gives_in_company_what_it_gives_alone():
    together = run(replace(TINY, n_runs=2))["methods"]
    alone = [run(replace(TINY, seed=seed))["methods"] for seed in (0, 1)]
    for method in METHODS:
        for name in ("rmse", "nll", "data_std_error"):
            values = [single[method][name]["mean"] for single in alone]
            assert together[method][name]["values"] == pytest.approx(values, rel=1e-3)


def test_variant_is_the_method_with_the_setting_changed():
    # The student's bound alone differs here, and far above it the two learn the same.
    results = run(replace(TINY, student_min_excess=0.999))
    student, bounded = results["methods"]["EnD2"], results["variants"]["EnD2-bounded"]
    assert bounded["rmse"]["mean"] != student["rmse"]["mean"]
    assert bounded["rmse"]["mean"] == pytest.approx(student["rmse"]["mean"], rel=0.1)


@pytest.fixture(scope="module")
def trained():
    """A tenth of the paper's epochs, half of its ensemble."""
    quick = replace(PRESETS["smoke"], n_runs=1, epochs=75, n_members=5, n_noises=64)
    return run(replace(quick, n_test=4096, n_curve=401, variants=("NWPN-forward",)))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_trained_method_predicts_well_and_knows_its_limits(trained, method):
    truth, found = trained["truth"], trained["methods"][method]
    assert found["rmse"]["mean"] < 1.1 * truth["rmse"]["mean"]
    assert found["nll"]["mean"] < truth["nll"]["mean"] + 0.15
    assert found["ood_auc"]["variance_of_mean"]["mean"] > 0.95
    inside = found["in_domain"]["variance_of_mean"]["mean"]
    assert found["out_of_domain"]["variance_of_mean"]["mean"] > 100 * inside


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_trained_data_uncertainty_matches_the_noise(trained, method):
    assert trained["methods"][method]["data_std_error_median"]["mean"] < 0.15
    assert trained["methods"][method]["data_std_slope"]["mean"] == pytest.approx(1, abs=0.2)


@pytest.mark.slow
def test_forward_kl_takes_noise_for_ignorance(trained):
    # The paper's argument for the reverse KL: the forward one cannot see how noisy a target is.
    forward, reverse = trained["variants"]["NWPN-forward"], trained["methods"]["NWPN"]
    assert abs(forward["data_std_slope"]["mean"]) < 0.5
    inside = [m["in_domain_median"]["variance_of_mean"]["mean"] for m in (forward, reverse)]
    assert inside[0] > 10 * inside[1]


@pytest.mark.slow
def test_trained_prior_network_is_near_the_optimum_of_its_objective(trained):
    # The average over y of Eq. (11) is least at a Normal-Wishart with averaged natural parameters:
    # its expected variance is the noise's plus a share of the prior's, which does not vanish.
    config, curves = Config(**trained["config"]), trained["curves"]
    y = torch.tensor(trained["train"]["y"], dtype=torch.float64)
    mean = torch.tensor(curves["truth"]["mean"], dtype=torch.float64)
    noise = torch.tensor(curves["truth"]["data_std"], dtype=torch.float64)
    epsilon, beta = config.prior_evidence, config.beta
    assert config.prior_match == "variance"  # L0^-1 is epsilon times the variance of the targets
    scatter = epsilon * y.var(correction=0) + beta * noise.square()
    scatter += epsilon * beta / (epsilon + beta) * (mean - y.mean()).square()
    optimum = (scatter / (epsilon + beta)).sqrt()
    found = torch.tensor(curves["NWPN"]["data_std"], dtype=torch.float64)
    inside = torch.tensor(curves["x"]).abs() < config.train_edge
    assert (found / optimum - 1)[inside].abs().mean() < 0.15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": "linear"}, 'unknown schedule "linear"; choose one of: constant, cosine'),
        ({"student_start": "zero"}, "choose one of: random, member"),
        ({"prior_match": "mean"}, "choose one of: precision, variance"),
        ({"divergence": "jensen"}, "choose one of: reverse, forward"),
        ({"variants": ("NWPN-best",)}, 'unknown variant "NWPN-best"; choose from: EnD2-bounded'),
        ({"n_runs": 0}, "`n_runs` must be at least 1; got 0"),
        ({"epochs": 0}, "`epochs` must be at least 1; got 0"),
        ({"n_out": 15}, "`n_out` must be at least 16, one for each step"),
    ],
)
def test_config_that_cannot_run_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Config(**change)


def test_changed_preset_is_called_custom():
    assert preset_of(replace(PRESETS["paper"], seed=7), PRESETS) == "paper"
    assert preset_of(replace(PRESETS["paper"], epochs=7), PRESETS) == "custom"


def test_paper_preset_has_the_settings_of_the_paper():
    paper = PRESETS["paper"]
    assert (paper.n_train, paper.train_edge, paper.n_out) == (2048, 10, 512)
    assert (paper.out_range, paper.widths, paper.n_members) == ((20, 25), (30, 30), 10)
    assert (paper.epochs, paper.batch_size, paper.learning_rate) == (800, 128, 1e-2)
    assert (paper.weight_decay, paper.schedule, paper.student_start) == (1e-4, "constant", "random")
    assert (paper.input_noise, paper.temperature) == (3, 1)
    assert (paper.prior_evidence, paper.prior_match) == (1e-2, "variance")
    assert (paper.beta, paper.gamma, paper.divergence) == (100, 0.5, "reverse")
    assert paper.test_out_range == (15, 25)
    assert replace(paper) == Config()


def test_committed_results_are_those_of_a_preset_and_a_clean_checkout():
    found = read_results(COMMITTED / "synthetic.json")
    assert found["preset"] == "paper"
    assert found["config"] == json.loads(json.dumps(asdict(PRESETS["paper"])))
    assert found["dirty"] is False


@pytest.mark.parametrize("method", [*METHODS, "EnD2-bounded", "NWPN-decayed"])
def test_committed_results_reach_the_goal(method):
    found = read_results(COMMITTED / "synthetic.json")
    found = {**found["methods"], **found["variants"]}[method]
    assert min(found["knowledge_growth"]["values"]) >= 10
    assert max(found["data_std_error_median"]["values"]) <= 0.15


def test_committed_prior_network_of_the_paper_misses_the_noise_as_its_optimum_does():
    """Its prior is 201 times as wide as the targets; beta = 100 leaves 2 % of their variance."""
    results = read_results(COMMITTED / "synthetic.json")
    found = results["variants"]["NWPN-precision"]
    assert min(found["knowledge_growth"]["values"]) >= 10
    noise = true_std(torch.linspace(-10, 10, 2001)).square()
    targets = torch.tensor(results["train"]["y"]).var()
    optimum = ((2.01 * targets + 100 * noise) / 100.01 / noise).sqrt() - 1
    assert float(optimum.median()) == pytest.approx(0.30, abs=0.01)
    assert found["data_std_error_median"]["mean"] == pytest.approx(0.30, abs=0.05)


def test_every_setting_is_explained_on_the_line_under_it():
    (source,) = ast.parse(inspect.getsource(Config)).body
    assert isinstance(source, ast.ClassDef)
    explained = [
        ast.unparse(setting.target)
        for setting, text in pairwise(source.body)
        if isinstance(setting, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    ]
    assert explained == [field.name for field in fields(Config)]


def test_experiment_needs_neither_plots_nor_a_terminal():
    code = (
        "import sys\n"
        "for name in ('matplotlib', 'rich', 'scipy', 'typer'): sys.modules[name] = None\n"
        "from priornet_paper.synthetic.run import run, Config\n"
        "run(Config(n_runs=1, epochs=1, n_train=64, n_out=8, n_members=2, n_noises=1, n_test=16,"
        " n_curve=3))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
