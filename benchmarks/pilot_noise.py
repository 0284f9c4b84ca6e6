"""How much more than to first order the noise moves modes, on shapes that no table shows.

Run: .venv/bin/python -m benchmarks.pilot_noise   (about two minutes of processor time)

The laws of benchmarks/pilot_lopsided.py at sizes and ε where modes are weak.  Chosen is ``BENT`` of
numerics/regions.py: the number of those tried with which regions by the noise alone hold closest to 95 of 100 modes
that stand 5 to 50 standard deviations above it.

November 2026, 40 runs a cell, 5,398 modes: 0.934, 0.941, 0.950, 0.956 and 0.961 for 0, 0.5, 1, 1.5 and 2.
"""

from __future__ import annotations

import argparse

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.pilot_lopsided import LAWS, drawn
from dpgrams_core.methods.functional.modes import read_together, release_surface
from dpgrams_core.methods.functional.spec import FunctionalSpec
from dpgrams_core.model.measures import match_modes
from dpgrams_core.numerics import regions
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.studies.coverage import without_noise

CELLS = ((500, 0.5), (500, 1.0), (2_000, 0.1), (2_000, 0.25), (2_000, 1.0), (8_000, 0.1), (20_000, 1.0))
TRIED = (0.0, 0.5, 1.0, 1.5, 2.0)
WEAKEST, STRONGEST = 5.0, 50.0


def errors(name: str, n: int, epsilon: float, runs: int) -> list[tuple[float, float]]:
    """Of each mode how far it stands above the noise, and the square of how far the noise moved it, in units of the
    covariance to first order."""
    data = [drawn(name, n, seed) for seed in range(runs)]
    spec = FunctionalSpec(epsilon=epsilon, delta=1e-6, n_modes=3)
    noisy = read_together([release_surface(one, spec, SimulationNoise(seed)) for seed, one in enumerate(data)])
    clean = read_together([without_noise(one, of) for one, of in zip(noisy, data, strict=True)])
    found = []
    for one, without in zip(noisy, clean, strict=True):
        assert one.noise_covariances is not None
        assert one.significance is not None
        order = match_modes(without.modes, one.modes).estimate_of
        for gap, j in zip(one.modes[order] - without.modes, order, strict=True):
            found.append((float(one.significance[j]), float(gap @ np.linalg.solve(one.noise_covariances[j], gap))))
    return found


def main() -> None:
    """Print what every choice holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    runs = parser.parse_args().runs
    regions.BENT = 0.0
    heights, squares = np.array([pair for name in LAWS for cell in CELLS for pair in errors(name, *cell, runs)]).T
    weak = (heights >= WEAKEST) & (heights <= STRONGEST)
    held = {bent: float((squares <= 5.991 * (1 + bent / heights))[weak].mean()) for bent in TRIED}
    print(f"{int(weak.sum()):,} modes")
    for bent, share in held.items():
        print(f"{bent}: {share:.3f}")
    print(f"{min(held, key=lambda bent: abs(held[bent] - regions.HELD))} chosen")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
