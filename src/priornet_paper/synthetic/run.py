r"""The paper's experiment on synthetic data: three ways to know what a regression does not know.

* ENSM, ten Gaussian networks trained by likelihood from different starts;
* EnD2, one Normal-Wishart network that has learnt the distribution of the ten, Eq. (17);
* NWPN, one Normal-Wishart network trained by reverse KL on data and on out-of-domain inputs,
  Eqs. (8) and (11).

The noise is known here, so data uncertainty can be compared with the truth; knowledge uncertainty
should be small where there was data and large where there was none.

Beside them run the variants, each a method with a setting changed: what mends a shortcoming of the
paper's own settings, and the forward KL, which the paper says does not work.

Paper: section 4 and its appendix, arXiv:2006.11590v2.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from priornet import training
from priornet.evaluation import preset_of, provenance
from priornet_paper.synthetic.config import METHODS, PRESETS, VARIANTS, Config
from priornet_paper.synthetic.data import Data, Predictor
from priornet_paper.synthetic.score import against, measure, numbers, summarise, trace
from priornet_paper.synthetic.train import (
    Ensembles,
    train_ensembles,
    train_prior_networks,
    train_students,
)


class Tick(NamedTuple):
    """Progress of a run; handed to the ``progress`` callback after every epoch."""

    method: str
    epoch: int
    done: float
    loss: float


Report = Callable[[Tick], object]


def run(config: Config, progress: Report | None = None) -> dict[str, Any]:
    """Train the methods, measure them, and trace their curves.

    Args:
        config: Settings; see :data:`PRESETS`.
        progress: Called after every epoch.

    Returns:
        The results, ready for JSON: metrics of each method and variant over the repetitions, the
        curves behind the figure and the training data of the first one, and what it took to make
        them. One seed gives one set of numbers on one processor.
    """
    started = time.perf_counter()
    data = Data(config)
    predictors, seconds = _train(data, progress)
    methods, truth = _measure(config, predictors)
    origin = {"device": "cpu", **provenance()}
    for name, found in methods.items():
        found |= {"seconds": seconds[name], **origin}
    return {
        "dataset": "synthetic",
        "preset": preset_of(config, PRESETS),
        "config": asdict(config),
        "methods": {name: methods[name] for name in METHODS},
        "variants": {name: {**_described(name), **methods[name]} for name in config.variants},
        "truth": truth,
        "curves": trace(config, {name: each[0] for name, each in predictors.items()}),
        "train": {"x": numbers(data.x[0]), "y": numbers(data.y[0])},
        "seconds": round(time.perf_counter() - started, 2),
        **origin,
    }


def _measure(
    config: Config, predictors: dict[str, list[Predictor]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Summarise the metrics of every method over the repetitions, and those of the truth."""
    measured = [
        measure(config, seed, {name: each[i] for name, each in predictors.items()})
        for i, seed in enumerate(config.seeds)
    ]
    methods = {name: summarise([found[name] for found, _ in measured]) for name in predictors}
    for name, found in methods.items():
        if _method(name) == "EnD2":
            pairs = zip(config.seeds, predictors[name], predictors["ENSM"], strict=True)
            found["against_ensemble"] = summarise([against(config, *pair) for pair in pairs])
    return methods, summarise([truth for _, truth in measured])


def _method(name: str) -> str:
    """Return the method that a variant varies; a method's own name."""
    return VARIANTS[name].method if name in VARIANTS else name


def _described(name: str) -> dict[str, Any]:
    variant = VARIANTS[name]
    return {"of": variant.method, "change": dict(variant.change), "why": variant.why}


def _train(
    data: Data, progress: Report | None
) -> tuple[dict[str, list[Predictor]], dict[str, float]]:
    """Train a predictor per repetition for every method and variant; return also the seconds."""
    names = (*METHODS, *data.config.variants)
    predictors: dict[str, list[Predictor]] = {}
    seconds: dict[str, float] = {}
    ensembles: Ensembles | None = None
    for place, name in enumerate(names):
        began = time.perf_counter()
        own = replace(data.config, **VARIANTS[name].change) if name in VARIANTS else data.config

        def report(tick: training.Tick, name: str = name, place: int = place) -> None:
            if progress is not None:
                done = (place + tick.epoch / tick.n_epochs) / len(names)
                progress(Tick(name, tick.epoch, done, tick.loss))

        if ensembles is None:
            ensembles = train_ensembles(data, report)
            predictors[name] = ensembles.predictors
        elif _method(name) == "EnD2":
            predictors[name] = train_students(data, own, ensembles, report)
        else:
            predictors[name] = train_prior_networks(data, own, report)
        seconds[name] = round(time.perf_counter() - began, 2)
    return predictors, seconds
