"""The two files of a ledger: its tables, and its secret key, made once from the operating system's entropy.

Losing either must not refill a budget.  Tables without their key are refused.  So is a key without its tables, or
without the ledger's high-water mark (mark.py), once it is *sealed*: bytes behind the key say that both are on
the disk, written before anything can be charged.  A key that is not sealed yet, as after a crash between the steps or
in an older ledger, is sealed when it is opened.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from dpgrams_core.model.errors import BudgetError
from dpgrams_core.privacy.ledger.caps import check_amounts
from dpgrams_core.privacy.ledger.chain import FIRST, KINDS, Entry, chain_key, check_chain, damaged, insert_row, now
from dpgrams_core.privacy.ledger.mark import put_new

KEY_BYTES = 32
_SEAL = b"++"  # the tables were made, and the high-water mark; older ledgers know the first only
VERSION = 3
_ID_BYTES = 16
_AMOUNT = "typeof({0}) = 'text' AND CAST({0} AS REAL) {1} 0 AND CAST({0} AS REAL) < {2}"  # SQL knows no exact numbers
_TABLES = f"""
CREATE TABLE seal (mark TEXT NOT NULL, id TEXT NOT NULL, made TEXT NOT NULL, upgraded INTEGER NOT NULL);
CREATE TABLE chain (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, row TEXT NOT NULL, mark TEXT NOT NULL);
CREATE TABLE accounts (
    account TEXT PRIMARY KEY NOT NULL, cap_epsilon TEXT NOT NULL, cap_delta TEXT NOT NULL, opened TEXT NOT NULL,
    CHECK ({_AMOUNT.format("cap_epsilon", ">", "1e300")}), CHECK ({_AMOUNT.format("cap_delta", ">", "1")}));
CREATE TABLE charges (
    id INTEGER PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts, at TEXT NOT NULL,
    description TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, status TEXT NOT NULL, events TEXT NOT NULL,
    CHECK ({_AMOUNT.format("epsilon", ">", "1e300")}), CHECK ({_AMOUNT.format("delta", ">=", "1")}));
