"""Cost of the EnD2 loss on depth maps, forward and backward, against what else one could write.

One run prints ratios: EnD2 with the teacher's averages included, on 8 x 240 x 320 pixels and five
members, against (a) the same loss composed of ``torch.distributions``, with its log-gammas (in
matrix form, as one would write it for any K, and at K = 1 also as a Normal and a Gamma), (b) a
Gaussian negative log-likelihood against the same five targets, from ``torch.distributions`` too,
and (c) the library's own Gaussian negative log-likelihood against one target, which is what a
single network pays. Gradients go to every parameter of the prediction.

    python benchmarks/losses.py [--device cuda] [--compile] [--threads 2] [--json out.json]

With ``--small`` it times instead what stacked training asks for: every one-dimensional loss on
S networks times 32 rows, one thread, from the prediction's parameters to their gradients.

    python benchmarks/losses.py --small [--json out.json]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.distributions import Gamma, MultivariateNormal, Normal, Wishart

from priornet import losses
from priornet.distributions import (
    Gaussian,
    GaussianEnsemble,
    NormalWishart,
    covariance_averages,
    precision_averages,
)
from priornet.evaluation.results import provenance, write_results

MEMBERS = 5
SEED = 0
SHAPE = (8, 240, 320)
Run = Callable[[], object]
Loss = Callable[[dict[str, Tensor]], Tensor]


def make_problem(k_dim: int, shape: tuple[int, ...], device: str) -> dict[str, Tensor]:
    """A teacher and a student's parameters, laid out as a channels-first network leaves them."""
    generator = torch.Generator().manual_seed(SEED)

    def planes(*lead: int, channels: int) -> Tensor:
        """Random numbers (*lead, B, H, W, channels), stored channels first."""
        batch, height, width = shape
        raw = torch.randn((*lead, batch, channels, height, width), generator=generator)
        return raw.to(device).movedim(-3, -1)

    def tril(*lead: int) -> Tensor:
        n_free = k_dim * (k_dim + 1) // 2
        raw = 0.3 * planes(*lead, channels=n_free)
        rows, columns = torch.tril_indices(k_dim, k_dim)
        storage = torch.zeros((k_dim * k_dim, *lead, *shape), device=device)
        storage[rows * k_dim + columns] = raw.movedim(-1, 0)
        storage[:: k_dim + 1] = storage[:: k_dim + 1].exp()
        return storage.unflatten(0, (k_dim, k_dim)).movedim((0, 1), (-2, -1))

    factor = tril(MEMBERS)
    return {
        "means": planes(MEMBERS, channels=k_dim),
        "covariances": (factor @ factor.mT).contiguous(),
        "loc": planes(channels=k_dim),
        "precision_tril": tril(),
        "belief": planes(channels=1)[..., 0].exp(),
        "excess": planes(channels=1)[..., 0].exp(),
    }


STUDENT = ("loc", "precision_tril", "belief", "excess")


def endd(p: dict[str, Tensor]) -> Tensor:
    """Ours: averages of the teacher, then the loss."""
    nw = NormalWishart.from_excess(*(p[name] for name in STUDENT), validate_args=False)
    return losses.endd(nw, GaussianEnsemble(p["means"], p["covariances"], validate_args=False))


def endd_composed(p: dict[str, Tensor]) -> Tensor:
    """The same number from torch.distributions: a density per member, then the average."""
    k_dim = p["loc"].shape[-1]
    if k_dim > 1:
        return endd_composed_matrix(p)
    df = p["excess"] + 2
    precision = p["covariances"][..., 0, 0].reciprocal()
    rate = 0.5 * df / p["precision_tril"][..., 0, 0].square()
    wishart = Gamma(0.5 * df, rate, validate_args=False).log_prob(precision)
    scale = (p["belief"] * precision).rsqrt()
    normal = Normal(p["loc"][..., 0], scale, validate_args=False).log_prob(p["means"][..., 0])
    return -(wishart + normal).mean(0)


def endd_composed_matrix(p: dict[str, Tensor]) -> Tensor:
    """The form that one would write for any K."""
    df = p["excess"] + (p["loc"].shape[-1] + 1)
    precision = torch.linalg.inv(p["covariances"])
    scale_tril = p["precision_tril"] * df.rsqrt()[..., None, None]
    wishart = Wishart(df, scale_tril=scale_tril, validate_args=False).log_prob(precision)
    normal = MultivariateNormal(
        p["loc"],
        precision_matrix=p["belief"][..., None, None] * precision,
        validate_args=False,
    ).log_prob(p["means"])
    return -(wishart + normal).mean(0)


def gaussian_nll(p: dict[str, Tensor]) -> Tensor:
    """A Gaussian's NLL against the members' means."""
    if p["loc"].shape[-1] == 1:
        scale = p["precision_tril"][..., 0].reciprocal()
        return -Normal(p["loc"], scale, validate_args=False).log_prob(p["means"]).mean(0)
    gaussian = MultivariateNormal(p["loc"], scale_tril=p["precision_tril"], validate_args=False)
    return -gaussian.log_prob(p["means"]).mean(0)


