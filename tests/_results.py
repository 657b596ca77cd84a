"""Results made by hand, in the form that the experiments write."""

import pytest

from priornet.evaluation.results import provenance, signature_of, summary
from priornet_paper.page.numbers import MEASURES, PAPER_METHODS, published

CONFIG = {"seed": 0, "n_folds": 2, "grids": {"Single": {"learning_rate": [0.001, 0.01]}}}


def around(mean, spread=0.01):
    """Two folds with this mean and this standard error."""
    return summary([mean - spread, mean + spread])


def paper_methods(dataset, shift=0.0):
    """The paper's own numbers as if we had measured them, all worse by ``shift``."""
    paper = published()
    methods = {}
    for method in PAPER_METHODS:
        own = {m: around(paper.numbers[dataset, method, m].mean + shift) for m in ("rmse", "nll")}
        own |= {"crps": around(0.5), "coverage90": around(0.9)}
        for metric in ("prr", "ood_auc"):
            found = {m: paper.get(dataset, method, metric, m) for m in MEASURES}
            own[metric] = {m: n and around(n.mean - shift) for m, n in found.items()}
        methods[method] = own
    return methods


def content(dataset, methods, *, preset="paper", complete=True, n_rows=100, **more):
    return {
        "dataset": dataset,
        "preset": preset,
        "complete": complete,
        "n_rows": n_rows,
        "n_features": 8,
        "config": CONFIG,
        "methods": methods,
        "seconds": 60.0,
        "device": "cpu",
        "versions": {"priornet": "0.1", "torch": "2.8"},
        "commit": "0123456789abcdef",
        "dirty": False,
        **more,
    }


def assert_reproduced(now, committed, method, scores, *, fold=0, loose):
    """Fail where a method does not repeat what a committed file says of it.

    On the processor and with the torch and numpy that the file names, numbers repeat bit for bit.
    Others round differently, and training carries that as far as another seed would: then only
    large differences are found.

    Args:
        now: Results of this run.
        committed: The file.
        method: Name of the method.
        scores: Scores to compare, the first value of each of ``now``.
        fold: Which value of the file it repeats.
        loose: How far a score may lie off on another machine.
    """
    own, known = (results["methods"][method] for results in (now, committed))
    here, there = provenance(), signature_of(committed, known)
    is_same = here["processor"] is not None and here["processor"] == there["processor"]
    is_same &= all(here["versions"][name] == there["versions"][name] for name in ("torch", "numpy"))
    found = {name: own[name]["values"][0] for name in scores}
    wanted = {name: known[name]["values"][fold] for name in scores}
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9 if is_same else loose), method
