"""Four kinds of ensemble, each distilled into one network: what is kept, and what it costs.

On concrete, power and protein a tenth of the rows is held out, in each of three splits. Teachers:
ten CatBoost models, a random forest, a Gaussian process on a subsample, and five PyTorch networks
from a plain loop. Each is distilled without targets, with the estimator's defaults. One run prints,
for each pair, averages over the splits:

- RMSE of the student over that of the teacher, on held-out truth;
- the rank correlation of V[mu] with the teacher's, on held-out and as many generated rows;
- rows per second of the student over those of the teacher, from raw rows to Gaussians, on
  held-out rows repeated to 10 000: of fewer, the time is that of the call.

Needs the extra `catboost`. Tables are looked for as `priornet datasets` says.

    PRIORNET_DATA=... python benchmarks/distill.py [--splits 3] [--json out.json]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from priornet import DistilledRegressor
from priornet.distill import (
    CatBoostTeacher,
    ForestTeacher,
    GaussianProcessTeacher,
    ModulesTeacher,
    Teacher,
)
from priornet.distill.faithfulness import rows_per_second
from priornet.evaluation.results import provenance, write_results
from priornet_paper.uci.data import load_uci

SEED = 0
TIMED_ROWS = 10_000
GP_ROWS = (500, 1000)  # to choose the kernel on, and to keep
# Largest ratio of RMSE, least rank correlation, least ratio of speeds.
GOALS = {
    "catboost": (1.08, 0.6, 5.0),
    "forest": (1.08, 0.6, 5.0),
    "gp": (1.03, 0.8, 5.0),
    "networks": (1.03, 0.8, 2.0),
}


def catboost_teacher(X: np.ndarray, y: np.ndarray) -> Teacher:
    from catboost import CatBoostRegressor

    def member(seed: int) -> Any:
        model = CatBoostRegressor(
            loss_function="RMSEWithUncertainty",
            iterations=500,
            random_seed=seed,
            bootstrap_type="Bernoulli",
            subsample=0.8,
            verbose=False,
            allow_writing_files=False,
        )
        return model.fit(X, y)

    return CatBoostTeacher([member(seed) for seed in range(10)])


def forest_teacher(X: np.ndarray, y: np.ndarray) -> Teacher:
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(100, min_samples_leaf=3, random_state=SEED)
    return ForestTeacher(model.fit(X, y), X, y)


def gp_teacher(X: np.ndarray, y: np.ndarray) -> Teacher:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    few, kept = (slice(0, n) for n in GP_ROWS)  # the rows come shuffled
    kernel: Any = ConstantKernel(1.0) * RBF(np.ones(X.shape[1])) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a column that does not matter
        model.fit(X[few], y[few])
    fixed = GaussianProcessRegressor(model.kernel_, optimizer=None, normalize_y=True)
    return GaussianProcessTeacher(fixed.fit(X[kept], y[kept]))


class Net(nn.Module):
    """Mean and variance of the target, in its own units."""

    def __init__(self, n_inputs: int, shift: float, scale: float) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
        )
        self.shift, self.scale = shift, scale

    def forward(self, x):
        mean, log_std = self.body(x).unbind(-1)
        std = torch.exp(log_std.clamp(-7, 7)) * self.scale
        return self.shift + self.scale * mean, std.square()


def networks_teacher(X: np.ndarray, y: np.ndarray) -> Teacher:
    x, target = torch.tensor(X).float(), torch.tensor(y).float()
    members = []
    for seed in range(5):
        torch.manual_seed(seed)
        net = Net(X.shape[1], float(y.mean()), float(y.std()))
        n_steps, size = min(max(100 * len(x) // 128, 1500), 6000), 128  # longer would overfit
        optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-4)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)
        for _ in range(n_steps):
            rows = torch.randint(len(x), (size,))
            mean, variance = net(x[rows])
            loss = nn.functional.gaussian_nll_loss(mean, target[rows], variance)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        members.append(net)
    return ModulesTeacher(members)


TEACHERS = {
    "catboost": catboost_teacher,
    "forest": forest_teacher,
    "gp": gp_teacher,
    "networks": networks_teacher,
}


def split_table(name: str, split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Shuffled, standardised inputs and targets: nine tenths to train on, one tenth held out."""
    table = load_uci(name)
    order = np.random.default_rng(split).permutation(len(table.targets))
    n_train = round(0.9 * len(order))
    train, held = order[:n_train], order[n_train:]
    mean, std = table.inputs[train].mean(0), table.inputs[train].std(0)
    X = (table.inputs - mean) / np.where(std > 0, std, 1)
    return X[train], table.targets[train], X[held], table.targets[held]


