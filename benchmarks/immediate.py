"""The goals of an immediate page in one table: what was before, what is now, in one run; and the same as JSON.

Run: .venv/bin/python -m benchmarks.immediate [--only PART ...] [--long] [--json FILE]

"Before" is the slow reference of the engine, which ships (slow_reading.py and below); of pages and imports it is the
state ``BEFORE`` of this repository, taken from its history and run beside this one.  Where there is no history that
column is empty.  ``--long`` adds the class of thirty (load.py) and the hundred million rows (large_release.py).

Times are of the processor, the least of some repeats, since other work on the machine makes clocks unfair; what a
browser shows is by its clock, and the load of the machine is printed.  The goals were set on a machine where k-means on
MNIST takes ``THERE`` seconds; it is timed here first, and the column "there" is the time of now in that machine's
seconds.  Nobody promises that all work scales alike: it tells a fast machine from a fast engine, no more.

Linear algebra has one thread, except where a line says otherwise: on a busy machine several wait for each other, and a
fit of bumps suffered from that wherever nobody had limited them.  A goal that is a time holds for a quiet machine with
2 cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from playwright.sync_api import Browser
from threadpoolctl import threadpool_limits

import dpgrams_core as dg
from benchmarks import handle_speed, large_release, load, redraw, slow_reading
from benchmarks.visitor import Visitor, processor_seconds, running_app
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
from dpgrams_core.model.places import APP
from dpgrams_core.model.results import Dataset, Release
from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.cell_sums import ROWS, cell_counts
from dpgrams_core.numerics.merging import climb
from dpgrams_core.numerics.rounding import running_sum
from dpgrams_core.numerics.surface import CHUNK, SPACING, _direct_sum, box_bases, coefficients
from dpgrams_core.privacy.noise import SimulationNoise

BEFORE = "cc8430e"  # the last state before pages, imports and the engine were made quicker
COUNTS = {4: "count known", None: "count unknown"}
RUNS = 16
NAMES = "import dpgrams_core\nfor name in dpgrams_core.__all__: getattr(dpgrams_core, name)"
SEEDS = range(5)  # of the noise: how long a surface takes to be read depends on it
HERE = APP.parent
OLD_PAGES = {"modes": "", "regression": "regression", "clusters": "clusters"}  # Modes was the page that opens
PICTURE = ".st-key-contours_chart figure[data-places], .st-key-contours_chart .main-svg"
PAINTS, MOVES, CHANGES = 3, 300, 5
THERE = 1.4  # seconds
HEADS = f"{'':66s} {'before':>10s} {'now':>10s} {'there':>10s} {'times':>7s}   goal"


@dataclass(frozen=True)
class Row:
    """One line of the table: a number of before, where there is one, and of now, in a unit.

    The goal is the ``most`` that it may be, or so many ``times`` less than before.  A time of the processor gets the
    ``speed`` of this machine, the time of k-means here over that there.
    """

    what: str
    new: float
    old: float | None = None
    unit: str = "ms"
    most: float | None = None
    times: float | None = None
    note: str = ""
    processor: bool = False
    speed: float | None = None

    @property
    def there(self) -> float | None:
        return None if self.speed is None else self.new / self.speed

    @property
    def ratio(self) -> float | None:
        return None if self.old is None else self.old / self.new

    @property
    def met(self) -> bool | None:
        """Whether its goal is met; None where it has none, or nothing to be compared with."""
        if self.most is not None:
            return self.new <= self.most
        return None if self.times is None or self.ratio is None else self.ratio >= self.times

    def __str__(self) -> str:
        old, ratio = ("", "") if self.ratio is None else (f"{self.old:.1f}", f"{self.ratio:.1f}")
        there = "" if self.there is None else f"{self.there:.1f}"
        goal = f"at most {self.most:g} {self.unit}".strip() if self.most is not None else ""
        goal = f"{self.times:g} times" if self.times is not None else goal
        verdict = {True: "met", False: "missed", None: ""}[self.met]
        if self.most is not None and self.there is not None and (self.there <= self.most) is not self.met:
            verdict += f" here, {'met' if self.there <= self.most else 'missed'} there"
        words = ", ".join(filter(None, (goal, verdict, self.note)))
        what = ", ".join(filter(None, (self.what, self.unit)))
        return f"{what:66s} {old:>10s} {self.new:10.1f} {there:>10s} {ratio:>7s}   {words}"

    def fields(self) -> dict[str, Any]:
        return asdict(self) | {"there": self.there, "ratio": self.ratio, "met": self.met}


@cache
def speed() -> float:
    """How long k-means on MNIST takes here, over what it took where the goals were set."""
    import sklearn.cluster  # noqa: F401  the limit reaches only the threads of what is loaded

    digits = dg.load_dataset("mnist")
    with threadpool_limits(1):
        return seconds(lambda: dg.run("kmeans", digits, seed=0)) / THERE


def timed(what: str, new: float, old: float | None = None, **goal: Any) -> Row:
    """A line of two times of the processor, in seconds."""
    return Row(what, 1e3 * new, None if old is None else 1e3 * old, processor=True, **goal)


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """The least processor time of some calls."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def importing(code: str, folder: Path) -> float:
    """Processor time of a new Python that runs some code in a folder.

    Compiled once and kept, as an installed package is, also where this process was told to keep nothing.
    """
    command = [sys.executable, "-c", f"import time\n{code}\nprint(time.process_time())"]
    with tempfile.TemporaryDirectory() as compiled:
        kept = os.environ | {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        how: dict[str, Any] = {"capture_output": True, "text": True, "check": True, "cwd": folder, "env": kept}
        return min(float(subprocess.run(command, **how).stdout) for _ in range(4))


@contextmanager
def state_before() -> Iterator[Path | None]:
    """A folder with the files of ``BEFORE``; None where the history is not at hand."""
    packed = subprocess.run(["git", "-C", str(HERE), "archive", BEFORE], capture_output=True, check=False)
    if packed.returncode:
        print(f"There is no history with {BEFORE} here, so what pages and imports cost before is not measured.")
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
        yield Path(folder)


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
    old, new = seconds(lambda: direct_sums(data.points, bases)), seconds(lambda: coefficients(data.points, bases))
    off = np.linalg.norm(direct_sums(data.points, bases) - coefficients(data.points, bases)) / data.n
    floor = seconds(lambda: [np.exp(data.points) for _ in range(2)])
    kept = np.random.default_rng(0).random((len(bases[0].whitening), 20_000))
    multiplied = seconds(lambda: kept @ kept.T) * data.n / 20_000
    return [
        timed(f"kernel sums, d=2, n=1,000,000 (off {off:.0e} a record)", new, old, times=5.0),
        timed("  two exponentials a record and axis alone", floor, note="the floor that the issue names"),
        Row("  kernel sums over these", new / floor, unit="times", most=2.0, note="out of reach, since NumPy needs"),
        *gathering(data, bases),
        timed("  the product of whitened vectors alone", multiplied, note="what no exponential avoids"),
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
        timed("  the numbers of their cells", seconds(lambda: list(map(numbered, chunks))), note="before any sum"),
        timed("  a sort by cell and a gather", seconds(order), note="then this"),
        timed("  or 78 weighted counts", 78 * seconds(count), note="or this"),
    ]


def reading() -> list[Row]:
    """Modes of a released surface, and many runs on one data set."""
    data = dg.load_dataset("four_corners", n=5000, seed=0)
    shared, rows = data.for_many_runs(), []
    for (count, words), (threads, also) in product(COUNTS.items(), {1: "", None: ", all threads"}.items()):
        spec = FunctionalSpec(epsilon=1.0, n_modes=count)
        bare = [release_surface(data, spec, SimulationNoise(seed)) for seed in SEEDS]

        def new_runs(spec: FunctionalSpec = spec) -> list[Release]:
            return run_together("functional", [shared] * RUNS, range(RUNS), n_modes=spec.n_modes)

        def old_runs(spec: FunctionalSpec = spec) -> list[Release]:
            return [run_slowly(data, spec, seed) for seed in range(RUNS)]

        with threadpool_limits(threads):
            reads = (read_slowly, partial(read_modes, box=data.box))
            old, new = (median(seconds(partial(call, one)) for one in bare) for call in reads)
            rows.append(timed(f"reading modes, n=5000, {words}{also}", new, old, most=10.0))
            old, new = (seconds(runs) / RUNS for runs in (old_runs, new_runs))
            rows.append(timed(f"one of many functional runs, {words}{also}", new, old, times=5.0))
    spec = FunctionalSpec(epsilon=1.0)
    with threadpool_limits(1):
        old, new = (
            seconds(lambda each=each: [release_surface(each, spec, SimulationNoise(seed)) for seed in range(50)]) / 50
            for each in (data, shared)
        )
    return [*rows, timed("one of many releases with nothing read off (audits)", new, old, times=5.0)]


def methods() -> list[Row]:
    """Whole runs with a goal in seconds."""
    million = dg.load_dataset("four_corners", n=1_000_000, seed=0)
    few = dg.load_dataset("four_corners", n=5000, seed=0)
    digits = dg.load_dataset("mnist")
    asked: list[tuple[str, Dataset, str, dict[str, Any], float | None]] = [
        ("DP-GRAMS tight, n=1,000,000", million, "dp_grams", {"calibration": "tight"}, 1e3),
        ("DP-GRAMS experiments, n=1,000,000", million, "dp_grams", {"calibration": "experiments"}, 1e3),
        ("functional release, n=1,000,000", million, "functional", {}, None),
        ("mean shift from all points, n=5000", few, "mean_shift", {}, 100.0),
        ("clusters on MNIST, number known", digits, "functional_c", {"n_clusters": 10}, 2e3),
        ("clusters on MNIST, number unknown", digits, "functional_c", {}, None),
        ("k-means on MNIST", digits, "kmeans", {}, None),
    ]
    return [
        timed(what, seconds(partial(dg.run, method, data, seed=0, **options)), most=most)
        for what, data, method, options, most in asked
    ]


def imports(before: Path | None) -> list[Row]:
    """What a new process waits for, and the dashboard's own until it answers."""
    code = {"import dpgrams_core": "import dpgrams_core", "import dpgrams_core and every public name": NAMES}
    rows = [
        timed(what, importing(one, HERE), before and importing(one, before), most=1e3) for what, one in code.items()
    ]
    starts = []
    for root in filter(None, (HERE, before)):
        with running_app(root=root) as (_, server):
            starts.append(processor_seconds(server))
    return [*rows, timed("the dashboard until it answers", *starts, note="with Streamlit's own imports")]


def paints(root: Path, link: str, browser: Browser, parts: Sequence[str]) -> list[float]:
    """Milliseconds until parts of a page are painted, one after the other: a warm server, a browser that is new.

    By the browser's clock, from the start of the navigation; the worst of some.
    """
    found = []
    with running_app(root=root) as (address, server):
        with Visitor(address, link) as first:
            redraw.settled(first)
        redraw.idle(server)
        for _ in range(PAINTS):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.goto(f"{address}/{link}", wait_until="commit")
            times = []
            for what in parts:
                page.locator(what).first.wait_for(timeout=300_000)
                times.append(
                    page.evaluate("new Promise((done) => requestAnimationFrame(() => done(performance.now())))")
                )
            found.append(times)
            context.close()
    return [max(times) for times in zip(*found, strict=True)]


def first_paint(before: Path | None) -> list[Row]:
    """The first useful paint of a warm server, and its floor: a page that has one line."""
    names, parts = ("Modes, the answer is there", "Modes, the picture is there"), (".answer", PICTURE)
    with handle_speed.chromium() as browser:
        new = paints(HERE, "modes", browser, parts)
        old = [None, None] if before is None else paints(before, OLD_PAGES["modes"], browser, parts)
        with redraw.page_of_lines(0, 1) as root:
            bare = paints(root, "", browser, [".stMarkdown p"])
    rows = [Row(what, *times, most=2e3) for what, *times in zip(names, new, old, strict=True)]
    return [*rows, Row("  a page of Streamlit with one line", *bare, note="the floor of both")]


def redraws(before: Path | None) -> Iterator[Row]:
    """Cached redraws of all pages: the processor's time and what is sent."""
    known = dict(_redrawn(before, OLD_PAGES)) if before is not None else {}
    for (page, what), one in _redrawn(HERE, redraw.PAGES):
        old = known.get((page, what), {})
        note = f"{one['failed']} failed" if one["failed"] else ""
        for number, unit, most in (("processor_ms", "ms", redraw.GOAL_MS), ("kB", "kB", redraw.GOAL_KB)):
            yield Row(f"redraw of {page}, {what}", one[number], old.get(number), unit, most=most, note=note)


def _redrawn(root: Path, pages: dict[str, str]) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """What redraws cost by page and kind; ``pages`` are the addresses by their names."""
    with running_app(root=root) as (address, server):
        for page, name in pages.items():
            try:
                rows = redraw.rows_of(server, address, name)
            except TimeoutError as error:  # costs this page only
                print(f"The redraws of {page} are not measured: {error}.", flush=True)
                continue
            yield from (((page, one["redraw"]), one) for one in rows)


def handle() -> Iterator[Row]:
    """The handle under the pointer, and the first frame after a change."""
    with running_app() as (address, _), handle_speed.chromium() as browser:
        for title, found in handle_speed.measured(address, browser, MOVES, CHANGES):
            for share in ("q50", "q95"):
                yield Row(f"{title}, {share}", found[share], most=found["goal"])


def many_visitors() -> list[Row]:
    """A class of thirty for two minutes, with two workers."""
    found = load.measured(30, 120, 2)
    held, note = found["memory_mb"], f"{len(found['errors'])} errors, load {found['load']}"
    back = f"{held['start']} MB at the start"
    return [
        Row(
            "thirty visitors, wait for a move, median", 1e3 * found["median_s"], most=1e3 * load.GOAL_MEDIAN, note=note
        ),
        Row("thirty visitors, wait for a move, q95", 1e3 * found["late_s"], most=1e3 * load.GOAL_LATE),
        Row("thirty visitors, errors", len(found["errors"]), unit="errors", most=0),
        Row("memory a minute after they left", held["a_minute_after"], unit="MB", most=held["start"], note=back),
    ]


def large() -> list[Row]:
    """A release over 100,000,000 rows of Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "large.json")
        command = [sys.executable, "-m", "benchmarks.large_release", "--out", str(out)]
        subprocess.run(command, check=True, cwd=HERE, stdout=sys.stderr)
        told = json.loads(out.read_text(encoding="utf-8"))
    goal = large_release.MEMORY_GOAL / 1e6
    rows = [
        Row(
            f"{one['rows']:,} rows, {one['executor']}, memory",
            one["memory"] / 1e6,
            unit="MB",
            note=f"{one['seconds']:.0f} s",
        )
        for one in told["runs"]
    ]
    rows = [replace(row, most=goal) if "serial" in row.what else row for row in rows]
    growth = told["growth"]["processor_seconds"]["last"]
    return [*rows, Row("growth exponent of the processor's time", growth, unit="", most=large_release.GROWTH_GOAL)]


@contextmanager
def without_the_rest(name: str, failed: dict[str, str]) -> Iterator[None]:
    """A part that fails costs no other: what it says is kept by its name."""
    try:
        yield
    except Exception as error:
        failed[name] = f"{type(error).__name__}: {error}"
        print(f"{name} ended early, {failed[name]}", flush=True)


def main() -> None:
    """Print the table, and write JSON where it is asked for."""
    one, every = partial(threadpool_limits, 1), partial(threadpool_limits, None)
    parts: dict[str, tuple[Callable[..., Iterable[Row]], Any]] = {
        "imports": (imports, every),
        "sums": (sums, one),
        "reading": (reading, every),
        "methods": (methods, one),
        "redraws": (redraws, every),
        "paint": (first_paint, every),
        "handle": (handle, every),
        "visitors": (many_visitors, every),
        "large": (large, every),
    }
    asks = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asks.add_argument("--only", nargs="+", choices=list(parts), help="these parts")
    asks.add_argument("--long", action="store_true", help="also thirty visitors, and a hundred million rows")
    asks.add_argument("--json", type=Path)
    asked = asks.parse_args()
    wanted = asked.only or [name for name in parts if asked.long or name not in ("visitors", "large")]
    told: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    with state_before() as before:
        print(HEADS)
        print(timed('k-means on MNIST, which the column "there" is scaled by', THERE * speed()), flush=True)
        for name in wanted:
            part, threads = parts[name]
            with threads(), without_the_rest(name, failed):
                for bare in part(before) if part in (imports, first_paint, redraws) else part():
                    row = replace(bare, speed=speed()) if bare.processor else bare
                    print(row, flush=True)
                    told.append({"part": name, **row.fields()})
    around = {"load": os.getloadavg()[0], "cores": os.cpu_count(), "speed": speed(), "failed": failed}
    missed = [row["what"] for row in told if row["met"] is False]
    words = ", ".join(missed) or "nothing"
    print(f"load of this machine {around['load']:.1f} on {around['cores']} cores; missed: {words}")
    text = json.dumps({**around, "rows": told}, indent=1, default=float)
    if asked.json:
        asked.json.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
    if failed:
        raise SystemExit(f"Not measured to the end: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