CREATE TABLE draws (charge INTEGER PRIMARY KEY REFERENCES charges, at TEXT NOT NULL);
CREATE TABLE kept (charge INTEGER PRIMARY KEY REFERENCES charges, at TEXT NOT NULL, content BLOB NOT NULL);
CREATE TABLE closings (id INTEGER PRIMARY KEY, at TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE identities (
    account TEXT NOT NULL REFERENCES accounts, exact TEXT NOT NULL, traces TEXT NOT NULL, PRIMARY KEY (account, exact));
CREATE TABLE links (
    account TEXT NOT NULL REFERENCES accounts, other TEXT NOT NULL REFERENCES accounts, PRIMARY KEY (account, other));
CREATE TABLE owners (charge INTEGER PRIMARY KEY REFERENCES charges, exact TEXT NOT NULL);
"""
# What must never happen to the rows of a table. What was kept may be deleted by its owner, to make room.
_HELD = {known.table: f"{'an' if kind[0] in 'aio' else 'a'} {kind}" for kind, known in KINDS.items()}
_HELD |= {"seal": "a seal", "chain": "an entry", "kept": "what is kept"}
_TRIGGERS = "".join(
    f"CREATE TRIGGER {table}_{name} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{what} is never {word}'); END;\n"
    for table, what in _HELD.items()
    for name, verb, word in (("stay", "DELETE", "deleted"), ("hold", "UPDATE", "changed"))
    if (table, verb) != ("kept", "DELETE")
)
_OF_SQLITE = ("sqlite_sequence", "sqlite_stat1", "sqlite_stat4")
LOST_TABLES = (
    "The ledger's key file is there and its tables are not, so what was spent is not known. Put back a copy of the "
    "ledger's file by the command ledger restore. Only who wants all budgets forgotten removes the key file, too."
)
_OLD_TABLES = {1: ("draws", "charges", "accounts"), 2: ("kept", "draws", "charges", "accounts")}  # children first


def set_up(connection: sqlite3.Connection, path: Path, key: bytes) -> None:
    """Make the tables in a new file, or bring an older one up to date; refuse another version or another key.

    Tables that were there once are not made again: that would forget what was spent.  All of it is one transaction of
    the caller's: an older file is upgraded as a whole or stays as it was.
    """
    version = version_of(connection)
    if version == 0 and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        if len(key_place(path).read_bytes()) > KEY_BYTES:
            raise BudgetError(LOST_TABLES)
        make_tables(connection)
        _insert_first(connection, key, 0, 1)
    else:
        refuse_other(connection, key, (1, 2, VERSION))
        if version < VERSION:
            _upgrade(connection, key, version)


def version_of(connection: sqlite3.Connection) -> int:
    """The version of a ledger's file; 0 where it has no tables yet."""
    return connection.execute("PRAGMA user_version").fetchone()[0]


def refuse_other(connection: sqlite3.Connection, key: bytes, versions: tuple[int, ...] = (VERSION,)) -> None:
    """Refuse a file of another version, or one that was made with another key."""
    if version_of(connection) not in versions:
        raise BudgetError(  # another place would be a fresh budget
            "The ledger's file is not one that this version knows, so nothing is released. Where a newer version wrote "
            "it, use that one; where it is damaged, the command ledger restore builds it again."
        )
    if connection.execute("SELECT mark FROM seal").fetchall() != [(seal_of(key),)]:
        raise BudgetError(
            "The ledger and its key file do not belong together, so spent budgets would not be found again. Put "
            "back the key file that was made with it."
        )


def check_file(connection: sqlite3.Connection, key: bytes, *, contents: bool) -> tuple[int, str]:
    """Verify a whole ledger: its tables and triggers, SQLite's own order in them, and its chain; where that ends.

    Without ``contents`` the table of what was kept is not read, which may be long.
    """
    refuse_other(connection, key)
    with closing(sqlite3.connect(":memory:")) as fresh:
        make_tables(fresh)
        as_made = _definitions(fresh)
    if _definitions(connection) != as_made:
        raise damaged("its tables or triggers are not the ones that it was made with")
    tables = [""] if contents else ["chain", *(known.table for known in KINDS.values() if not known.removable)]
    for table in tables:
        found = connection.execute(f"PRAGMA integrity_check({table})" if table else "PRAGMA integrity_check").fetchall()
        if found != [("ok",)]:
            raise damaged("SQLite finds its file out of order")
    return check_chain(connection, chain_key(key), contents=contents)


def _definitions(connection: sqlite3.Connection) -> set[tuple[str, str, str, str | None]]:
    """All tables, indices and triggers; not SQLite's own: counters of an older version, statistics of an ANALYZE."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return {row for row in rows if row[1] not in _OF_SQLITE}


def make_tables(connection: sqlite3.Connection) -> None:
    """The empty tables of this version and their triggers."""
    for statement in (_TABLES + _TRIGGERS).split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _insert_first(connection: sqlite3.Connection, key: bytes, upgraded: int, count: int) -> None:
    """The row that tells a ledger from another one with the same key; ``upgraded`` from which version (0: none).

    Before its random digits the name says how many entries the ledger was made with.
    """
    name = f"{count}-{secrets.token_bytes(_ID_BYTES).hex()}"
    first: dict[str, str | int] = {"mark": seal_of(key), "id": name, "made": now(), "upgraded": upgraded}
    insert_row(connection, chain_key(key), FIRST, first)


def is_as_made(chain: Sequence[Entry]) -> bool:
    """Whether a chain has the entries that its ledger was made with and no other: nothing was charged since."""
    count, dash, _ = str(json.loads(chain[0].row)["id"]).partition("-")
    return len(chain) == (int(count) if dash else 1)


def _upgrade(connection: sqlite3.Connection, key: bytes, version: int) -> None:
    """Rows of an older file come into the chain as they are found: what was done to them before cannot be noticed.

    The tables are made again, since SQLite adds no constraint to a table that is there; a row that breaks one (an
    amount below zero, say) is refused, and the file stays as it was.
    """
    old = _OLD_TABLES[version]
    count = 1 + sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in old)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')
    for table in old:
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    connection.execute("DROP TABLE seal")
    make_tables(connection)
    _insert_first(connection, key, version, count)
    try:
        for kind in ("account", "charge", "draw", "kept"):
            known = KINDS[kind]
            if known.table not in old:
                continue
            columns = ", ".join(known.columns)
            for values in connection.execute(f"SELECT {columns} FROM old_{known.table} ORDER BY rowid"):
                row = dict(zip(known.columns, values, strict=True))
                check_amounts(row)
                insert_row(connection, chain_key(key), kind, row)
    except (sqlite3.IntegrityError, BudgetError):
        raise BudgetError(
            "The ledger is one of an older version and holds a row that was never written by it, such as an amount "
            "below zero. It is left as it is. Put back a copy of it from before that."
        ) from None
    for table in old:
        connection.execute(f"DROP TABLE old_{table}")


def read_or_make_key(path: Path) -> bytes:
    """The ledger's key: made once, never replaced, since a new key would forget what was spent."""
    place = key_place(path)
    if not place.exists():
        # The key is made before the ledger has content, so a look at it *after* that decides: another process may just
        # have made both.
        if path.is_file() and path.stat().st_size and not place.exists():
            raise BudgetError(
                "The ledger is there and its key file is not, so spent budgets would not be found again. Put back the "
                "key file that was made with it."
            )
        with suppress(FileExistsError):  # of several processes one wins, and all read its key
            put_new(place, secrets.token_bytes(KEY_BYTES))
    return read_key(path)


def read_key(path: Path) -> bytes:
    """The key of a ledger that was made before."""
    try:
        key = key_place(path).read_bytes()
    except FileNotFoundError:
        raise BudgetError("There is no ledger at this place, or its key file is not beside it.") from None
    if not KEY_BYTES <= len(key) <= KEY_BYTES + len(_SEAL):
        raise BudgetError("The ledger's key file is damaged. Put back a copy of it.")
    return key[:KEY_BYTES]


def is_sealed(path: Path) -> bool:
    """Whether the key says that the ledger's tables and its high-water mark were made."""
    return key_place(path).stat().st_size == KEY_BYTES + len(_SEAL)


def seal_key(path: Path) -> None:
    """Note behind the key that tables and high-water mark were made; on return it is on the disk.

    The key itself is not written again, and several processes may write the same bytes to the same place.
    """
    if is_sealed(path):
        return
    with key_place(path).open("r+b", buffering=0) as file:
        os.pwrite(file.fileno(), _SEAL, KEY_BYTES)
        os.fsync(file.fileno())


def own_only(path: Path) -> None:
    """Make the ledger's file where there is none, and let nobody but its owner read it.

    It is not opened where it is there: closing it would end the locks that SQLite has on it in this process.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    if path.is_file() and path.stat().st_mode & 0o077:
        with suppress(PermissionError):
            os.chmod(path, 0o600)


def seal_of(key: bytes) -> str:
    """What a ledger's tables hold to show that they were made with a key."""
    return hmac.digest(key, b"the seal of this ledger", "sha256").hex()


def key_place(path: Path) -> Path:
    """The file of a ledger's key."""
    return path.with_name(path.name + ".key")
