"""Cell size and smoothing of the noisy histogram, on mixtures other than the paper's.

Run: .venv/bin/python -m benchmarks.pilot_histogram   (about three minutes)

Printed is the error of the known-count modes for each pair of multiples of the public bandwidth rule, relative to the
best pair (geometric mean over the mixtures, n and epsilon).
"""

from __future__ import annotations

import numpy as np

import dpgrams_core as dg
from benchmarks.pilot_defaults import PILOT
from dpgrams_core.methods.baselines import histogram

CELLS, SMOOTHINGS = (0.5, 0.8, 1.1, 1.5), (0.6, 0.8, 1.0, 1.3)
SIZES, EPSILONS, RUNS = (1_000, 4_000), (0.25, 1.0, 4.0), 6


def main() -> None:
    """Print the table."""
    logs = np.zeros((len(CELLS), len(SMOOTHINGS)))
    for mixture, half in PILOT.values():
        box, truth = np.array([[-half, half]] * 2), mixture.modes()
        for n in SIZES:
            draws = [mixture.sample(n, np.random.default_rng(seed))[0] for seed in range(RUNS)]
            data = [
                dg.Dataset(name="pilot", kind="modes", points=points, box=box, true_modes=truth) for points in draws
            ]
            for epsilon in EPSILONS:
                errors = np.zeros_like(logs)
                for row, histogram.CELL_OF_RULE in enumerate(CELLS):
                    for column, histogram.SMOOTHING_OF_RULE in enumerate(SMOOTHINGS):
                        for seed, one in enumerate(data):
                            options = {"epsilon": epsilon, "seed": seed, "n_modes": len(truth)}
                            release = dg.run("noisy_histogram", one, **options)
                            errors[row, column] += dg.score(release, one)["mse_per_true_mode"] / RUNS
                logs += np.log(errors)
    relative = np.exp((logs - logs.min()) / (len(PILOT) * len(SIZES) * len(EPSILONS)))
    print("cells \\ smoothing " + "".join(f"{value:8g}" for value in SMOOTHINGS))
    for cell, values in zip(CELLS, relative, strict=True):
        print(f"{cell:17g} " + "".join(f"{value:8.2f}" for value in values))


if __name__ == "__main__":
    main()
