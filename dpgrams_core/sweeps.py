"""Many runs over a grid of settings, as a stream of finished cells.

The page's live curve, a script and the command line all read the same stream.  Seeds are derived
from the values of a cell, so every method sees the same draws and a sweep can be extended later
without changing what it already has.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import time
import zlib
from collections.abc import Iterator, Sequence, Sized
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from dpgrams_core.checks import one_of, positive, whole
from dpgrams_core.datasets import DATASETS, MAX_N, MIN_N, load_dataset
from dpgrams_core.errors import SpecError
from dpgrams_core.methods import METHODS, run
from dpgrams_core.metrics import score
from dpgrams_core.specs import make_spec

EXECUTORS = ("serial", "processes")
MAX_RUNS = 10_000


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One point of a sweep: a method on one data set, n and epsilon, ``runs`` times."""

    method: str
    dataset: str
    n: int
    epsilon: float  # inf for a method without privacy
    runs: int
    seed: int
    options: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """The scores of every run of a cell, in order of the runs; a run that failed is left out."""

    cell: Cell
    scores: dict[str, tuple[float, ...]]
    seconds: tuple[float, ...]
    status: str
    failures: tuple[str, ...]

    def row(self) -> dict[str, Any]:
        """One row of the tidy table: mean and standard error of every score."""
        cell = self.cell
        row: dict[str, Any] = {
            "method": cell.method,
            "dataset": cell.dataset,
            "n": cell.n,
            "epsilon": cell.epsilon,
            "runs": len(self.seconds),
            "failures": len(self.failures),
            "status": self.status,
        }
        for name, values in self.scores.items():
            row[name] = float(np.mean(values)) if values else math.nan
            # A run that released no mode has an infinite error; then so has the mean, and there is no spread to give.
            spread = len(values) > 1 and bool(np.isfinite(values).all())
            row[f"{name}_se"] = float(np.std(values, ddof=1) / math.sqrt(len(values))) if spread else math.nan
        row["seconds"] = float(np.mean(self.seconds)) if self.seconds else math.nan
        row["error"] = self.failures[0] if self.failures else ""
        return row


def derived_seed(seed: int, *parts: object) -> int:
    """A seed from values, the same on every machine and in every process."""
    text = "/".join(repr(part) for part in parts)
    return int(np.random.SeedSequence([seed, zlib.crc32(text.encode())]).generate_state(1)[0])


def data_seed(cell: Cell, run_number: int) -> int:
    """Seed of the data of a run: it knows no method and no epsilon, so all of them share the draw."""
    return derived_seed(cell.seed, "data", cell.dataset, cell.n, run_number)


def run_cell(cell: Cell) -> CellResult:
    """All runs of a cell. A run that fails is recorded with its sentence and does not stop the rest."""
    scores: dict[str, list[float]] = {}
    seconds: list[float] = []
    failures: list[str] = []
    status = "none"
    options = dict(cell.options)
    if math.isfinite(cell.epsilon):
        options["epsilon"] = cell.epsilon
    for number in range(cell.runs):
        noise_seed = derived_seed(cell.seed, "noise", cell.method, cell.dataset, cell.n, cell.epsilon, number)
        try:
            data = load_dataset(cell.dataset, n=cell.n, seed=data_seed(cell, number))
            started = time.perf_counter()
            release = run(cell.method, data, seed=noise_seed, **options)
            seconds.append(time.perf_counter() - started)
        except (ValueError, ArithmeticError, MemoryError) as error:
            failures.append(str(error))
            continue
        status = release.guarantee.status
        for name, value in score(release, data).items():
            scores.setdefault(name, []).append(value)
    return CellResult(
        cell=cell,
        scores={name: tuple(values) for name, values in scores.items()},
        seconds=tuple(seconds),
        status=status,
        failures=tuple(failures),
    )


def plan_cells(
    methods: Sequence[str] | str,
    dataset: str,
    *,
    n: Sequence[int],
    epsilon: Sequence[float],
    runs: int = 20,
    seed: int = 0,
    **options: Any,
) -> list[Cell]:
    """The cells of a sweep, checked, in the order in which they are run."""
    for field, values in (("methods", methods), ("n", n), ("epsilon", epsilon)):
        if not isinstance(values, Sized) or len(values) == 0:
            raise SpecError(field, values, "give a list with at least one value")
    names = [methods] if isinstance(methods, str) else list(methods)
    one_of("dataset", dataset, DATASETS)
    for name in names:
        one_of("methods", name, METHODS)
    epsilons = [positive("epsilon", value) for value in epsilon]
    sizes = [whole("n", value, MIN_N, MAX_N) for value in n]
    runs, seed = whole("runs", runs, 1, MAX_RUNS), whole("seed", seed, 0)
    known = {name: {item.name for item in fields(METHODS[name].spec)} for name in names}
    for option, value in options.items():
        if not any(option in fields_ for fields_ in known.values()):
            raise SpecError(option, value, "no method of this sweep has this option")
    cells = []
    for size in sizes:
        for name in names:
            mine = {key: value for key, value in options.items() if key in known[name]}
            make_spec(METHODS[name].spec, mine)  # a wrong option is refused before anything runs
            for value in epsilons if METHODS[name].private else [math.inf]:
                cells.append(
                    Cell(
                        method=name,
                        dataset=dataset,
                        n=size,
                        epsilon=value,
                        runs=runs,
                        seed=seed,
                        options=tuple(sorted(mine.items())),
                    )
                )
    return cells


def stream_cells(cells: Sequence[Cell], executor: str = "serial") -> Iterator[CellResult]:
    """Finished cells, one by one; closing the iterator stops the rest and keeps what came."""
    one_of("executor", executor, EXECUTORS)
    if executor == "serial":
        yield from map(run_cell, cells)
        return
    context = multiprocessing.get_context("spawn")  # forking a threaded server is unsafe
    workers = max(1, min(len(cells), os.cpu_count() or 1))
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_one_thread)
    try:
        for future in as_completed([pool.submit(run_cell, cell) for cell in cells]):
            yield future.result()
    finally:
        # Not "with": leaving it would shut down a second time and take the cancelling back.
        pool.shutdown(wait=True, cancel_futures=True)


def _one_thread() -> None:
    threadpool_limits(1)  # one numerical thread a process, or the cores fight


def tidy(results: Sequence[CellResult]) -> pd.DataFrame:
    """Finished cells as one table, in a fixed order."""
    table = pd.DataFrame([result.row() for result in results])
    return table.sort_values(["dataset", "n", "method", "epsilon"], ignore_index=True) if len(table) else table


def sweep(
    methods: Sequence[str] | str,
    dataset: str,
    *,
    n: Sequence[int],
    epsilon: Sequence[float],
    runs: int = 20,
    seed: int = 0,
    executor: str = "serial",
    **options: Any,
) -> pd.DataFrame:
    """Run methods over n and epsilon and return one tidy table; all methods see the same draws.

    Examples
    --------
    >>> table = sweep("dp_grams", "four_corners", n=[200], epsilon=[1.0, 2.0], runs=2)
    >>> table[["epsilon", "runs"]].values.tolist()
    [[1.0, 2.0], [2.0, 2.0]]
    """
    cells = plan_cells(methods, dataset, n=n, epsilon=epsilon, runs=runs, seed=seed, **options)
    return tidy(list(stream_cells(cells, executor)))
