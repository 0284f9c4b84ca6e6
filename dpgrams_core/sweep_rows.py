"""Runs as the rows of a table: what a cell's results look like in a file, and how they come back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from dpgrams_core.cells import Cell, CellResult, claimed_status, join
from dpgrams_core.errors import SpecError
from dpgrams_core.guarantees import bare_status
from dpgrams_core.progress import checkpoint
from dpgrams_core.sweep_plan import frozen

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
ROWS_AT_ONCE = 1_000  # between two checkpoints
COLUMNS = tuple(SCHEMA.names)  # all others are scores
# The status of a run that failed for good, and of one that is worth another try; all others are those of guarantees.
FAILED, LOST = "failed", "lost"


def results_of(table: pa.Table) -> Iterator[CellResult]:
    """The cells of a table of runs."""
    for places in places_of(table).values():
        rows = taken(table, places).to_pylist()
        last = max(row["run"] for row in rows)
        yield join(_cell(rows[0], 0, last + 1), map(result_of, _by_checkpoints(rows)))


def _by_checkpoints(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of a cell; a file may have them all in one."""
    for place, row in enumerate(rows):
        if place % ROWS_AT_ONCE == 0:
            checkpoint()
        yield row


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
            "status": result.words,
            "error": "",
            **{name: values[place] for name, values in result.scores.items()},
        }
        for place, number in enumerate(result.numbers)
    ]
    lost = set(result.passing)
    bad = [
        {**same, "run": number, "seconds": None, "status": LOST if number in lost else FAILED, "error": text}
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


def result_of(row: dict[str, Any]) -> CellResult:
    """A row as the result of a single run."""
    cell, good = _cell(row, row["run"], 1), row["status"] not in (FAILED, LOST)
    scores: dict[str, tuple[float, ...]] = {
        name: (value,) for name, value in row.items() if good and name not in COLUMNS and value is not None
    }
    return CellResult(
        cell=cell,
        scores=scores,
        seconds=(row["seconds"],) if good else (),
        status=claimed_status(cell, bare_status(row["status"])) if good else "none",
        failures=() if good else (row["error"],),
        numbers=(row["run"],) if good else (),
        failed=() if good else (row["run"],),
        passing=(row["run"],) if row["status"] == LOST else (),
    )


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
