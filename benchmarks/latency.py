"""One row at a time: latency of an exported student, of PyTorch, of ensembles and of CatBoost.

A student (EnD2, defaults) and its ten-member teacher learn a table of ten columns. Each contender
turns one raw row into mean, 90 % interval and uncertainty; all on one thread, taking turns, so that
a busy moment of the machine hits all of them. "PyTorch" is the program of ``to_torch_export`` in
eager mode: columns, network, interval and measures. Where CatBoost is installed: virtual
ensembles of 1000 trees, ten members (mean,
knowledge and data uncertainty, no interval).

    python benchmarks/latency.py [--calls 3000] [--json out.json]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import torch

from priornet import DeepEnsembleRegressor, DistilledRegressor
from priornet.evaluation.results import provenance, write_results
from priornet.export import Comparison, feeds, outputs_of, to_onnx
from priornet.export.interface import interval_of, numbers
from priornet.export.onnx.graph import LEAST_OPSET, Graph
from priornet.export.onnx.table_graph import perceptron
from priornet.export.torch_export import Program

SEED = 0
N_COLUMNS, N_TRAINING, N_MEMBERS = 10, 2000, 10
NAMES = [f"x{j}" for j in range(N_COLUMNS)]
TREES = 1000
ABOUT = {"coverage": 0.9, "interval": "predictive"}
ROUND = 50  # calls of one contender before the next takes its turn

Call = Callable[[int], Any]


def make_table(n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_rows, N_COLUMNS))
    curve = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3]
    return pd.DataFrame(x, columns=NAMES), curve + 0.3 * rng.standard_normal(n_rows)


def onnx_call(model: Any, rows: pd.DataFrame, folder: Path, name: str) -> tuple[Call, float]:
    """One row through onnxruntime, and the largest relative difference from the model."""
    path = folder / f"{name}.onnx"
    to_onnx(model, path)
    session = _session(path)
    whole = feeds(model.fitted_.preprocessor, rows)
    names = [output.name for output in session.get_outputs()]
    comparison = Comparison()
    found: Any = dict(zip(names, session.run(names, whole), strict=True))
    comparison.add(outputs_of(model, rows, ABOUT), found)
    each = [{name: v[i : i + 1] for name, v in whole.items()} for i in range(len(rows))]
    return lambda i: session.run(names, each[i]), comparison.worst[comparison.output].error


def bare_onnx_call(model: Any, rows: pd.DataFrame) -> Call:
    """The network's own outputs alone, from preprocessed inputs."""
    graph = Graph()
    x = graph.input("x", np.float32, ["rows", model.fitted_.network.n_inputs])
    raw = perceptron(model.fitted_.stack, x)
    graph.output("raw", raw, ["rows", model.fitted_.stack.head.n_outputs])
    session = _session(graph.model(LEAST_OPSET, {}).SerializeToString())
    inputs = model.fitted_.preprocessor.transform(rows, dtype=np.float32)
    return lambda i: session.run(["raw"], {"x": inputs[i : i + 1]})


def _session(model: Any) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def torch_call(model: Any, rows: pd.DataFrame) -> Call:
    """One raw row through the module of ``to_torch_export``."""
    part = Program(model.fitted_, interval_of(model.fitted_, 0.9, "predictive"))
    inputs = torch.from_numpy(numbers(model.fitted_.preprocessor, rows))
    return lambda i: part(inputs[i : i + 1])


def bare_call(model: Any, rows: pd.DataFrame) -> Call:
    """The network's own outputs alone: no interval, no measures."""
    stack = model.fitted_.stack
    inputs = torch.from_numpy(model.fitted_.preprocessor.transform(rows, dtype=np.float32))
    return lambda i: stack.raw(inputs[i : i + 1].expand(stack.n_networks, 1, -1))


def estimator_call(model: Any, rows: pd.DataFrame) -> Call:
    """A raw row through the estimator's own methods, as a user would."""
    table = rows.to_numpy()
    fitted = model.fitted_

    def call(i: int) -> Any:
        found = fitted.predict(table[i : i + 1])
        return found.lower, found.upper, found.uncertainty

    return call


