"""The results file of a sweep: one row a run, so that a sweep can be resumed, extended and merged.

It is a Parquet file that any data tool reads.  Its metadata say which format and which engine wrote it; runs of
another engine are refused, since they could not be told from ours in a table.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from dpgrams_core.cells import Cell, CellResult, join
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.executors import DIED
from dpgrams_core.fingerprint import engine_fingerprint
from dpgrams_core.sweep_plan import frozen

FORMAT = 1
FACTS = b"dpgrams_sweep"  # the place of our facts in the file's metadata
FLUSH_SECONDS = 5.0
FLUSH_SHARE = 20  # writing takes at most about a twentieth of the time
LARGEST_SEED = 2**63 - 1
KEY = ("method", "dataset", "n", "epsilon", "options", "seed", "draw")
SCHEMA = pa.schema(
    [
        ("method", pa.string()),
        ("dataset", pa.string()),
        ("n", pa.int64()),
        ("epsilon", pa.float64()),
        ("options", pa.string()),
        ("varied", pa.string()),
        ("seed", pa.int64()),
        ("draw", pa.int64()),
        ("run", pa.int64()),
        ("seconds", pa.float64()),
        ("status", pa.string()),
        ("error", pa.string()),
    ]
)
COLUMNS = tuple(SCHEMA.names)  # all others are scores


class ResultsFile:
    """Finished runs in one file, written whole under another name and then renamed, so it is never half a file.

    New runs are written every few seconds and at the end of a ``with`` block, also when that ends with Ctrl-C.

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
        self.flush()

    def __len__(self) -> int:
        return len(self._table) + len(self._new)

    def finished(self, cell: Cell) -> CellResult:
        """What the file holds of a cell. A run whose worker died is not among it: it is worth another try."""
        if self._new:
            self.flush()
        rows = _taken(self._table, self._places.get(key_of(cell), [])).to_pylist()
        inside = [row for row in rows if row["run"] in cell.numbers]
        kept = [row for row in inside if row["error"] != DIED]
        self._tried_again |= len(kept) < len(inside)
        return join(cell, map(_result, kept))

    def add(self, result: CellResult) -> None:
        """Keep the runs of a cell or of a piece of one."""
        self._new += rows_of(result)
        if time.monotonic() - self._written >= max(FLUSH_SECONDS, FLUSH_SHARE * self._writing):
            self.flush()

    def flush(self) -> None:
        """Write what is new."""
        if not self._new and self.path.exists():
            return
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
    read = [read_runs(Path(path)) for path in paths]
    table = each_once(pa.concat_tables([table for table, _ in read], promote_options="default"))
    commands = "; ".join(dict.fromkeys(str(facts.get("command", "")) for _, facts in read))
    facts = {"format": FORMAT, "engine": engine_fingerprint(), "command": commands, "created": _now()}
    write_runs(target, table, {**facts, "updated": _now()})
    return len(table)


