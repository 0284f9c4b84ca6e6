"""The commands ``sweep`` and ``merge``: a table, with progress and the time left on standard error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import pandas as pd

from dpgrams_core.cells import Cell, CellResult
from dpgrams_core.executors import SWEEP_EXECUTORS
from dpgrams_core.progress import Progress
from dpgrams_core.sweeps import plan_cells, stream_partial, tidy


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
    results = run_with_progress(cells, arguments.executor, arguments.scheduler, arguments.out)
    table = tidy(results)
    if arguments.json:
        return str(table.to_json(orient="records", indent=2))
    return table[shown_columns(table)].to_string(index=False)


def shown_columns(table: pd.DataFrame) -> list[str]:
    """What fits a screen: the quantiles are in the JSON."""
    return [name for name in map(str, table) if name.rsplit("_q", 1)[-1] not in ("10", "25", "50", "75", "90")]


def run_with_progress(
    cells: Sequence[Cell], executor: str, scheduler: str | None = None, out: str | None = None
) -> list[CellResult]:
    """All cells with a progress bar; Ctrl-C ends it early with what there is, also of cells that are not complete.

    Runs that the file ``out`` holds are taken from there, and new ones are written to it as they come.
    """
    known: dict[Cell, CellResult] = {}
    total = sum(cell.runs for cell in cells)
    with ExitStack() as stack:
        store = None
        if out is not None:
            from dpgrams_core.sweep_store import ResultsFile  # late: pyarrow is slow to load

            store = stack.enter_context(ResultsFile(out))
            known = {cell: found for cell in cells if (found := store.finished(cell)).ended}
        runs = sum(found.ended for found in known.values())
        if runs:
            print(f"{runs} of {total} runs are in {out} already", file=sys.stderr)
        bar = Progress(len(cells), "cells", share=runs / total)
        done, note = 0, ""
        stream = stream_partial(cells, executor, scheduler=scheduler, store=store)
        try:
            for result in stream:
                runs += result.ended - (known[result.cell].ended if result.cell in known else 0)
                known[result.cell] = result
                done += result.complete
                bar.update(done, runs / total)
        except KeyboardInterrupt:
            note = "; stopped, what is finished follows"
        finally:
            stream.close()  # type: ignore[attr-defined]
        bar.finish(done, note)
    return list(known.values())


def merge_text(arguments: argparse.Namespace) -> str:
    """Put several results files into one."""
    from dpgrams_core.sweep_store import merge_files

    return f"{merge_files(arguments.files, arguments.out):,} runs are in {arguments.out}"
