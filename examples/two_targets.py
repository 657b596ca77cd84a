"""Two targets at once, with full covariance: beliefs drawn as ellipses.

A thrown ball: from angle and speed, where does it land and how long does it fly? The two outcomes
are noisy together (a gust carries the ball both farther and longer), which a model with independent
outputs cannot say.

    python examples/two_targets.py [--out ellipses.png]
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse

from priornet import DistilledRegressor

Array = NDArray[np.float64]
SHOWN = np.array([[0.5, 15.0], [0.9, 20.0], [1.2, 12.0], [0.8, 32.0]])  # the last is too fast


def throws(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Angle (radians) and speed (m/s); distance (m) and time (s) with a common disturbance."""
    x = np.column_stack([rng.uniform(0.3, 1.3, n), rng.uniform(8, 22, n)])
    time = 2 * x[:, 1] * np.sin(x[:, 0]) / 9.81
    gust = 0.05 * rng.standard_normal(n)
    own = 0.02 * rng.standard_normal(n)
    distance = x[:, 1] * np.cos(x[:, 0]) * time
    return x, np.column_stack([distance * (1 + gust), time * (1 + gust + own)])


def ellipse(axes: Axes, centre: Array, covariance: Array, **style: object) -> None:
    """Two standard deviations of a covariance."""
    lengths, directions = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(directions[1, 1], directions[0, 1]))
    width, height = 4 * np.sqrt(np.maximum(lengths[::-1], 0))
    axes.add_patch(Ellipse((centre[0], centre[1]), width, height, angle=angle, fill=False, **style))


def main() -> None:
    """Fit, compare the correlation with the true one, draw four throws."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("ellipses.png"))
    out = parser.parse_args().out
    rng = np.random.default_rng(0)
    x, y = throws(500, rng)
    model = DistilledRegressor(n_members=5, student_epochs=200, random_state=0).fit(x, y)
    belief = model.predict_belief(SHOWN)
    total, data = belief.total_covariance().numpy(), belief.data_covariance().numpy()
    means = model.predict(SHOWN)

    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    axes.plot(*y.T, ".", color="0.85", markersize=3, zorder=0)
    for i, (angle, speed) in enumerate(SHOWN):
        colour = f"C{i}"
        axes.plot(*means[i], "+", color=colour, label=f"{angle:g} rad, {speed:g} m/s")
        ellipse(axes, means[i], total[i], color=colour)
        ellipse(axes, means[i], data[i], color=colour, linestyle=":")
        found = data[i][0, 1] / np.sqrt(data[i][0, 0] * data[i][1, 1])
        knowledge = np.sqrt(np.diagonal(total[i] - data[i]))
        print(
            f"{angle:g} rad, {speed:>2g} m/s: {means[i][0]:5.1f} m, {means[i][1]:.2f} s; "
            f"correlation of the noise {found:.2f} (true 0.93), "
            f"knowledge sd {knowledge[0]:.2f} m, {knowledge[1]:.3f} s"
        )
    axes.set_xlabel("distance in m")
    axes.set_ylabel("time in s")
    axes.set_title("two deviations: total (solid), data (dotted)")
    axes.legend(loc="upper left")
    figure.savefig(out, dpi=120)
    print(f"figure: {out}")


if __name__ == "__main__":
    main()
