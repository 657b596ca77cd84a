"""The paper preset of the UCI experiment as stacks, against an honest loop over networks.

What the loop would take is an estimate: the preset's networks and steps are counted from its
config, and multiplied with the time of a step in a plain PyTorch loop (no DataLoader, fused Adam,
the better of one and two threads, each method with its own loss; teachers' answers are free). What
the stacks take is measured in the same run on tables of the same sizes: two processes on half of
the folds each, as in the experiment, a few epochs of everything. With ``--results`` the seconds of
the real runs are used as well.

    python benchmarks/uci.py [--repeats 3] [--results results] [--json out.json] [--smoke]

With ``--whole`` nothing is estimated: every table of the preset is run to its end, all side by side
in some processes, and timed from before the first process starts until the last has ended.
``--results`` then says where the results go.

    python benchmarks/uci.py --whole --device cuda [--workers 8] [--json out.json] [--smoke]
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from priornet.evaluation.results import provenance, read_results, write_results
from priornet.training.device import at_most
from priornet_paper.runs.gpu_sharing import default_workers
from priornet_paper.uci import METHODS, Paper, Request, config_for, run_tables
from priornet_paper.uci.data import DATASETS, load_uci
from priornet_paper.uci.experiment import file_name
from priornet_paper.uci.folds import FoldStack, k_folds, make_fold
from priornet_paper.uci.train import solve

SETS = ("boston", "energy", "concrete", "wine", "power")
WORKERS = 2


def paper_config(dataset: str, preset: str = "paper") -> Paper:
    config = config_for(dataset, preset)
    assert isinstance(config, Paper)
    return config


# -- what there is to do --------------------------------------------------------------------------


def network_steps(config: Paper, n_rows: int) -> Counter[str]:
    """Optimizer steps of single networks, by the loss they take, over all folds."""
    steps: Counter[str] = Counter()
    for test in k_folds(n_rows, config.n_folds, config.seed):
        train = n_rows - len(test)
        inner = train - round(config.validation_share * train)
        on_inner = config.epochs * math.ceil(inner / config.batch_size)
        on_train = config.epochs * math.ceil(train / config.batch_size)
        # One search for the single network and the ensemble, then each of them; teachers twice, for
        # the students' search must not see the validation rows.
        steps["Single"] += len(config.points("Single")) * config.n_tried * on_inner + on_train
        steps["Single"] += config.n_members * (on_train + on_inner)
        for method in ("EnD2", "NWPN", "DER", "EnD", "MD-EnD"):
            steps[method] += len(config.points(method)) * on_inner + on_train
    return steps


# -- the loop -------------------------------------------------------------------------------------


def gaussian_loss(out: Tensor, y: Tensor) -> Tensor:
    mean, log_scale = out.unbind(-1)
    z = (y[:, 0] - mean) * torch.exp(-log_scale)
    return (0.5 * z * z + log_scale).mean()


def normal_wishart(out: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """m, L, kappa and nu of a one-dimensional Normal-Wishart."""
    mean, log_precision, belief, excess = out.unbind(-1)
    nu = 2 + softplus(excess)
    return mean, torch.exp(log_precision) / nu, softplus(belief), nu


def reverse_kl_loss(out: Tensor, y: Tensor) -> Tensor:
    """Rows with a target first, then as many without one, which return to the prior."""
    m, scale, kappa, nu = normal_wishart(out)
    kappa0 = torch.tensor(0.01)
    nu0, scale0 = 2.01, 1 / 2.01
    psi = torch.digamma(nu / 2)
    n = len(m) // 2
    fit = 0.5 * (nu * scale * (y[:, 0] - m) ** 2 + 1 / kappa - torch.log(scale) - psi)
    kl = 0.5 * kappa0 * nu * scale * m**2 + 0.5 * (kappa0 / kappa - torch.log(kappa0 / kappa) - 1)
    kl = kl + 0.5 * nu * (scale / scale0 - 1) - 0.5 * nu0 * torch.log(scale / scale0)
    kl = kl - torch.lgamma(nu / 2) + 0.5 * (nu - nu0) * psi
    return (100 * fit[:n]).mean() + kl[:n].mean() + 0.5 * kl[n:].mean()


def evidential_loss(out: Tensor, y: Tensor) -> Tensor:
    m, scale, kappa, nu = normal_wishart(out)
    spread = (kappa + 1) / (kappa * nu * scale)
    quadratic = (y[:, 0] - m) ** 2 / (nu * spread)
    nll = torch.lgamma(nu / 2) - torch.lgamma((nu + 1) / 2) + 0.5 * torch.log(math.pi * nu * spread)
    nll = nll + 0.5 * (nu + 1) * torch.log1p(quadratic)
    return (nll + 0.01 * (y[:, 0] - m).abs() * (2 * kappa + nu / 2)).mean()


def endd_loss(out: Tensor, y: Tensor) -> Tensor:
    """From the averages over the ensemble: mean precision, mean log precision, mean and spread."""
    m, scale, kappa, nu = normal_wishart(out)
    precision, log_precision, mean, spread = y.unbind(-1)
    loss = 0.5 * kappa * (spread + precision * (mean - m) ** 2) - 0.5 * torch.log(kappa)
    loss = loss + 0.5 * precision / scale - 0.5 * (nu - 1) * log_precision
    loss = loss + 0.5 * nu * (math.log(2) + torch.log(scale)) + torch.lgamma(nu / 2)
    return loss.mean()


def end_loss(out: Tensor, y: Tensor) -> Tensor:
    mean, log_scale = out.unbind(-1)
    square = y[:, 1] + (y[:, 0] - mean) ** 2  # variance and spread of the members are one number
    return (0.5 * square * torch.exp(-2 * log_scale) + log_scale).mean()


def md_end_loss(out: Tensor, y: Tensor) -> Tensor:
    means, log_scales = out.unflatten(-1, (2, -1)).unbind(-2)
    target, variance = y.unflatten(-1, (2, -1)).unbind(-2)
    square = variance + (target - means) ** 2
    return (0.5 * square * torch.exp(-2 * log_scales) + log_scales).mean()


def loop_kinds(n_members: int) -> dict[str, tuple[Callable[[Tensor, Tensor], Tensor], int, int]]:
    """Loss, outputs of the network, and columns of the targets, by method."""
    return {
        "Single": (gaussian_loss, 2, 1),
        "EnD2": (endd_loss, 4, 4),
        "NWPN": (reverse_kl_loss, 4, 1),
        "DER": (evidential_loss, 4, 1),
        "EnD": (end_loss, 2, 2),
        "MD-EnD": (md_end_loss, 2 * n_members, 2 * n_members),
    }


def loop_step(method: str, config: Paper, n_features: int, n_steps: int) -> float:
    """Seconds of one step of one network, the plain way: the mean over a run of steps."""
    loss_fn, n_out, n_columns = loop_kinds(config.n_members)[method]
    network = nn.Sequential(
        nn.Linear(n_features, config.hidden), nn.ReLU(), nn.Linear(config.hidden, n_out)
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-4, fused=True)
    size = config.batch_size * (2 if method == "NWPN" else 1)
    n_rows = 32 * size
    x, y = torch.randn(n_rows, n_features), 0.5 + torch.rand(n_rows, n_columns)

    def batches() -> Iterator[Tensor]:
        while True:
            yield from torch.randperm(n_rows).split(size)

    source = batches()

    def step() -> None:
        rows = next(source)
        loss = loss_fn(network(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for _ in range(max(1, n_steps // 10)):
        step()
    started = time.perf_counter()
    for _ in range(n_steps):
        step()
    return (time.perf_counter() - started) / n_steps


def loop_steps(config: Paper, n_features: int, n_steps: int) -> dict[str, float]:
    """Seconds of a step for each method, with the better number of threads."""
    threads = torch.get_num_threads()
    found: dict[str, float] = {}
    for method in loop_kinds(config.n_members):
        times: list[float] = []
        for n in {1, threads}:
            torch.set_num_threads(n)
            times.append(loop_step(method, config, n_features, n_steps))
        found[method] = min(times)
    torch.set_num_threads(threads)
    return found


# -- the stacks -----------------------------------------------------------------------------------


def train_block(dataset: str, config: Paper, numbers: tuple[int, ...]) -> None:
    """Everything that the experiment trains on some folds, on a table of the right size."""
    known = DATASETS[dataset]
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(known.n_rows, known.n_features))
    targets = np.sin(inputs[:, 0]) + 0.1 * rng.normal(size=known.n_rows)
    tests = k_folds(known.n_rows, config.n_folds, config.seed)
    folds = [
        make_fold(i, tests[i], known.n_rows, config.validation_share, config.seed) for i in numbers
    ]
    with at_most(1):
        solve(FoldStack.of(inputs, targets, folds, "cpu"), config, METHODS)


def stacked(pool: ProcessPoolExecutor, dataset: str, config: Paper) -> float:
    """Seconds for every fold, blocks side by side."""
    numbers = tuple(range(config.n_folds)) if config.folds is None else config.folds
    step = config.folds_per_stack
    blocks = [numbers[i : i + step] for i in range(0, len(numbers), step)]
    started = time.perf_counter()
    futures = [pool.submit(train_block, dataset, config, block) for block in blocks]
    for future in futures:
        future.result()
    return time.perf_counter() - started


def stacked_whole(short: tuple[int, float], long: tuple[int, float], epochs: int) -> float:
    """Seconds for all epochs, on the line through two shorter runs: (epochs, seconds)."""
    slope = (long[1] - short[1]) / (long[0] - short[0])
    return short[1] + slope * (epochs - short[0])


# -- the experiment itself ------------------------------------------------------------------------


def whole(args: argparse.Namespace) -> dict[str, Any]:
    """Run the preset on every table; seconds of all and of each, beside what was learnt."""
    preset = "smoke" if args.smoke else "paper"
    configs = {name: paper_config(name, preset) for name in SETS}
    if args.device == "cuda":  # as the command line does: a step of more networks takes no longer
        configs = {name: replace(c, folds_per_stack=c.n_folds) for name, c in configs.items()}
    started = time.perf_counter()

    def say(request: Request, results: dict[str, Any]) -> None:
        now = time.perf_counter() - started
        print(f"{now:7.1f} s  {request.table.name}: {results['seconds']:.1f} s", flush=True)
        if args.results is not None:
            write_results(
                args.results / file_name(results["dataset"], preset, request.config), results
            )

    requests = [Request(load_uci(name), preset, config) for name, config in configs.items()]
    found = run_tables(requests, device=args.device, workers=args.workers, done=say)
    seconds = time.perf_counter() - started
    return {
        "preset": preset,
        "device": found[0]["device"],
        "workers": args.workers,
        "config": configs[SETS[0]].to_json(),
        "tables": {results["dataset"]: _brief(results) for results in found},
        "seconds": round(seconds, 1),
        **provenance(),
    }


def _brief(results: dict[str, Any]) -> dict[str, Any]:
    """Seconds and accuracy of a table."""
    methods = {
        name: {
            "seconds": method["seconds"],
            "nll": round(method["nll"]["mean"], 4),
            "rmse": round(method["rmse"]["mean"], 4),
        }
        for name, method in results["methods"].items()
    }
    return {"seconds": results["seconds"], "methods": methods}


# -- both -----------------------------------------------------------------------------------------


def real_seconds(folder: Path | None) -> dict[str, float]:
    """Seconds of the runs on disk that are the paper preset on a CPU."""
    found: dict[str, float] = {}
    for dataset in SETS if folder else ():
        path = Path(folder or "") / "uci" / f"{dataset}.json"
        content: dict[str, Any] = read_results(path) if path.exists() else {}
        if content.get("preset") == "paper" and content.get("device") == "cpu":
            found[dataset] = content["seconds"]
    return found


def measure(args: argparse.Namespace) -> dict[str, Any]:
    preset = "smoke" if args.smoke else "paper"
    sets = SETS[:1] if args.smoke else SETS
    short, long = (1, 2) if args.smoke else (2, 6)
    n_steps = 20 if args.smoke else 400
    steps: dict[str, list[dict[str, float]]] = {name: [] for name in sets}
    times: dict[str, list[float]] = {name: [] for name in sets}
    context = multiprocessing.get_context("spawn")  # forked torch threads may hang
    with ProcessPoolExecutor(WORKERS, context) as pool:
        tiny = paper_config("boston", "smoke")
        for _ in range(2):  # both processes import and warm up
            stacked(pool, "boston", replace(tiny, folds_per_stack=1, epochs=1))
        for _ in range(args.repeats):
            for name in sets:
                config = paper_config(name, preset)
                steps[name].append(loop_steps(config, DATASETS[name].n_features, n_steps))
                runs = [(n, stacked(pool, name, replace(config, epochs=n))) for n in (short, long)]
                times[name].append(stacked_whole(*runs, config.epochs))
    rows: dict[str, dict[str, float]] = {}
    for name in sets:
        config = paper_config(name, preset)
        counts = network_steps(config, DATASETS[name].n_rows)
        if config.folds is not None:  # a preset that runs only some of the folds
            share = len(config.folds) / config.n_folds
            counts = Counter({method: round(share * n) for method, n in counts.items()})
        cost = {m: statistics.median(run[m] for run in steps[name]) for m in counts}
        rows[name] = {
            "network_steps": counts.total(),
            "loop_step_us": 1e6 * sum(counts[m] * cost[m] for m in counts) / counts.total(),
            "gaussian_step_us": 1e6 * cost["Single"],
            "loop_seconds": sum(counts[m] * cost[m] for m in counts),
            "loop_seconds_if_all_gaussian": counts.total() * cost["Single"],
            "stacked_seconds": statistics.median(times[name]),
        }
    return {"preset": preset, "sets": rows, "real_seconds": real_seconds(args.results)}


def ratios(measured: dict[str, Any]) -> dict[str, float]:
    rows = measured["sets"].values()
    loop = sum(row["loop_seconds"] for row in rows)
    least = sum(row["loop_seconds_if_all_gaussian"] for row in rows)
    stacks = sum(row["stacked_seconds"] for row in rows)
    found = {
        "loop over stacks (goal 30)": loop / stacks,
        "the same, every step charged as a Gaussian one": least / stacks,
        "the same, two perfect loops side by side": loop / 2 / stacks,
    }
    if set(measured["real_seconds"]) == set(measured["sets"]):
        found["loop over the real runs (goal 30)"] = loop / sum(measured["real_seconds"].values())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, help="folder whose real runs are used as well")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--smoke", action="store_true", help="one small set and few steps")
    parser.add_argument("--whole", action="store_true", help="run the experiment itself, timed")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="for --whole")
    parser.add_argument("--workers", type=int, help="for --whole; default: the experiment's")
    args = parser.parse_args()
    args.workers = args.workers or default_workers(args.device)
    if args.whole:
        timed = whole(args)
        print(f"all: {timed['seconds']:.1f} s, {args.workers} workers, {timed['device']}")
        if args.json:
            write_results(args.json, timed)
        return
    measured = measure(args)
    found = ratios(measured)
    print(f"{'':<10} {'network steps':>14} {'us/step':>8} {'loop, h':>9} {'stacks, min':>12} ratio")
    for name, row in measured["sets"].items():
        print(
            f"{name:<10} {row['network_steps']:>14,} {row['loop_step_us']:>8.0f} "
            f"{row['loop_seconds'] / 3600:>9.2f} {row['stacked_seconds'] / 60:>12.2f} "
            f"{row['loop_seconds'] / row['stacked_seconds']:.1f}"
        )
    for name, value in found.items():
        print(f"{name:<50} {value:6.1f}")
    if args.json:
        settings = {"repeats": args.repeats, "workers": WORKERS, "device": "cpu"}
        settings |= {"threads": torch.get_num_threads()}
        write_results(args.json, settings | measured | {"ratios": found} | provenance())


if __name__ == "__main__":
    main()
