"""Speed as ratios within one run: the fast paths against the plain ones they are tested against.

Run: .venv/bin/python -m benchmarks.speed
"""

from __future__ import annotations

import time
from collections.abc import Callable

import dpgrams_core as dg
from benchmarks.naive import naive_density_and_gradient, naive_mean_shift
from dpgrams_core.methods.baselines.mean_shift import fast_mean_shift
from dpgrams_core.methods.dp_grams.starts import ball_counts, naive_counts, public_grid
from dpgrams_core.numerics.density import density_and_gradient
from dpgrams_core.numerics.kernels import KERNELS


def seconds(call: Callable[[], object]) -> float:
    """The best of three runs."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def ratio(name: str, slow: Callable[[], object], fast: Callable[[], object]) -> None:
    """Print how many times faster the second is."""
    a, b = seconds(slow), seconds(fast)
    print(f"{name:58s} {a:9.4f} s  {b:9.4f} s  {a / b:8.1f} times")


def main() -> None:
    """All ratios, then the time of one page update."""
    print(f"{'':58s} {'plain':>11s}  {'fast':>11s}")
    points = dg.load_dataset("four_corners", n=1000, seed=0).points
    at = points[:20]
    for kernel in KERNELS.values():
        ratio(
            f"density and gradient, {kernel.name}, n=1000, 20 points",
            lambda kernel=kernel: naive_density_and_gradient(kernel, points, at, 0.6),
            lambda kernel=kernel: density_and_gradient(kernel, points, at, 0.6),
        )
    box = dg.load_dataset("four_corners", n=50).box
    grid = public_grid(box, 0.2)
    many = dg.load_dataset("four_corners", n=20_000, seed=0).points
    ratio(
        f"DAP counts, n=20000, {len(grid)} candidates",
        lambda: naive_counts(many, grid, 0.2),
        lambda: ball_counts(many, grid, 0.2),
    )
    for n in (300, 600):
        some = dg.load_dataset("four_corners", n=n, seed=0).points
        ratio(
            f"mean shift from every point, n={n}",
            lambda some=some: naive_mean_shift(some, 0.7),
            lambda some=some: fast_mean_shift(some, 0.7, some),
        )
    print()
    for n in (1000, 5000, 100_000):
        data = dg.load_dataset("four_corners", n=n, seed=0)
        private = seconds(lambda data=data: dg.run("dp_grams", data, seed=0))
        plain = seconds(lambda data=data: dg.run("mean_shift", data, seed=0))
        print(f"n={n:7d}: one DP-GRAMS run {private:.4f} s, mean shift {plain:.4f} s, ratio {plain / private:.1f}")


if __name__ == "__main__":
    main()
