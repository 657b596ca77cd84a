"""Scoring a large table: rows per second and peak memory of ``priornet predict``.

A Parquet file of standard normal columns is scored from end to end by real processes: read, scored
and written, with memory as the system saw it. Where CatBoost is installed, its virtual ensembles
(1000 trees, ten members, posterior sampling) score the same rows in turn, batch by batch, and write
mean, knowledge and data uncertainty. Both models learn from the same 2000 rows.

    python benchmarks/scoring.py [--rows 5000000] [--json out.json]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from priornet.evaluation.results import provenance, write_results

SEED = 0
N_COLUMNS = 10
N_TRAINING = 2000
PIECE = 250_000
NAMES = [f"x{j}" for j in range(N_COLUMNS)]
TREES, VIRTUAL_MEMBERS = 1000, 10


def curve(x: np.ndarray) -> np.ndarray:
    """The function that both models learn, before noise."""
    return np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3]


def write_tables(folder: Path, n_rows: int) -> None:
    """A training table in CSV, and the rows to score in Parquet."""
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((N_TRAINING, N_COLUMNS))
    y = curve(x) + 0.3 * rng.standard_normal(N_TRAINING)
    pd.DataFrame(x, columns=NAMES).assign(y=y).to_csv(folder / "training.csv", index=False)
    schema = pa.schema([(name, pa.float64()) for name in NAMES])
    with pq.ParquetWriter(folder / "rows.parquet", schema) as writer:
        for start in range(0, n_rows, PIECE):
            x = rng.standard_normal((min(PIECE, n_rows - start), N_COLUMNS))
            writer.write_table(pa.table(list(x.T), schema=schema))


def run(command: list[str]) -> dict[str, float]:
    """Seconds, seconds of processors, and peak megabytes of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


def catboost_fit(folder: Path) -> None:
    from catboost import CatBoostRegressor  # pyright: ignore[reportMissingImports] # not a dependency

    table = pd.read_csv(folder / "training.csv")
    model = CatBoostRegressor(
        iterations=TREES,
        loss_function="RMSEWithUncertainty",
        posterior_sampling=True,
        random_seed=SEED,
        verbose=False,
        allow_writing_files=False,
    )
    model.fit(table[NAMES], table["y"]).save_model(str(folder / "catboost.cbm"))


def catboost_score(folder: Path) -> None:
    """Do the work of ``priornet predict``, with virtual ensembles."""
    from catboost import CatBoostRegressor  # pyright: ignore[reportMissingImports] # not a dependency

    model = CatBoostRegressor().load_model(str(folder / "catboost.cbm"))
    writer = None
    for batch in pq.ParquetFile(folder / "rows.parquet").iter_batches(65_536):
        x = np.column_stack([column.to_numpy() for column in batch.columns])
        scores = model.virtual_ensembles_predict(
            x, prediction_type="TotalUncertainty", virtual_ensembles_count=VIRTUAL_MEMBERS
        )
        names = ("prediction", "knowledge", "data")
        out = pa.table([*batch.columns, *scores.T.copy()], names=[*NAMES, *names])
        writer = writer or pq.ParquetWriter(  # as priornet writes numbers
            folder / "catboost.parquet", out.schema, use_dictionary=False
        )
        writer.write_table(out)
    assert writer is not None
    writer.close()


def error(path: Path) -> float:
    """RMSE against the curve on the first rows, so that the speeds are of models of a quality."""
    batch = next(pq.ParquetFile(path).iter_batches(50_000, columns=[*NAMES, "prediction"]))
    frame = batch.to_pandas()
    return float(np.sqrt(np.mean((frame["prediction"] - curve(frame[NAMES].to_numpy())) ** 2)))


def measure(folder: Path, repeats: int) -> dict[str, list[dict[str, float]]]:
    """Every contender in turn, so that a busy moment of the machine hits all of them."""
    here, program = [sys.executable, __file__], [sys.executable, "-m", "priornet"]
    rows, model = str(folder / "rows.parquet"), str(folder / "model")
    training, out = str(folder / "training.csv"), str(folder / "priornet.parquet")
    options = ("--holdout", "0", "--seed", str(SEED), "--quiet")
    run([*program, "fit", training, "--target", "y", "--out", model, *options])
    commands = {"priornet": [*program, "predict", model, rows, "--out", out, "--quiet"]}
    if importlib.util.find_spec("catboost"):
        run([*here, "--catboost-fit", str(folder)])
        commands["catboost"] = [*here, "--catboost-score", str(folder)]
    times: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            times[name].append(run(command))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--catboost-fit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--catboost-score", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.catboost_fit or args.catboost_score:
        child = catboost_fit if args.catboost_fit else catboost_score
        child(args.catboost_fit or args.catboost_score)
        return
    report: dict[str, Any] = {
        "rows": args.rows,
        "columns": N_COLUMNS,
        "training_rows": N_TRAINING,
        "method": "endd, defaults",
        "catboost": {"trees": TREES, "virtual_members": VIRTUAL_MEMBERS},
        "cores": len(os.sched_getaffinity(0)),
        "load_before": os.getloadavg()[0],
        "seed": SEED,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, args.rows)
        times = measure(folder, args.repeats)
        print(
            f"{args.rows} rows x {N_COLUMNS} columns, {report['cores']} cores, Parquet to Parquet"
        )
        print(f"{'what':<9} {'seconds':>8} {'rows/s':>8} {'CPU s':>7} {'peak MB':>8} {'RMSE':>6}")
        for what, runs in times.items():
            seconds = statistics.median(run["seconds"] for run in runs)
            cpu = statistics.median(run["cpu_seconds"] for run in runs)
            peak = max(run["peak_mb"] for run in runs)
            rmse = error(folder / f"{what}.parquet")
            speed = args.rows / seconds
            print(f"{what:<9} {seconds:>8.1f} {speed:>8.0f} {cpu:>7.1f} {peak:>8.0f} {rmse:>6.3f}")
            report[what] = {
                **report.get(what, {}),
                "seconds": [run["seconds"] for run in runs],
                "median_seconds": seconds,
                "rows_per_second": speed,
                "median_cpu_seconds": cpu,
                "peak_mb": peak,
                "rmse": rmse,
            }
    if "catboost" in times:
        ratios = {
            name: report["catboost"][f"median_{name}"] / report["priornet"][f"median_{name}"]
            for name in ("seconds", "cpu_seconds")
        }
        report["catboost_to_priornet"] = ratios
        print(
            "CatBoost takes {seconds:.2f} times as long, {cpu_seconds:.2f} on the CPU.".format(
                **ratios
            )
        )
    else:
        print("CatBoost is not installed: nothing to compare with.")
    if args.json:
        write_results(args.json, report | provenance())


if __name__ == "__main__":
    main()
