"""The results file of a sweep: one row a run, so that a sweep can be resumed, extended and merged.

It is a Parquet file that any data tool reads.  Its metadata say which format and which engine wrote it; runs of
another engine are refused, since they could not be told from ours in a table.  A file has one writer at a time.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from filelock import FileLock, Timeout

from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.guarantee import bare_status
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.run import Run, plain
from dpgrams_core.own_data.reading.guarded import Answer, child
from dpgrams_core.own_data.reading.parquet_child import LONGEST_ROWS_OF_TEXT, LONGEST_TEXTS, RUNS_FACTS, RUNS_TYPES
from dpgrams_core.own_data.reading.table import Limits
from dpgrams_core.sweeps.cell import CellResult, Outcome, claimed_status, failed_run, settled, take_in
from dpgrams_core.sweeps.fingerprint import engine_fingerprint

# Runs as the rows of a table: what a cell's results look like in a file, and how they come back.

LARGEST_SEED = 2**63 - 1
KEY = ("method", "dataset", "n", "epsilon", "options", "seed", "draw")
COLUMNS = (*KEY[:5], "varied", *KEY[5:], "run", "seconds", "status", "error")
_TYPES = dict.fromkeys(("n", "seed", "draw", "run"), pa.int64()) | dict.fromkeys(("epsilon", "seconds"), pa.float64())
SCHEMA = pa.schema([(name, _TYPES.get(name, pa.string())) for name in COLUMNS])  # all other columns are scores
ROWS_AT_ONCE = 1_000  # between two checkpoints
# The status of a run that failed for good, and of one that is worth another try; all others are those of guarantees.
FAILED, LOST = "failed", "lost"


def results_of(table: pa.Table) -> Iterator[CellResult]:
    """The cells of a table of runs; all runs of a cell must have the same scores."""
    for places in places_of(table).values():
        rows = taken(table, places).to_pylist()
        first = rows[0]
        options = json.loads(first["options"])
        cell = Run(
            **{name: first[name] for name in ("method", "dataset", "n", "epsilon", "seed", "varied")},
            data_seed=first["draw"],
            design=options.pop("design", ""),  # no method has an option of this name
            options=tuple(options.items()),
            derived=True,
            runs=max(row["run"] for row in rows) + 1,
        )
        result = result_of(cell, rows)
        if len({tuple(outcome.scores) for outcome in result.outcomes.values() if outcome.failure is None}) > 1:
            raise KeyError("scores")
        yield result


def result_of(cell: Run, rows: Sequence[dict[str, Any]]) -> CellResult:
    """What rows of runs say of their cell."""
    known: dict[int, Outcome] = {}
    for place, row in enumerate(rows):
        if place % ROWS_AT_ONCE == 0:  # a file may have all of its rows in one cell
            checkpoint()
        if row["status"] in (FAILED, LOST):
            outcome = failed_run(row["error"], passing=row["status"] == LOST)
        else:
            scores = {name: value for name, value in row.items() if name not in COLUMNS and value is not None}
            outcome = Outcome(row["seconds"], claimed_status(cell, bare_status(row["status"])), scores)
        if row["run"] in cell.numbers:
            take_in(known, {row["run"]: outcome})
    return CellResult(cell=cell, outcomes=dict(sorted(known.items())))


def options_text(options: Iterable[tuple[str, Any]]) -> str:
    """Options as JSON, the same for the same settings: 1 and 1.0 are one value."""

    def whole(value: Any) -> Any:
        if isinstance(value, tuple):
            return [whole(item) for item in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return json.dumps({name: whole(plain(value)) for name, value in options}, sort_keys=True)


def key_of(cell: Run) -> tuple[Any, ...]:
    """What a run belongs to, besides its number."""
    options = options_text((*cell.options, *([("design", cell.design)] if cell.design else [])))
    return cell.method, str(cell.dataset), cell.n, float(cell.epsilon), options, cell.seed, cell.data_seed


def rows_of(result: CellResult) -> list[dict[str, Any]]:
    """One row for each run of a result, also for one that failed."""
    cell = result.cell
    if cell.seed > LARGEST_SEED:
        raise SpecError("seed", cell.seed, f"a results file holds seeds of at most {LARGEST_SEED}")
    same = {**dict(zip(KEY, key_of(cell), strict=True)), "varied": cell.varied}
    rows = []
    for number, (seconds, _, scores, failure, passing) in result.outcomes.items():
        if failure is None:
            told = {"seconds": seconds, "status": result.words, "error": "", **scores}
        else:
            told = {"seconds": None, "status": LOST if passing else FAILED, "error": failure}
        rows.append({**same, "run": number, **told})
    return rows


def runs_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of runs as a table; all columns but ours are scores."""
    names = dict.fromkeys(name for row in rows for name in row if name not in COLUMNS)
    schema = pa.schema([*SCHEMA, *((name, pa.float64()) for name in names)])
    return pa.Table.from_pylist(rows, schema=schema)


