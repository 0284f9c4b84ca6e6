"""Results files: one opened on the page, and the runs on the screen as one.

What is opened is shown to its owner only and never joins the runs that visitors share: nobody has checked it.  It is
unpacked in a guarded process, and its runs are held as long as the file is open.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from dpgrams_core import DATASETS, METHODS
from dpgrams_core.figures.curve import cell_title, told_apart
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.guarantee import STATUSES
from dpgrams_core.model.run import AnyDataset, Run
from dpgrams_core.own_data.reading.table import Limits, do_nothing, reading
from dpgrams_core.sweeps.cell import CellResult
from pages._ui.server.uploads import FULL, MEGABYTE, OFF, read_and_let_go, settings_or_off, upload_box
from pages._ui.server.visitors import HOLDINGS, this_session

MOST_MEGABYTES = 20
# The runs of a file, its columns, and its values in all, each of which becomes an object here; the largest file of the
# paper has 142,800.  Texts are bounded beside (see parquet_child.py).
LIMITS = Limits(max_bytes=MOST_MEGABYTES * MEGABYTE, max_rows=200_000, max_numbers=1_000_000, max_columns=100)
MOST_LINES = 12  # methods, each with every setting that the file has of it
MOST_CELLS, MOST_VALUES, MOST_RUNS, LONGEST_OPTIONS = 10_000, 100, 1_000_000, 2_000
_NUMBER_BYTES, _CELL_BYTES = 40, 4_000  # about what a number and a cell take in memory
_READING_BYTES = 160  # about what a value takes while its file is read


@dataclass(eq=False)
class OpenedFile:
    """The results file that a session has open, or why the last one could not be opened."""

    name: str = ""
    results: Sequence[CellResult] = ()
    problem: str = ""
    count: int = 0  # gives the box for every file a name of its own

    def take(self, name: str, results: Sequence[CellResult], problem: str = "") -> None:
        """Begin with another file, or with none."""
        self.name, self.results, self.problem, self.count = name, results, problem, self.count + 1

    def leave(self) -> None:
        """Close the file."""
        self.take("", ())

    @property
    def held_bytes(self) -> int:
        """About the memory that its runs take."""
        return sum(_CELL_BYTES + _NUMBER_BYTES * item.ended * (2 + len(item.scores)) for item in self.results)


def file_box() -> OpenedFile:
    """Where a results file is opened and closed; what is open now."""
    file: OpenedFile = st.session_state.setdefault("_lab_file", OpenedFile())
    HOLDINGS.keep(this_session(), file)
    settings = settings_or_off()
    if file.results:
        st.markdown("A results file is open; its runs are shown.")
        if st.button("Close the results file", icon=":material/close:", key="lab_file_close"):
            file.leave()
            st.rerun()
        return file
    if not settings.uploads:
        st.caption(f"Results files cannot be opened. {OFF}")
        return file
    dropped = upload_box(
        "Open a results file",
        settings,
        f"lab_file_{file.count}",
        max(1, min(MOST_MEGABYTES, math.ceil(settings.max_upload_bytes / MEGABYTE))),
        "Written by the command line or saved here; its runs are shown instead.",
        type=["parquet"],
    )
    if dropped is not None:
        name = dropped.name
        try:
            results = read_and_let_go(dropped, settings, lambda content, *asked: read_results(content, name, *asked))
            file.take(name, results)
        except DataError as error:
            file.take("", (), str(error))
        st.rerun()
    return file


def read_results(
    content: bytes, name: str, room: Callable[[], int] | None = None, waiting: Callable[[], None] = do_nothing
) -> list[CellResult]:
    """The cells of a results file that somebody handed in, or a sentence (DataError) where it cannot be shown.

    For ``room`` and ``waiting`` see ``read_upload``.
    """
    from dpgrams_core.sweeps.store import read_handed_in, results_of  # late: pyarrow is slow to load

    broken = DataError(f"{name} does not hold the results of a sweep; choose another file.")
    results: list[CellResult] = []
    with reading(waiting):
        limits, full, most = LIMITS, "", LIMITS.max_numbers or 0
        if room is not None and (fits := room() // _READING_BYTES) < most:
            limits, full = replace(LIMITS, max_numbers=max(1, fits)), FULL
        table, _ = read_handed_in(content, name, limits, full)
        if any(len(text or "") > LONGEST_OPTIONS for text in table["options"].unique().to_pylist()):
            raise broken
        try:
            for result in results_of(table):
                if len(results) == MOST_CELLS:
                    raise DataError(f"{name} holds more than {MOST_CELLS:,} points; open a file with fewer.")
                if not _is_sound(result):
                    raise broken
                results.append(result)
        except DataError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            raise broken from None
    return results


def _is_sound(result: CellResult) -> bool:
    """Whether a result can be shown: whoever made the file may have written anything into it."""
    cell = result.cell
    return (
        cell.method in METHODS
        and cell.n >= 1
        and cell.epsilon > 0
        and 1 <= cell.runs <= MOST_RUNS
        and result.status in STATUSES
        and all(isinstance(value, float) and math.isfinite(value) for value in result.seconds)
        and all(isinstance(text, str) for text in result.failures)
        and bool(cell_title(cell))
        and hash(cell) is not None
    )


def of_dataset(results: Sequence[CellResult], name: str, dataset: AnyDataset) -> dict[Run, CellResult]:
    """The cells of a results file that belong to a data set, told apart where a method has several settings.

    A file about other data, or about more than the page can show, is a sentence (DataError).
    """
    found = {result.cell: result for result in results if not result.cell.varied}
    if not found:
        raise DataError(f"{name} holds no sweep over n and ε; a sweep that varies a control is not shown here.")
    mine = {cell: result for cell, result in found.items() if str(cell.dataset) == str(dataset)}
    if not mine:
        names = sorted({info.title for cell in found if (info := DATASETS.get(str(cell.dataset)))})
        raise DataError(f"{name} is about {' and '.join(names) or 'other data'}: choose that data set to see it.")
    named = told_apart(list(mine))
    lines = len(set(map(cell_title, named.values())))
    if lines > MOST_LINES:
        raise DataError(
            f"{name} holds {lines} methods and settings of methods, and the page shows at most {MOST_LINES} side by "
            "side; open a file with fewer."
        )
    for what, count in (("n", len({cell.n for cell in mine})), ("ε", len({cell.epsilon for cell in mine}))):
        if count > MOST_VALUES:
            raise DataError(f"{name} holds {count:,} values of {what}, and the page shows at most {MOST_VALUES}.")
    return {named[cell]: replace(result, cell=named[cell]) for cell, result in mine.items()}


def parquet_of(results: Sequence[CellResult]) -> bytes:
    """A results file, as the command line writes and continues it."""
    from dpgrams_core.sweeps.store import ResultsFile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.parquet"
        with ResultsFile(path, command="the Tradeoff page") as store:
            for result in results:
                store.add(result)
        return path.read_bytes()
