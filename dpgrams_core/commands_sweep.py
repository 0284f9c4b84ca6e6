"""The commands ``sweep`` and ``merge``: a table, with progress and the time left on standard error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pandas as pd

from dpgrams_core.cells import Cell, CellResult
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.executors import SWEEP_EXECUTORS
from dpgrams_core.progress import Progress
from dpgrams_core.sweep_plan import MAX_CELLS_UNASKED
from dpgrams_core.sweeps import plan_cells, stream_partial, table_of, table_row

Kept = TypeVar("Kept")


def add_sweep_options(command: argparse.ArgumentParser, value: Callable[[str], Any]) -> None:
    """The options of ``sweep`` besides those of the methods; ``value`` turns a word into a number where it is one."""
    command.add_argument("--n", type=value, nargs="+", required=True)
    command.add_argument("--epsilon", type=value, nargs="+", required=True)
    command.add_argument("--runs", type=value, default=20)
    command.add_argument("--vary", type=value, nargs="+", help="an option and its values: --vary clip_multiplier 0.5 1")
    command.add_argument("--executor", choices=SWEEP_EXECUTORS, default="processes")
    command.add_argument("--scheduler", help="address of a Dask scheduler; without one, a cluster on this machine")
    command.add_argument("--out", help="a results file (.parquet); runs that it holds are not made again")
    command.add_argument("--yes", action="store_true", help="run a very large sweep without asking back")


def sweep_text(arguments: argparse.Namespace, options: dict[str, Any]) -> str:
    """Run a sweep, keep what is finished when it is stopped, and return its table."""
    vary = arguments.vary
    cells = plan_cells(
        arguments.methods,
        arguments.dataset,
        n=arguments.n,
        epsilon=arguments.epsilon,
        runs=arguments.runs,
        seed=arguments.seed,
        vary=None if vary is None else (str(vary[0]).replace("-", "_"), vary[1:]),
        confirm=arguments.yes,
        **options,
    )
    ran = run_with_progress(cells, arguments.executor, arguments.scheduler, arguments.out, keep=table_row)
    table = table_of(ran.kept)
    text = str(table.to_json(orient="records", indent=2)) if arguments.json else _screen(table)
    # Ctrl-C is a wish like any other: what there is is the answer.
    return shown_before(None if isinstance(ran.stopped, KeyboardInterrupt) else ran.stopped, text)


def _screen(table: pd.DataFrame) -> str:
    return table[shown_columns(table)].to_string(index=False) if len(table) else "No run is finished."


def shown_before(stopped: BaseException | None, text: str) -> str:
    """The text; where something stopped the work it is printed at once, and then the command ends as it must."""
    if stopped is None:
        return text
    print(text, flush=True)
    raise stopped


def shown_columns(table: pd.DataFrame) -> list[str]:
    """What fits a screen: the quantiles are in the JSON."""
    return [name for name in map(str, table) if name.rsplit("_q", 1)[-1] not in ("10", "25", "50", "75", "90")]


@dataclass(frozen=True)
class Ran(Generic[Kept]):
    """What came of a sweep: what was kept of each cell, and what stopped it before its end."""

    kept: list[Kept]
    stopped: BaseException | None


def run_with_progress(
    cells: Sequence[Cell],
    executor: str,
    scheduler: str | None = None,
    out: str | None = None,
    *,
    keep: Callable[[CellResult], Kept],
) -> Ran[Kept]:
    """All cells with a progress bar; Ctrl-C, or a cluster that goes away, ends it early with what there is.

    Runs that the file ``out`` holds are taken from there, and new ones are written to it as they come.  Of a cell
    that is complete only what ``keep`` makes of it stays in memory.
    """
    finished: dict[Cell, Kept] = {}
    partial: dict[Cell, CellResult] = {}
    before: dict[Cell, int] = {}
    total = max(1, sum(cell.runs for cell in cells))
    stopped: BaseException | None = None
    with ExitStack() as stack:
        store = None
        if out is not None:
            from dpgrams_core.sweep_store import ResultsFile  # late: pyarrow is slow to load

            store = stack.enter_context(ResultsFile(out))
            before = {cell: count for cell in cells if (count := store.count(cell))}
        runs = sum(before.values())
        if runs:
            print(f"{runs} of {total} runs are in {out} already", file=sys.stderr)
        bar = Progress(len(cells), "cells", share=runs / total)
        # A very large sweep goes cell by cell: all of its cells under way would be all of its runs in memory.
        interleave = len(cells) <= MAX_CELLS_UNASKED
        stream = stream_partial(cells, executor, scheduler=scheduler, store=store, interleave=interleave)
        try:
            for result in stream:
                last = partial.get(result.cell)
                runs += result.ended - (before.pop(result.cell, 0) if last is None else last.ended)
                if result.complete:
                    finished[result.cell] = keep(result)
                    partial.pop(result.cell, None)
                else:
                    partial[result.cell] = result
                bar.update(len(finished), runs / total)
        except (KeyboardInterrupt, SpecError, DataError) as error:
            if not (finished or partial or isinstance(error, KeyboardInterrupt)):
                raise
            stopped = error
        finally:
            stream.close()  # type: ignore[attr-defined]
        bar.finish(len(finished), "" if stopped is None else "; stopped, what is finished follows")
        if store is not None and stopped is not None:  # it may know a piece more: Ctrl-C comes at any moment
            store.flush()
            for cell in cells:
                if cell not in finished and store.count(cell) > (partial[cell].ended if cell in partial else 0):
                    partial[cell] = store.finished(cell)
    return Ran([*finished.values(), *(keep(partial[cell]) for cell in partial if cell not in finished)], stopped)


def merge_text(arguments: argparse.Namespace) -> str:
    """Put several results files into one."""
    from dpgrams_core.sweep_store import merge_files

    return f"{merge_files(arguments.files, arguments.out):,} runs are in {arguments.out}"
