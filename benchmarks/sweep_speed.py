"""Runs per second of every method under every executor, as ratios within one run, and the page's live sweep.

Run: .venv/bin/python -m benchmarks.sweep_speed            # all methods
     .venv/bin/python -m benchmarks.sweep_speed page       # the live default of the trade-off page
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.run import Run
from dpgrams_core.sweeps.dask import local_cluster
from dpgrams_core.sweeps.executors import Processes
from dpgrams_core.sweeps.run import plan_cells, stream_partial

DATA = {"modes": ("four_corners", 1000), "regression": ("sinusoid", 600), "clusters": ("blobs", 1000)}
EPSILONS = [0.5, 1.0, 2.0, 5.0]
# What the page runs when it is opened; tests/unit/sweeps/test_sweep_speed.py holds it to the page.
PAGE = {"n": [700, 1000, 2000, 5000], "epsilon": [0.1, 0.25, 0.5, 1.0, 5.0], "runs": 20, "n_modes": 4}
PRIVATE = {"delta": 1e-6}
PAGE_METHODS: dict[str, dict[str, Any]] = {
    "functional": PRIVATE,
    "dp_grams": {**PRIVATE, "calibration": "experiments"},
    "mean_shift": {},
}


def page_cells(**change: Any) -> list[Run]:
    """The cells of the page's first sweep, in its order: small n first, and what fits its release last."""
    cells = [
        cell
        for method, own in PAGE_METHODS.items()
        for cell in plan_cells(method, "four_corners", **{**PAGE, **own, **change})
    ]
    return sorted(cells, key=lambda cell: (cell.n, cell.method == "functional", -cell.epsilon))


def run_all(cells: Sequence[Run], executor: Any, scheduler: str | None = None) -> tuple[float, float, float]:
    """Seconds to the first result, in all, and the sum of the seconds that the runs themselves took."""
    started = time.perf_counter()
    first, inside = 0.0, 0.0
    for result in stream_partial(cells, executor, scheduler=scheduler):
        first = first or time.perf_counter() - started
        inside += sum(result.seconds) if result.complete else 0.0
    return first, time.perf_counter() - started, inside


def every_method(pool: Processes, scheduler: str) -> None:
    """One line a method: runs per second, and how many times more than one core has."""
    print(f"{'':24s} {'serial':>10s} {'processes':>22s} {'dask':>22s}   (runs per second, times serial)")
    for method in METHODS.values():
        dataset, n = DATA[method.kind]
        cells = plan_cells(method.name, dataset, n=[n], epsilon=EPSILONS, runs=10 if method.private else 40)
        runs = sum(cell.runs for cell in cells)
        executors: list[tuple[Any, str | None]] = [("serial", None), (pool, None), ("dask", scheduler)]
        serial, *others = [runs / run_all(cells, name, address)[1] for name, address in executors]
        ratios = "".join(f" {speed:12.1f} ({speed / serial:5.2f} x)" for speed in others)
        print(f"{method.name:24s} {serial:10.1f}{ratios}", flush=True)


def page_default(pool: Processes) -> None:
    """How long the page's live sweep takes, cold of any cache, and where the time goes."""
    cells = page_cells()
    print(f"{len(cells)} cells, {sum(cell.runs for cell in cells)} runs: {', '.join(PAGE_METHODS)}")
    for name, executor in (("processes (warm)", pool), ("serial", "serial")):
        first, total, inside = run_all(cells, executor)
        print(
            f"{name:18s} first point {first:6.2f} s, all {total:6.1f} s, {inside:6.1f} s of it inside runs", flush=True
        )
    shares: dict[tuple[str, int], float] = defaultdict(float)
    for result in stream_partial(page_cells(runs=5), pool):
        shares[result.cell.method, result.cell.n] += sum(result.seconds)
    for (method, n), seconds in sorted(shares.items()):
        print(f"  {method:12s} n = {n:5d}: {100 * seconds / sum(shares.values()):5.1f} % of the work")


def main() -> None:
    """The pool is started before anything is timed; its start is printed apart."""
    started = time.perf_counter()
    with Processes() as pool:
        pool.warm()
        print(f"{pool.workers} processes were warm after {time.perf_counter() - started:.1f} s")
        if sys.argv[1:] == ["page"]:
            page_default(pool)
            return
        with local_cluster() as scheduler:
            warm = plan_cells("mean_shift", "four_corners", n=[50], epsilon=[1.0], runs=20)
            run_all(warm, "dask", scheduler)
            every_method(pool, scheduler)


if __name__ == "__main__":
    main()
