"""Results files: one opened on the page, and the runs on the screen as one.

What is opened is shown to its owner only and never joins the runs that visitors share: nobody has checked it.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from dpgrams_core import DATASETS
from dpgrams_core.cells import Cell, CellResult
from dpgrams_core.errors import DataError
from dpgrams_core.figures.tradeoff_scores import cell_title, told_apart

MOST_MEGABYTES, MOST_ROWS, MOST_BYTES = 20, 200_000, 200_000_000
MOST_LINES = 12  # methods, each with every setting that the file has of it


class _Named(io.BytesIO):
    """A file in memory that a message calls by its name."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name

    def __str__(self) -> str:
        return self.name


def file_box() -> Any:
    """Where a file can be dropped; None while there is none."""
    return st.file_uploader(
        "Open a results file",
        type=["parquet"],
        key="lab_file",
        max_upload_size=MOST_MEGABYTES,
        help="Written by the command line or saved here; its runs are shown instead.",
    )


def opened(content: bytes, name: str, dataset: str) -> dict[Cell, CellResult]:
    """The cells of a results file that belong to a data set, told apart where a method has several settings.

    Raises
    ------
    DataError
        With a sentence, where it is no such file, of another version, too large, or about other data.
    """
    from dpgrams_core.sweep_store import read_runs, results_of  # late: pyarrow is slow to load

    _refuse_what_unpacks_too_large(content, name)
    table, _ = read_runs(_Named(content, name))  # type: ignore[arg-type]
    try:
        results = list(results_of(table))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError(f"{name} does not hold the results of a sweep; choose another file.") from None
    found = {result.cell: result for result in results if not result.cell.varied}
    if not found:
        raise DataError(f"{name} holds no sweep over n and ε; a sweep that varies a control is not shown here.")
    mine = {cell: result for cell, result in found.items() if cell.dataset == dataset}
    if not mine:
        names = sorted({DATASETS[cell.dataset].title for cell in found if cell.dataset in DATASETS})
        raise DataError(f"{name} is about {' and '.join(names) or 'other data'}: choose that data set to see it.")
    named = told_apart(list(mine))
    lines = len(set(map(cell_title, named.values())))
    if lines > MOST_LINES:
        raise DataError(
            f"{name} holds {lines} methods and settings of methods, and the page shows at most {MOST_LINES} side by "
            "side; open a file with fewer."
        )
    return {named[cell]: replace(result, cell=named[cell]) for cell, result in mine.items()}


def _refuse_what_unpacks_too_large(content: bytes, name: str) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        facts = pq.ParquetFile(io.BytesIO(content)).metadata
        size = sum(facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
    except (OSError, ValueError, pa.ArrowException):
        raise DataError(f"{name} does not hold the results of a sweep; choose another file.") from None
    if facts.num_rows > MOST_ROWS or size > MOST_BYTES:
        raise DataError(f"{name} holds {facts.num_rows:,} runs, and the page shows at most {MOST_ROWS:,}.")


def parquet_of(results: Sequence[CellResult]) -> bytes:
    """A results file, as the command line writes and continues it."""
    from dpgrams_core.sweep_store import ResultsFile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.parquet"
        with ResultsFile(path, command="the Tradeoff page") as store:
            for result in results:
                store.add(result)
        return path.read_bytes()
