"""Training many small networks as one stack, against an honest loop over networks.

One run prints ratios, medians over interleaved repeats:

1. Ten and a hundred Gaussian networks on a table of 927 x 8 (one hidden layer of 50, batch 32, 100
   epochs) against a plain PyTorch loop: no DataLoader, fused Adam, the better of one and two
   threads. And a Normal-Wishart step (reverse KL; proxy targets) against a Gaussian step.
2. End to end on 800 x 8 (two hidden layers of 64, 100 epochs): an ensemble of five and an EnD2
   student through the estimator, against the loop for two members; then the student's latency.

    python benchmarks/stacked.py [--repeats 3] [--device cuda] [--json out.json]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from priornet import DistilledRegressor, losses
from priornet.distill import targets_for
from priornet.evaluation.results import provenance, write_results
from priornet.nn import GaussianHead, NormalWishartHead, StackedMLP
from priornet.priors import semi_informative_prior
from priornet.training import Batch, Batches, Rows, StackedAdam, fit

EPOCHS = 100
BATCH = 32
SEED = 0


def make_table(n_rows: int) -> tuple[Tensor, Tensor]:
    """Standardised inputs, and targets with noise that depends on them."""
    generator = torch.Generator().manual_seed(SEED)
    x = torch.randn(n_rows, 8, generator=generator)
    noise = torch.randn(n_rows, generator=generator) * (0.1 + 0.2 * x[:, 1].abs())
    y = torch.sin(2 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + noise
    return x, ((y - y.mean()) / y.std()).unsqueeze(-1)


def loop_member(x: Tensor, y: Tensor, widths: tuple[int, ...]) -> None:
    """One network, the plain way."""
    layers: list[nn.Module] = []
    n_in = x.shape[1]
    for width in widths:
        layers += [nn.Linear(n_in, width), nn.ReLU()]
        n_in = width
    network = nn.Sequential(*layers, nn.Linear(n_in, 2))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2, weight_decay=1e-4, fused=True)
    for _ in range(EPOCHS):
        order = torch.randperm(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            mean, log_scale = network(x[rows]).unbind(-1)
            z = (y[rows, 0] - mean) * torch.exp(-log_scale)
            loss = (0.5 * z * z + log_scale).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def gaussian_loss(prediction, batch: Batch, _: float) -> Tensor:
    return losses.gaussian_nll(prediction, batch.targets)


def train_stack(x: Tensor, y: Tensor, n_networks: int, kind: str = "gaussian") -> None:
    """The same training for all networks at once."""
    targets, loss, head = y, gaussian_loss, GaussianHead(50)
    if kind == "reverse_kl":
        prior = semi_informative_prior(y)
        head = NormalWishartHead(50)

        def loss(prediction, batch: Batch, _: float) -> Tensor:
            return losses.reverse_kl(prediction, batch.targets, prior, 30.0)

    elif kind == "proxy":
        packed = targets_for("endd", 1, 10, proxy=True, annealed=False)
        targets = torch.cat([y, torch.ones_like(y), 5 * torch.ones(len(y), 2).to(y)], -1)
        head = NormalWishartHead(50)

        def loss(prediction, batch: Batch, _: float) -> Tensor:
            return packed.loss(prediction, batch.targets)

    seeds = range(n_networks)
    stack = StackedMLP(x.shape[1], (50,), head, seeds).to(x.device)
    rows = [torch.arange(len(x))] * n_networks
    batches = Batches(Rows(x, targets, torch.ones(len(x)).to(x)), rows, seeds, BATCH)
    optimizer = StackedAdam(stack.weights, 1e-2, 1e-4)
    fit(stack, loss, batches, optimizer, epochs=EPOCHS)
    if x.device.type == "cuda":
        torch.cuda.synchronize()


def distilled() -> DistilledRegressor:
    """Five members and a student of the same size."""
    return DistilledRegressor(
        n_members=5,
        hidden=(64, 64),
        student_hidden=(64, 64),
        epochs=EPOCHS,
        patience=None,
        student_epochs=EPOCHS,
        random_state=SEED,
    )


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def median_of(samples: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in samples.items()}


def loop_times(table: tuple[Tensor, Tensor], widths: tuple[int, ...]) -> dict[str, float]:
    """Seconds for one member with one thread and with two."""
    threads = torch.get_num_threads()
    found: dict[str, float] = {}
    for n in {1, threads}:
        torch.set_num_threads(n)
        found[f"loop, {n} thread{'s' * (n > 1)}"] = timed(lambda: loop_member(*table, widths))
    torch.set_num_threads(threads)
    return found


def training_part(device: str, repeats: int) -> dict[str, float]:
    table = make_table(927)
    moved = (table[0].to(device), table[1].to(device))
    runs = {
        "stack of 10": lambda: train_stack(*moved, 10),
        "stack of 100": lambda: train_stack(*moved, 100),
        "stack of 100, reverse KL": lambda: train_stack(*moved, 100, "reverse_kl"),
        "stack of 100, proxy": lambda: train_stack(*moved, 100, "proxy"),
    }
    samples: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, seconds in loop_times(table, (50,)).items():
            samples.setdefault(name, []).append(seconds)
        for name, run in runs.items():
            samples.setdefault(name, []).append(timed(run))
    return median_of(samples)


def end_to_end_part(repeats: int) -> dict[str, float]:
    x, y = make_table(1000)
    X, target = x.numpy().astype(np.float64), y[:, 0].numpy().astype(np.float64)
    samples: dict[str, list[float]] = {}
    model = distilled()
    for _ in range(repeats):
        for name, seconds in loop_times((x[:800], y[:800]), (64, 64)).items():
            samples.setdefault(name, []).append(seconds)
        seconds = timed(lambda: model.fit(X[:800], target[:800]))
        samples.setdefault("five members and a student", []).append(seconds)
    found = median_of(samples)
    held = torch.tensor(target[800:])
    for name, fitted in (("student", model), ("ensemble", model.teacher_)):
        found[f"NLL, {name}"] = float(-fitted.predict_dist(X[800:]).log_prob(held).mean())
    stack, rows = model.fitted_.stack, x[800:]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():

        def torch_level() -> Tensor:
            return stack.head.distribution(stack.raw(rows[None])[0]).loc

        found["student, 200 rows, torch"] = _latency(torch_level)
    found["student, 200 rows, estimator"] = _latency(lambda: model.predict(X[800:]))
    torch.set_num_threads(threads)
    return found


def _latency(run: Callable[[], object]) -> float:
    for _ in range(20):
        run()
    return statistics.median(timed(run) for _ in range(300))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    first = training_part(args.device, args.repeats)
    loop = min(v for name, v in first.items() if name.startswith("loop"))
    ratios = {
        "10 networks, times faster than the loop (goal 6)": 10 * loop / first["stack of 10"],
        "100 networks, per network (goal 35)": 100 * loop / first["stack of 100"],
        "reverse KL step over Gaussian step (goal at most 2)": first["stack of 100, reverse KL"]
        / first["stack of 100"],
        "proxy step over Gaussian step (goal at most 2)": first["stack of 100, proxy"]
        / first["stack of 100"],
    }
    second: dict[str, float] = {}
    if args.device == "cpu":
        second = end_to_end_part(args.repeats)
        member = min(v for name, v in second.items() if name.startswith("loop"))
        whole = second["five members and a student"]
        ratios |= {
            "ensemble and student over two loop members (goal below 1)": whole / (2 * member),
            "student, 200 rows, torch, ms (goal 0.25)": 1e3 * second["student, 200 rows, torch"],
            "student, 200 rows, estimator, ms (goal 1.5)": 1e3
            * second["student, 200 rows, estimator"],
        }
    for title, values in (("927 x 8", first), ("800 x 8, end to end", second), ("", ratios)):
        print(title)
        for name, value in values.items():
            print(f"  {name:<58} {value:10.4f}")
    if args.json:
        settings = {"epochs": EPOCHS, "batch": BATCH, "seed": SEED, "repeats": args.repeats}
        settings |= {"threads": torch.get_num_threads(), "device": args.device}
        measured = {"training": first, "end_to_end": second, "ratios": ratios}
        write_results(args.json, settings | measured | provenance())


if __name__ == "__main__":
    main()
