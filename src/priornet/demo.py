"""The methods side by side on a curve whose noise is known, and on a real table.

* ENSM, an ensemble of Gaussian networks;
* EnD2, one Normal-Wishart network distilled from it;
* NWPN, one Normal-Wishart network by reverse KL;
* DER, deep evidential regression, and Single, one Gaussian network: on the table only.

The curve is the paper's: a rising sine whose noise fades away from the origin (section 4 and its
appendix, arXiv:2006.11590v2). Out-of-domain inputs lie outside the training region.

The table is the diabetes set that comes with scikit-learn. A fifth of the rows is held out. Its
out-of-domain rows are the held-out ones with one measurement each, drawn at random, moved six
standard deviations up or down: what a slipped decimal point or a wrong unit does to a table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.distributions import Normal

from priornet import metrics
from priornet.estimators import make_estimator
from priornet.evaluation.evaluate_model import Evaluation, evaluate
from priornet.evaluation.results import preset_of, provenance, summary, write_results
from priornet.evaluation.scores import PARTS
from priornet.methods import STUDENTS
from priornet.report.comparison import Figure, write_comparison
from priornet.report.curves import draw
from priornet.report.figures import figure_bytes
from priornet.report.html import write_report
from priornet.tables.diabetes import load_diabetes
from priornet.writing import write_bytes

__all__ = [
    "CURVE_PRESETS",
    "TABLE_PRESETS",
    "CurveConfig",
    "Demo",
    "Line",
    "Study",
    "TableConfig",
    "run",
    "study_curve",
    "study_table",
]

FloatArray = NDArray[np.float64]

_ON_CURVE = ("ENSM", "EnD2", "NWPN")
_ON_TABLE = (*_ON_CURVE, "DER", "Single")
_COVERAGES = ("0.5", "0.8", "0.9", "0.95")
_KNOWLEDGE = "variance_of_mean"
_SCORES = ("rmse", "nll", "crps", "miscalibration_area")


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of the estimators; the defaults are their own."""

    seed: int = 0
    """Seed of the data and of every training."""
    n_members: int = 10
    """Networks in the ensemble."""
    epochs: int | Literal["auto"] = "auto"
    """Passes over the rows at most, for every method but EnD2."""
    student_epochs: int | Literal["auto"] = "auto"
    """Passes over the rows, for EnD2."""


@dataclass(frozen=True, kw_only=True)
class CurveConfig(Training):
    """Settings of the study on the paper's curve."""

    n_train: int = 2048
    """Training points."""
    train_edge: float = 10.0
    """Training inputs are uniform on ``|x| <= train_edge``."""
    n_out: int = 512
    """Out-of-domain training inputs, which have no targets; NWPN alone sees them."""
    out_range: tuple[float, float] = (20.0, 25.0)
    """They are uniform on this range of ``|x|``."""
    n_test: int = 2048
    """Fresh points for the scores, in domain and out of it."""
    test_out_range: tuple[float, float] = (15.0, 25.0)
    """Range of ``|x|`` that counts as out of domain for the scores."""
    n_curve: int = 401
    """Grid points of the drawn curves, from ``-curve_edge`` to ``curve_edge``."""
    curve_edge: float = 25.0
    """Where the drawn curves end."""


@dataclass(frozen=True, kw_only=True)
class TableConfig(Training):
    """Settings of the study on the diabetes table."""

    test_share: float = 0.2
    """Share of the rows that is held out."""
    shift: float = 6.0
    """Standard deviations by which one measurement of an out-of-domain row is moved."""

    def __post_init__(self) -> None:
        """Refuse what cannot run; the estimators check their own settings."""
        if not 0 < self.test_share < 1:
            raise ValueError(f"`test_share` must lie between 0 and 1; got {self.test_share}.")


_SHORT: dict[str, Any] = {"n_members": 2, "epochs": 3, "student_epochs": 3}
CURVE_PRESETS = {
    "demo": CurveConfig(student_epochs=600),
    "paper": CurveConfig(epochs=800),
    "smoke": CurveConfig(n_test=256, n_curve=51, **_SHORT),
}
TABLE_PRESETS = {"demo": TableConfig(), "smoke": TableConfig(**_SHORT)}


