"""The results file of a sweep: one row a run, so that a sweep can be resumed, extended and merged.

It is a Parquet file that any data tool reads.  Its metadata say which format and which engine wrote it; runs of
another engine are refused, since they could not be told from ours in a table.  A file has one writer at a time.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from dpgrams_core.cells import Cell, CellResult, join, settled
from dpgrams_core.datasets.guarded import Answer, child, exactly
from dpgrams_core.datasets.parquet_child import LONGEST_ROWS_OF_TEXT, LONGEST_TEXTS, RUNS_FACTS, RUNS_TYPES
from dpgrams_core.datasets.table_reader import Limits
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.fingerprint import engine_fingerprint
from dpgrams_core.sweep_lock import become_writer
from dpgrams_core.sweep_rows import (
    LOST,
    SCHEMA,
    each_once,
    key_of,
    places_of,
    result_of,
    results_of,
    rows_of,
    runs_table,
    taken,
)

__all__ = [
    "ResultsFile",
    "merge_files",
    "read_facts",
    "read_handed_in",
    "read_runs",
    "results_of",
    "rows_of",
    "runs_table",
    "write_runs",
]

FORMAT = 1
FACTS = RUNS_FACTS
FLUSH_SECONDS = 5.0
FLUSH_SHARE = 20  # writing takes at most about a twentieth of the time


class ResultsFile:
    """Finished runs in one file, written whole under another name and then renamed, so it is never half a file.

    New runs are written every few seconds and at the end of a ``with`` block, also when that ends with Ctrl-C.  From
    its beginning to the end of the block nobody else can write the file; anybody can read it.

    Examples
    --------
    >>> import tempfile
    >>> from dpgrams_core.sweeps import plan_cells, run_cell
    >>> cells = plan_cells("mean_shift", "four_corners", n=[100], epsilon=[1.0], runs=2)
    >>> path = tempfile.mkdtemp() + "/results.parquet"
    >>> with ResultsFile(path) as store:
    ...     store.add(run_cell(cells[0]))
    >>> ResultsFile(path).finished(cells[0]).complete
    True
    """

    def __init__(self, path: str | Path, *, command: str | None = None) -> None:
        self.path = _usable(path)
        self._stop_writing = weakref.finalize(self, become_writer(self.path))
        try:
            self._open(command)
        except BaseException:
            self._stop_writing()
            raise

    def _open(self, command: str | None) -> None:
        self._table = SCHEMA.empty_table()
        self._facts: dict[str, Any] = {"created": _now()}
        self._new: list[dict[str, Any]] = []
        self._tried_again = False
        self._writing, self._written = 0.0, time.monotonic()
        if self.path.exists():
            self._table, self._facts = read_runs(self.path)
        self._places = places_of(self._table)
        self._facts |= {
            "format": FORMAT,
            "engine": engine_fingerprint(),
            "command": " ".join(sys.argv) if command is None else command,
        }
        self.flush()  # a place that cannot be written to is better known before the first run

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.flush()
        finally:
            self._stop_writing()

    def __len__(self) -> int:
        return len(self._table) + len(self._new)

    def finished(self, cell: Cell) -> CellResult:
        """What the file holds of a cell. A failure that may pass is not among it: it is worth another try."""
        if self._new:
            self.flush()
        return settled(join(cell, map(result_of, self._rows(cell))))

    def count(self, cell: Cell) -> int:
        """The number of runs that ``finished`` gives, found without looking at their scores."""
        return sum(row["status"] != LOST for row in self._rows(cell, ["run", "status"]))

    def _rows(self, cell: Cell, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        places = self._places.get(key_of(cell)) if self._places else None
        if not places:
            return []
        table = self._table if columns is None else self._table.select(columns)
        rows = [row for row in taken(table, places).to_pylist() if row["run"] in cell.numbers]
        self._tried_again |= any(row["status"] == LOST for row in rows)
        return rows

    def add(self, result: CellResult) -> None:
        """Keep the runs of a cell or of a piece of one."""
        self._new += rows_of(result)
        if time.monotonic() - self._written >= max(FLUSH_SECONDS, FLUSH_SHARE * self._writing):
            self.flush()

    def flush(self) -> None:
        """Write what is new."""
        if not self._new and self.path.exists():
            return
        if not self._stop_writing.alive:
            raise RuntimeError("the results file was closed, and somebody else may write it now; this is a bug")
        started = time.monotonic()
        table = pa.concat_tables([self._table, runs_table(self._new)], promote_options="default").combine_chunks()
        if self._tried_again:
            table = each_once(table)
        write_runs(self.path, table, {**self._facts, "updated": _now()})
        self._table, self._new = table, []
        self._places = places_of(table)
        self._written = time.monotonic()
        self._writing = self._written - started

    def results(self) -> list[CellResult]:
        """All cells of the file, each with the runs that are there."""
        self.flush()
        return list(results_of(self._table))


def merge_files(paths: Sequence[str | Path], out: str | Path) -> int:
    """Put the runs of several results files into one and return their number; a run in two of them counts once."""
    target = _usable(out)
    if not paths:
        raise SpecError("files", list(paths), "give at least one results file")
    for path in paths:
        if not Path(path).exists():
            raise SpecError("files", str(path), "there is no such file")
    with ExitStack() as stack:
        stack.callback(become_writer(target))
        read = [read_runs(Path(path)) for path in paths]
        table = each_once(pa.concat_tables([table for table, _ in read], promote_options="default"))
        commands = "; ".join(dict.fromkeys(str(facts.get("command", "")) for _, facts in read))
        facts = {"format": FORMAT, "engine": engine_fingerprint(), "command": commands, "created": _now()}
        write_runs(target, table, {**facts, "updated": _now()})
    return len(table)


def read_runs(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """The runs of a file and its facts; refuses a file of another format or engine."""
    return _of_this_engine(path, *_read(path))


def _of_this_engine(path: object, table: pa.Table, facts: dict[str, Any]) -> tuple[pa.Table, dict[str, Any]]:
    form, engine = facts.get("format"), facts.get("engine")
    if form != FORMAT:  # before its columns, which are those of its format
        raise DataError(f"{path} has format {form} of results, and this version reads format {FORMAT}.")
    if engine != engine_fingerprint():
        raise DataError(
            f"{path} holds results of another version of the engine ({engine}, and this is {engine_fingerprint()}); "
            "they cannot be mixed with new ones, so choose another file."
        )
    return _with_our_columns(path, table), facts


def read_facts(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """The runs of a file and its facts, whatever engine they are of."""
    table, facts = _read(path)
    return _with_our_columns(path, table), facts


def _read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    try:
        table = pq.read_table(path)
        return table, dict(json.loads((table.schema.metadata or {})[FACTS]))
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException):
        raise DataError(f"{path} does not hold the results of a sweep; choose another file.") from None


def read_handed_in(content: bytes, name: str, limits: Limits, full: str = "") -> tuple[pa.Table, dict[str, Any]]:
    """What ``read_runs`` gives, of a file that somebody handed in: it is unpacked in a guarded process.

    Call it within ``reading``.  A row is held against the limits before it is unpacked, and so is all text together:
    a few hundred bytes can stand for one long text in every row.  ``full`` is the sentence for a file of more values
    than the limits have, where these are short for want of room.
    """
    if limits.max_bytes is not None and len(content) > limits.max_bytes:
        raise DataError(f"{name} is larger than {limits.max_bytes / 1e6:g} MB; open a smaller file.")
    damaged = f"{name} does not hold the results of a sweep, or unpacks to too much; choose another file."
    if not content.startswith(b"PAR1"):
        raise DataError(damaged)
    with child("runs", content, limits, damaged) as (told, answer):
        rows, kinds = int(told["rows"]), {str(column): str(kind) for column, kind in told["columns"]}
        if limits.max_rows is not None and rows > limits.max_rows:
            raise DataError(f"{name} holds {rows:,} runs, and the page shows at most {limits.max_rows:,}.")
        if len(kinds) > limits.max_columns:
            raise DataError(f"{name} has {len(kinds):,} columns, and at most {limits.max_columns:,} are read.")
        if limits.max_numbers is not None and rows * len(kinds) > limits.max_numbers:
            raise DataError(
                full
                or f"{name} holds {rows * len(kinds):,} values, and the page shows at most {limits.max_numbers:,}; "
                "open a file with fewer runs or scores."
            )
        columns = {column: _sent(answer, kind, rows, told["texts"].get(column)) for column, kind in kinds.items()}
        facts = dict(json.loads(told["facts"]))
    table, facts = _of_this_engine(name, pa.table(columns), facts)
    if any(kind == "text" for column, kind in kinds.items() if column not in SCHEMA.names):
        raise DataError(damaged)  # all others are scores
    return table, facts


def _sent(answer: Answer, kind: str, rows: int, texts: list[str] | None) -> pa.Array:
    """A column as the guarded process sends it; see ``parquet_child.read_runs``."""
    missing = ~np.frombuffer(exactly(answer, rows), dtype=np.bool_)
    form = np.dtype(RUNS_TYPES[kind])
    values = np.frombuffer(exactly(answer, rows * form.itemsize), dtype=form)
    if kind != "text":
        return pa.array(values, mask=missing)
    words = [str(word) for word in texts or ()]
    lengths = np.array([len(word) for word in words], dtype=np.int64)
    if lengths.sum() > LONGEST_TEXTS or lengths[values[~missing]].sum() > LONGEST_ROWS_OF_TEXT:
        raise EOFError
    places = pa.array(values, mask=missing)
    return pa.DictionaryArray.from_arrays(places, pa.array(words, pa.string())).dictionary_decode()


def _with_our_columns(path: object, table: pa.Table) -> pa.Table:
    if any(field not in list(table.schema) for field in SCHEMA):
        raise DataError(f"{path} does not hold the results of a sweep; choose another file.")
    return table.replace_schema_metadata(None)


def _usable(path: str | Path) -> Path:
    target = Path(path)
    if target.suffix != ".parquet":
        raise SpecError("out", str(path), "give a file name that ends in .parquet")
    if not target.parent.is_dir():
        raise SpecError("out", str(path), "its folder does not exist")
    return target


def write_runs(path: Path, table: pa.Table, facts: dict[str, Any]) -> None:
    """Write a whole file under another name and rename it, so that it is never half a file."""
    metadata = {FACTS: json.dumps(facts).encode()}
    try:
        handle, name = tempfile.mkstemp(prefix=path.stem + ".", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                pq.write_table(table.replace_schema_metadata(metadata), file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}.") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
