"""Many runs over a grid of settings, as a stream of finished cells.

The page's live curve, a script and the command line all read the same stream.  Seeds are derived
from the values of a cell, so every method sees the same draws and a sweep can be extended later
without changing what it already has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pandas as pd

from dpgrams_core.cells import (
    Cell,
    CellResult,
    data_seed,
    derived_seed,
    failed_result,
    join,
    noise_seed,
    run_cell,
    settled,
    split,
)
from dpgrams_core.executors import SWEEP_EXECUTORS, Lost, Processes, stream_tasks
from dpgrams_core.gathering import Gathered
from dpgrams_core.sweep_plan import MAX_RUNS, check_data, plan_cells

__all__ = [
    "EXECUTORS",
    "MAX_RUNS",
    "SWEEP_EXECUTORS",
    "Cell",
    "CellResult",
    "TableRow",
    "data_seed",
    "derived_seed",
    "join",
    "noise_seed",
    "plan_cells",
    "run_cell",
    "split",
    "stream_cells",
    "stream_partial",
    "sweep",
    "table_of",
    "table_row",
    "tidy",
]

EXECUTORS = ("serial", "processes")  # those of an audit, which has no use for a cluster
PIECE_RUNS = 5  # runs of a piece: short enough to stop soon, long enough that sending it costs nothing

Piece = tuple[int, Cell]  # with the place of its cell in the plan


class RunStore(Protocol):
    """What keeps finished runs between two sweeps; ``sweep_store.ResultsFile`` is one."""

    def finished(self, cell: Cell) -> CellResult:
        """What is known of a cell."""

    def add(self, result: CellResult) -> None:
        """Keep the runs of a piece."""


def _run_piece(piece: Piece) -> CellResult:
    return run_cell(piece[1])


def stream_partial(
    cells: Sequence[Cell],
    executor: str | Processes = "serial",
    *,
    scheduler: str | None = None,
    store: RunStore | None = None,
    piece_runs: int = PIECE_RUNS,
    interleave: bool = True,
) -> Iterator[CellResult]:
    """Every cell with the runs that it has so far, again after each further piece; the last one is ``complete``.

    Closing the iterator stops the rest and keeps what came.  Data that cannot be loaded here are a DataError before
    the first run.

    Parameters
    ----------
    store : its runs are not made again, but for failures that may pass, and new ones are added to it.
    piece_runs : runs between two partial results of a cell.
    interleave : a first piece of every cell, then a second of every cell, and so on, so that the whole picture
        is there early; otherwise cell by cell.

    Examples
    --------
    >>> cells = plan_cells("mean_shift", "four_corners", n=[100], epsilon=[1.0], runs=5)
    >>> [(len(result.seconds), result.complete) for result in stream_partial(cells, piece_runs=2)]
    [(2, False), (4, False), (5, True)]
    """
    before: dict[int, CellResult] = {}  # what the store had of cells that it has not all of
    left: Sequence[int] = range(len(cells))
    if store is not None:
        left = []
        for place, cell in enumerate(cells):
            found = settled(store.finished(cell))
            if found.complete:
                yield found
                continue
            left.append(place)
            if found.ended:
                before[place] = found
    if scheduler is None:  # the workers of a cluster may have other files
        check_data(cells[place] for place in left)
    known: dict[int, Gathered] = {}
    outcomes = stream_tasks(_run_piece, _pieces(cells, left, before, piece_runs, interleave), executor, scheduler)
    try:
        for (place, piece), outcome in outcomes:
            result = failed_result(piece, outcome.sentence) if isinstance(outcome, Lost) else outcome
            if store is not None:
                store.add(result)
            if place not in known:
                known[place] = Gathered(cells[place], [before.pop(place)] if place in before else [])
            known[place].add(result)
            so_far = known[place].result
            if so_far.complete:
                del known[place]  # memory is for what is under way
            yield so_far
    finally:
        outcomes.close()  # type: ignore[attr-defined]


def _pieces(
    cells: Sequence[Cell], left: Sequence[int], before: Mapping[int, CellResult], size: int, interleave: bool
) -> Iterator[Piece]:
    """What is left to run, in pieces, in the order of running."""

    def pieces_of(place: int) -> Iterator[Piece]:
        done = before.get(place)
        skip = () if done is None else (*done.numbers, *done.failed)
        return zip(repeat(place), split(cells[place], size, skip))

    if not interleave:
        yield from chain.from_iterable(map(pieces_of, left))
        return
    queues = deque(map(pieces_of, left))
    while queues:
        for piece in islice(queues[0], 1):
            yield piece
            queues.append(queues[0])
        queues.popleft()


def stream_cells(
    cells: Sequence[Cell],
    executor: str | Processes = "serial",
    *,
    scheduler: str | None = None,
    store: RunStore | None = None,
) -> Iterator[CellResult]:
    """Finished cells, one by one; closing the iterator stops the rest and keeps what came."""
    partial = stream_partial(cells, executor, scheduler=scheduler, store=store, interleave=False)
    try:
        yield from (result for result in partial if result.complete)
    finally:
        partial.close()  # type: ignore[attr-defined]


class TableRow(NamedTuple):
    """One row of the tidy table, and where it stands: all that is kept of a finished cell."""

    order: tuple[Any, ...]
    varied: str
    value: Any
    numbers: dict[str, Any]


def table_row(result: CellResult) -> TableRow:
    """The row of a finished cell."""
    cell = result.cell
    value = cell.value
    number = isinstance(value, (int, float))
    shown = (0, float(value), "") if number and value == value else (1, 0.0, str(value))
    order = (cell.dataset, cell.n, cell.method, cell.varied, cell.epsilon, shown)
    return TableRow(order, cell.varied, value, result.row())


def table_of(rows: Iterable[TableRow]) -> pd.DataFrame:
    """Rows as one table, in a fixed order; a varied control has the columns ``varied`` and ``value``."""
    ordered = sorted(rows, key=lambda row: row.order)
    if not any(row.varied for row in ordered):
        return pd.DataFrame([row.numbers for row in ordered])
    first = ("method", "dataset", "n", "epsilon")
    return pd.DataFrame(
        [
            {**{name: row.numbers[name] for name in first}, "varied": row.varied, "value": row.value, **row.numbers}
            for row in ordered
        ]
    )


def tidy(results: Iterable[CellResult]) -> pd.DataFrame:
    """Finished cells as one table; of each only its row is kept, so a stream of them needs no more memory."""
    return table_of(map(table_row, results))


def sweep(
    methods: Sequence[str] | str,
    dataset: str,
    *,
    n: Sequence[int],
    epsilon: Sequence[float],
    runs: int = 20,
    seed: int = 0,
    executor: str | Processes = "serial",
    scheduler: str | None = None,
    vary: tuple[str, Sequence[Any]] | Mapping[str, Sequence[Any]] | None = None,
    out: str | Path | None = None,
    confirm: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """Run methods over n and epsilon and return one tidy table; all methods see the same draws.

    Parameters
    ----------
    methods : a method or several, keys of ``METHODS``.
    n, epsilon : the values of the grid; a method without privacy has one cell for all epsilons.
    runs : of every cell, each on a draw of the data of its own.
    executor : "serial", "processes" (all cores) or "dask"; the table is the same.
    scheduler : address of a Dask scheduler; without one, ``dask`` starts a cluster on this machine.
    vary : one option of the methods and its values, as in ``("clip_multiplier", [0.5, 1, 2])``.
    out : a results file (Parquet, one row a run). Runs that it holds are not made again, so a sweep that was
        stopped goes on, and one with more runs, sizes or budgets makes only what is new.
    confirm : allows a sweep of more than 5,000 cells or 500,000 runs.
    **options : fields of the methods' specs; each method takes those that it has.

    Returns
    -------
    table : one row a cell: mean, standard error (``_se``) and quantiles (``_q10`` to ``_q90``) of every score,
        the mean time of a run in seconds, the number of runs and of failures, and the first failure's sentence.

    Examples
    --------
    >>> table = sweep("dp_grams", "four_corners", n=[200], epsilon=[1.0, 2.0], runs=2)
    >>> table[["epsilon", "runs"]].values.tolist()
    [[1.0, 2.0], [2.0, 2.0]]
    """
    cells = plan_cells(
        methods, dataset, n=n, epsilon=epsilon, runs=runs, seed=seed, vary=vary, confirm=confirm, **options
    )
    if out is None:
        return tidy(stream_cells(cells, executor, scheduler=scheduler))
    from dpgrams_core.sweep_store import ResultsFile  # late: the store knows cells, and pyarrow is slow to load

    with ResultsFile(out) as store:
        return tidy(stream_cells(cells, executor, scheduler=scheduler, store=store))