class Line(NamedTuple):
    """One method in the few numbers that the command prints; standard deviations of knowledge."""

    rmse: float
    nll: float
    share: float
    """Error of the data uncertainty on the curve, targets that 90 % intervals hold on the table."""
    inside: float
    outside: float
    auc: float


class Study(NamedTuple):
    """Results, ready for JSON, and the evaluations behind them, which make a report."""

    results: dict[str, Any]
    evaluations: dict[str, Evaluation]

    @property
    def lines(self) -> dict[str, Line]:
        """Each method's scores in short."""
        found = {name: _means(method) for name, method in self.results["methods"].items()}
        return {
            name: Line(
                rmse=method["rmse"],
                nll=method["nll"],
                share=method.get("data_std_error", method["coverage"]["0.9"]),
                inside=math.sqrt(method["in_domain"][_KNOWLEDGE]),
                outside=math.sqrt(method["out_of_domain"][_KNOWLEDGE]),
                auc=method["ood_auc"][_KNOWLEDGE],
            )
            for name, method in found.items()
        }


class Demo(NamedTuple):
    """Both studies, and the files that show them."""

    curve: Study
    table: Study
    report: Path
    student_report: Path
    figure: Path

    @property
    def seconds(self) -> float:
        """Seconds of training and measuring."""
        return self.curve.results["seconds"] + self.table.results["seconds"]


def run(
    out: str | Path,
    preset: Literal["demo", "paper", "smoke"] = "demo",
    *,
    seed: int | None = None,
    verbose: bool = False,
) -> Demo:
    """Run both studies, and write a report, a figure and the results into a folder.

    Args:
        out: The folder.
        preset: ``"demo"`` takes under two minutes; ``"paper"`` trains on the curve as long as the
            paper does; ``"smoke"`` takes seconds, too short to learn.
        seed: Seed of data and training; the preset's own when None.
        verbose: Show a progress bar for each training.
    """
    folder, own_seed = Path(out), {} if seed is None else {"seed": seed}
    curve = study_curve(replace(CURVE_PRESETS[preset], **own_seed), verbose=verbose)
    write_results(folder / "synthetic.json", curve.results)
    short = TABLE_PRESETS.get(preset, TABLE_PRESETS["demo"])  # the paper has no such table
    table = study_table(replace(short, **own_seed), verbose=verbose)
    write_results(folder / "diabetes.json", table.results)
    picture = figure_bytes(draw(curve.results), "png")
    return Demo(
        curve,
        table,
        report=_write_comparison(folder / "report.html", table, picture),
        student_report=write_report(table.evaluations["EnD2"], folder / "diabetes-endd.html"),
        figure=write_bytes(folder / "synthetic.png", picture),
    )


def _write_comparison(path: Path, table: Study, picture: bytes) -> Path:
    found = table.results
    figure = Figure(
        picture,
        "The paper's synthetic set",
        "The noise is largest at x = 0; training inputs lie in the shaded region. Data uncertainty "
        "should follow the dashed truth, knowledge uncertainty should take over outside.",
    )
    return write_comparison(
        list(table.evaluations.values()),
        path,
        title="What the models know",
        lede=f"Progression of diabetes, learnt from {found['n_train']} patients and predicted for "
        f"{found['n_test']} others. Out of domain are the same {found['n_test']} with one "
        f"measurement each moved by {found['config']['shift']:g} standard deviations.",
        figures=[figure],
    )


