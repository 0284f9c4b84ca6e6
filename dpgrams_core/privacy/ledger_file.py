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
from pathlib import Path

from dpgrams_core.errors import BudgetError

KEY_BYTES = 32
_MARK = b"+"
_VERSION = 2
_SCHEMA = """
CREATE TABLE seal (mark TEXT NOT NULL);
CREATE TABLE accounts (
    account TEXT PRIMARY KEY, cap_epsilon TEXT NOT NULL, cap_delta TEXT NOT NULL, opened TEXT NOT NULL);
CREATE TABLE charges (
    id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT NOT NULL REFERENCES accounts, at TEXT NOT NULL,
    description TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, status TEXT NOT NULL, events TEXT NOT NULL);
CREATE TABLE draws (charge INTEGER PRIMARY KEY REFERENCES charges, at TEXT NOT NULL);
CREATE TRIGGER charges_stay BEFORE DELETE ON charges BEGIN SELECT RAISE(ABORT, 'a charge is never deleted'); END;
CREATE TRIGGER charges_hold BEFORE UPDATE ON charges BEGIN SELECT RAISE(ABORT, 'a charge is never changed'); END;
CREATE TRIGGER accounts_stay BEFORE DELETE ON accounts BEGIN SELECT RAISE(ABORT, 'an account is never deleted'); END;
CREATE TRIGGER accounts_hold BEFORE UPDATE ON accounts BEGIN SELECT RAISE(ABORT, 'a cap is never changed'); END;
"""
# Since version 2: what was released for a charge. Its owner may delete rows to make room; the charges stay.
_KEPT = """
CREATE TABLE kept (charge INTEGER PRIMARY KEY REFERENCES charges, at TEXT NOT NULL, content BLOB NOT NULL);
CREATE TRIGGER kept_hold BEFORE UPDATE ON kept BEGIN SELECT RAISE(ABORT, 'what is kept is never changed'); END;
"""


def set_up(connection: sqlite3.Connection, path: Path, seal: str) -> None:
    """Make the tables in a new file, or those that an older file lacks; refuse another version or another key.

    Tables that were there once are not made again: that would forget what was spent.  All of it is one transaction of
    the caller's: an older file is upgraded as a whole or stays as it was.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0 and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        if len(key_place(path).read_bytes()) > KEY_BYTES:
            raise BudgetError(
                "The ledger's key file is there and its tables are not, so what was spent is not known. Put back a "
                "copy of the ledger's file. Only who wants all budgets forgotten removes the key file, too."
            )
        _make(connection, _SCHEMA + _KEPT)
        connection.execute("INSERT INTO seal VALUES (?)", (seal,))
        os.chmod(path, 0o600)
    elif version not in (1, _VERSION):
        raise BudgetError("The ledger's file is not one that this version knows. Set DPGRAMS_LEDGER to another place.")
    elif connection.execute("SELECT mark FROM seal").fetchall() != [(seal,)]:
        raise BudgetError(
            "The ledger and its key file do not belong together, so spent budgets would not be found again. Put "
            "back the key file that was made with it."
        )
    elif version == 1:
        _make(connection, _KEPT)


def _make(connection: sqlite3.Connection, tables: str) -> None:
    for statement in tables.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {_VERSION}")


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
    place = key_place(path)
    if place.stat().st_size > KEY_BYTES:
        return
    handle = os.open(place, os.O_WRONLY)
    try:
        os.pwrite(handle, _MARK, KEY_BYTES)
        os.fsync(handle)
    finally:
        os.close(handle)


def key_place(path: Path) -> Path:
    """Where the key of the ledger at a path is."""
    return path.with_name(path.name + ".key")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