def read_runs(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """The runs of a file and its facts; refuses a file of another format or engine."""
    table, facts = read_facts(path)
    form, engine = facts.get("format"), facts.get("engine")
    if form != FORMAT:
        raise DataError(f"{path} has format {form} of results, and this version reads format {FORMAT}.")
    if engine != engine_fingerprint():
        raise DataError(
            f"{path} holds results of another version of the engine ({engine}, and this is {engine_fingerprint()}); "
            "they cannot be mixed with new ones, so choose another file."
        )
    return table, facts


def read_facts(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """The runs of a file and its facts, whatever engine they are of."""
    try:
        table = pq.read_table(path)
        facts = dict(json.loads((table.schema.metadata or {})[FACTS]))
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException):
        raise DataError(f"{path} does not hold the results of a sweep; choose another file.") from None
    if any(field not in list(table.schema) for field in SCHEMA):
        raise DataError(f"{path} does not hold the results of a sweep; choose another file.")
    return table.replace_schema_metadata(None), facts


def results_of(table: pa.Table) -> Iterator[CellResult]:
    """The cells of a table of runs."""
    for places in places_of(table).values():
        rows = _taken(table, places).to_pylist()
        last = max(row["run"] for row in rows)
        yield join(_cell(rows[0], 0, last + 1), map(_result, rows))


def options_text(options: Iterable[tuple[str, Any]]) -> str:
    """Options as JSON, the same for the same settings: 1 and 1.0 are one value."""

    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return json.dumps({name: plain(frozen(value)) for name, value in options}, sort_keys=True)


def key_of(cell: Cell) -> tuple[Any, ...]:
    """What a run belongs to, besides its number."""
    return cell.method, cell.dataset, cell.n, float(cell.epsilon), options_text(cell.options), cell.seed, cell.draw


def rows_of(result: CellResult) -> list[dict[str, Any]]:
    """One row for each run of a result, also for one that failed."""
    cell = result.cell
    if cell.seed > LARGEST_SEED:
        raise SpecError("seed", cell.seed, f"a results file holds seeds of at most {LARGEST_SEED}")
    same = {**dict(zip(KEY, key_of(cell), strict=True)), "varied": cell.varied}
    good = [
        {
            **same,
            "run": number,
            "seconds": result.seconds[place],
            "status": result.status,
            "error": "",
            **{name: values[place] for name, values in result.scores.items()},
        }
        for place, number in enumerate(result.numbers)
    ]
    bad = [
        {**same, "run": number, "seconds": None, "status": "failed", "error": text}
        for number, text in zip(result.failed, result.failures, strict=True)
    ]
    return good + bad


def _cell(row: dict[str, Any], first_run: int, runs: int) -> Cell:
    options = {name: frozen(value) for name, value in json.loads(row["options"]).items()}
    return Cell(
        **{name: row[name] for name in ("method", "dataset", "n", "epsilon", "seed", "varied", "draw")},
        options=tuple(sorted(options.items())),
        first_run=first_run,
        runs=runs,
    )


def _result(row: dict[str, Any]) -> CellResult:
    """A row as the result of a single run."""
    cell, good = _cell(row, row["run"], 1), row["status"] != "failed"
    scores: dict[str, tuple[float, ...]] = {
        name: (value,) for name, value in row.items() if good and name not in COLUMNS and value is not None
    }
    return CellResult(
        cell=cell,
        scores=scores,
        seconds=(row["seconds"],) if good else (),
        status=row["status"] if good else "none",
        failures=() if good else (row["error"],),
        numbers=(row["run"],) if good else (),
        failed=() if good else (row["run"],),
    )


def runs_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of runs as a table; all columns but ours are scores."""
    names = dict.fromkeys(name for row in rows for name in row if name not in COLUMNS)
    schema = pa.schema([*SCHEMA, *((name, pa.float64()) for name in names)])
    return pa.Table.from_pylist(rows, schema=schema)


def each_once(table: pa.Table) -> pa.Table:
    """Each run once: one that ended well before one that failed, and the earlier before the later."""
    seen: dict[tuple[Any, ...], int] = {}
    well: dict[bool, list[int]] = {False: [], True: []}
    for place, status in enumerate(table["status"].to_pylist()):
        well[status != "failed"].append(place)
    columns = [table[name].to_pylist() for name in (*KEY, "run")]
    for place in well[True] + well[False]:
        seen.setdefault(tuple(column[place] for column in columns), place)
    return _taken(table.combine_chunks(), sorted(seen.values()))


def _taken(table: pa.Table, places: list[int]) -> pa.Table:
    return table.take(pa.array(places, pa.int64()))  # an empty list would have no type of its own


def places_of(table: pa.Table) -> dict[tuple[Any, ...], list[int]]:
    """For each cell of a table of runs, the rows that hold its runs."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for place, key in enumerate(zip(*(table[name].to_pylist() for name in KEY), strict=True)):
        found.setdefault(key, []).append(place)
    return found


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