def study_curve(config: CurveConfig, *, verbose: bool = False) -> Study:
    """Train three methods on the paper's curve, and measure them against its known noise.

    Args:
        config: Settings; see :data:`CURVE_PRESETS`. One seed gives one set of numbers.
        verbose: Show a progress bar for each training.
    """
    started = time.perf_counter()
    rng = np.random.default_rng(config.seed)
    x = _inputs(rng, config.n_train, 0.0, config.train_edge)
    x_ood = _inputs(rng, config.n_out, *config.out_range)
    rows = _Rows(
        x,
        _targets(rng, x),
        x_test := _inputs(rng, config.n_test, 0.0, config.train_edge),
        _targets(rng, x_test),
        _inputs(rng, config.n_test, *config.test_out_range),
    )
    methods, evaluations, models = _compare(_ON_CURVE, config, rows, verbose, {"X_ood": x_ood})
    noise = _true_std(x_test)
    for name, evaluation in evaluations.items():
        off = np.abs(evaluation.spread.data / noise - 1)
        methods[name]["data_std_error"] = _one(float(off.mean()))
    content = {
        "methods": methods,
        "truth": _truth(rows),
        "curves": _curves(config, models),
        "train": {"x": _numbers(x), "y": _numbers(rows.y)},
    }
    preset = preset_of(config, CURVE_PRESETS)
    return Study(_results("synthetic", preset, config, content, started), evaluations)


def _true_mean(x: FloatArray) -> FloatArray:
    return np.sin(x) + x / 10


def _true_std(x: FloatArray) -> FloatArray:
    return 1 / (np.abs(x) + 1) + 0.01


def _inputs(rng: np.random.Generator, n: int, low: float, high: float) -> FloatArray:
    """Draw inputs ``(n, 1)``, uniform on ``low <= |x| <= high`` on both sides of the origin."""
    signed = rng.uniform(low - high, high - low, (n, 1))
    return signed + np.where(signed < 0, -low, low)


def _targets(rng: np.random.Generator, x: FloatArray) -> FloatArray:
    """Draw a target ``(n,)`` for each input."""
    return (_true_mean(x) + _true_std(x) * rng.standard_normal(x.shape))[:, 0]


def _truth(rows: _Rows) -> dict[str, Any]:
    """Score the distribution from which the targets are drawn: no model can do better."""
    y = torch.from_numpy(rows.y_test)
    mean, std = (torch.from_numpy(f(rows.X_test)[:, 0]) for f in (_true_mean, _true_std))
    perfect = Normal(mean, std)
    return {
        "rmse": _one(float(metrics.rmse(mean, y))),
        "nll": _one(float(metrics.nll(perfect, y).mean())),
    }


def _curves(config: CurveConfig, models: Mapping[str, Any]) -> dict[str, Any]:
    """Trace prediction and uncertainty over a grid that is wider than the data."""
    x = np.linspace(-config.curve_edge, config.curve_edge, config.n_curve)[:, None]
    curves: dict[str, Any] = {
        "x": _numbers(x),
        "truth": {"mean": _numbers(_true_mean(x)), "data_std": _numbers(_true_std(x))},
    }
    for name, model in models.items():
        known = model.predict_uncertainty(x)
        curves[name] = {"mean": _numbers(model.predict(x))}
        for part in PARTS:
            variance = getattr(known, f"{part}_variance")
            curves[name][f"{part}_std"] = _numbers(np.sqrt(variance))
    return curves


def _numbers(values: FloatArray) -> list[float]:
    """Round values to the digits that a plot can show."""
    return [float(f"{value:.6g}") for value in values.ravel().tolist()]


def study_table(config: TableConfig, *, verbose: bool = False) -> Study:
    """Train five methods on the diabetes table, and measure them on held-out rows.

    Args:
        config: Settings; see :data:`TABLE_PRESETS`. One seed gives one set of numbers.
        verbose: Show a progress bar for each training.
    """
    started = time.perf_counter()
    rows = _split(config)
    methods, evaluations, _ = _compare(_ON_TABLE, config, rows, verbose)
    content = {"n_train": len(rows.y), "n_test": len(rows.y_test), "methods": methods}
    preset = preset_of(config, TABLE_PRESETS)
    return Study(_results("diabetes", preset, config, content, started), evaluations)


def _results(
    dataset: str, preset: str, config: Training, content: dict[str, Any], started: float
) -> dict[str, Any]:
    """Put the results of a study together, ready for JSON."""
    return {
        "dataset": dataset,
        "preset": preset,
        "config": asdict(config),
        **content,
        "seconds": round(time.perf_counter() - started, 2),
        **_origin(),
    }


