"""The pilot behind the public bandwidth rule of the functional release, on mixtures other than the paper's.

Run: .venv/bin/python -m benchmarks.pilot_release   (about four minutes)

1. Error of the known-count modes at fixed bandwidths, as fractions of the box, relative to the best of them, over
   four mixtures, n and epsilon.  The rule's reference spread (1/14 of the box, so h = box / 10 where privacy
   dominates) was taken from here; between box/11 and box/9 the curve is flat.
2. What another kernel could gain: the largest ratio of information on a bump's place to squared sensitivity over
   all stationary isotropic kernels in the plane, by a linear program, in units of the best Gaussian's.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog
from scipy.special import j0

import dpgrams_core as dg
from benchmarks.pilot_defaults import PILOT
from dpgrams_core.model.results import Dataset

FRACTIONS = (1 / 18, 1 / 16, 1 / 14, 1 / 12, 1 / 11, 1 / 10, 1 / 9, 1 / 8)
SIZES = (700, 2000, 5000)
EPSILONS = (0.25, 0.5, 1.0, 5.0)
RUNS = 10


def relative_errors() -> dict[float, np.ndarray]:
    """For each epsilon, mean log-ratio of the error at every bandwidth to that of the best one."""
    result = {}
    for epsilon in EPSILONS:
        ratios = []
        for mixture, half in PILOT.values():
            box, truth = np.array([[-half, half]] * 2), mixture.modes()
            for n in SIZES:
                errors = np.zeros(len(FRACTIONS))
                for seed in range(RUNS):
                    points, _ = mixture.sample(n, np.random.default_rng(seed))
                    data = Dataset(name="pilot", kind="modes", points=points, box=box, true_modes=truth)
                    for i, fraction in enumerate(FRACTIONS):
                        release = dg.run(
                            "functional",
                            data,
                            seed=seed,
                            epsilon=epsilon,
                            bandwidth=fraction * 2 * half,
                            n_modes=len(truth),
                        )
                        errors[i] += dg.score(release, data)["mse"] / RUNS
                ratios.append(np.log(errors / errors.min()))
        result[epsilon] = np.mean(ratios, axis=0)
    return result


def best_kernel_gain() -> float:
    """Largest information over squared sensitivity, in units of the Gaussian kernel at h = s sqrt(2)."""
    radius, distance = np.linspace(0, 4, 200), np.linspace(0.1, 14, 300)  # in units of 1/s and s
    information = radius**2 * np.exp(-(radius**2)) / 2
    kernel = j0(np.outer(distance, radius))
    gains = []
    for dip in np.linspace(0, 0.4, 21):  # how far the kernel may go below zero: squared sensitivity 2 (1 + dip)
        best = linprog(
            -information, A_ub=-kernel, b_ub=np.full(len(distance), dip), A_eq=np.ones((1, len(radius))), b_eq=[1]
        )
        gains.append(-best.fun / (1 + dip))
    gaussian = 1 / 8  # int |w|^2 exp(-|w|^2) / 2 under N(0, I / 2)
    return max(gains) / gaussian


def main() -> None:
    """Print both tables."""
    print(f"four mixtures, n in {SIZES}, {RUNS} runs: error relative to the best bandwidth (geometric mean)")
    print("epsilon  " + "  ".join(f"box/{1 / fraction:<4.0f}" for fraction in FRACTIONS))
    table = relative_errors()
    for epsilon, logs in [*table.items(), (math.nan, np.mean(list(table.values()), axis=0))]:
        name = f"{epsilon:7g}" if math.isfinite(epsilon) else "    all"
        print(name + "  " + "  ".join(f"{value:8.2f}" for value in np.exp(logs)))
    print(f"the best stationary kernel in the plane gains {best_kernel_gain():.3f} times over the Gaussian")


if __name__ == "__main__":
    main()