def speeds(student: DistilledRegressor, teacher: Teacher, held: np.ndarray) -> dict[str, float]:
    """Rows per second of both, the best of a few, on as many rows."""
    rows = np.resize(held, (TIMED_ROWS, held.shape[1]))
    return {
        "student": rows_per_second(lambda: student.predict_belief(rows), TIMED_ROWS),
        "teacher": rows_per_second(lambda: teacher.gaussians(rows), TIMED_ROWS),
    }


def run(name: str, kind: str, split: int) -> dict[str, Any]:
    """One teacher of one table, and its student."""
    X, y, held, held_y = split_table(name, split)
    start = time.perf_counter()
    teacher = TEACHERS[kind](X, y)
    taught = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what is not faithful is in the figures
        student = DistilledRegressor(teacher, random_state=SEED).fit(X)
    distilled = time.perf_counter()
    found = student.faithfulness(held, held_y)
    assert found.truth is not None
    ours, theirs = found.truth["student"], found.truth["teacher"]
    speed = speeds(student, teacher, held)
    return {
        "table": name,
        "teacher": kind,
        "split": split,
        "rmse_ratio": ours["rmse"] / theirs["rmse"],
        "nll_difference": ours["nll"] - theirs["nll"],
        "rank_knowledge": found.everywhere.rank_knowledge,
        "speed_ratio": speed["student"] / speed["teacher"],
        "rows_per_second": speed,
        "size_ratio": found.times_smaller,
        "seconds_teacher": taught - start,
        "seconds_student": distilled - taught,
        "faithfulness": found.to_json(),
    }


def average(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over splits: a tenth of a small table is few rows."""
    keys = ("rmse_ratio", "rank_knowledge", "speed_ratio", "nll_difference", "seconds_student")
    return rows[0] | {key: statistics.fmean(row[key] for row in rows) for key in keys}


def reached(row: dict[str, Any]) -> tuple[bool, bool, bool]:
    """Tell which of the three goals are reached."""
    rmse, rank, speed = GOALS[row["teacher"]]
    return row["rmse_ratio"] <= rmse, row["rank_knowledge"] >= rank, row["speed_ratio"] >= speed


def line(label: str, row: dict[str, Any]) -> str:
    """Format the printed row of a run, with a star where it is short of the goal."""
    shown = [f"{row[key]:.3f}" for key in ("rmse_ratio", "rank_knowledge", "speed_ratio")]
    marks = [text + (" " if good else "*") for text, good in zip(shown, reached(row), strict=True)]
    cells = " ".join(f"{text:>11}" for text in marks)
    return f"{label:<24} {cells} {row['nll_difference']:>9.3f}  {row['seconds_student']:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", nargs="+", default=["concrete", "power", "protein"])
    parser.add_argument("--teachers", nargs="+", default=list(TEACHERS), choices=list(TEACHERS))
    parser.add_argument("--splits", type=int, default=3, help="averages over so many splits")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    # Weight decay leaves denormal numbers in the teachers' networks, which would slow them down.
    torch.set_flush_denormal(True)
    rows: list[dict[str, Any]] = []
    header = (
        f"{'':<24} {'RMSE ratio':>11} {'rank V[mu]':>11} {'speed ratio':>11} {'NLL diff':>9}  s"
    )
    print(header)
    for split in range(args.splits):  # outermost: whoever stops early has whole splits
        for name, kind in itertools.product(args.tables, args.teachers):
            rows.append(run(name, kind, split))
            print(line(f"{name}, {kind}, {split}", rows[-1]), flush=True)
            if args.json:
                settings = {"seed": SEED, "goals": GOALS, "gp_rows": GP_ROWS}
                settings |= {"threads": torch.get_num_threads(), "timed_rows": TIMED_ROWS}
                write_results(args.json, {**settings, "runs": rows} | provenance())
    print(f"\naverages\n{header}")
    for name, kind in itertools.product(args.tables, args.teachers):
        own = [row for row in rows if (row["table"], row["teacher"]) == (name, kind)]
        print(line(f"{name}, {kind}", average(own)))
    print("* short of the goal")


if __name__ == "__main__":
    main()