def _split(config: TableConfig) -> _Rows:
    X, y = load_diabetes()
    rng = np.random.default_rng(config.seed)
    order = rng.permutation(len(X))
    n_test = round(config.test_share * len(X))
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    X_test = X.iloc[test]
    moved = _moved(X_test, X.iloc[train].std(), config.shift, rng)
    return _Rows(X.iloc[train], y.iloc[train], X_test, y.iloc[test], moved)


def _moved(X: Any, deviation: Any, shift: float, rng: np.random.Generator) -> Any:
    """Move one measurement of each row up or down; sex, a code, stays."""
    names = [name for name in X.columns if name != "sex"]
    moved = X.astype(float)
    columns = rng.choice(names, len(X))
    signs = rng.choice([-1.0, 1.0], len(X))
    for row, column, sign in zip(X.index, columns, signs, strict=True):
        moved.loc[row, column] += sign * shift * deviation[column]
    return moved


class _Rows(NamedTuple):
    """Rows to learn from, held-out rows, and rows out of domain."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    X_ood: Any


def _compare(
    names: Iterable[str],
    config: Training,
    rows: _Rows,
    verbose: bool,
    for_prior_net: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], dict[str, Evaluation], dict[str, Any]]:
    """Train and measure methods in turn: scores, evaluations and models by the method's name."""
    methods: dict[str, Any] = {}
    evaluations: dict[str, Evaluation] = {}
    models: dict[str, Any] = {}
    for name in names:
        begun = time.perf_counter()
        more = (for_prior_net or {}) if name == "NWPN" else {}
        models[name] = model = _make(name, config, models, verbose).fit(rows.X, rows.y, **more)
        seconds = time.perf_counter() - begun
        evaluations[name] = evaluation = evaluate(model, rows.X_test, rows.y_test, rows.X_ood)
        words, _ = model.predict_verdict(rows.X_ood, return_columns=True)
        unfamiliar = float((words == "unfamiliar").mean())
        methods[name] = {**_metrics(evaluation, unfamiliar, seconds), **_origin()}
    return methods, evaluations, models


def _origin() -> dict[str, Any]:
    return {"device": "cpu", **provenance()}


def _make(name: str, config: Training, trained: dict[str, Any], verbose: bool) -> Any:
    """Make an estimator with its own defaults; the student's teacher is the trained ensemble."""
    settings: dict[str, Any] = {"epochs": config.epochs}
    if name in STUDENTS:
        settings = {"teacher": trained.get("ENSM"), "student_epochs": config.student_epochs}
    elif name == "ENSM":
        settings["n_members"] = config.n_members
    return make_estimator(name, **settings, random_state=config.seed, verbose=verbose)


def _metrics(evaluation: Evaluation, unfamiliar: float, seconds: float) -> dict[str, Any]:
    scores, outside = evaluation.metrics, evaluation.spread_ood
    assert outside is not None
    coverage = scores["coverage"]["predictive"]
    return {
        **{name: _one(scores[name]) for name in _SCORES},
        "coverage": {level: _one(coverage[level]["share"]) for level in _COVERAGES},
        "in_domain": _averages(evaluation.spread.measures),
        "out_of_domain": _averages(outside.measures),
        "unfamiliar": {
            "in_domain": _one(scores["verdicts"]["unfamiliar"] / scores["n_rows"]),
            "out_of_domain": _one(unfamiliar),
        },
        "prr": {name: _one(value) for name, value in scores["prr"].items()},
        "ood_auc": {name: _one(value) for name, value in scores["ood_auc"].items()},
        "seconds": round(seconds, 2),
    }


def _means(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mean of every summary, however deep it lies."""
    return {
        name: value.get("mean", _means(value))
        for name, value in scores.items()
        if isinstance(value, dict)
    }


def _averages(measures: dict[str, Any]) -> dict[str, Any]:
    return {name: _one(float(values.mean())) for name, values in measures.items()}


def _one(value: float | None) -> dict[str, Any]:
    """Summarise a single run; None is what JSON cannot say."""
    return summary([math.nan if value is None else value])
