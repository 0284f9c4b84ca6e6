"""The engine's goals for an immediate page: the slow reference beside what is used, in one run, as a table and JSON.

Run: .venv/bin/python -m benchmarks.immediate [file.json]

Times are of the processor, the best of some repeats, since other work on the machine makes clocks unfair.  Linear
algebra has one thread, except where a line says otherwise: on a busy machine several wait for each other, and a fit of
bumps suffered from that wherever nobody had limited them.  A goal that is a time holds for a quiet machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import dpgrams_core as dg
from benchmarks import slow_reading
from dpgrams_core.methods.functional.modes import (
    PATH_STEPS,
    distinct_modes,
    public_starts,
    read_modes,
    release_surface,
    sized,
)
from dpgrams_core.methods.functional.spec import FunctionalSpec
from dpgrams_core.methods.registry import run_together
from dpgrams_core.model.results import Dataset, Release
from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.cell_sums import ROWS, cell_counts
from dpgrams_core.numerics.merging import climb
from dpgrams_core.numerics.rounding import running_sum
from dpgrams_core.numerics.surface import CHUNK, SPACING, _direct_sum, box_bases, coefficients
from dpgrams_core.privacy.noise import SimulationNoise

COUNTS = {4: "count known", None: "count unknown"}
RUNS = 16
NAMES = "import dpgrams_core\nfor name in dpgrams_core.__all__: getattr(dpgrams_core, name)"
ALL_AT_ONCE = "import pandas, scipy.cluster.hierarchy, scipy.integrate, scipy.ndimage, scipy.optimize\n" + NAMES


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds of the reference, where there is one, and of what is used."""

    what: str
    new: float
    old: float | None = None
    goal: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.old is None else self.old / self.new

    def __str__(self) -> str:
        old, ratio = ("", "") if self.old is None else (f"{1e3 * self.old:.1f}", f"{self.old / self.new:.1f}")
        return f"{self.what:58s} {old:>10s} {1e3 * self.new:10.1f} {ratio:>7s}   {self.goal}"


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """The least processor time of some calls."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def importing(code: str) -> float:
    """Processor time of a new Python that runs some code."""
    command = [sys.executable, "-c", f"import time\n{code}\nprint(time.process_time())"]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(3))


def direct_sums(points: np.ndarray, bases: Any) -> np.ndarray:
    """Kernel sums with one exponential for every record and node."""
    return running_sum(_direct_sum(points[start : start + CHUNK], bases) for start in range(0, len(points), CHUNK))


def read_slowly(bare: Release) -> Release:
    """``read_modes`` as it was."""
    assert bare.bare_surface is not None
    surface = slow_reading.slow(bare.bare_surface)  # type: ignore[arg-type]
    count, h = bare.spec.n_modes, surface.bandwidth
    bumps = slow_reading.find_bumps(surface, count, reference_spread(surface.box))
    places, heights = distinct_modes(surface, bumps) if count is None else (bumps.centres, bumps.significance)
    paths = climb(surface, public_starts(surface.box), PATH_STEPS, h, surface.noise_scale)
    return replace(bare, modes=places, significance=heights, trajectories=paths)


def run_slowly(data: Dataset, spec: FunctionalSpec, seed: int) -> Release:
    """A run of the functional release as it was, by itself."""
    return sized(read_slowly(release_surface(data, spec, SimulationNoise(seed))), data.points)


def sums() -> list[Row]:
    """Kernel sums of a million records in the plane."""
    data = dg.load_dataset("four_corners", n=1_000_000, seed=0)
    bases = box_bases(data.box, 0.4243)
    old, new = seconds(lambda: direct_sums(data.points, bases), 1), seconds(lambda: coefficients(data.points, bases))
    off = np.linalg.norm(direct_sums(data.points, bases) - coefficients(data.points, bases)) / data.n
    floor = seconds(lambda: [np.exp(data.points) for _ in range(2)])
    kept = np.random.default_rng(0).random((len(bases[0].whitening), 20_000))
    multiplied = seconds(lambda: kept @ kept.T) * data.n / 20_000
    return [
        Row(f"kernel sums, d=2, n=1,000,000 (off {off:.0e} a record)", new, old, "5 times; twice the next"),
        Row("  two exponentials a record and axis", floor, goal="twice this is out of reach, since"),
        *gathering(data, bases),
        Row("  the product of whitened vectors alone", multiplied, goal="what no exponential avoids"),
    ]


def gathering(data: Dataset, bases: Any) -> list[Row]:
    """What NumPy takes to bring records to their cells, before anything is added up that the sums need.

    Two exponentials a record are quick because each record is by itself.  A sum over cells needs the numbers of the
    cells, and then the records of a cell in one place (a sort and a gather) or one weighted count for each of the 78
    moments of a series of 12 terms.  The numbers with the sort take several times the two exponentials before anything
    is added up, and so would the counts of a series of a quarter of the length: "within twice" is not had with NumPy.
    """
    low, high = (np.array([basis.nodes[end] for basis in bases]) for end in (0, -1))
    counts = np.array(cell_counts([len(basis.nodes) for basis in bases], SPACING))
    chunks = [data.points[start : start + ROWS] for start in range(0, data.n, ROWS)]

    def numbered(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = (points - low) * (counts / (high - low))
        return places, np.clip(places.astype(np.int64), 0, counts - 1) @ np.array([counts[1], 1])

    known = [numbered(points) for points in chunks]

    def order() -> None:
        for places, cell in known:
            places[np.argsort(cell.astype(np.uint16), kind="stable")]

    def count() -> None:
        for places, cell in known:
            np.bincount(cell, weights=places[:, 0], minlength=int(counts.prod()))

    return [
        Row("  the numbers of their cells", seconds(lambda: list(map(numbered, chunks))), goal="before any sum"),
        Row("  a sort by cell and a gather", seconds(order), goal="then this"),
        Row("  or 78 weighted counts", 78 * seconds(count), goal="or this"),
    ]


def reading() -> list[Row]:
    """Modes of a released surface, and many runs on one data set."""
    data = dg.load_dataset("four_corners", n=5000, seed=0)
    shared, rows = data.for_many_runs(), []
    for (count, words), (threads, also) in product(COUNTS.items(), {1: "", None: ", all threads"}.items()):
        spec = FunctionalSpec(epsilon=1.0, n_modes=count)
        bare = release_surface(data, spec, SimulationNoise(0))

        def new_runs(spec: FunctionalSpec = spec) -> list[Release]:
            return run_together("functional", [shared] * RUNS, range(RUNS), n_modes=spec.n_modes)

        def old_runs(spec: FunctionalSpec = spec) -> list[Release]:
            return [run_slowly(data, spec, seed) for seed in range(RUNS)]

        with threadpool_limits(threads):
            old, new = (seconds(partial(call, bare), 5) for call in (read_slowly, partial(read_modes, box=data.box)))
            rows.append(Row(f"reading modes, n=5000, {words}{also}", new, old, "10 ms"))
            old, new = (seconds(runs) / RUNS for runs in (old_runs, new_runs))
            rows.append(Row(f"one of many functional runs, {words}{also}", new, old, "5 times"))
    spec = FunctionalSpec(epsilon=1.0)
    with threadpool_limits(1):
        old, new = (
            seconds(lambda each=each: [release_surface(each, spec, SimulationNoise(seed)) for seed in range(50)]) / 50
            for each in (data, shared)
        )
    return [*rows, Row("one of many releases with nothing read off (audits)", new, old, "5 times")]


def methods() -> list[Row]:
    """Whole runs with a goal in seconds."""
    million = dg.load_dataset("four_corners", n=1_000_000, seed=0)
    few = dg.load_dataset("four_corners", n=5000, seed=0)
    digits = dg.load_dataset("mnist")
    return [
        Row("DP-GRAMS, n=1,000,000", seconds(lambda: dg.run("dp_grams", million, seed=0)), goal="1 s"),
        Row(
            "DP-GRAMS, tight, n=1,000,000",
            seconds(lambda: dg.run("dp_grams", million, seed=0, calibration="tight"), 1),
            goal="1 s",
        ),
        Row("functional release, n=1,000,000", seconds(lambda: dg.run("functional", million, seed=0))),
        Row("mean shift from all points, n=5000", seconds(lambda: dg.run("mean_shift", few, seed=0)), goal="100 ms"),
        Row("clusters on MNIST", seconds(lambda: dg.run("functional_c", digits, seed=0, n_clusters=10)), goal="2 s"),
        Row("k-means on MNIST", seconds(lambda: dg.run("kmeans", digits, seed=0))),
    ]


def imports() -> list[Row]:
    """What a new process waits for."""
    old = importing(ALL_AT_ONCE)
    return [
        Row("import dpgrams_core", importing("import dpgrams_core"), old, "1 s"),
        Row("import dpgrams_core and every public name", importing(NAMES), old, "1 s"),
    ]


def main() -> None:
    """Print the table, then JSON to a file where one is named."""
    print(f"{'milliseconds of the processor':58s} {'before':>10s} {'now':>10s} {'times':>7s}   goal")
    rows = []
    for part, threads in ((imports, 1), (sums, 1), (reading, None), (methods, 1)):
        with threadpool_limits(threads):
            for row in part():
                print(row, flush=True)
                rows.append(asdict(row) | {"ratio": row.ratio})
    text = json.dumps(rows, indent=1)
    print(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
