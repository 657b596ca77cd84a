"""Five estimators side by side on a real table: the diabetes set that comes with scikit-learn.

* ENSM, an ensemble of Gaussian networks;
* EnD2, one Normal-Wishart network distilled from it;
* NWPN, one Normal-Wishart network by reverse KL;
* DER, deep evidential regression;
* Single, one Gaussian network.

A fifth of the rows is held out. Out-of-domain rows are the held-out ones with one measurement
each, drawn at random, moved six standard deviations up or down: what a slipped decimal point or a
wrong unit does to a table.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from priornet.evaluation.evaluate_model import Evaluation, evaluate
from priornet.evaluation.results import preset_of, provenance, summary
from priornet.methods import STUDENTS
from priornet.tables.diabetes import load_diabetes

__all__ = ["METHODS", "PRESETS", "Config", "Study", "run", "study"]

METHODS = ("ENSM", "EnD2", "NWPN", "DER", "Single")

_COVERAGES = ("0.5", "0.8", "0.9", "0.95")


@dataclass(frozen=True)
class Config:
    """Settings of one run; the defaults are those of the estimators."""

    seed: int = 0
    """Seed of the split, of what is moved out of domain, and of every training."""
    test_share: float = 0.2
    """Share of the rows that is held out."""
    shift: float = 6.0
    """Standard deviations by which one measurement of an out-of-domain row is moved."""
    n_members: int = 10
    """Networks in the ensemble."""
    epochs: int | Literal["auto"] = "auto"
    """Passes over the rows at most, for every method but EnD2."""
    student_epochs: int | Literal["auto"] = "auto"
    """Passes over the rows, for EnD2."""

    def __post_init__(self) -> None:
        """Refuse what cannot run; the estimators check their own settings."""
        if not 0 < self.test_share < 1:
            raise ValueError(f"`test_share` must lie between 0 and 1; got {self.test_share}.")


PRESETS = {
    "demo": Config(),
    "smoke": Config(n_members=2, epochs=3, student_epochs=3),
}


class Study(NamedTuple):
    """Results, ready for JSON, and the evaluations behind them, which make a report."""

    results: dict[str, Any]
    evaluations: dict[str, Evaluation]


class _Rows(NamedTuple):
    """Rows to learn from, held-out rows, and the same out of domain."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    X_out: Any


def run(config: Config, *, verbose: bool = False) -> dict[str, Any]:
    """Train the five methods and measure them on held-out rows.

    Args:
        config: Settings; see :data:`PRESETS`.
        verbose: Show a progress bar for each training.

    Returns:
        The results, ready for JSON. One seed gives one set of numbers on one processor.
    """
    return study(config, verbose=verbose).results


def study(config: Config, *, verbose: bool = False) -> Study:
    """The same, with the evaluations."""
    started = time.perf_counter()
    rows = _split(config)
    methods: dict[str, Any] = {}
    origin = {"device": "cpu", **provenance()}
    evaluations: dict[str, Evaluation] = {}
    models: dict[str, Any] = {}
    for name in METHODS:
        begun = time.perf_counter()
        models[name] = model = _make(name, config, models, verbose).fit(rows.X, rows.y)
        seconds = time.perf_counter() - begun
        evaluations[name] = evaluation = evaluate(model, rows.X_test, rows.y_test, rows.X_out)
        words, _ = model.predict_verdict(rows.X_out, return_columns=True)
        foreign = (words == "unfamiliar").mean()
        methods[name] = {**_metrics(evaluation, float(foreign), seconds), **origin}
    results = {
        "dataset": "diabetes",
        "preset": preset_of(config, PRESETS),
        "config": asdict(config),
        "n_train": len(rows.y),
        "n_test": len(rows.y_test),
        "methods": methods,
        "seconds": round(time.perf_counter() - started, 2),
        **origin,
    }
    return Study(results, evaluations)


def _split(config: Config) -> _Rows:
    X, y = load_diabetes()
    rng = np.random.default_rng(config.seed)
    order = rng.permutation(len(X))
    n_test = round(config.test_share * len(X))
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    X_test = X.iloc[test]
    return _Rows(
        X.iloc[train],
        y.iloc[train],
        X_test,
        y.iloc[test],
        _moved(X_test, X.iloc[train].std(), config.shift, rng),
    )


def _moved(X: Any, deviation: Any, shift: float, rng: np.random.Generator) -> Any:
    """Each row with one of its measurements moved up or down; sex, a code, stays."""
    names = [name for name in X.columns if name != "sex"]
    moved = X.astype(float)
    columns = rng.choice(names, len(X))
    signs = rng.choice([-1.0, 1.0], len(X))
    for row, column, sign in zip(X.index, columns, signs, strict=True):
        moved.loc[row, column] += sign * shift * deviation[column]
    return moved


def _make(name: str, config: Config, trained: dict[str, Any], verbose: bool) -> Any:
    """An estimator with its own defaults; the student learns from the ensemble trained before."""
    from priornet.estimators import make_estimator

    settings: dict[str, Any] = {"epochs": config.epochs}
    if name in STUDENTS:
        settings = {"teacher": trained.get("ENSM"), "student_epochs": config.student_epochs}
    elif name == "ENSM":
        settings["n_members"] = config.n_members
    return make_estimator(name, **settings, random_state=config.seed, verbose=verbose)


def _metrics(evaluation: Evaluation, foreign: float, seconds: float) -> dict[str, Any]:
    scores, outside = evaluation.metrics, evaluation.spread_ood
    assert outside is not None
    coverage = scores["coverage"]["predictive"]
    return {
        **{name: _one(scores[name]) for name in ("rmse", "nll", "crps", "miscalibration_area")},
        "coverage": {level: _one(coverage[level]["share"]) for level in _COVERAGES},
        "in_domain": _means(evaluation.spread.measures),
        "out_of_domain": _means(outside.measures),
        "unfamiliar": {
            "in_domain": _one(scores["verdicts"]["unfamiliar"] / scores["n_rows"]),
            "out_of_domain": _one(foreign),
        },
        "prr": {name: _one(value) for name, value in scores["prr"].items()},
        "ood_auc": {name: _one(value) for name, value in scores["ood_auc"].items()},
        "seconds": round(seconds, 2),
    }


def _means(measures: dict[str, Any]) -> dict[str, Any]:
    return {name: _one(float(values.mean())) for name, values in measures.items()}


def _one(value: float | None) -> dict[str, Any]:
    """The summary of a single run; None is what JSON cannot say."""
    return summary([math.nan if value is None else value])