def catboost_call(table: pd.DataFrame, y: np.ndarray, rows: pd.DataFrame) -> Call:
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        iterations=TREES,
        loss_function="RMSEWithUncertainty",
        posterior_sampling=True,
        random_seed=SEED,
        verbose=False,
        allow_writing_files=False,
    ).fit(table, y)
    each = rows.to_numpy()
    return lambda i: model.virtual_ensembles_predict(
        each[i : i + 1],
        prediction_type="TotalUncertainty",
        virtual_ensembles_count=N_MEMBERS,
        thread_count=1,
    )


def measure(calls: dict[str, Call], n_rows: int, n_calls: int) -> dict[str, np.ndarray]:
    """Microseconds of every call."""
    times: dict[str, list[int]] = {name: [] for name in calls}
    with torch.inference_mode():
        for call in calls.values():  # warm
            for i in range(n_rows):
                call(i)
        while len(next(iter(times.values()))) < n_calls:
            for name, call in calls.items():
                for i in range(ROUND):
                    start = time.perf_counter_ns()
                    call(i % n_rows)
                    times[name].append(time.perf_counter_ns() - start)
    return {name: np.array(taken) / 1e3 for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=3000, help="of each contender")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    table, y = make_table(N_TRAINING, SEED)
    rows, _ = make_table(100, SEED + 1)
    teacher = DeepEnsembleRegressor(N_MEMBERS, random_state=SEED).fit(table, y)
    student = DistilledRegressor(teacher, random_state=SEED).fit(table)
    calls: dict[str, Call] = {}
    with tempfile.TemporaryDirectory() as name:
        calls["student, onnxruntime"], apart = onnx_call(student, rows, Path(name), "student")
        calls["ensemble, onnxruntime"], far = onnx_call(teacher, rows, Path(name), "ensemble")
    calls["student, PyTorch"] = torch_call(student, rows)
    calls["network alone, onnxruntime"] = bare_onnx_call(student, rows)
    calls["network alone, PyTorch"] = bare_call(student, rows)
    calls["student, estimator"] = estimator_call(student, rows)
    calls["ensemble, estimator"] = estimator_call(teacher, rows)
    if importlib.util.find_spec("catboost"):
        calls["CatBoost, virtual ensembles"] = catboost_call(table, y, rows)
    load = os.getloadavg()[0]
    times = measure(calls, len(rows), args.calls)
    base = float(np.median(times["student, onnxruntime"]))
    report: dict[str, Any] = {
        "columns": N_COLUMNS,
        "training_rows": N_TRAINING,
        "members": N_MEMBERS,
        "catboost": {"trees": TREES, "virtual_members": N_MEMBERS},
        "calls": args.calls,
        "threads": 1,
        "cores": len(os.sched_getaffinity(0)),
        "load_before": load,
        "seed": SEED,
        "onnxruntime": onnxruntime.__version__,
        "largest_difference": {"student": apart, "ensemble": far},
        "microseconds": {},
    }
    print(f"one row of {N_COLUMNS} columns, one thread, {args.calls} calls each; microseconds")
    print(f"{'what':<33} {'p50':>8} {'p99':>8} {'to the exported student':>24}")
    for what, taken in times.items():
        p50, p99 = (float(np.percentile(taken, q)) for q in (50, 99))
        report["microseconds"][what] = {"p50": p50, "p99": p99, "ratio": p50 / base}
        print(f"{what:<33} {p50:>8.1f} {p99:>8.1f} {p50 / base:>22.1f} x")
    if "CatBoost, virtual ensembles" not in times:
        print("CatBoost is not installed: nothing to compare with.")
    print(f"largest relative difference from the model: {apart:.1e}, ensemble {far:.1e}")
    if args.json:
        write_results(args.json, report | provenance())


if __name__ == "__main__":
    main()
