"""Many runs over a grid of settings, as a stream of finished cells.

The page's live curve, a script and the command line all read the same stream.  Seeds are derived from the values of a
cell, so every method sees the same draws and a sweep can be extended later without changing what it already has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, repeat
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dpgrams_core.model.run import AnyDataset, Run
from dpgrams_core.sweeps.cell import CellResult as CellResult
from dpgrams_core.sweeps.cell import Outcome, failed_result, run_cell, settled, split, take_in
from dpgrams_core.sweeps.executors import Lost, Processes, stream_tasks
from dpgrams_core.sweeps.plan import MAX_RUNS as MAX_RUNS
from dpgrams_core.sweeps.plan import check_data
from dpgrams_core.sweeps.plan import plan_cells as plan_cells

if TYPE_CHECKING:
    import pandas as pd

EXECUTORS = ("serial", "processes")  # those of an audit, which has no use for a cluster
PIECE_RUNS = 5  # runs of a piece: short enough to stop soon, long enough that sending it costs nothing

Piece = tuple[int, Run]  # with the place of its cell in the plan


class RunStore(Protocol):
    """What keeps finished runs between two sweeps; ``sweep_store.ResultsFile`` is one."""

    def finished(self, cell: Run) -> CellResult: ...

    def add(self, result: CellResult) -> None: ...


def _run_piece(piece: Piece) -> CellResult:
    return run_cell(piece[1])


def stream_partial(
    cells: Sequence[Run],
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
    known: dict[int, dict[int, Outcome]] = {}  # each run is taken in once, however many pieces there are
    outcomes = stream_tasks(_run_piece, _pieces(cells, left, before, piece_runs, interleave), executor, scheduler)
    try:
        for (place, piece), outcome in outcomes:
            if isinstance(outcome, Lost):
                result = failed_result(piece, outcome.sentence)
            else:  # a twin that came back with it would be kept once more for every result
                result = replace(outcome, cell=piece)
            if store is not None:
                store.add(result)
            if place not in known:
                known[place] = dict(before.pop(place).outcomes) if place in before else {}
            take_in(known[place], result.outcomes)
            so_far = CellResult(cell=cells[place], outcomes=dict(sorted(known[place].items())))
            if so_far.complete:
                del known[place]  # memory is for what is under way
            yield so_far
    finally:
        outcomes.close()  # type: ignore[attr-defined]


def _pieces(
    cells: Sequence[Run], left: Sequence[int], before: Mapping[int, CellResult], size: int, interleave: bool
) -> Iterator[Piece]:
    """What is left to run, in pieces, in the order of running."""

    def pieces_of(place: int) -> Iterator[Piece]:
        done = before.get(place)
        return zip(repeat(place), split(cells[place], size, () if done is None else done.outcomes))

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
    cells: Sequence[Run],
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


TableRow = tuple[tuple[Any, ...], dict[str, Any]]  # where a row of the tidy table stands, and the row


def table_row(result: CellResult) -> TableRow:
    """The row of a finished cell: all that is kept of it."""
    cell, value = result.cell, result.cell.value
    number = isinstance(value, (int, float)) and value == value
    shown = (0, float(value), "") if number else (1, 0.0, str(value))
    order = (str(cell.dataset), cell.n, cell.method, cell.varied, cell.epsilon, shown)
    return order, {"varied": cell.varied, "value": value, **result.row()}


def table_of(rows: Iterable[TableRow]) -> pd.DataFrame:
    """Rows as one table, in a fixed order; a varied control has the columns ``varied`` and ``value``."""
    import pandas as pd  # here, since it takes its time to load

    table = pd.DataFrame([row for _, row in sorted(rows, key=itemgetter(0))])
    if table.empty:
        return table
    varied, value = table.pop("varied"), table.pop("value")
    if any(varied):
        place = list(table.columns).index("epsilon") + 1
        table.insert(place, "varied", varied)
        table.insert(place + 1, "value", value)
    return table


def tidy(results: Iterable[CellResult]) -> pd.DataFrame:
    """Finished cells as one table; of each only its row is kept, so a stream of them needs no more memory."""
    return table_of(map(table_row, results))


def sweep(
    methods: Sequence[str] | str,
    dataset: AnyDataset,
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
    design: str = "",
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
    design : of the data, such as "as run" for records as the paper's tables were made from (``DatasetInfo.designs``).
        With the seed 0 its runs have the seeds of the printed table.
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
        methods,
        dataset,
        n=n,
        epsilon=epsilon,
        runs=runs,
        seed=seed,
        vary=vary,
        confirm=confirm,
        design=design,
        **options,
    )
    if out is None:
        return tidy(stream_cells(cells, executor, scheduler=scheduler))
    from dpgrams_core.sweeps.store import ResultsFile  # late: the store knows cells, and pyarrow is slow to load

    with ResultsFile(out) as store:
        return tidy(stream_cells(cells, executor, scheduler=scheduler, store=store))
