"""The two files of a ledger: its tables, and its secret key, made once from the operating system's entropy.

Losing either must not refill a budget.  Tables without their key are refused.  So is a key without its tables once it
is *marked*: one byte behind the key, written after the tables are on the disk and before anything can be charged.  A
key that is not marked yet, as after a crash between the two or in an older ledger, gets its mark when it is opened.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from dpgrams_core.errors import BudgetError
from dpgrams_core.privacy.ledger_caps import check_amounts
from dpgrams_core.privacy.ledger_chain import FIRST, KINDS, chain_key, insert_row

KEY_BYTES = 32
_MARK = b"+"
_VERSION = 3
_ID_BYTES = 16
_AMOUNT = "typeof({0}) = 'text' AND CAST({0} AS REAL) {1} 0 AND CAST({0} AS REAL) < {2}"  # SQL knows no exact numbers
_TABLES = f"""
CREATE TABLE seal (mark TEXT NOT NULL, id TEXT NOT NULL, made TEXT NOT NULL, upgraded INTEGER NOT NULL);
CREATE TABLE chain (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, row TEXT NOT NULL, mark TEXT NOT NULL UNIQUE);
CREATE TABLE accounts (
    account TEXT PRIMARY KEY NOT NULL, cap_epsilon TEXT NOT NULL, cap_delta TEXT NOT NULL, opened TEXT NOT NULL,
    CHECK ({_AMOUNT.format("cap_epsilon", ">", "1e300")}), CHECK ({_AMOUNT.format("cap_delta", ">", "1")}));
CREATE TABLE charges (
    id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT NOT NULL REFERENCES accounts, at TEXT NOT NULL,
    description TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, status TEXT NOT NULL, events TEXT NOT NULL,
    CHECK ({_AMOUNT.format("epsilon", ">", "1e300")}), CHECK ({_AMOUNT.format("delta", ">=", "1")}));
CREATE TABLE draws (charge INTEGER PRIMARY KEY REFERENCES charges, at TEXT NOT NULL);
CREATE TABLE kept (charge INTEGER PRIMARY KEY REFERENCES charges, at TEXT NOT NULL, content BLOB NOT NULL);
CREATE TABLE closings (id INTEGER PRIMARY KEY, at TEXT NOT NULL, reason TEXT NOT NULL);
"""
# What must never happen to the rows of a table. What was kept may be deleted by its owner, to make room.
_HELD = {
    "seal": "a seal",
    "chain": "an entry",
    "accounts": "an account",
    "charges": "a charge",
    "draws": "a draw",
    "kept": "what is kept",
    "closings": "a closing",
}
_TRIGGERS = "".join(
    f"CREATE TRIGGER {table}_{name} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{what} is never {word}'); END;\n"
    for table, what in _HELD.items()
    for name, verb, word in (("stay", "DELETE", "deleted"), ("hold", "UPDATE", "changed"))
    if (table, verb) != ("kept", "DELETE")
)
_OLD_TABLES = {1: ("draws", "charges", "accounts"), 2: ("kept", "draws", "charges", "accounts")}  # children first


def set_up(connection: sqlite3.Connection, path: Path, key: bytes, seal: str) -> None:
    """Make the tables in a new file, or bring an older one up to date; refuse another version or another key.

    Tables that were there once are not made again: that would forget what was spent.  All of it is one transaction of
    the caller's: an older file is upgraded as a whole or stays as it was.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0 and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        if len(_key_place(path).read_bytes()) > KEY_BYTES:
            raise BudgetError(
                "The ledger's key file is there and its tables are not, so what was spent is not known. Put back a "
                "copy of the ledger's file. Only who wants all budgets forgotten removes the key file, too."
            )
        make_tables(connection)
        insert_row(connection, chain_key(key), FIRST, _first_row(seal, 0))
        os.chmod(path, 0o600)
    elif version not in (1, 2, _VERSION):
        raise BudgetError("The ledger's file is not one that this version knows. Set DPGRAMS_LEDGER to another place.")
    elif connection.execute("SELECT mark FROM seal").fetchall() != [(seal,)]:
        raise BudgetError(
            "The ledger and its key file do not belong together, so spent budgets would not be found again. Put "
            "back the key file that was made with it."
        )
    elif version < _VERSION:
        _upgrade(connection, chain_key(key), seal, version)


def make_tables(connection: sqlite3.Connection) -> None:
    """The empty tables of this version and their triggers."""
    for statement in (_TABLES + _TRIGGERS).split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def _first_row(seal: str, upgraded: int) -> dict[str, str | int]:
    """What tells this ledger from another one with the same key, and from which version it was upgraded (0: none)."""
    return {
        "mark": seal,
        "id": secrets.token_bytes(_ID_BYTES).hex(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "upgraded": upgraded,
    }


def _upgrade(connection: sqlite3.Connection, key: bytes, seal: str, version: int) -> None:
    """Rows of an older file come into the chain as they are found: what was done to them before cannot be noticed.

    The tables are made again, since SQLite adds no constraint to a table that is there; a row that breaks one (an
    amount below zero, say) is refused, and the file stays as it was.
    """
    old = _OLD_TABLES[version]
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')
    for table in old:
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    connection.execute("DROP TABLE seal")
    make_tables(connection)
    insert_row(connection, key, FIRST, _first_row(seal, version))
    try:
        for kind in ("account", "charge", "draw", "kept"):
            known = KINDS[kind]
            if known.table not in old:
                continue
            columns = ", ".join(known.columns)
            for values in connection.execute(f"SELECT {columns} FROM old_{known.table} ORDER BY rowid").fetchall():
                row = dict(zip(known.columns, values, strict=True))
                check_amounts(row)
                insert_row(connection, key, kind, row)
    except (sqlite3.IntegrityError, BudgetError):
        raise BudgetError(
            "The ledger is one of an older version and holds a row that was never written by it, such as an amount "
            "below zero. It is left as it is. Put back a copy of it from before that."
        ) from None
    for table in old:
        connection.execute(f"DROP TABLE old_{table}")


def read_or_make_key(path: Path) -> bytes:
    """The ledger's key: made once, never replaced, since a new key would forget what was spent."""
    place = _key_place(path)
    if not place.exists():
        # The key is made before the ledger has content, so a look at it *after* that decides: another process may just
        # have made both.
        if path.is_file() and path.stat().st_size and not place.exists():
            raise BudgetError(
                "The ledger is there and its key file is not, so spent budgets would not be found again. Put back the "
                "key file that was made with it."
            )
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=place.name, delete=False) as file:  # mode 0600
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(file.name, place)  # of several processes one wins, and all read its key
        except FileExistsError:
            pass
        finally:
            os.unlink(file.name)
        _sync_folder(path.parent)
    key = place.read_bytes()
    if len(key) not in (KEY_BYTES, KEY_BYTES + len(_MARK)):
        raise BudgetError("The ledger's key file is damaged. Put back a copy of it.")
    return key[:KEY_BYTES]


def mark_key(path: Path) -> None:
    """Note behind the key that its tables were made; on return it is on the disk.

    The key itself is not written again, and several processes may write the same byte to the same place.
    """
    place = _key_place(path)
    if place.stat().st_size > KEY_BYTES:
        return
    handle = os.open(place, os.O_WRONLY)
    try:
        os.pwrite(handle, _MARK, KEY_BYTES)
        os.fsync(handle)
    finally:
        os.close(handle)


def _key_place(path: Path) -> Path:
    return path.with_name(path.name + ".key")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
