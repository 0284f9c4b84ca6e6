"""The chain of a ledger: every row that a budget depends on, in order, each sealed with a keyed hash of all before it.

An entry's mark is HMAC-SHA256 over the mark before it, its kind and its row, under a key derived from the ledger's own.
Who does not hold the key can neither add a row, nor change, remove or move one, without a mark that does not fit.  The
tables hold the same rows once more, since they are what SQLite can search; ``check_chain`` compares the two: each
chained row is in its table unchanged, and nothing is in a table that is not in the chain.

Whoever holds the key can write any chain, and an older copy of the file has a chain that fits: against that stands the
high-water mark, which is kept apart (mark.py).
"""

from __future__ import annotations

import hmac
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dpgrams_core.model.errors import BudgetError
from dpgrams_core.privacy.ledger.caps import check_amounts

Value = str | int | None | bytes
Row = Mapping[str, Value]
START = "0" * 64  # the mark before the first entry
FIRST = "ledger"  # the kind of the first entry, which tells two ledgers with the same key apart

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Kind:
    """A sort of protected rows: their table, its columns in order, and what names a row in it.

    ``replaced``: a later entry takes the place of an earlier one with the same name.  ``removable``: the owner may
    delete rows from the table to make room; what is there must still be in the chain.
    """

    table: str
    columns: tuple[str, ...]
    name: tuple[str, ...]
    replaced: bool = False
    removable: bool = False


# Every protected table stands here; an entry of a kind that does not is refused.
KINDS = {
    FIRST: Kind("seal", ("mark", "id", "made", "upgraded"), ("mark",)),
    "account": Kind("accounts", ("account", "cap_epsilon", "cap_delta", "opened"), ("account",)),
    "charge": Kind("charges", ("id", "account", "at", "description", "epsilon", "delta", "status", "events"), ("id",)),
    "draw": Kind("draws", ("charge", "at"), ("charge",)),
    "kept": Kind("kept", ("charge", "at", "content"), ("charge",), replaced=True, removable=True),
    "closing": Kind("closings", ("id", "at", "reason"), ("id",)),
    "identity": Kind("identities", ("account", "exact", "traces"), ("account", "exact")),
    "link": Kind("links", ("account", "other"), ("account", "other")),
    "owner": Kind("owners", ("charge", "exact"), ("charge",)),
}


@dataclass(frozen=True)
class Entry:
    """One entry of the chain; ``row`` is the canonical JSON text of the row."""

    number: int
    kind: str
    row: str
    mark: str


def chain_key(key: bytes) -> bytes:
    """The key of the chain, from the ledger's own, so that no mark is ever the name of an account."""
    return hmac.digest(key, b"the chain of this ledger", "sha256")


def canonical(key: bytes, row: Row) -> str:
    """A row as the text that is sealed: sorted JSON; bytes stand there as their keyed hash, for they may be long.

    >>> canonical(b"key", {"b": 1, "a": "x"})
    '{"a":"x","b":1}'
    """
    plain = {
        name: {"hash": hmac.digest(key, b"content\n" + value, "sha256").hex()} if isinstance(value, bytes) else value
        for name, value in row.items()
    }
    return _ENCODER.encode(plain)


def is_row(key: bytes, row: Row, text: str) -> bool:
    """Whether a row as it was read is the one that was sealed as this text."""
    try:
        return canonical(key, row) == text
    except ValueError:  # an infinite number, which no row has
        return False


def mark_of(key: bytes, before: str, kind: str, row: str) -> str:
    """The mark of an entry, from the mark before it."""
    return hmac.digest(key, f"{before}\n{kind}\n{row}".encode(), "sha256").hex()


def now() -> str:
    """The time, as rows have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def insert_row(connection: sqlite3.Connection, key: bytes, kind: str, row: Row) -> None:
    """Write a protected row into its table and into the chain, inside the caller's transaction."""
    put_row(connection, kind, row)
    append_to_chain(connection, key, kind, row)


def put_row(connection: sqlite3.Connection, kind: str, row: Mapping[str, Any]) -> None:
    """Write a row into its table alone, for a ledger that is built from a chain."""
    known = KINDS[kind]
    verb = "INSERT OR REPLACE" if known.replaced else "INSERT"
    places = ", ".join("?" * len(known.columns))
    values = [row[name] for name in known.columns]
    connection.execute(f"{verb} INTO {known.table} ({', '.join(known.columns)}) VALUES ({places})", values)


