"""The runs of a ladder of errors: each can be made in any process, and is kept so that none is made twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Protocol

from dpgrams_core.cells import Cell, data_seed, noise_seed, same_but_runs
from dpgrams_core.datasets import load_dataset
from dpgrams_core.error_ladders import LADDERS, ladder_errors
from dpgrams_core.executors import Lost

MOST_RUNS_KEPT = 100_000  # a run is some eight numbers

Errors = tuple[float, ...]  # of every step of the ladder, in order


@dataclass(frozen=True, kw_only=True)
class LadderRun:
    """One run of a ladder: the draws of run ``number`` of a cell, and the measure of the errors.

    It is not a run of the cell: that has the scores of the method as it is, and this has an error for every step.
    """

    cell: Cell
    number: int
    measure: str


class LadderStore(Protocol):
    """What keeps the finished runs of ladders; ``LadderMemory`` is one."""

    def finished(self, run: LadderRun) -> Errors | Lost | None:
        """What came of a run, or None where it is not known."""

    def add(self, run: LadderRun, outcome: Errors | Lost) -> None:
        """Keep what came of a run."""


class LadderMemory:
    """Finished runs of ladders, for several threads; what was not used for longest is forgotten first.

    Examples
    --------
    >>> from dpgrams_core.error_sources import error_sources
    >>> memory = LadderMemory()
    >>> some = error_sources("functional", "four_corners", n=300, runs=2, store=memory)
    >>> more = error_sources("functional", "four_corners", n=300, runs=3, store=memory)  # makes one run
    >>> len(memory), more.runs
    (3, 3)
    """

    def __init__(self, most_runs: int = MOST_RUNS_KEPT) -> None:
        self.most_runs = most_runs
        self._known: OrderedDict[LadderRun, Errors | Lost] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def finished(self, run: LadderRun) -> Errors | Lost | None:
        """What came of a run, or None where it is not known."""
        with self._lock:
            if run in self._known:
                self._known.move_to_end(run)
            return self._known.get(run)

    def add(self, run: LadderRun, outcome: Errors | Lost) -> None:
        """Keep what came of a run."""
        with self._lock:
            self._known[run] = outcome
            self._known.move_to_end(run)
            while len(self._known) > self.most_runs:
                self._known.popitem(last=False)


def ladder_runs(cell: Cell, measure: str) -> list[LadderRun]:
    """The runs of a ladder on the draws of a cell; those of a cell with more runs begin with the same ones."""
    own = same_but_runs(cell)
    return [LadderRun(cell=own, number=number, measure=measure) for number in cell.numbers]


def check_first_run(cell: Cell) -> None:
    """Refuse a setting that does not fit the data: the plan of the first run is made, and nothing is drawn."""
    data = load_dataset(cell.dataset, n=cell.n, seed=data_seed(cell, 0))
    LADDERS[cell.method].prepare(data, _options(cell))


def run_ladder(run: LadderRun) -> Errors:
    """The errors of one run."""
    cell = run.cell
    data = load_dataset(cell.dataset, n=cell.n, seed=data_seed(cell, run.number))
    return ladder_errors(cell.method, data, noise_seed(cell, run.number), run.measure, _options(cell))


def _options(cell: Cell) -> dict[str, Any]:
    return {**dict(cell.options), "epsilon": cell.epsilon}
