"""The commands ``sweep`` and ``merge``: a table, with progress and the time left on standard error."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, TextIO, TypeVar

from tqdm import tqdm

from dpgrams_core import DATASETS, METHODS
from dpgrams_core.cli import add_shared, number_or_name
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.format import time_words
from dpgrams_core.model.progress import time_left
from dpgrams_core.model.run import Run
from dpgrams_core.sweeps.cell import CellResult
from dpgrams_core.sweeps.plan import MAX_CELLS_UNASKED
from dpgrams_core.sweeps.run import plan_cells, stream_partial, table_of, table_row

Kept = TypeVar("Kept")

REDRAW_SECONDS = 0.1
LINE_SECONDS = 10.0  # between two lines of a log
tqdm.monitor_interval = 0  # no thread that draws stalled lines again: ours says nothing new by itself


def add_sweep(commands: Any) -> argparse.ArgumentParser:
    """Add both commands, and return ``sweep``, which also takes a seed and the settings of the methods."""
    command: argparse.ArgumentParser = commands.add_parser(
        "sweep", help="run methods over n and epsilon and print one table"
    )
    command.add_argument("dataset", choices=list(DATASETS))
    command.add_argument("methods", nargs="+", choices=list(METHODS))
    command.add_argument("--n", type=number_or_name, nargs="+", required=True)
    command.add_argument("--epsilon", type=number_or_name, nargs="+", required=True)
    command.add_argument("--runs", type=number_or_name, default=20)
    words = "an option and its values: --vary clip_multiplier 0.5 1"
    command.add_argument("--vary", type=number_or_name, nargs="+", help=words)
    add_shared(command, "--executor", "--scheduler", "--out")
    command.add_argument("--yes", action="store_true", help="run a very large sweep without asking back")
    together = commands.add_parser("merge", help="put the results files of several sweeps into one")
    together.add_argument("out")
    together.add_argument("files", nargs="+")
    return command


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
        design=arguments.design,
        **options,
    )
    kept, stopped = run_with_progress(cells, arguments, keep=table_row)
    table = table_of(kept)
    if arguments.json:
        text = str(table.to_json(orient="records", indent=2))
    else:  # what fits a screen: the quantiles are in the JSON
        shown = [name for name in map(str, table) if name.rsplit("_q", 1)[-1] not in ("10", "25", "50", "75", "90")]
        text = table[shown].to_string(index=False) if len(table) else "No run is finished."
    # Ctrl-C is a wish like any other: what there is is the answer.
    return shown_before(None if isinstance(stopped, KeyboardInterrupt) else stopped, text)


def shown_before(stopped: BaseException | None, text: str) -> str:
    """The text; where something stopped the work it is printed at once, and then the command ends as it must."""
    if stopped is None:
        return text
    print(text, flush=True)
    raise stopped


class Progress:
    """Says how much is done of ``total`` on standard error (or ``stream``): a line that tqdm draws, or lines of a log.

    ``share`` of the work was done before, and took no time now (a resumed sweep).

    >>> bar = Progress(4, "cells", stream=sys.stdout, clock=iter([0.0, 20.0, 50.0]).__next__)
    >>> bar.update(1)
    1 of 4 cells, about 60 seconds left
    >>> bar.finish(4)
    4 of 4 cells in 50 seconds
    """

    def __init__(
        self,
        total: int,
        unit: str = "cells",
        *,
        share: float = 0.0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self.unit = unit
        self.stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._started = clock()
        self._share_before = share
        self._drawn: float | None = None
        self._line: Any = None  # from the first time that it is drawn

    def update(self, done: int, share: float | None = None) -> None:
        """Say that ``done`` are finished; ``share`` of the work, where that is known better than their count."""
        now = self._clock()
        pause = REDRAW_SECONDS if self.stream.isatty() else LINE_SECONDS
        if self._drawn is not None and now - self._drawn < pause:
            return
        self._drawn = now
        part = min(1.0, done / max(1, self.total) if share is None else share)
        left = time_left(part, now - self._started, self._share_before)
        self._draw(part, done, "" if left is None else f", about {time_words(left)} left")

    def finish(self, done: int, note: str = "") -> None:
        """The last line; it stays."""
        took = time_words(self._clock() - self._started)
        self._draw(done / max(1, self.total), done, f" in {took}{note}")
        if self._line is not None:
            self._line.close()

    def _draw(self, share: float, done: int, rest: str) -> None:
        words = f"{done} of {self.total} {self.unit}{rest}"
        if not self.stream.isatty():  # tqdm would fill a log with carriage returns
            print(words, file=self.stream, flush=True)
        elif self._line is None:
            form = {"ascii": ".#", "bar_format": "[{bar:24}] {desc}", "ncols": 1_000}  # the words are never cut off
            self._line = tqdm(total=1.0, initial=share, desc=words, file=self.stream, nrows=20, **form)
        else:
            self._line.n = share
            self._line.set_description_str(words)


def run_with_progress(
    cells: Sequence[Run], arguments: argparse.Namespace, keep: Callable[[CellResult], Kept]
) -> tuple[list[Kept], BaseException | None]:
    """All cells with a progress bar: what is kept of each, and what stopped the sweep before its end.

    Ctrl-C, or a cluster that goes away, ends it early with what there is.  Runs that the file ``--out`` holds are taken
    from there, and new ones are written to it as they come.  Of a cell that is complete only what ``keep`` makes of it
    stays in memory.
    """
    out = arguments.out
    finished: dict[Run, Kept] = {}
    partial: dict[Run, CellResult] = {}
    before: dict[Run, int] = {}
    total = max(1, sum(cell.runs for cell in cells))
    stopped: BaseException | None = None
    with ExitStack() as stack:
        store = None
        if out is not None:
            from dpgrams_core.sweeps.store import ResultsFile  # late: pyarrow is slow to load

            store = stack.enter_context(ResultsFile(out))
            before = {cell: count for cell in cells if (count := store.count(cell))}
        runs = sum(before.values())
        if runs:
            print(f"{runs} of {total} runs are in {out} already", file=sys.stderr)
        bar = Progress(len(cells), "cells", share=runs / total)
        # A very large sweep goes cell by cell: all of its cells under way would be all of its runs in memory.
        interleave = len(cells) <= MAX_CELLS_UNASKED
        how = {"scheduler": arguments.scheduler, "store": store, "interleave": interleave}
        stream = stream_partial(cells, arguments.executor, **how)
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
    return [*finished.values(), *(keep(partial[cell]) for cell in partial if cell not in finished)], stopped


def merge_text(arguments: argparse.Namespace) -> str:
    """Put several results files into one."""
    from dpgrams_core.sweeps.store import merge_files

    return f"{merge_files(arguments.files, arguments.out):,} runs are in {arguments.out}"