def append_to_chain(connection: sqlite3.Connection, key: bytes, kind: str, row: Row) -> Entry:
    """Seal a row that is in its table, inside the caller's transaction; ``key`` is that of the chain."""
    if set(row) != set(KINDS[kind].columns):
        raise ValueError(f"a row of kind {kind} has the columns {', '.join(KINDS[kind].columns)}")
    number, before = chain_end(connection)
    text = canonical(key, row)
    entry = Entry(number + 1, kind, text, mark_of(key, before, kind, text))
    connection.execute("INSERT INTO chain VALUES (?, ?, ?, ?)", (entry.number, entry.kind, entry.row, entry.mark))
    return entry


def chain_end(connection: sqlite3.Connection) -> tuple[int, str]:
    """The number and the mark of the last entry."""
    last = connection.execute("SELECT number, mark FROM chain ORDER BY number DESC LIMIT 1").fetchone()
    return last or (0, START)


def entries(connection: sqlite3.Connection, after: int = 0) -> Iterator[Entry]:
    """The entries behind a number, in their order, as they stand in the file."""
    rows = connection.execute("SELECT number, kind, row, mark FROM chain WHERE number > ? ORDER BY number", (after,))
    return (Entry(*row) for row in rows)


def last_rows(connection: sqlite3.Connection, kind: str) -> dict[Any, str]:
    """The rows of a kind as they were sealed last, each by its name."""
    found = connection.execute("SELECT row FROM chain WHERE kind = ? ORDER BY number", (kind,)).fetchall()
    return {_name(KINDS[kind], json.loads(text)): text for (text,) in found}


def checked_entries(key: bytes, found: Iterable[Entry]) -> Iterator[Entry]:
    """The same entries, each once its mark fits; the first that does not is a ``BudgetError``."""
    number, before = 0, START
    for entry in found:
        number += 1
        fits = (
            entry.number == number
            and entry.kind in KINDS
            and isinstance(entry.row, str)
            and (number > 1) == (entry.kind != FIRST)
            and entry.mark == mark_of(key, before, entry.kind, entry.row)
        )
        if not fits:
            raise damaged(f"entry {number} of its chain does not fit those before it")
        before = entry.mark
        yield entry
    if number == 0:
        raise damaged("its chain is empty")


def check_chain(connection: sqlite3.Connection, key: bytes, *, contents: bool = True) -> tuple[int, str]:
    """Compare the whole chain with all protected tables; its length and last mark, or a ``BudgetError``.

    Without ``contents`` what was kept is not read (it may be long): each piece is then looked at when it is opened.
    """
    number, before = 0, START
    chained: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for entry in checked_entries(key, entries(connection)):
        number, before = entry.number, entry.mark
        chained[entry.kind].append(entry.row)
    for kind, known in KINDS.items():
        if known.replaced:
            last = {_name(known, json.loads(row)): row for row in chained[kind]}
            _check_replaced(connection, key, known, last, contents=contents)
        elif _rows(connection, key, known) != sorted(chained[kind]):
            raise damaged(f"the table {known.table} does not hold the rows that were written")
    return number, before


def _rows(connection: sqlite3.Connection, key: bytes, known: Kind) -> list[str]:
    """All rows of a table as their text, sorted; amounts that are none are refused."""
    found = []
    for values in connection.execute(f"SELECT {', '.join(known.columns)} FROM {known.table} NOT INDEXED"):
        row = dict(zip(known.columns, values, strict=True))
        check_amounts(row)
        try:
            found.append(canonical(key, row))
        except ValueError:  # an infinite number, which no row has
            raise damaged(f"the table {known.table} holds what is no value") from None
    return sorted(found)


def _check_replaced(
    connection: sqlite3.Connection, key: bytes, known: Kind, last: dict[Any, str], *, contents: bool
) -> None:
    """Each row of a table whose rows may be replaced is the last that was written under its name."""
    columns = known.columns if contents else known.name
    there = 0
    for values in connection.execute(f"SELECT {', '.join(columns)} FROM {known.table} NOT INDEXED"):
        row = dict(zip(columns, values, strict=True))
        text = last.get(_name(known, row))
        if text is None or (contents and not is_row(key, row, text)):
            raise damaged(f"the table {known.table} holds a row that was not written")
        there += 1
    if there < len(last) and not known.removable:
        raise damaged(f"the table {known.table} does not hold all rows that were written")


def _name(known: Kind, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[column] for column in known.name)


def damaged(what: str) -> BudgetError:
    """The refusal of a ledger whose rows are not the ones that were written, with its way out."""
    return BudgetError(
        f"The ledger was changed or damaged: {what}. So what was spent is not certain, and nothing is released. The "
        "command ledger verify says more, and ledger restore builds it again from its high-water mark and a backup."
    )