def gaussian_nll_of_one(p: dict[str, Tensor]) -> Tensor:
    """A Gaussian's NLL against one target, as in training without a teacher."""
    gaussian = Gaussian(p["loc"], p["precision_tril"], validate_args=False)
    return losses.gaussian_nll(gaussian, p["means"][0])


def step(loss: Loss, p: dict[str, Tensor]) -> list[Tensor | None]:
    """Forward and backward: the gradient in every parameter of the student."""
    parameters = [p[name] for name in STUDENT]
    return list(torch.autograd.grad(loss(p).mean(), parameters, allow_unused=True))


def gradient(loss: Loss) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    """The same as one function of tensors, which the compiler turns into one piece."""

    def mean_loss(student: dict[str, Tensor], teacher: dict[str, Tensor]) -> Tensor:
        return loss(student | teacher).mean()

    def run(p: dict[str, Tensor]) -> dict[str, Tensor]:
        student = {name: p[name] for name in STUDENT}
        teacher = {name: p[name] for name in p if name not in STUDENT}
        return torch.func.grad(mean_loss)(student, teacher)

    return run


def timed(run: Run, device: str, repeats: int, warm_up: int = 3) -> list[float]:
    """Milliseconds of each repeat, after warm-up and with the device synchronised."""
    for _ in range(warm_up):
        run()
    times: list[float] = []
    for _ in range(repeats):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def graphed(run: Run) -> Run:
    """The step as a CUDA graph: what remains is the device's own time."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def check(p: dict[str, Tensor]) -> float:
    """Largest relative difference between ours and the composed loss, gradients included."""
    found: list[list[Tensor]] = []
    for loss in (endd, endd_composed):
        grads = [g.tril() if g.dim() > 4 else g for g in step(loss, p) if g is not None]
        found.append([loss(p).detach(), *grads])
    scaled = [(a - b).abs().max() / b.abs().max() for a, b in zip(*found, strict=True)]
    return float(max(scaled))


def contenders(p: dict[str, Tensor], device: str, with_compile: bool) -> dict[str, Run]:
    """Name to a step to time."""
    rows: dict[str, Run] = {
        "EnD2": lambda: step(endd, p),
        "(a) composed, matrices": lambda: step(endd_composed_matrix, p),
        "(b) Gaussian NLL, five targets": lambda: step(gaussian_nll, p),
        "(c) Gaussian NLL, one target": lambda: step(gaussian_nll_of_one, p),
    }
    if p["loc"].shape[-1] == 1:
        rows["(a) composed, Normal + Gamma"] = lambda: step(endd_composed, p)
    if with_compile:
        compiled, compiled_nll = torch.compile(endd), torch.compile(gaussian_nll)
        rows["EnD2, compiled"] = lambda: step(compiled, p)
        rows["(b) Gaussian NLL, five targets, compiled"] = lambda: step(compiled_nll, p)
        compiled_gradient = torch.compile(gradient(endd))
        plain = {name: value.detach() for name, value in p.items()}
        rows["EnD2, compiled gradient"] = lambda: compiled_gradient(plain)
    if device == "cuda":
        rows |= {
            f"{key}, CUDA graph": graphed(run) for key, run in rows.items() if "(a)" not in key
        }
    return rows


def measure(rows: dict[str, Run], device: str, repeats: int) -> dict[str, list[float]]:
    """Milliseconds per contender, interleaved so that a noisy moment hits all of them."""
    times: dict[str, list[float]] = {key: [] for key in rows}
    for turn in range(3):
        for key, run in rows.items():
            slow = "matrices" in key and device == "cpu"
            if not slow:
                times[key] += timed(run, device, max(repeats // 3, 1))
            elif turn == 0:  # up to a minute: once is enough to see the ratio
                times[key] += timed(run, device, 1, warm_up=0)
    return times


def small_problem(networks: int, rows: int, dtype: torch.dtype = torch.float32) -> dict[str, Run]:
    """One step per loss of a stack: prediction from tensors, loss, gradients of its mean."""
    generator = torch.Generator().manual_seed(SEED)
    batch = (networks, rows)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    y, coefficient = normal(*batch, 1), normal(networks, 1).exp()
    p = {"loc": normal(*batch, 1), "precision_tril": normal(*batch, 1, 1).exp()}
    p |= {"belief": normal(*batch).exp(), "excess": normal(*batch).exp()}
    leaves = [value.requires_grad_() for value in p.values()]
    means, variances = normal(10, *batch, 1), normal(10, *batch, 1).exp()
    teacher = GaussianEnsemble(means, variances)
    fitted, averages = NormalWishart.fit(teacher), precision_averages(teacher)
    moments = covariance_averages(teacher)
    one = torch.ones((), dtype=dtype)
    prior = NormalWishart.from_excess(0 * one[None], one[None, None], 0.01 * one, 0.01 * one)
    priors = prior.expand((networks, 1))
    head_loc = normal(10, *batch, 1).requires_grad_()
    head_tril = normal(10, *batch, 1, 1).exp().requires_grad_()

    def nw() -> NormalWishart:
        return NormalWishart.from_excess(**p, validate_args=False)

    def gaussian() -> Gaussian:
        return Gaussian(p["loc"], p["precision_tril"], validate_args=False)

    def heads() -> GaussianEnsemble:
        return GaussianEnsemble.from_precision_tril(head_loc, head_tril, validate_args=False)

    rows_of: dict[str, tuple[Callable[[], Tensor], list[Tensor]]] = {
        "gaussian_nll": (lambda: losses.gaussian_nll(gaussian(), y), leaves[:2]),
        "reverse_kl": (lambda: losses.reverse_kl(nw(), y, prior, 3.0), leaves),
        "reverse_kl, a prior and a beta per network": (
            lambda: losses.reverse_kl(nw(), y, priors, coefficient),
            leaves,
        ),
        "reverse_kl, beta = 0": (lambda: losses.reverse_kl(nw(), None, prior, 0.0), leaves),
        "evidential": (lambda: losses.evidential(nw(), y, 0.1), leaves),
        "endd, averages given": (lambda: losses.endd(nw(), averages), leaves),
        "endd, T = 5": (lambda: losses.endd(nw(), averages, 5.0), leaves),
        "endd, ten members": (lambda: losses.endd(nw(), teacher), leaves),
        "proxy, fit given": (lambda: losses.proxy(nw(), fitted), leaves),
        "end, averages given": (lambda: losses.end(gaussian(), moments), leaves[:2]),
        "md_end, ten heads": (lambda: losses.md_end(heads(), teacher), [head_loc, head_tril]),
    }
    return {
        key: lambda loss=loss, wanted=wanted: torch.autograd.grad(loss().mean(), wanted)
        for key, (loss, wanted) in rows_of.items()
    }


def small(repeats: int) -> list[dict[str, object]]:
    """Microseconds per step of each loss, for ten and for a hundred networks."""
    rows: list[dict[str, object]] = []
    print(f"{'S x B':>10} {'what':<44} {'median us':>10} {'x nll':>8}")
    for networks in (10, 100):
        steps = small_problem(networks, 32)
        times: dict[str, list[float]] = {key: [] for key in steps}
        for _ in range(3):
            for key, run in steps.items():
                times[key] += timed(run, "cpu", repeats, warm_up=10)
        base = statistics.median(times["gaussian_nll"])
        for key, values in times.items():
            median = statistics.median(values)
            print(f"{networks:>5} x 32 {key:<44} {1e3 * median:>10.1f} {median / base:>8.2f}")
            rows.append({"networks": networks, "rows": 32, "what": key, "median_us": 1e3 * median})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--compile", action="store_true", help="time torch.compile'd steps too")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=0, help="0: 15 on cpu, 200 on cuda")
    parser.add_argument("--dims", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--small", action="store_true", help="stacks of small batches instead")
    args = parser.parse_args()
    if args.small:
        torch.set_num_threads(1)
        figures = {"rows": small(args.repeats or 200)}
        if args.json:
            write_results(args.json, {"threads": 1, "seed": SEED} | provenance() | figures)
        return
    torch.set_num_threads(args.threads)
    repeats = args.repeats or (200 if args.device == "cuda" else 15)
    report: dict[str, object] = {
        "shape": SHAPE,
        "members": MEMBERS,
        "device": torch.cuda.get_device_name() if args.device == "cuda" else "cpu",
        "threads": args.threads,
        "seed": SEED,
        "repeats": repeats,
    }
    print(f"EnD2, {SHAPE} pixels, {MEMBERS} members, torch {torch.__version__}, {report['device']}")
    print(f"{'K':>2} {'what':<40} {'median ms':>10} {'spread':>8} {'x EnD2':>8}")
    rows: list[dict[str, object]] = []
    for k_dim in args.dims:
        p = make_problem(k_dim, SHAPE, args.device)
        for field in STUDENT:
            p[field].requires_grad_()
        difference = check(p)
        times = measure(contenders(p, args.device, args.compile), args.device, repeats)
        base = statistics.median(times["EnD2"])
        for key, values in times.items():
            median = statistics.median(values)
            spread = statistics.stdev(values) if len(values) > 1 else None
            shown = f"{spread:>8.3f}" if spread is not None else f"{'once':>8}"
            print(f"{k_dim:>2} {key:<40} {median:>10.3f} {shown} {median / base:>8.2f}")
            rows.append({"K": k_dim, "what": key, "median_ms": median, "spread_ms": spread})
        print(f"   EnD2 against (a), gradients included: relative difference {difference:.1e}")
        report[f"difference_K{k_dim}"] = difference
    if args.json:
        write_results(args.json, report | provenance() | {"rows": rows})


if __name__ == "__main__":
    main()
