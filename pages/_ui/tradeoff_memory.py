"""The runs that a server has made, and those that come with the project."""

from __future__ import annotations

import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from dpgrams_core import DATASETS
from dpgrams_core.cells import Cell, CellResult, join, same_but_runs, settled
from dpgrams_core.errors import DataError
from dpgrams_core.experiments import EXPERIMENTS
from dpgrams_core.figures import same_records

MOST_RUNS_KEPT = 400_000  # a run is some ten numbers; the page allows sweeps of half of it (tradeoff_grids)
BUSY = "The server is busy with other large sweeps: wait until they end, or choose fewer points or runs."


class RunMemory:
    """Finished runs by cell; a ``RunStore``. What was not used for longest is forgotten first.

    A failure that may pass, such as a worker that died, is not kept: the next sweep makes that run again.
    """

    def __init__(self, most_runs: int = MOST_RUNS_KEPT) -> None:
        self.most_runs = most_runs
        self._known: OrderedDict[Cell, CellResult] = OrderedDict()
        self._runs = 0
        self._held: Counter[Cell] = Counter()  # how many jobs make a cell now
        self._held_runs = 0
        self._lock = threading.Lock()

    def finished(self, cell: Cell) -> CellResult:
        """What is known of a cell."""
        with self._lock:
            found = self._known.get(same_but_runs(cell))
            if found is not None:
                self._known.move_to_end(same_but_runs(cell))
        return join(cell, [] if found is None else [found])

    def add(self, result: CellResult) -> None:
        """Keep the runs of a cell or of a piece of one."""
        key, new = same_but_runs(result.cell), settled(result)
        if not new.ended:
            return
        with self._lock:
            before = self._known.pop(key, None)
            pieces = [new] if before is None else [before, new]
            last = max(piece.cell.numbers.stop for piece in pieces)
            both = join(replace(key, runs=last), pieces)
            self._known[key] = both
            self._runs += both.ended - (0 if before is None else before.ended)
            self._forget()

    def _forget(self) -> None:
        """Forget the oldest cells until the rest fits; one that a job makes now is never among them."""
        while self._runs > self.most_runs and len(self._known) > 1:
            oldest = next((key for key in self._known if not self._held[key]), None)
            if oldest is None:
                return
            self._runs -= self._known.pop(oldest).ended

    @contextmanager
    def held(self, cells: Sequence[Cell]) -> Iterator[None]:
        """While a job makes these cells none of them is forgotten; refused where jobs hold too many already."""
        keys, runs = Counter(map(same_but_runs, cells)), sum(cell.runs for cell in cells)
        with self._lock:
            if self._held_runs + runs > self.most_runs:
                raise DataError(BUSY)
            self._held_runs += runs
            self._held += keys
        try:
            yield
        finally:
            with self._lock:
                self._held_runs -= runs
                self._held -= keys


def shipped_results_of(cells: Sequence[Cell]) -> list[CellResult]:
    """What the finished tables that come with the project know of some cells; only files that can know are read.

    All records of a real data set are the same whatever the seed of the draw, so there a draw makes no difference.
    """
    found = []
    for seed in dict.fromkeys(cell.seed for cell in cells):
        wanted = {_whatever_draw(cell) for cell in cells if cell.seed == seed}
        for name in EXPERIMENTS:
            if wanted & _planned(name, seed):
                found += [
                    replace(result, cell=replace(result.cell, draw=key.draw))
                    for result in _finished(name, seed)
                    if (key := _whatever_draw(result.cell)) in wanted
                ]
    return found


def _whatever_draw(cell: Cell) -> Cell:
    key = same_but_runs(cell)
    real = DATASETS[cell.dataset].kind == "clusters" and same_records(cell.dataset, cell.n)
    return replace(key, draw=None) if real else key


@lru_cache(maxsize=32)
def _planned(name: str, seed: int) -> frozenset[Cell]:
    """The cells of an experiment; nothing is read for it."""
    experiment = EXPERIMENTS[name]
    return frozenset(_whatever_draw(cell) for _, cell in experiment.cells(1, experiment.names, seed))


def _finished(name: str, seed: int) -> list[CellResult]:
    """The finished table of an experiment; nothing of another seed, or of a table that cannot be used."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # late: it is slow to load

    from dpgrams_core.shipped import shipped, shipped_file
    from dpgrams_core.sweep_store import FACTS

    try:
        facts = json.loads((pq.read_schema(shipped_file(name)).metadata or {})[FACTS])
        return [result for _, result in shipped(name).results] if facts["seed"] == seed else []
    except (OSError, KeyError, ValueError, DataError):
        return []  # the runs are made here
