"""Quality of the estimators' defaults: no setting is given.

Each table is split into folds; every estimator fits with its defaults. Printed and written: NLL and
RMSE of each, the EnD2 student's NLL minus its ensemble's, and how much larger the knowledge
standard deviation is six standard deviations outside the data (all columns at once) than inside.

    python benchmarks/quality.py [--data DIR] [--folds 2] [--train-rows 60] [--json out.json]

The defaults were chosen on boston, concrete, energy, power, protein, wine, diabetes and naval: on
those eight the figures flatter.

Tables: diabetes and three synthetic ones that scikit-learn makes; with ``--data``, also every
Parquet file of a folder (target in the last column), at most 5000 rows of each. ``--train-rows``
makes them small: so many rows of a fold's training part, and the whole of its test part, which
tells small differences that a small test part would not.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn import datasets

from priornet import (
    DeepEnsembleRegressor,
    DistilledRegressor,
    EvidentialRegressor,
    GaussianRegressor,
    PriorNetRegressor,
)
from priornet.evaluation.results import provenance, summary, write_results

MOST_ROWS = 5000
SEED = 0
Table = tuple[np.ndarray, np.ndarray]


def tables(folder: Path | None, names: list[str]) -> dict[str, Table]:
    """Name to inputs and targets."""
    rng = np.random.RandomState(SEED)
    found: dict[str, Table] = {
        "diabetes": datasets.load_diabetes(return_X_y=True, scaled=False),
        "friedman1": datasets.make_friedman1(1000, noise=1.0, random_state=SEED),
        "friedman2": datasets.make_friedman2(1000, noise=100.0, random_state=SEED),
        "friedman3": datasets.make_friedman3(1000, noise=0.1, random_state=SEED),
    }
    for path in sorted(folder.glob("*.parquet")) if folder else []:
        import pandas as pd

        values = pd.read_parquet(path).select_dtypes("number").to_numpy(np.float64)
        kept = rng.permutation(len(values))[:MOST_ROWS]
        found[path.stem] = values[kept, :-1], values[kept, -1]
    unknown = sorted(set(names) - set(found))
    if unknown:
        raise SystemExit(f"unknown table {unknown[0]}; choose from: {', '.join(found)}")
    return {name: table for name, table in found.items() if not names or name in names}


def measure(model: Any, X: np.ndarray, y: np.ndarray, far: np.ndarray) -> dict[str, float]:
    """Accuracy on held-out rows, and knowledge inside and outside."""
    dist = model.predict_dist(X)
    inside, outside = (
        np.sqrt(np.median(model.predict_uncertainty(rows).knowledge_variance)) for rows in (X, far)
    )
    return {
        "nll": float(-dist.log_prob(torch.tensor(y)).mean()),
        "rmse": float(np.sqrt(np.mean((dist.mean.numpy() - y) ** 2))),
        "knowledge_ratio": float(outside / inside) if inside > 0 else 0.0,  # Single has none
    }


def run_fold(
    X: np.ndarray, y: np.ndarray, fold: int, n_folds: int, n_train: int | None
) -> dict[str, dict[str, float]]:
    """Every estimator on one fold; the student's own teacher is the ensemble."""
    order = np.random.RandomState(SEED).permutation(len(X))
    test = order[fold::n_folds] if n_folds > 1 else order[: len(X) // 5]
    train = np.setdiff1d(order, test)
    rng = np.random.RandomState(fold)
    if n_train is not None:
        train = np.sort(np.random.RandomState(100 + fold).permutation(train)[:n_train])
    centre, spread = X[train].mean(0), X[train].std(0)
    far = centre + 6 * spread * rng.choice([-1.0, 1.0], size=(len(test), X.shape[1]))
    student = DistilledRegressor(random_state=fold).fit(X[train], y[train])
    teacher = student.teacher_
    assert isinstance(teacher, DeepEnsembleRegressor)
    models = {"ENSM": teacher, "EnD2": student}
    others = {"Single": GaussianRegressor, "NWPN": PriorNetRegressor, "DER": EvidentialRegressor}
    models |= {n: cls(random_state=fold).fit(X[train], y[train]) for n, cls in others.items()}
    return {name: measure(model, X[test], y[test], far) for name, model in models.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder with Parquet tables")
    parser.add_argument("--tables", nargs="*", default=[], help="only these")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--most-folds", type=int, default=2, help="run only the first ones")
    parser.add_argument("--train-rows", type=int, help="learn from so many rows of each fold")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    started = time.perf_counter()
    results: dict[str, Any] = {}
    for name, (X, y) in tables(args.data, args.tables).items():
        folds = [
            run_fold(X, y, f, args.folds, args.train_rows)
            for f in range(min(args.folds, args.most_folds))
        ]
        results[name] = {
            method: {
                key: summary([fold[method][key] for fold in folds]) for key in folds[0][method]
            }
            for method in folds[0]
        }
        mean = {m: {k: v["mean"] for k, v in values.items()} for m, values in results[name].items()}
        print(f"{name} ({len(X)} x {X.shape[1]}), {len(folds)} folds")
        for method, values in mean.items():
            print(
                f"  {method:<7} NLL {values['nll']:8.3f}  RMSE {values['rmse']:10.4f}  "
                f"against Single {values['nll'] - mean['Single']['nll']:+.3f}  "
                f"knowledge outside / inside {values['knowledge_ratio']:10.1f}"
            )
        print(f"  EnD2 minus ensemble {mean['EnD2']['nll'] - mean['ENSM']['nll']:+.4f}", flush=True)
    if args.json:
        settings = {"seed": SEED, "folds": args.folds, "most_folds": args.most_folds}
        settings["train_rows"] = args.train_rows
        seconds = {"seconds": round(time.perf_counter() - started, 1), "device": "cpu"}
        write_results(args.json, settings | {"tables": results} | seconds | provenance())


if __name__ == "__main__":
    main()
