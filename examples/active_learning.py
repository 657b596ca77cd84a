"""Choose the rows to measure next: those that the model knows least about, or any.

Starting from 20 measured rows, each round adds six. Most rows are noisy and teach nothing:
knowledge uncertainty leads to the few that do, total uncertainty is drawn to the noise.

    python examples/active_learning.py [--out active.png]
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

mpl.use("Agg")
import matplotlib.pyplot as plt

from priornet import DeepEnsembleRegressor

Array = NDArray[np.float64]
ROUNDS, ADDED = 8, 6


def surface(x: Array) -> Array:
    """Flat on the left, wavy on the right."""
    return np.where(x > 0, np.sin(9 * x), 0.0)


def table(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """One input. Nine rows of ten lie on the left, where measuring is noisy and teaches nothing."""
    x = np.where(rng.random(n) < 0.9, rng.uniform(-1, 0, n), rng.uniform(0, 1, n))
    noise = np.where(x < 0, 0.5, 0.02)
    return x[:, None], surface(x) + noise * rng.standard_normal(n)


def errors(strategy: str, seed: int) -> list[float]:
    """RMSE on the right after each round."""
    rng = np.random.default_rng(seed)
    x, y = table(1000, rng)
    right = np.linspace(0, 1, 200)
    known = rng.permutation(len(x))[:20]
    found: list[float] = []
    for _ in range(ROUNDS + 1):
        model = DeepEnsembleRegressor(5, hidden=(32, 32), epochs=150, random_state=seed)
        model.fit(x[known], y[known])
        wrong = model.predict(right[:, None]) - surface(right)
        found.append(float(np.sqrt(np.mean(wrong**2))))
        rest = np.setdiff1d(np.arange(len(x)), known)
        if strategy == "random":
            order = rng.permutation(len(rest))
        else:
            unsure = getattr(model.predict_uncertainty(x[rest]), f"{strategy}_variance")
            order = np.argsort(-np.asarray(unsure).ravel())
        known = np.concatenate([known, rest[order[:ADDED]]])
    return found


def main() -> None:
    """Run each strategy with a few seeds and draw their errors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("active.png"))
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    rows = 20 + ADDED * np.arange(ROUNDS + 1)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for strategy in ("knowledge", "total", "random"):
        found = np.array([errors(strategy, seed) for seed in range(args.seeds)])
        mean, deviation = found.mean(0), found.std(0)
        axes.plot(rows, mean, marker="o", label=strategy)
        axes.fill_between(rows, mean - deviation, mean + deviation, alpha=0.15)
        first, last = f"{rows[0]} rows {mean[0]:.3f}", f"{rows[-1]} rows {mean[-1]:.3f}"
        print(f"{strategy:<10} rmse with {first}, with {last}")
    axes.set_xlabel("rows measured")
    axes.set_ylabel("rmse on the right")
    axes.legend(title="next rows chosen by")
    figure.savefig(args.out, dpi=120)
    print(f"figure: {args.out}")


if __name__ == "__main__":
    main()