def each_once(table: pa.Table) -> pa.Table:
    """Each run once: one that ended well, else one that failed for good; the earlier before the later."""
    seen: dict[tuple[Any, ...], int] = {}
    statuses = table["status"].to_pylist()
    columns = [table[name].to_pylist() for name in (*KEY, "run")]
    worse = {FAILED: 1, LOST: 2}
    for place in sorted(range(len(table)), key=lambda place: worse.get(statuses[place], 0)):
        seen.setdefault(tuple(column[place] for column in columns), place)
    return taken(table.combine_chunks(), sorted(seen.values()))


def taken(table: pa.Table, places: list[int]) -> pa.Table:
    """Some rows of a table."""
    return table.take(pa.array(places, pa.int64()))  # an empty list would have no type of its own


def places_of(table: pa.Table) -> dict[tuple[Any, ...], list[int]]:
    """For each cell of a table of runs, the rows that hold its runs."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for place, key in enumerate(zip(*(table[name].to_pylist() for name in KEY), strict=True)):
        found.setdefault(key, []).append(place)
    return found


# One writer for a results file: two sweeps that write one file would each undo the runs of the other.

LOCK_SECONDS = 0.2  # for a lock whose last holder is just removing it
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)


def lock_file(path: Path) -> Path:
    """The file beside a results file that is there while somebody writes it; it holds the number of the process."""
    return path.with_name(path.name + ".lock")


def become_writer(path: Path) -> Callable[[], None]:
    """Become the only writer of a file, or raise a DataError at once where there is another; returns what ends it.

    The lock is the operating system's (filelock) and ends with the process however that ends: what a killed process
    leaves behind is a file that nobody holds, and the next writer takes it over.  On a file system that knows no
    locks there is none, and two sweeps must not be given the same file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "results.parquet"
    >>> stop_writing = become_writer(path)
    >>> try:
    ...     become_writer(path)
    ... except DataError as error:
    ...     print("being written by another sweep" in str(error))
    True
    >>> stop_writing()
    """
    beside = lock_file(path)
    lock = FileLock(beside, thread_local=False)
    try:
        lock.acquire(timeout=LOCK_SECONDS, poll_interval=LOCK_SECONDS / 4)
    except Timeout:
        holder = beside.read_text(errors="replace")[:20].strip() if beside.exists() else ""
        who = f" (process {holder})" if holder else ""
        raise DataError(
            f"{path} is being written by another sweep{who}; wait, or give another --out and merge the files later."
        ) from None
    except OSError as error:
        if error.errno in NO_LOCKS:  # then the file must not stand there as if there were a lock
            beside.unlink(missing_ok=True)
        elif os.path.exists(beside):
            raise DataError(f"{beside} cannot be opened ({error.strerror}), so another sweep may be writing.") from None
        return lambda: None  # where no file can be made none can be written, and the writing says so
    beside.write_text(str(os.getpid()))

    def stop_writing() -> None:
        with suppress(OSError):
            beside.unlink()  # before the lock ends, or it might be the next writer's
        lock.release()

    return stop_writing


FORMAT = 1
FACTS = RUNS_FACTS
FLUSH_SECONDS = 5.0
FLUSH_SHARE = 20  # writing takes at most about a twentieth of the time


class ResultsFile:
    """Finished runs in one file, written whole under another name and then renamed, so it is never half a file.

    New runs are written every few seconds and at the end of a ``with`` block, also when that ends with Ctrl-C.  From
    its beginning to the end of the block nobody else can write the file; anybody can read it.

    >>> import tempfile
    >>> from dpgrams_core.sweeps.run import plan_cells, run_cell
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

    def finished(self, cell: Run) -> CellResult:
        """What the file holds of a cell. A failure that may pass is not among it: it is worth another try."""
        if self._new:
            self.flush()
        return settled(result_of(cell, self._rows(cell)))

    def count(self, cell: Run) -> int:
        """The number of runs that ``finished`` gives, found without looking at their scores."""
        return sum(row["status"] != LOST for row in self._rows(cell, ["run", "status"]))

    def _rows(self, cell: Run, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        places = self._places.get(key_of(cell), []) if self._places else []
        table = self._table if columns is None else self._table.select(columns)
        rows = [row for row in taken(table, places).to_pylist() if row["run"] in cell.numbers]
        self._tried_again |= any(row["status"] == LOST for row in rows)
        return rows

    def add(self, result: CellResult) -> None:
        self._new += rows_of(result)
        if time.monotonic() - self._written >= max(FLUSH_SECONDS, FLUSH_SHARE * self._writing):
            self.flush()

    def flush(self) -> None:
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
    missing = ~np.frombuffer(answer.exactly(rows), dtype=np.bool_)
    form = np.dtype(RUNS_TYPES[kind])
    values = np.frombuffer(answer.exactly(rows * form.itemsize), dtype=form)
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
