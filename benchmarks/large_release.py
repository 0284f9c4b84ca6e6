"""A release over a folder of Parquet files larger than memory: time, memory, and how both grow with the rows.

Run: .venv/bin/python -m benchmarks.large_release [--rows 1000000 10000000 100000000] [--where serial dask] [--out FILE]

Files are made in a temporary folder, 16 bytes a row.  Each release is a process of its own, through the ledger; its
memory is that of it and of all processes that it starts, looked at ten times a second and added up, so memory that they
share counts several times.  On a busy machine the seconds of the processors say more than those of the clock.  The
growth exponent is the slope of log seconds over log rows.  The start of a process, a few seconds, flattens it, so that
of the last two numbers of rows is printed as well.  With processes and on Dask there are two workers, of which one is
killed after the first file of the pass; the sums have to be those of one process.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from pyarrow import parquet

from dpgrams_core.own_data.folder import add_up_folder
from dpgrams_core.own_data.release import release
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.sweeps.executors import SWEEP_EXECUTORS, Processes, stream_tasks

ROWS_OF_FILE, ROWS_OF_GROUP = 5_000_000, 1_000_000
CORNERS = np.array([(-2.0, -2.0), (-2.0, 2.0), (2.0, -2.0), (2.0, 2.0)])
MEMORY_GOAL, GROWTH_GOAL = 1.5e9, 1.05
OPTIONS: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "n_modes": 4}


def make_folder(folder: Path, rows: int) -> None:
    """Files of synthetic records around four corners; the same for the same number of rows."""
    rng = np.random.default_rng(rows)
    for number, begin in enumerate(range(0, rows, ROWS_OF_FILE)):
        with parquet.ParquetWriter(
            folder / f"part{number:04}.parquet",
            pa.schema({"x": pa.float64(), "y": pa.float64()}),
            compression="none",
            use_dictionary=False,
        ) as writer:
            left = min(ROWS_OF_FILE, rows - begin)
            while left:
                count = min(left, ROWS_OF_GROUP)
                points = CORNERS[rng.integers(0, 4, count)] + 0.7 * rng.standard_normal((count, 2))
                writer.write_table(pa.table({"x": points[:, 0], "y": points[:, 1]}))
                left -= count


@contextmanager
def workers(executor: str) -> Iterator[tuple[tuple[Any, ...], Callable[[], Iterable[int]] | None]]:
    """Two workers, as ``stream_tasks`` takes them, and what tells their numbers; none for ``serial``."""
    if executor == "processes":
        with Processes(2) as pool:
            yield (pool,), lambda: [child.pid for child in psutil.Process().children()]
    elif executor == "dask":
        from distributed import Client

        from dpgrams_core.sweeps.dask import local_cluster

        with local_cluster(2) as address, Client(address, set_as_default=False) as client:
            yield ("dask", address), lambda: client.run(os.getpid).values()
    else:
        yield (executor,), None


def one_release(folder: str, executor: str) -> dict[str, Any]:
    """One paid release, in this process and those that it starts."""
    killed: list[int] = []

    def stream(function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        with workers(executor) as (where, pids):
            for found in stream_tasks(function, tasks, *where):
                if pids and not killed and not isinstance(found[0], Path):  # the look before the pass is over paths
                    killed.append(min(pids()))
                    os.kill(killed[0], signal.SIGKILL)
                yield found

    with tempfile.TemporaryDirectory() as place:
        ledger = Ledger(Path(place) / "ledger.sqlite3", marks=place)
        box = [(-5.0, 5.0), (-5.0, 5.0)]
        data = add_up_folder(folder, "functional", columns=["x", "y"], box=box, stream=stream, **OPTIONS)
        paid = release("functional", data, ledger, **OPTIONS)
    sums = [float(data.sums.sum()), float(np.abs(data.sums).max())]
    return {"modes": paid.release.modes.tolist(), "sums": sums, "content": data.content.hex(), "killed": len(killed)}


def measured(folder: Path, executor: str) -> dict[str, Any]:
    """A release in a process of its own, with its time and its memory."""
    started = time.perf_counter()
    words = [sys.executable, "-m", "benchmarks.large_release", "--one", str(folder), "--executor", executor]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    family, peak = psutil.Process(process.pid), {"all": 0, "largest": 0}
    processors: dict[int, float] = {}

    def look() -> None:
        while process.poll() is None:
            sizes = []
            try:
                for member in (family, *family.children(recursive=True)):
                    sizes.append(member.memory_info().rss)
                    used = member.cpu_times()
                    processors[member.pid] = used.user + used.system
            except psutil.Error:
                pass
            peak["all"], peak["largest"] = max(peak["all"], sum(sizes)), max([peak["largest"], *sizes])
            time.sleep(0.1)

    watcher = threading.Thread(target=look)
    watcher.start()
    said, _ = process.communicate()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"The release of {folder} failed.")
    return {
        "seconds": time.perf_counter() - started,
        "processor_seconds": sum(processors.values()),
        "memory": peak["all"],
        "largest_process": peak["largest"],
        **json.loads(said),
    }


def main() -> None:
    """Make, release, measure and print."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000, 100_000_000])
    words.add_argument("--where", nargs="+", choices=SWEEP_EXECUTORS, default=SWEEP_EXECUTORS, help="all by default")
    words.add_argument("--out", type=Path)
    words.add_argument("--one", help=argparse.SUPPRESS)
    words.add_argument("--executor", default="serial", help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.one:
        print(json.dumps(one_release(given.one, given.executor)))
        return
    found: list[dict[str, Any]] = []
    print(f"{'rows':>12s} {'where':>9s} {'seconds':>9s} {'processor':>10s} {'memory':>9s} {'largest':>9s}  killed")
    for rows in given.rows:
        with tempfile.TemporaryDirectory(prefix="dpgrams-large-") as place:
            make_folder(Path(place), rows)
            for executor in given.where:
                item = {"rows": rows, "executor": executor, **measured(Path(place), executor)}
                found.append(item)
                print(
                    f"{rows:12,d} {executor:>9s} {item['seconds']:9.1f} {item['processor_seconds']:10.1f} "
                    f"{item['memory'] / 1e6:6.0f} MB {item['largest_process'] / 1e6:6.0f} MB  {item['killed']}",
                    flush=True,
                )
                first = next(other for other in found if other["rows"] == rows)
                assert item["content"] == first["content"], "another identity"
                assert np.allclose(item["sums"], first["sums"], rtol=1e-12), "other sums"
    one = [item for item in found if item["executor"] == "serial"]
    growth = {}
    if len(one) > 1:
        for name in ("seconds", "processor_seconds"):
            logs = [np.log([item[key] for item in one]) for key in ("rows", name)]
            last = [values[-2:] for values in logs]
            growth[name] = {"all": float(np.polyfit(*logs, 1)[0]), "last": float(np.polyfit(*last, 1)[0])}
            print(
                f"growth exponent of {name.replace('_', ' ')}: {growth[name]['all']:.3f}, over the last two "
                f"{growth[name]['last']:.3f} (goal: at most {GROWTH_GOAL})"
            )
    if one:
        most = max(item["memory"] for item in one)
        print(f"most memory in one process and its children: {most / 1e9:.2f} GB (goal: under {MEMORY_GOAL / 1e9} GB)")
    if given.out:
        given.out.write_text(json.dumps({"runs": found, "growth": growth}, indent=2))


if __name__ == "__main__":
    main()
