"""Depth results made by hand, in the form that the experiment writes."""

import numpy as np

from priornet.evaluation.results import summary
from priornet_paper.depth import config_for
from priornet_paper.depth.protocol import PROTOCOLS
from priornet_paper.page.numbers import OOD_SETS, published_depth

MEASURES = ("total_entropy", "total_variance", "expected_entropy")
KNOWLEDGE = ("mutual_information", "epkl", "variance_of_mean")
N_SEEDS = {"nyu": 3, "kitti": 2}


def seeds(mean, n, spread=0.001):
    """As many values with this mean."""
    return summary((mean + spread * np.linspace(-1, 1, n)).tolist())


def scores(dataset, method, n):
    """The paper's own numbers as if we had measured them, and made-up ones where it has none."""
    paper = published_depth()
    found = {
        metric: seeds(value.mean, n)
        for metric in ("delta1", "delta2", "delta3", "rel", "rmse", "log10")
        if (value := paper.get(dataset, method, metric)) is not None
    }
    found["rmse_log10"] = seeds(1.3 * paper.numbers[dataset, method, "rel"].mean / 2.3, n)
    if method == "DD":
        return found
    nll = paper.numbers[dataset, method, "nll"].mean
    measures = MEASURES if method in ("Single", "EnD") else MEASURES + KNOWLEDGE
    levels, curves = np.linspace(0, 1, 51).tolist(), ("predictive_quantiles",)
    curves += ("predictive_intervals", "normal_intervals")
    shares = [1 / 120] * 120
    found |= {
        "nll": seeds(nll, n),
        "nll_moment_matched": seeds(nll + 0.1, n),
        "nll_quantiles": {q: seeds(float(q) / 20, n) for q in ("50", "90", "99", "99.9")},
        "nll_histogram": {"from": -4.0, "to": 8.0, "shares": shares, "above": seeds(0.0, n, 0.0)},
        "calibration": {"expected": levels} | {c: {"mean": levels, "values": []} for c in curves},
        "c_auc": {c: seeds(0.1, n) for c in curves},
        "spearman_depth": {m: seeds(0.5, n) for m in measures},
        "spearman_error": {m: {"rmse": seeds(0.4, n), "rel": seeds(0.3, n)} for m in measures},
    }
    aucs = {}
    for other in OOD_SETS[dataset]:
        printed = {m: paper.get(dataset, method, "ood_auc", other, m) for m in measures}
        if any(printed.values()):
            aucs[other] = {m: seeds(v.mean if v else 0.5, n) for m, v in printed.items()}
    found["ood_auc"] = aucs
    if method in ("EnD2", "EnD", "MD-EnD"):
        within = {"within_images": seeds(0.9, n), "over_all": seeds(0.8, n)}
        found["agreement"] = dict.fromkeys((*measures, "prediction"), within)
    return found


SIGNED = {"commit": "0123456789abcdef", "dirty": False}


def depth_content(dataset, n_seeds=None, **more):
    """A results file: every method, EnD2 with T = 1 and one more prior network."""
    n = n_seeds or N_SEEDS[dataset]
    methods = ("DD", "Single", "ENSM", "EnD2", "NWPN", "DER", "EnD", "MD-EnD")
    preset = config_for(dataset, "fast")
    config = preset.to_json() | {"seeds": list(range(n)), "temperature": 10.0}
    return {
        "dataset": dataset,
        "preset": "fast",
        "config": config,
        "protocol": PROTOCOLS[dataset].record((preset.height, preset.width)),
        "n_train": 795,
        "n_test": 654,
        "foreign": dict.fromkeys(OOD_SETS[dataset], 300),
        "methods": {method: {**scores(dataset, method, n), **SIGNED} for method in methods},
        "variants": {
            "EnD2-T1": scores(dataset, "EnD2", n),
            "NWPN-g0": scores(dataset, "NWPN", n),
        },
        "seconds": 600.0,
        "device": "NVIDIA H200",
        "versions": {"priornet": "0.1"},
        **SIGNED,
        **more,
    }
